"""Confidence by number of right answers and on mixes of them, in words and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from calibrant.claims import Claim
from calibrant.report.answers import claims_of, headline
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import Cell, estimate_cell, number_cell, share_cell
from calibrant.report.tables.remarks import UNCORRECTED, rows_left_out

_ALPHA = 0.05
_SAID = 5
_MANY = 6


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the evaluation as neutral blocks."""
    found: list[Paragraph | Table] = []
    found += [Paragraph(text, strong=True) for text in headline(_claims(document), _SAID)]
    models = list(dict.fromkeys(entry["model"] for entry in document["results"]))
    for model in models:
        entries = [entry for entry in document["results"] if entry["model"] == model]
        found.append(_by_k(model, entries, document["k"]))
        found.append(_mixes(model, entries, document))
    if document["coverage"]:
        found.append(_coverage(document))
        if any(entry["coverage_correlation"] is not None for entry in document["results"]):
            found.append(_correlations(document))
    if document.get("masses"):
        found.append(_masses(document["masses"]))
    if document.get("tuning"):
        found.append(_tuning(document["tuning"]))
        if any(entry["curve"] for entry in document["tuning"]):
            found.append(_curves(document["tuning"]))
    found.extend(rows_left_out(document))
    return found


def _claims(document: Mapping[str, Any]) -> list[Claim]:
    # Documents from before claims have sentences nowhere else: their tables stand alone.
    return claims_of(document) if document.get("claims") else []


def _rule(document: Mapping[str, Any]) -> str:
    rule = document.get("multiplicity")
    if rule is None:
        return f"p < {_ALPHA}, {UNCORRECTED}"
    return (
        f"corrected for {rule['tests']:,} tests by Holm's rule: at most a "
        f"{share_cell(rule['alpha'])} chance of any false claim"
    )


