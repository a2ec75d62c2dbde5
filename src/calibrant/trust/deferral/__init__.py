"""When to ask another model: cascades, routers and value-of-deferral policies."""
