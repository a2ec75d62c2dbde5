"""Where confidence is wrong, what it costs and when to defer."""
