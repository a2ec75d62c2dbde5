"""`audit`: is this confidence calibrated, and how sure can we be?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant.inputs.audit_options import AuditOptions
from calibrant.inputs.streaming import is_streamed
from calibrant.verbs.streamed_audit import streamed_audit

if TYPE_CHECKING:
    from calibrant.report.result import Result

__all__ = ["audit"]


def audit(
    data: Any,
    correct: Any = None,
    *,
    confidence: str | None = None,
    model: str | None = None,
    method: str | None = None,
    question: str | None = None,
    answer: str | None = None,
    weights: str | None = None,
    by: Sequence[str] = (),
    bins: int = 15,
    level: float = 0.95,
    resamples: int = 1000,
    recalibrate: str | None = None,
    on_invalid: str | None = None,
    graded: bool = False,
    scale: str = "fraction",
    repeats: bool = False,
    engine: str | None = None,
    seed: int = 0,
) -> Result:
    """Audit confidences against outcomes.

    Parameters
    ----------
    data
        An array of confidences (then `correct` is the array of outcomes), a scores table (path
        or dataframe), a study folder, or a foreign log (Inspect, lm-eval, ..).
    correct
        Array of outcomes, or the name of their column.
    confidence, model, method, question, answer, weights
        Column names where they differ from the scores schema.
    by
        Columns that split each (model, method) into groups with blocks of their own.
    bins
        Equal-width bins of the binned calibration error.
    level
        Coverage of the intervals.
    resamples
        Bootstrap resamples behind them.
    recalibrate
        Recalibrate each (model, method) first, cross-fitted: temperature, platt, isotonic, beta
        or histogram. Needed for scores that are not probabilities.
    on_invalid, graded, scale, repeats
        Rules for the rows, see `calibrant.records.load_scores`. By default a table stops at the
        first row that breaks a rule, and a study, where refusals and unreadable confidences are
        part of the record, drops and counts them.
    engine
        Read the table in parts and never whole: ``local`` (threads), ``ray`` or
        ``ray://HOST:PORT``. By default a table of more than five million rows is streamed by
        ``local`` and a smaller one is read into memory; the document says which under
        ``reading``.
    seed
        The same seed gives the same bytes.

    Returns
    -------
    Result
        Document ``calibrant.audit/1``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1.0, 500)
    >>> correct = rng.random(500) < confidence - 0.2
    >>> block = audit(confidence, correct)["results"][0]
    >>> block["n"], round(block["metrics"]["brier"]["value"], 2)
    (500, 0.24)
    """
    options = AuditOptions(
        columns={
            "confidence": confidence,
            "correct": correct if isinstance(correct, str) else None,
            "model": model,
            "method": method,
            "question": question,
            "answer": answer,
            "weights": weights,
        },
        by=tuple(by),
        bins=bins,
        level=level,
        resamples=resamples,
        recalibrate=recalibrate,
        on_invalid=on_invalid,
        graded=graded,
        scale=scale,
        repeats=repeats,
        engine=engine,
        seed=seed,
    )
    whole = {"weights": weights, "recalibrate": recalibrate, "graded": graded, "repeats": repeats}
    if is_streamed(data, engine, whole):
        return streamed_audit(data, options)
    # Imported here: what a table in memory needs takes a second to load, a streamed one is read
    # meanwhile.
    from threadpoolctl import threadpool_limits

    from calibrant.verbs.audit_rows import audit_rows

    # The algebra library adds up in another order on another number of threads: with one, the
    # last digits do not depend on the machine, nor on how calibrant was called.
    with threadpool_limits(1):
        return audit_rows(data, None if isinstance(correct, str) else correct, options)
