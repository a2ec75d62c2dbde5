"""Text files as tables: JSON as people save it, and the row that cannot be read."""
