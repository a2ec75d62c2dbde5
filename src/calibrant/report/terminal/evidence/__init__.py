"""Tables of what the labels show: audits, comparisons, groups, cascades."""
