"""Several classes: their probabilities one by one, and sets of classes that hold the right one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.data import ScoreBlock
from calibrant.data.reading.cells import parse_numbers
from calibrant.data.reading.pairs import class_columns
from calibrant.data.sources.input import document_head, today
from calibrant.data.sources.options import table_settings
from calibrant.data.tables import collect, scan_table
from calibrant.findings.documents.decisions import DecideEntry, DecideSets
from calibrant.metrics.stats.intervals import wilson_estimate
from calibrant.report.result import AuditResult
from calibrant.trust.selective.certify import fewest_rows
from calibrant.trust.selective.labels import decide_entry, labelled_policy, proportions
from calibrant.trust.units import ClassSets, PredictionSets, mass_before

CLASS, ITEM = "class", "item"
"""Columns of a table of single classes: which one a row is about, and of which item."""


def classwise_table(data: Any, table: Mapping[str, Any]) -> pl.DataFrame:
    """Return one row per item and class: its probability, and whether it is the right one.

    Parameters
    ----------
    data, table
        What `audit` was given, and how it is read: ``probs`` and ``correct`` name the columns.
    """
    probs, label = table.get("probs"), table.get("correct") or table.get("gold")
    if not probs or not label:
        rule = Hint("{classwise} needs class probabilities and the true class")
        raise InputError(rule, hint=Hint("name them: {probs} {correct}", probs="p_", correct="y"))
    frame = collect(scan_table(data), data)
    classes = class_columns(frame.columns, probs, label)
    right = _labels(frame[label], [*classes.values()])
    known_names = [name for name in frame.columns if name not in classes]
    parts = [
        frame.select(known_names).with_columns(
            pl.int_range(pl.len()).cast(pl.String).alias(ITEM),
            pl.lit(classes[name]).alias(CLASS),
            pl.Series("confidence", parse_numbers(frame[name]).values).fill_nan(None),
            pl.Series("correct", (right == place).astype(np.int8)),
        )
        for place, name in enumerate(classes)
    ]
    return pl.concat(parts).filter(pl.lit(pl.Series(np.tile(right >= 0, len(classes)))))


def classwise_result(
    audit: Callable[..., Any], data: Any, table: Mapping[str, Any], **options: Any
) -> AuditResult:
    """Return the audit of every class's probability, with the head of what was given."""
    rows = classwise_table(data, table)
    result: AuditResult = audit(
        rows, "correct", confidence="confidence", unit=ITEM, by=[CLASS], **options
    )
    document = result.to_dict()
    settings = {**document["settings"], "classwise": True, **table_settings(table)}
    document |= document_head("audit", data, seed=document["seed"], settings=settings)
    document["data"]["questions"] = max(entry["questions"] for entry in document["results"])
    # Nobody named the columns of this table, which has a row per class.
    document["reading"] = {**document["reading"], "cluster": None, "sentence": None}
    # The means of shares that add up to 1 agree whatever a model says.
    tautologies = ("audit.over_confident", "audit.under_confident")
    document["claims"] = [
        claim
        for claim in document["claims"]
        if claim["subject"].get("group") or claim["id"] not in tautologies
    ]
    if document.get("input"):
        names = {"probs": table["probs"], "correct": table["correct"]}
        document["next"] = {
            "why": "See which classes it leaves open",
            "command": Call("decide", str(data), **names, sets=True, max_error=0.1).text(),
        }
    return result


def _labels(column: pl.Series, classes: Sequence[str]) -> Ints:
    """Return the number of each row's class, -1 where there is none; a strange one is refused."""
    text = column.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    strange = sorted({*text} - {*classes, ""})
    if strange:
        raise InputError(
            f"{column.name} holds {strange[0]!r}, of which there is no probability",
            hint=f"the classes are {', '.join(classes[:8])}",
        )
    places = {name: place for place, name in enumerate(classes)}
    return np.array([places.get(word, -1) for word in text], dtype=np.int64)


class SetsOfClasses:
    """Fit sets of classes on a block; what `decide` saves and tells of them.

    Parameters
    ----------
    max_error, delta
        As for `decide`.
    probs, label
        What columns of probabilities share, and the column of the true class.
    """

    def __init__(self, max_error: float, delta: float, probs: str, label: str) -> None:
        self.max_error, self.delta, self.probs, self.label = max_error, delta, probs, label

    def fit(self, block: ScoreBlock, fitted_on: Mapping[str, Any]) -> SetsOfClasses:
        """Find the least mass that keeps the promise."""
        columns = class_columns(block.frame.columns, self.probs, self.label)
        names = [*columns.values()]
        right = _labels(block.frame[self.label], names)
        p = np.stack([parse_numbers(block.frame[name]).values for name in columns], axis=1)
        mask = (right >= 0) & np.isfinite(p).all(axis=1)
        self._p, self._right = p[mask], right[mask]
        few, mass = fewest_rows(self.max_error, self.delta), None
        limits = {"max_error": self.max_error, "delta": self.delta}
        if len(self._p) >= few:
            mass = PredictionSets.fit(self._p, self._right, **limits).mass
        self.needed_ = few if mass is None else None
        self._count(names, mass)
        numbers = self._one, self._missed, self._p.max(axis=1)
        about: Any = {"made": today(), "fitted_on": fitted_on}
        self.policy_ = labelled_policy(ClassSets(names), mass, limits, *numbers, **about)
        return self

    def _count(self, names: Sequence[str], mass: float | None) -> None:
        n = len(self._p)
        sets = PredictionSets(1.0 if mass is None else mass, self.max_error, self.delta, n)
        inside = sets.covers(self._p)
        sizes = inside.sum(axis=1)
        bad = 1.0 - inside[np.arange(n), self._right].astype(np.float64)
        self._missed = proportions(np.array([bad.sum()]), np.array([float(n)]))[0]
        self._one = wilson_estimate(float((sizes == 1).mean()), n)
        least = np.sort(mass_before(self._p)[np.arange(n), self._right])
        self.sets_ = DecideSets(
            classes=[*names],
            mean_size=float(sizes.mean()),
            sizes=np.bincount(sizes, minlength=len(names) + 1)[1:].tolist(),
            median_mass=float(np.median(least)),
        )

    def entry(
        self, model: str, method: str, correct: Floats, path: str | None = None
    ) -> DecideEntry:
        """Return the entry of a document; `answered` are the sets with one class alone."""
        return decide_entry(
            model,
            method,
            self.policy_,
            n=len(self._p),
            rate=float(correct.mean()),
            labels_needed=self.needed_,
            curve=[],
            path=path,
            sets=self.sets_,
        )
