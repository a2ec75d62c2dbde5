"""Readers of the logs that other tools write, recognised by content.

Every reader fills a `ForeignLog`: what could be read, as tables, and a list of what could not.
"""
