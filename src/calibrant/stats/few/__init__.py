"""Few rows: laws that are listed instead of transformed, and draws that all models share."""
