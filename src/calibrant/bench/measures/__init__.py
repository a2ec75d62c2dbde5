"""Confidence when several answers are right: by number of answers, and on mixes of them."""
