"""Endpoints that answer questions: HTTP, embedded model, replay."""
