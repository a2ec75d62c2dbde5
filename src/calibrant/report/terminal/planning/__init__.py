"""Tables of labelling: plans, labels so far, monitoring."""
