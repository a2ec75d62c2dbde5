"""Files that `calibrant init` writes."""
