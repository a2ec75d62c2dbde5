"""Which answers mean the same, and which are right."""
