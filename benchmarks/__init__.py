"""Benchmarks: what calibrant costs beside its peers, as ratios in one run."""