def _sure(test: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Return whether a difference is shown; older documents have no corrected p-value."""
    p = test.get("p_adjusted", test["p"])
    return p is not None and p <= (document.get("multiplicity") or {"alpha": _ALPHA})["alpha"]


def _mix(mix: Sequence[int]) -> str:
    return f"[{','.join(str(k) for k in mix)}]"


def _by_k(model: str, entries: Sequence[Mapping[str, Any]], ks: Sequence[int]) -> Table:
    rows = []
    for entry in entries:
        for name in ("accuracy", "confidence"):
            values = [estimate_cell(part[name], digits=2) for part in entry["by_k"]]
            change = estimate_cell(entry["change"][name], digits=2)
            label = entry["method"] if name == "accuracy" else ""
            rows.append((label, name, *values, change))
    last = f"change k={ks[0]} to {ks[-1]}"
    return Table(
        ("method", "mean", *(f"k={k}" for k in ks), last),
        tuple(rows),
        title=f"{model}: by number of right answers",
        note="Unweighted mean over domains; accuracy is that of the answer each method is about.",
        labels=2,
    )


def _mixes(model: str, entries: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> Table:
    rows = []
    for entry in entries:
        tests = {tuple(test["mix"]): test for test in entry["significance"]}
        cells = []
        for part in entry["mixes"]:
            test = tests.get(tuple(part["mix"]))
            mark = "*" if test is not None and _sure(test, document) else ""
            cells.append(estimate_cell(part["auroc"], digits=2, mark=mark))
        ece = entry["mixes"][-1]["ece"]
        rows.append((entry["method"], *cells, _error(ece)))
    left_out = sorted({name for e in entries for part in e["mixes"] for name in part["left_out"]})
    note = (
        f"A mix pools questions with these numbers of right answers. * shown to differ from "
        f"{document['reference']} on the questions that both have scored ({_rule(document)})."
    )
    if left_out:
        note += f" Without AUROC (all right or all wrong) in some mix: {', '.join(left_out)}."
    return Table(
        ("method", *(_mix(mix) for mix in document["mixes"]), "ECE, widest mix"),
        tuple(rows),
        title=f"{model}: AUROC on mixes",
        note=note,
    )


def _error(ece: Mapping[str, Any] | None) -> Cell:
    return "no probability" if ece is None else estimate_cell(ece, digits=2)


def _coverage(document: Mapping[str, Any]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for entry in document["coverage"]:
        counts = entry.get("questions") or []
        cells = (
            str(entry["model"]),
            number_cell(entry["k"]),
            estimate_cell(entry["coverage"], digits=2),
        )
        rows.append((*cells, *(number_cell(count) for count in counts)))
    counted = [f"{n}{' or more' if n == _MANY else ''}" for n in range(_MANY + 1)]
    columns = ("model", "k", "known answers", *counted)
    return Table(
        columns if rows and len(rows[0]) == len(columns) else columns[:3],
        tuple(rows),
        title="Knowledge coverage",
        note=f"{coverage_words(document.get('coverage_rule', {}))} Numbered columns: questions "
        "with this many known answers.",
        labels=2,
    )


def _correlations(document: Mapping[str, Any]) -> Table:
    """Return the rank correlation of confidence and coverage, for all questions and for each k."""
    rows = []
    for entry in document["results"]:
        if entry["coverage_correlation"] is not None:
            by_k = entry.get("coverage_correlation_by_k") or []
            cells = [estimate_cell(part["correlation"], digits=2) for part in by_k]
            whole = estimate_cell(entry["coverage_correlation"], digits=2)
            rows.append((entry["model"], entry["method"], whole, *cells))
    return Table(
        ("model", "method", "all", *(f"k={k}" for k in document["k"]))[: len(rows[0])],
        tuple(rows),
        title="Known answers and confidence: Spearman's rank correlation",
        note="Below 0: the more answers the model knows, the less confident it is.",
        labels=2,
    )


def _masses(masses: Sequence[Mapping[str, Any]]) -> Table:
    edges = masses[0]["edges"]
    bins = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    return Table(
        ("model", "meanings", *bins, "above 1"),
        tuple(
            (str(m["model"]), words, *(number_cell(count) for count in m[name]))
            for m in masses
            for name, words in (("counts", "all"), ("right", "right"))
            if name in m
        ),
        title="Meanings by their mass",
        note="Mass: summed probability of the draws of a meaning, not normalised.",
        labels=2,
    )


def _curves(tuning: Sequence[Mapping[str, Any]]) -> Table:
    """Return AUROC against the threshold, a row per threshold."""
    rows = [
        (str(entry["model"]), str(entry["method"]), number_cell(point["threshold"]),
         number_cell(point["auroc"]))
        for entry in tuning
        for point in entry["curve"]
    ]  # fmt: skip
    return Table(
        ("model", "method", "tau", "AUROC"),
        tuple(rows),
        title="AUROC against tau (development part)",
        labels=2,
    )


def coverage_words(rule: Mapping[str, Any]) -> str:
    """Say from which mass on a meaning counts, and where that means nothing.

    Examples
    --------
    >>> coverage_words({"mass": "probability", "threshold": 0.1})
    'Meanings with at least 0.1 of the mass (probability).'
    """
    text = f"Meanings with at least {rule.get('threshold')} of the mass ({rule.get('mass')})."
    if rule.get("mass") != "frequency" or not rule.get("threshold"):
        return text
    few = math.floor(1 / rule["threshold"])
    return f"{text} With {few} draws a question or fewer, every meaning drawn once counts."


def _tuning(tuning: Sequence[Mapping[str, Any]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    reasons: dict[str, int] = {}
    for entry in tuning:
        if entry["threshold"] is None:
            reasons[entry["reason"]] = reasons.get(entry["reason"], 0) + 1
            names = (str(entry["model"]), str(entry["method"]))
            default = number_cell(entry["default"], digits=2)
            rows.append((*names, "not tuned", *[""] * 3, default))
            continue
        widest = entry["mixes"][-1]
        rows.append(
            (
                entry["model"],
                entry["method"],
                number_cell(entry["threshold"], digits=2),
                estimate_cell(entry["development"], digits=2),
                estimate_cell(widest["tuned"], digits=2),
                estimate_cell(widest["default"], digits=2),
                number_cell(entry["default"], digits=2),
            )
        )
    return Table(
        ("model", "method", "tuned", "development", "rest, tuned", "rest, default", "default"),
        tuple(rows),
        title="Thresholds tuned on a fifth of the questions (AUROC, widest mix)",
        note=" ".join(f"Not tuned ({number}): {why}." for why, number in reasons.items()),
        labels=2,
    )
