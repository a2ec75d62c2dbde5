"""Tables, their schemas, studies and the ledger."""

from calibrant.records.schemas import TABLES, check_table
from calibrant.records.scores import Block, Scores, load_scores
from calibrant.records.study import Study
from calibrant.records.tables import read_table, scan_table, source_name

__all__ = [
    "TABLES",
    "Block",
    "Scores",
    "Study",
    "check_table",
    "load_scores",
    "read_table",
    "scan_table",
    "source_name",
]
