"""calibrant inside other tools, and its results in their formats."""
