"""Questions with exactly k right answers: made, checked, and what confidence is worth on them."""
