"""Spend draws where the mode is not settled, and split a pool for a stated goal."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats, Ints, Mask
from calibrant.core.errors import InputError
from calibrant.metrics.semantic import theory


@dataclass(frozen=True, slots=True)
class AdaptiveRule:
    """When to stop drawing for the selection of a question's mode.

    Only the selection block is adaptive; the evaluation block has a fixed size and is drawn
    afterwards, so that the held-out frequency stays unbiased given the selection.

    Parameters
    ----------
    target
        Stop when the plug-in bound on the selection error is at most this.
    minimum, maximum
        Draws that are always made, and never exceeded.
    batch
        Draws made between two looks.

    Examples
    --------
    >>> rule = AdaptiveRule(target=0.05, minimum=5, maximum=25)
    >>> rule.settled(np.array([[12, 0], [7, 5]])).tolist()
    [True, False]
    """

    target: float = 0.05
    minimum: int = 5
    maximum: int = 25
    batch: int = 5

    def settled(self, counts: ArrayLike) -> Mask:
        """Return, per question, whether its selection block may stop.

        One class is added to those seen and half a draw given to it, so that a question whose
        few draws agree is not called settled by a bound of exactly 0.
        """
        table = np.asarray(counts, dtype=np.float64)
        n = table.sum(axis=1)
        ranking = np.sort(np.column_stack([table, np.full(n.size, 0.5)]), axis=1)[:, ::-1]
        first, second = ranking[:, 0] / (n + 0.5), ranking[:, 1] / (n + 0.5)
        classes = (table > 0).sum(axis=1) + 1
        bound = theory.selection_error_bound(first - second, first + second, classes, n.clip(1))
        enough = n >= self.minimum
        return np.asarray((enough & (bound <= self.target)) | (n >= self.maximum))


@dataclass(frozen=True, slots=True)
class AdaptiveScores:
    """Held-out confidence after an adaptive selection.

    `draws` counts the calls per question: selection plus evaluation.
    """

    selected: Ints
    confidence: Floats
    draws: Ints


def adaptive_scores(classes: ArrayLike, rule: AdaptiveRule, *, evaluation: int) -> AdaptiveScores:
    """Replay the rule over draws in the order in which they would have been made.

    Parameters
    ----------
    classes
        (questions, draws) class of each draw, numbers from 0; at least `rule.maximum` +
        `evaluation` draws.
    rule
        When to stop selecting.
    evaluation
        Draws of the evaluation block, made after the selection stopped.
    """
    table = np.asarray(classes, dtype=np.int64)
    questions, draws = table.shape
    if draws < rule.maximum + evaluation:
        raise InputError(
            f"{rule.maximum} + {evaluation} draws per question are needed, there are {draws}"
        )
    width = int(table.max()) + 1
    counts = np.zeros((questions, width), dtype=np.int64)
    used = np.zeros(questions, dtype=np.int64)
    open_rows = np.arange(questions)
    while open_rows.size:
        first = int(used[open_rows[0]])
        last = min(max(first + rule.batch, rule.minimum), rule.maximum)
        piece = table[open_rows, first:last]
        np.add.at(counts, (open_rows[:, None], piece), 1)
        used[open_rows] = last
        open_rows = open_rows[~rule.settled(counts[open_rows])]
    selected = np.argmax(counts, axis=1)
    columns = used[:, None] + np.arange(evaluation)
    agrees = table[np.arange(questions)[:, None], columns] == selected[:, None]
    return AdaptiveScores(selected, agrees.mean(axis=1), used + evaluation)


def best_selection_size(
    top: ArrayLike, margin: ArrayLike, mass: ArrayLike, pool: int, *, goal: str
) -> int:
    """Return how many of `pool` draws Sem2 should select on; the others evaluate.

    Parameters
    ----------
    top, margin, mass
        Probability of the mode, top-two margin and mass per question (plug-in or assumed).
    pool
        Draws per question.
    goal
        ``"bias"``: smallest mean absolute selection bias (as many as possible); ``"error"``:
        smallest mean squared error of the confidence of one split, selection bias squared plus
        p1 (1 - p1) / m.

    Examples
    --------
    >>> best_selection_size([0.9], [0.85], [0.95], 50, goal="error")
    7
    """
    if goal not in ("bias", "error"):
        raise InputError(f"goal must be bias or error, got {goal!r}")
    p1, p = (np.asarray(x, dtype=np.float64) for x in (top, mass))
    sizes = np.arange(1, pool)
    costs = []
    for n in sizes:
        lam = theory.standardised_margin(margin, p, n) / 2
        bias = np.sqrt(p / n) * theory.selection_bias(lam)
        spread = 0.0 if goal == "bias" else p1 * (1 - p1) / (pool - n)
        costs.append(float(np.mean(np.abs(bias) if goal == "bias" else bias**2 + spread)))
    return int(sizes[int(np.argmin(costs))])
