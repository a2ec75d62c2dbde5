"""Thresholds of methods that add up answers: masses, tuning on a part, the rest untouched."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from calibrant.answers.confidence import METHODS, DrawTable, class_mass, score_table
from calibrant.bench.macro import ScoreRows, macro_auroc, mixes_of
from calibrant.core.arrays import Estimate, named_stream
from calibrant.core.errors import InputError


def mass_grid(table: DrawTable, *, points: int = 12) -> tuple[float, ...]:
    """Return thresholds for sca that fit the masses at hand: 0 and quantiles of the masses.

    A fixed grid up to 0.5 says nothing about masses of 0.001, nor about sums over draws of 5.

    Parameters
    ----------
    table
        Draws with log-probs and meanings.
    points
        Quantiles taken, evenly spaced from the least mass to the largest.

    Examples
    --------
    >>> from calibrant.answers.confidence import Question, table_of
    >>> logs = [[float(np.log(p))] for p in (0.4, 0.4, 0.1, 0.02)]
    >>> mass_grid(table_of([Question(classes=[0, 0, 1, 2], token_logprobs=logs)]), points=3)
    (0.0, 0.02, 0.1, 0.8)
    """
    mass = class_mass(table.samples)
    masses = mass[table.samples.classes.answered & ~np.isnan(mass)]
    quantiles = np.quantile(masses, np.linspace(0.0, 1.0, points)) if masses.size else ()
    return tuple(sorted({0.0, *(float(f"{value:.3g}") for value in quantiles)}))


def mass_histogram(table: DrawTable, *, bins: int = 10) -> list[dict[str, object]]:
    """Return, per model, how many meanings have which mass (Figs. 9 and 6 of the paper).

    The mass of a meaning is the summed probability of its draws, not normalised: it may exceed
    1, and the last bin holds those that do.

    Parameters
    ----------
    table
        Draws with log-probs and meanings.
    bins
        Bins of equal width from 0 to 1.

    Returns
    -------
    list of dict
        ``model``, ``edges`` (bins + 1 of them), ``counts`` (bins + 1: the last one is above 1) and
        ``right``, how many of these are graded right; models without log-probs are left out.

    Examples
    --------
    >>> from calibrant.answers.confidence import Question, table_of
    >>> logs = [[float(np.log(p))] for p in (0.6, 0.6, 0.3, 0.02)]
    >>> asked = Question(
    ...     classes=[0, 0, 1, 2], correct=[1, 1, 0, 0], token_logprobs=logs, model="m"
    ... )
    >>> mass_histogram(table_of([asked]), bins=2)
    [{'model': 'm', 'edges': [0.0, 0.5, 1.0], 'counts': [2, 0, 1], 'right': [0, 0, 1]}]
    """
    classes = table.samples.classes
    mass = class_mass(table.samples)
    finite = classes.answered & ~np.isnan(mass)
    models = table.model.gather(classes.unit[finite]).to_numpy()
    edges = np.round(np.linspace(0.0, 1.0, bins + 1), 12)
    right = classes.correct[finite] == 1

    def counts(rows: NDArray[np.bool_]) -> list[int]:
        sums = mass[finite][rows]
        return [*np.histogram(sums[sums <= 1.0], bins=edges)[0].tolist(), int((sums > 1.0).sum())]

    return [
        {
            "model": model,
            "edges": edges.tolist(),
            "counts": counts(models == model),
            "right": counts((models == model) & right),
        }
        for model in dict.fromkeys(models.tolist())
    ]


def development_part(
    question_id: Sequence[str], strata: Sequence[str], *, seed: int = 0
) -> NDArray[np.bool_]:
    """Return which rows belong to the development part.

    The part holds a fifth of the questions of every stratum (rounded). A question is in it
    under every model and method.

    Examples
    --------
    >>> development_part([f"q{i}" for i in range(10)], ["a"] * 10).tolist().count(True)
    2
    """
    names = np.asarray(question_id).astype(str)
    groups = np.asarray(strata).astype(str)
    choice: set[str] = set()
    for group in sorted(set(groups.tolist())):
        questions = sorted(set(names[groups == group].tolist()))
        order = named_stream(seed, "development", group).permutation(len(questions))
        choice.update(questions[index] for index in order[: round(_DEVELOPMENT * len(questions))])
    return np.array([name in choice for name in names.tolist()])


_DEVELOPMENT = 0.2
GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


def tune_aggregation(
    table: DrawTable,
    questions: pl.DataFrame,
    *,
    methods: Sequence[str] = ("sca", "snca", "sfca"),
    grid: Sequence[float] | None = None,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> list[dict[str, Any]]:
    """Return, per model and method, the tuned threshold and what it gives on the rest.

    Parameters
    ----------
    table
        Draws with their meanings.
    questions
        Columns question_id, k and domain.
    methods
        Methods with a threshold whose inputs are there; others are left out.
    grid
        Thresholds to try; None: for sca quantiles of the masses at hand (`mass_grid`), for shares
        of the mass (snca, sfca) a fixed grid up to 0.5.
    level, seed
        Coverage of the intervals; seed of the split.
    **options
        Further options of the confidence methods.
    """
    for name in methods:
        if METHODS[name].default_tau is None:
            raise InputError(f"the method {name!r} has no threshold to tune")
    scored = [
        score_table(table, methods=[name], tau=tau, **options).scores.with_columns(
            tau=pl.lit(tau, pl.Float64)
        )
        for name in methods
        for tau in _grid(name, table, grid)
    ]
    frame = (
        pl.concat(scored)
        .drop_nulls(["confidence", "correct"])
        .join(questions.select("question_id", "k", "domain"), on="question_id")
    )
    return [
        tune_scores(part, level=level, seed=seed)
        for part in frame.sort("model", "method", "tau", "question_id").partition_by(
            ["model", "method"], maintain_order=True
        )
    ]


def _grid(method: str, table: DrawTable, grid: Sequence[float] | None) -> Sequence[float]:
    if grid is not None:
        return grid
    default = METHODS[method].default_tau or 0.0
    # Shares of the mass lie in [0, 1]; sums of it have the size of the data.
    fitting = GRID if METHODS[method].probability else mass_grid(table)
    return sorted({default, *fitting})


def tune_scores(frame: pl.DataFrame, *, level: float = 0.95, seed: int = 0) -> dict[str, Any]:
    """Return the threshold of one method with the highest macro AUROC on the development part.

    Parameters
    ----------
    frame
        Scores of one model and method at every threshold ``tau``, the same questions at each.
    level, seed
        As in `tune_aggregation`; the smallest threshold wins a tie.
    """
    by_tau = {float(part["tau"][0]): ScoreRows.of(part) for part in frame.partition_by("tau")}
    first = by_tau[min(by_tau)]
    development = development_part(first.question.tolist(), first.domain.tolist(), seed=seed)
    method = str(frame["method"][0])
    default = METHODS[method].default_tau or 0.0
    head = {
        "model": frame["model"][0],
        "method": method,
        "default": default,
        "development_questions": int(development.sum()),
    }
    tried = {tau: _area(rows, development, level) for tau, rows in sorted(by_tau.items())}
    defined = {tau: area.value for tau, area in tried.items() if not np.isnan(area.value)}
    if not defined:
        # Nothing else of the evaluation needs this threshold.
        reason = "no threshold has an AUROC on the development part: too few questions"
        return {**head, "threshold": None, "reason": reason, "curve": [], "mixes": []}
    best = max(defined, key=lambda tau: (defined[tau], -tau))

    def rest(tau: float, mix: Sequence[int]) -> Estimate | None:
        rows = by_tau.get(tau)
        if rows is None:
            return None
        return _area(rows, ~development & np.isin(rows.k, list(mix)), level)

    return {
        **head,
        "threshold": best,
        "reason": None,
        "curve": [{"threshold": tau, "auroc": area.value} for tau, area in tried.items()],
        "development": tried[best],
        "mixes": [
            {"mix": mix, "tuned": rest(best, mix), "default": rest(default, mix)}
            for mix in mixes_of(first.k.tolist())
        ],
    }


def _area(rows: ScoreRows, subset: NDArray[np.bool_], level: float) -> Estimate:
    selection = rows.take(subset)
    return macro_auroc(
        selection.confidence, selection.correct, selection.domains(), level=level
    ).estimate
