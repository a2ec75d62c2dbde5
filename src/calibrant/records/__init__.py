"""Tables, their schemas, studies and the ledger."""

from typing import TYPE_CHECKING

from calibrant.core.lazy import lazy_exports

if TYPE_CHECKING:
    from calibrant.records.schemas import TABLES, check_table
    from calibrant.records.scores import ScoreBlock, Scores, load_scores
    from calibrant.records.study import Study
    from calibrant.records.tables import read_table, scan_table, source_name
else:
    # A streamed audit reads batches without the libraries that tables in memory need.
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".schemas": ("TABLES", "check_table"),
            ".scores": ("ScoreBlock", "Scores", "load_scores"),
            ".study": ("Study",),
            ".tables": ("read_table", "scan_table", "source_name"),
        },
    )

__all__ = [
    "TABLES",
    "ScoreBlock",
    "Scores",
    "Study",
    "check_table",
    "load_scores",
    "read_table",
    "scan_table",
    "source_name",
]
