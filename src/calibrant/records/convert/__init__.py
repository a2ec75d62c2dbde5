"""Readers of the logs that other tools write, recognised by content.

Every reader returns a `ForeignLog`: what could be read, as tables, and a list of what could not.
"""

from typing import TYPE_CHECKING

from calibrant.core.imports import lazy_exports

# Bound here, because its module has the same name.
from calibrant.records.convert.recognise import recognise as recognise

if TYPE_CHECKING:
    from calibrant.records.convert.json_text import ReadOptions as ReadOptions
    from calibrant.records.convert.log import FILTERED_ONLY as FILTERED_ONLY
    from calibrant.records.convert.log import ForeignLog as ForeignLog
    from calibrant.records.convert.log import Problem as Problem
    from calibrant.records.convert.recognise import READERS as READERS
    from calibrant.records.convert.recognise import Reader as Reader
    from calibrant.records.convert.recognise import read_log as read_log
else:
    # A table is asked whether it is a log, and needs nothing that reads one.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
