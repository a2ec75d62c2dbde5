"""Spellings, numbers, dates, names and places brought to one form."""
