"""Readers of the logs that other tools write, recognised by content.

Every reader returns a `ForeignLog`: what could be read, as tables, and a list of what could not.
"""

from typing import TYPE_CHECKING

from calibrant.core.lazy import lazy_exports

# Bound here, because its module has the same name.
from calibrant.records.convert.recognise import recognise

if TYPE_CHECKING:
    from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog, Problem
    from calibrant.records.convert.options import ReadOptions
    from calibrant.records.convert.recognise import READERS, Reader, read_log
else:
    # A table is asked whether it is a log, and needs nothing that reads one.
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".log": ("FILTERED_ONLY", "ForeignLog", "Problem"),
            ".options": ("ReadOptions",),
            ".recognise": ("READERS", "Reader", "read_log"),
        },
    )

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
