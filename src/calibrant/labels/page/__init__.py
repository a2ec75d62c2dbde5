"""The page on which people label: a small server on loopback and its three static files."""
