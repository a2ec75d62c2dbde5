"""Readers of the logs that other tools write, recognised by content.

Every reader returns a `ForeignLog`: what could be read, as tables, and a list of what could not.
"""

from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog, Problem
from calibrant.records.convert.options import ReadOptions
from calibrant.records.convert.recognise import READERS, Reader, read_log, recognise

__all__ = [
    "FILTERED_ONLY",
    "READERS",
    "ForeignLog",
    "Problem",
    "ReadOptions",
    "Reader",
    "read_log",
    "recognise",
]
