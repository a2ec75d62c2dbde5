"""Answers: typed while they are parsed, checked before they are believed, kept whatever is odd."""
