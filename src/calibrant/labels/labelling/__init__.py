"""Labels drawn with known probabilities: which items, what they show, when to stop."""
