"""Readers of what observability and experiment platforms export: answers with named scores."""
