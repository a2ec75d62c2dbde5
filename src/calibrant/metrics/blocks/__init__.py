"""A block of rows, or of cells of rows, and what its metrics share."""
