"""Graded answers without a confidence: how often each model is right, and which more often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import asdict, replace
from scipy.special import stdtr, stdtrit

from calibrant.core.arrays import Estimate, Floats, Indices
from calibrant.core.errors import NoConfidenceError, error_source
from calibrant.core.hints import Call
from calibrant.data import ScoreBlock, Scores, load_scores
from calibrant.data.reading.names import columns_called, model_columns
from calibrant.data.score_table import CLUSTER, models_by_file
from calibrant.data.sources.input import document_head
from calibrant.data.sources.options import ReadingOptions, table_settings
from calibrant.data.tables import collect, column_names, scan_table
from calibrant.findings.claims.audit import accuracy_claims
from calibrant.findings.documents.entries import AccuracyEntry, AccuracyPair
from calibrant.metrics.stats.intervals import wilson_estimate
from calibrant.metrics.stats.multiplicity import holm
from calibrant.report.result import AccuracyResult
from calibrant.verbs.dependent_rows import DependentBlocks
from calibrant.verbs.opening.open_input import open_input
from calibrant.verbs.score_documents import scores_document

_NONE = "no confidence"


def accuracy_document(
    data: Any,
    table: Mapping[str, Any],
    why: NoConfidenceError,
    *,
    by: Sequence[str] = (),
    models: Sequence[str] | None = None,
    level: float = 0.95,
) -> AccuracyResult:
    """Return what grades alone say; `why` is how the confidence was found to be missing.

    Parameters
    ----------
    data, table
        What the verb was given, and how it is read.
    why
        Raised where several columns may hold the outcome.
    by, models, level
        As for `audit` and `compare`.
    """
    scores, notes = _graded(data, table, why)
    scores = scores.only(model=models)
    settings = {"level": level, "by": list(by), "models": models, **table_settings(table)}
    head = document_head("accuracy", data, seed=0, settings=settings)
    together = DependentBlocks.of_scores(scores, scores.blocks(by=by), skip=by)
    blocks = together.blocks
    columns = scores.reading.columns
    usual = scores.reading.cluster or columns.get("question_id", "question_id")
    entries = [
        _entry(block, words if search and search.groups else usual, level)
        for block, words, search in zip(blocks, together.words, together.searches, strict=True)
    ]
    pairs = _pairs([block for block in blocks if len(block.keys) == 2], level)
    claims = [claim.to_dict() for claim in accuracy_claims(entries, pairs, level)]
    document = {**scores_document(head, scores, entries, ()), "claims": claims}
    step = _next(data, scores)
    missing = f"There is no confidence: calibration is not told. {step['why']}."
    document["data"]["notes"] = [missing, *notes]
    together.tell(document)
    return AccuracyResult({**document, "pairs": pairs, "next": step})


def _graded(
    data: Any, table: Mapping[str, Any], why: NoConfidenceError
) -> tuple[Scores, Sequence[str]]:
    """Return the graded rows, with a confidence that stands for none, and notes about them."""
    handle = open_input(data, table.get("correct"), scale=table.get("scale"))
    options = ReadingOptions(**{name: value for name, value in table.items() if name != "mend"})
    draws = getattr(handle, "tables", None)
    if draws is not None and not isinstance(draws, list | tuple):
        rows = draws.draws.filter(pl.col("correct").is_not_null())
        frame = rows.select("question_id", "model", "correct").with_columns(confidence=0.5)
        return load_scores(frame, repeats=True, graded=True), draws.notes
    correct = options.correct or (why.graded[0] if len(why.graded) == 1 else None)
    if correct is None:
        raise why
    source = handle.probabilities_table(options)[0]
    with error_source(handle.error_name):
        frames = _with_none(source)
        options = replace(options, confidence=_NONE, correct=correct, repeats=True)
        for frame in frames if isinstance(frames, list) else [frames]:
            if any(_may_be_one(column) for column in frame.drop(_NONE, correct).get_columns()):
                raise why
        return load_scores(frames, **asdict(options)), ()


def _with_none(source: Any) -> Any:
    """Return tables with a column that stands for the confidence that they do not have."""
    sources = source if isinstance(source, list) else [source]
    frames = []
    for one, name in zip(sources, models_by_file(sources), strict=True):
        lazy = scan_table(one)
        if len(sources) > 1 and name and not model_columns(column_names(lazy, one)):
            lazy = lazy.with_columns(pl.lit(name).alias("model"))
        frames.append(collect(lazy.with_columns(pl.lit(0.5).alias(_NONE)), one))
    return frames if isinstance(source, list) else frames[0]


def _may_be_one(column: pl.Series) -> bool:
    """Return whether a column may be a confidence under another name: shares that differ."""
    if not column.dtype.is_float():
        return False
    known_values = column.drop_nulls()
    usual = (
        known_values.len()
        and known_values.is_between(0, 1).all()
        and not known_values.is_in([0.0, 1.0]).all()
    )
    return bool(usual) and (known_values.n_unique() > 1 or known_values.len() == 1)


def _entry(block: ScoreBlock, unit: str, level: float) -> AccuracyEntry:
    group = {name: key for name, key in block.keys.items() if name not in ("model", "method")}
    ids = block.frame["question_id"].rank("dense").cast(pl.Int64).to_numpy() - 1
    # Of questions with several answers: whether some are right and some wrong.
    rows, good = np.bincount(ids), np.bincount(ids, block.correct)
    mixed = (good > 0)[rows > 1] & (good < rows)[rows > 1]
    disagree = wilson_estimate(float(mixed.mean()), len(mixed), level) if len(mixed) else None
    return AccuracyEntry(
        model=block.keys["model"],
        group=group or None,
        n=len(block.correct),
        questions=int(ids.max()) + 1,
        clusters=None if block.units is None else unit,
        accuracy=_share(block.correct, block.units, level),
        disagree=disagree,
    )


def _share(right: Floats, units: Indices | None, level: float) -> Estimate:
    """Return a share with Wilson's interval at the number of rows that clusters are worth."""
    value, n = float(right.mean()), float(len(right))
    if units is not None:
        sums = np.bincount(units, right - value)
        count = len(sums)
        error = (sums**2).sum() * count / max(count - 1, 1) / n**2
        # As many units as there are, where all are right or all wrong.
        n = min(n, value * (1 - value) / error) if error > 0 else float(count)
        # Student's law of so few units, as rows.
        n *= (stdtrit(1e9, (1 - level) / 2) / stdtrit(count - 1, (1 - level) / 2)) ** 2
    return replace(wilson_estimate(value, max(n, 1.0), level), n=len(right))  # type: ignore[arg-type]


