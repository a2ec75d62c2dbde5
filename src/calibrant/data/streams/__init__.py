"""Tables that are read in parts: which ones, by which engine, and as sums."""
