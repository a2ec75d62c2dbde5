"""Boosted trees for cross-fitting: what the features say beyond the confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.rng import named_stream

__all__ = ["Encoded", "boosted_residual", "encode", "fold_of_unit"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FOLDS = 5
_MOST_CATEGORIES = 250


class Encoded:
    """Features as a matrix for boosting, with a mark at the columns that hold categories."""

    def __init__(self, matrix: Floats, categorical: list[bool]) -> None:
        self.matrix = matrix
        self.categorical = categorical

    def beside(self, confidence: Floats) -> Encoded:
        """Return the features with the confidence as a further number."""
        return Encoded(np.column_stack([self.matrix, confidence]), [*self.categorical, False])


def encode(frame: pl.DataFrame) -> Encoded:
    """Return numbers as they are and categories as codes; rare ones beyond 250 share a code.

    No outcome enters, so nothing can leak from the rows that are judged.

    Examples
    --------
    >>> encode(pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})).categorical
    [False, True]
    """
    columns, categorical = [], []
    for column in frame.get_columns():
        if column.null_count():
            raise InputError(
                f"the feature {column.name!r} is missing",
                row=int(column.is_null().arg_max() or 0) + 1,
                hint="drop the row, or give missing values a category of their own",
            )
        number = column.dtype.is_numeric()
        columns.append(column.cast(pl.Float64).to_numpy() if number else _codes(column))
        categorical.append(not number)
    if not columns:
        raise InputError("at least one feature is needed")
    return Encoded(np.column_stack(columns), categorical)


def _codes(column: pl.Series) -> Floats:
    if column.dtype.is_nested() or column.dtype.is_temporal():
        raise InputError(
            f"the feature {column.name!r} holds {column.dtype}, not a number or a category"
        )
    text = column.cast(pl.String)
    kept = text.value_counts(sort=True)[text.name].head(_MOST_CATEGORIES).sort()
    codes = text.replace_strict(
        kept, list(range(len(kept))), default=len(kept), return_dtype=pl.Float64
    )
    values: Floats = codes.to_numpy()
    return values


def fold_of_unit(n: int, units: Ints | None, seed: int) -> Ints:
    """Deal rows into five folds; rows of one unit stay together."""
    rng = named_stream(seed, "cross-fit")
    count = n if units is None else int(units.max()) + 1
    fold = rng.permutation(np.arange(count) % FOLDS)
    return fold if units is None else fold[units]


def boosted_residual(
    features: Encoded, target: Floats, rows: npt.NDArray[np.bool_], seed: int
) -> Floats:
    """Fit small boosted trees on `rows` and return their prediction for all rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

    model: Any = HistGradientBoostingRegressor(
        max_iter=40,
        learning_rate=0.075,
        max_leaf_nodes=8,
        min_samples_leaf=40,
        l2_regularization=5.0,
        categorical_features=features.categorical,
        early_stopping=False,
        random_state=seed,
    )
    # Short parallel steps: several threads spend most of the time waiting for each other.
    with threadpool_limits(limits=1, user_api="openmp"):
        model.fit(features.matrix[rows], target[rows])
        prediction: Floats = model.predict(features.matrix)
    return prediction
