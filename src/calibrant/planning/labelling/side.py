"""Side information: what other models say, and what it predicts."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.special import expit, logit

from calibrant.core.arrays import Floats, Indices
from calibrant.core.errors import UnavailableError
from calibrant.planning.labelling.pools import LabelPool
from calibrant.stats.logistic import intercept_free, ridge_logistic


def peer_agreement(frame: pl.DataFrame) -> pl.Series:
    """Return, for every row, the share of other models that give the same answer, in [0, 1].

    It is no label and no claim: it steers which items to label and takes noise out of the
    estimate, while the labels alone decide its value.

    Parameters
    ----------
    frame
        Columns ``question_id``, ``model``, ``answer``; a missing answer agrees with nobody.

    Examples
    --------
    >>> frame = pl.DataFrame({"question_id": ["q"] * 3, "model": ["a", "b", "c"],
    ...                       "answer": ["X", "x ", "Y"]})
    >>> peer_agreement(frame).to_list()
    [0.5, 0.5, 0.0]
    """
    models = frame["model"].n_unique() if "model" in frame.columns else 0
    if models < 2 or "answer" not in frame.columns:
        raise UnavailableError(
            "peer agreement needs a column `answer` and at least two models on the same questions"
        )
    said = pl.col("answer").cast(pl.String).str.strip_chars().str.to_lowercase()
    rows = frame.select("question_id", "model", said.alias("said"))
    votes = rows.unique().group_by("question_id", "said").agg(votes=pl.len())
    others = rows.group_by("question_id").agg(others=pl.col("model").n_unique() - 1)
    joined = rows.join(votes, on=["question_id", "said"], how="left", maintain_order="left").join(
        others, on="question_id", how="left", maintain_order="left"
    )
    agreed = (
        pl.when(pl.col("said").is_null() | (pl.col("others") == 0))
        .then(0.0)
        .otherwise((pl.col("votes") - 1) / pl.col("others"))
    )
    return joined.select(agreed.fill_null(0.0).alias("peers")).to_series()


_FOLDS = 4
_FEWEST = 8


def features(pool: LabelPool) -> Floats:
    """Return standardised columns: the confidence's log-odds, then each side column.

    A yes/no column enters as it is; a share enters with its square, so that unanimous peers may
    count for more than their number.
    """
    columns = [logit(np.clip(pool.confidence, 0.02, 0.98))]
    if pool.side is not None:
        for values in np.nan_to_num(pool.side, nan=0.5).T:
            columns.append(values)
            if np.unique(values[:10_000]).size > 2:
                columns.append(values**2)
    table = np.column_stack(columns)
    spread = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _fit(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Return intercept and slopes of a weighted logistic ridge of strength 1 on the slopes."""
    design = np.column_stack([np.ones(len(x)), x])
    penalty = intercept_free(design, 1.0, 1e-3)
    return ridge_logistic(design, y, penalty, weights=weight / weight.mean())


def _predict(beta: Floats, x: Floats) -> Floats:
    return np.asarray(expit(beta[0] + x @ beta[1:]), dtype=np.float64)


def first_look(x: Floats, lab: Indices, y: Floats, weight: Floats) -> Floats:
    """Return predicted rates of all items from the labelled ones, to steer the next wave."""
    return _predict(_fit(x[lab], y, weight), x)


def cross_fitted(x: Floats, lab: Indices, y: Floats, weight: Floats) -> Floats:
    """Return a predicted rate of every item; no labelled item's own label goes into its own.

    Folds follow the place of an item in the pool, so that the same labels give the same numbers.
    """
    if lab.size < _FEWEST:
        return np.full(len(x), (float(y.sum()) + 1.0) / (lab.size + 2.0))
    # Multiplying by an odd number spreads neighbours over folds without a seed.
    fold = (lab * 2654435761 % 2**32) // (2**32 // _FOLDS)
    fold = np.minimum(fold, _FOLDS - 1)
    mean, own = np.zeros(len(x)), np.zeros(lab.size)
    used = 0
    for k in range(_FOLDS):
        inside = fold == k
        if inside.all():
            fold = np.arange(lab.size) % _FOLDS
            inside = fold == k
        rate = _predict(_fit(x[lab[~inside]], y[~inside], weight[~inside]), x)
        mean += rate
        own[inside] = rate[lab[inside]]
        used += 1
    mean /= used
    mean[lab] = own
    return mean


def share_left(pool: LabelPool) -> float:
    """Return the share of the outcomes' variance that side information leaves, `1 - R^2`.

    Measured on the labelled items with predictions that never saw them. About this share of the
    labels of a design without side information is needed; above 1 it helps nothing.
    """
    lab = np.flatnonzero(pool.labelled)
    y, weight = pool.correct[lab], pool.weights()
    rest = y - cross_fitted(features(pool), lab, y, weight)[lab]
    plain = LabelPool(pool.confidence, pool.correct, None, pool.bins, pool.draws)
    alone = y - cross_fitted(features(plain), lab, y, weight)[lab]
    base = float(weight @ alone**2)
    return float(weight @ rest**2) / base if base > 0 else 1.0
