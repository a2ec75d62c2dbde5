"""Confidence by number of right answers and on mixes of them, in words and tables."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from calibrant.findings.documents.fields import MultiAnswerFields
from calibrant.report.answers import claims_of, headline
from calibrant.report.blocks import Block, Paragraph, Table, table_of
from calibrant.report.captions import rows_left_out
from calibrant.report.cells import Cell, Number, estimate_cell, number_cell, share_cell

Entry = Mapping[str, Any]
Column = Callable[[Entry], Cell]

_SAID = 5
_MANY = 6


def blocks(document: MultiAnswerFields) -> list[Block]:
    """Return the evaluation as neutral blocks."""
    parts: list[Block] = [
        Paragraph(text, strong=True) for text in headline(claims_of(document), _SAID)
    ]
    for model in dict.fromkeys(entry["model"] for entry in document.results):
        entries = [entry for entry in document.results if entry["model"] == model]
        parts += [_by_k(model, entries, document["k"]), _mixes(model, entries, document)]
    if document.get("between_models"):
        parts.append(_between(document))
    if document["coverage"]:
        parts.append(_coverage(document))
        if any(entry["coverage_correlation"] is not None for entry in document.results):
            parts.append(_correlations(document))
    if document.get("masses"):
        parts.append(_masses(document["masses"]))
    if document.get("tuning"):
        parts.append(_tuning(document["tuning"]))
        if any(entry["curve"] for entry in document["tuning"]):
            parts.append(_curves(document["tuning"]))
    return [*parts, *rows_left_out(document)]


def _two_digits(estimate: Entry | None) -> Number:
    return estimate_cell(estimate, digits=2)


def _by_k(model: str, entries: Sequence[Entry], ks: Sequence[int]) -> Table:
    def at(place: int) -> Column:
        return lambda row: _two_digits(row["by_k"][place][row["mean"]])

    rows = [{**entry, "mean": mean} for entry in entries for mean in ("accuracy", "confidence")]
    return table_of(
        rows,
        {
            "method": lambda row: row["method"] if row["mean"] == "accuracy" else "",
            "mean": "mean",
            **{f"k={k}": at(place) for place, k in enumerate(ks)},
            f"change k={ks[0]} to {ks[-1]}": lambda row: _two_digits(row["change"][row["mean"]]),
        },
        f"{model}: by number of right answers",
        note="Unweighted mean over domains; accuracy is that of the answer each method is about.",
        labels=2,
    )


def _mixes(model: str, entries: Sequence[Entry], document: MultiAnswerFields) -> Table:
    rule = document["multiplicity"]

    def at(place: int) -> Column:
        def cell(entry: Entry) -> Cell:
            part = entry["mixes"][place]
            tests = [test for test in entry["significance"] if test["mix"] == part["mix"]]
            p_values = [test["p_adjusted"] for test in tests if test["p_adjusted"] is not None]
            visible = any(p <= rule["alpha"] for p in p_values)
            return estimate_cell(part["auroc"], digits=2, mark="*" if visible else "")

        return cell

    def error(entry: Entry) -> Cell:
        ece = entry["mixes"][-1]["ece"]
        return "no probability" if ece is None else _two_digits(ece)

    def would_show(entry: Entry) -> Cell:
        least = (entry["significance"] or [{}])[-1].get("detectable")
        return "" if least is None else number_cell(least)

    left_out = sorted({name for e in entries for part in e["mixes"] for name in part["left_out"]})
    note = (
        f"A mix pools questions with these numbers of right answers. * shown to differ from "
        f"{document['reference']} on the questions that both have scored (corrected for "
        f"{rule['tests']:,} tests by Holm's rule: at most a {share_cell(rule['alpha'])} chance of "
        "any false claim). Would show: the difference in the widest mix that four of five such "
        "tables would show."
    )
    if left_out:
        note += f" Without AUROC (all right or all wrong) in some mix: {', '.join(left_out)}."
    mixes = [f"[{','.join(map(str, mix))}]" for mix in document.mixes]
    return table_of(
        entries,
        {
            "method": "method",
            **{mix: at(place) for place, mix in enumerate(mixes)},
            "ECE, widest mix": error,
            "would show": would_show,
        },
        f"{model}: AUROC on mixes",
        note=note,
    )


def _between(document: MultiAnswerFields) -> Table:
    """Return how differently models change from few right answers to many."""
    tests, alpha = document["between_models"], document["multiplicity"]["alpha"]
    return table_of(
        tests,
        {
            "model": "a",
            "other": "b",
            "of": lambda test: test["method"] or test["quantity"],
            "change": lambda test: number_cell(test["change_a"]),
            "other's": lambda test: number_cell(test["change_b"]),
            "difference": lambda test: estimate_cell(
                test["difference"], digits=2, mark="*" if test["p_adjusted"] <= alpha else ""
            ),
        },
        f"Models against each other: change from k={document['k'][0]} to {document['k'][-1]}",
        note="Question by question, mean over domains. * shown to differ, corrected for "
        f"{len(tests):,} tests by Holm's rule.",
        labels=3,
    )


def _coverage(document: MultiAnswerFields) -> Table:
    def questions(number: int) -> Column:
        return lambda entry: number_cell(entry["questions"][number])

    return table_of(
        document["coverage"],
        {
            "model": "model",
            "k": "k",
            "known answers": lambda entry: _two_digits(entry["coverage"]),
            **{f"{n}{' or more' if n == _MANY else ''}": questions(n) for n in range(_MANY + 1)},
        },
        "Knowledge coverage",
        note=f"{coverage_words(document['coverage_rule'])} Numbered columns: questions "
        "with this many known answers.",
        labels=2,
    )


def _correlations(document: MultiAnswerFields) -> Table:
    """Return the rank correlation of confidence and coverage, for all questions and for each k."""

    def at(place: int) -> Column:
        return lambda e: _two_digits(e["coverage_correlation_by_k"][place]["correlation"])

    return table_of(
        [entry for entry in document.results if entry["coverage_correlation"] is not None],
        {
            "model": "model",
            "method": "method",
            "all": lambda entry: _two_digits(entry["coverage_correlation"]),
            **{f"k={k}": at(place) for place, k in enumerate(document["k"])},
        },
        "Known answers and confidence: Spearman's rank correlation",
        note="Below 0: the more answers the model knows, the less confident it is.",
        labels=2,
    )


def _masses(masses: Sequence[Entry]) -> Table:
    bins = [f"{low:g} to {high:g}" for low, high in pairwise(masses[0]["edges"])]
    return Table(
        ("model", "meanings", *bins, "above 1"),
        tuple(
            (str(m["model"]), words, *(number_cell(count) for count in m[name]))
            for m in masses
            for name, words in (("counts", "all"), ("right", "right"))
        ),
        title="Meanings by their mass",
        note="Mass: summed probability of the draws of a meaning, not normalised.",
        labels=2,
    )


def _curves(tuning: Sequence[Entry]) -> Table:
    """Return AUROC against the threshold, a row per threshold."""
    return table_of(
        [{**entry, **point} for entry in tuning for point in entry["curve"]],
        {"model": "model", "method": "method", "tau": "threshold", "AUROC": "auroc"},
        "AUROC against tau (development part)",
        labels=2,
    )


def coverage_words(rule: Entry) -> str:
    """Say from which mass on a meaning counts, and where that means nothing.

    Examples
    --------
    >>> coverage_words({"mass": "probability", "threshold": 0.1})
    'Meanings with at least 0.1 of the mass (probability).'
    """
    text = f"Meanings with at least {rule['threshold']} of the mass ({rule['mass']})."
    if rule["mass"] != "frequency" or not rule["threshold"]:
        return text
    draws = math.floor(1 / rule["threshold"])
    return f"{text} With {draws} draws a question or fewer, every meaning drawn once counts."


def _tuning(tuning: Sequence[Entry]) -> Table:
    def area(name: str) -> Column:
        return lambda e: "" if e["threshold"] is None else _two_digits(e["mixes"][-1][name])

    reasons = Counter(entry["reason"] for entry in tuning if entry["threshold"] is None)
    return table_of(
        tuning,
        {
            "model": "model",
            "method": "method",
            "tuned": lambda e: number_cell(e["threshold"], digits=2, missing="not tuned"),
            "development": lambda e: _two_digits(e["development"]) if e["mixes"] else "",
            "rest, tuned": area("tuned"),
            "rest, default": area("default"),
            "default": lambda e: number_cell(e["default"], digits=2),
        },
        "Thresholds tuned on a fifth of the questions (AUROC, widest mix)",
        note=" ".join(f"Not tuned ({number}): {why}." for why, number in reasons.items()),
        labels=2,
    )