def _pairs(blocks: Sequence[ScoreBlock], level: float) -> list[AccuracyPair]:
    match = [pair for a, b in combinations(blocks, 2) if (pair := _pair(a, b, level))]
    for place, value in enumerate(holm([pair.p for pair in match]) if match else ()):
        match[place] = replace(match[place], p_adjusted=float(value))
    return sorted(match, key=lambda pair: (pair.p_adjusted, -pair.difference.numbers[0]))


def _pair(a: ScoreBlock, b: ScoreBlock, level: float) -> AccuracyPair | None:
    means = [
        block.frame.group_by("question_id", maintain_order=True).agg(
            pl.col("correct").mean(), pl.first(CLUSTER) if CLUSTER in block.frame.columns else []
        )
        for block in (a, b)
    ]
    pair = means[0].join(means[1], on="question_id", suffix="_b", maintain_order="left")
    if pair.height < 2:
        return None
    names = [a.keys["model"], b.keys["model"]]
    d = (pair["correct"] - pair["correct_b"]).to_numpy()
    if d.mean() < 0:
        d, names = -d, names[::-1]
    clustered = CLUSTER in pair.columns
    units = pair[CLUSTER].rank("dense").to_numpy() - 1 if clustered else np.arange(len(d))
    sums = np.bincount(units, d - d.mean())
    count = len(sums)
    error = float(np.sqrt((sums**2).sum() * count / max(count - 1, 1))) / len(d)
    half = -float(stdtrit(count - 1, (1 - level) / 2)) * error if count > 1 else 1.0
    ends = max(d.mean() - half, -1.0), min(d.mean() + half, 1.0)
    low, high = map(float, ends)
    estimate = Estimate(float(d.mean()), low, high, n=len(d), level=level)
    if not clustered and np.isin(d, (-1, 0, 1)).all():
        lead, distance = int((d > 0).sum()), int((d != 0).sum())
        # Loaded here: it takes half a second, and most audits have a confidence.
        from scipy.stats import binomtest

        p = float(binomtest(lead, distance).pvalue) if distance else 1.0
    else:
        p = float(2 * stdtr(count - 1, -abs(d.mean()) / error)) if error > 0 else 1.0
    a_name, b_name = names
    return AccuracyPair(
        a=a_name, b=b_name, questions=len(d), difference=estimate, p=p, p_adjusted=p
    )


def _next(data: Any, scores: Scores) -> dict[str, str]:
    """Return the confidence that costs least here: agreement of answers there are, else stated."""
    repeated = scores.frame.select(pl.struct("question_id", "model").is_duplicated().any()).item()
    texts = [
        name
        for role in ("answer", "sampled")
        for name in columns_called(role, scores.frame.columns)
        if scores.frame.schema[name] == pl.String
    ]
    if repeated and texts:
        place = data if isinstance(data, str) else "TABLE"
        call = Call("audit", place, samples=texts[0])
        return {"why": "Answers repeat: their agreement is a confidence", "command": call.text()}
    why = (
        "Cheapest confidence: ask for a probability beside each answer (no further call); see what "
        "each one needs"
    )
    return {"why": why, "command": Call("methods").text()}
