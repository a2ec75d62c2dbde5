"""Pools that people label, and their labels as the outcomes of an audit or a comparison."""
