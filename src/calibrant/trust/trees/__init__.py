"""Trees as plain arrays, honest ones among them, and what they are grown on."""
