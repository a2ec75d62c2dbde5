"""The app: one local server on which every verb looks at the same data."""
