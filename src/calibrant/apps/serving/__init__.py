"""A policy in front of its models: measure, decide, answer or defer."""
