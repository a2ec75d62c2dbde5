"""Parts of `plan`."""
