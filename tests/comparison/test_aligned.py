"""Models side by side: what cannot be aligned is refused."""

import polars as pl
import pytest

from calibrant.comparison.aligned import align_models
from calibrant.core.errors import InputError


def test_rows_without_a_model_are_refused():
    table = pl.DataFrame(
        {
            "question_id": ["q1", "q1", "q2"],
            "model": ["a", None, "b"],
            "confidence": [0.5, 0.6, 0.7],
            "correct": [1.0, 0.0, 1.0],
        }
    )
    with pytest.raises(InputError, match="1 of 3 rows have no model"):
        align_models(table)
