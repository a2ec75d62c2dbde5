"""Statistics on plain arrays (numpy and scipy only)."""
