"""Confidence methods: from draws and classes to scores."""
