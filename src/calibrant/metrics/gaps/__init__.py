"""Mean confidence minus accuracy, and intervals for it."""
