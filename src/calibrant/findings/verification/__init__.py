"""What the labels of a block can show."""
