"""Slow simulations: coverage of intervals and the like, run by `make simulate`."""
