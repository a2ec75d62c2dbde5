"""What side information predicts: a small weighted ridge, refitted without a row's own label."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from calibrant.core.arrays import Floats, Indices
from calibrant.planning.labelling.pools import LabelPool
from calibrant.stats.logistic import intercept_free, ridge_logistic

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
