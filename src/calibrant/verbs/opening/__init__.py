"""One door: whatever a verb was given becomes an input."""
