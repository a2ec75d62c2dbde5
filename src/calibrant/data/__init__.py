"""Any file becomes one checked table, with how it was read.

Start with `reading.Reading` (which column plays which role), `scores.load_scores` (the one
door of tables) and `score_table.Scores` (checked rows and their blocks).
"""

from typing import TYPE_CHECKING

from calibrant.core.names import lazy_exports

if TYPE_CHECKING:
    from calibrant.data.score_table import ScoreBlock as ScoreBlock
    from calibrant.data.score_table import Scores as Scores
    from calibrant.data.scores import load_scores as load_scores
    from calibrant.data.study import TABLES as TABLES
    from calibrant.data.study import Study as Study
    from calibrant.data.study import check_table as check_table
    from calibrant.data.tables import read_table as read_table
    from calibrant.data.tables import scan_table as scan_table
    from calibrant.data.tables import source_name as source_name
else:
    # A streamed audit reads batches without the libraries that tables in memory need.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
