"""Groups of rows whose confidence is off beyond the overall error."""
