"""Questions with several right answers in words, tables and charts."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

from calibrant.findings.documents.fields import Entries, MultiAnswerFields
from calibrant.report import cells
from calibrant.report.answers import claims_of, headline
from calibrant.report.captions import rows_left_out
from calibrant.report.cells import Block, Paragraph, Table, table_of
from calibrant.report.charts.chart import TONES, Axis, Chart, Dot, Item, Line, Mark, Names, between
from calibrant.report.charts.svg import count_words, percent, short_number, three_digits

_METHODS = len(TONES)
Entry = Mapping[str, Any]
# How far apart the methods of one place stand, so that their intervals do not cover each other.
_APART = 0.09
# Name, tone, and estimates at the places of a list of names.
Curve = tuple[str, str, Sequence[tuple[int, Entry]]]


def charts(document: MultiAnswerFields) -> Iterator[Chart]:
    """Yield what is right and said by the number of right answers, then each model's charts."""
    yield from filter(None, _charts(document))


def _charts(document: MultiAnswerFields) -> Iterator[Chart | None]:
    """Yield the answer, then for each model all methods by k, mix, coverage, threshold and mass."""
    yield _answer(document)
    models = dict.fromkeys(entry["model"] for entry in document.results)
    for number, model in enumerate(models, 1):
        entries = [entry for entry in document.results if entry["model"] == model]
        visible = sorted(entries, key=_rank)[:_METHODS]
        caption = (
            "With more right answers accuracy (grey, dashed; that of the answers of "
            f"{visible[0]['method']}) should rise; a confidence that falls takes variety for "
            "doubt. Upright lines: intervals."
        )
        if len(entries) > _METHODS:
            caption += f" The {_METHODS} methods with the largest AUROC of {len(entries)}."
        title = f"{model}: accuracy and confidence by number of right answers"
        yield _chart_by_k(f"by-k-{number}", title, caption, visible)
        yield _by_mix(model, visible, number)
        yield _coverage_chart(model, document, number)
        yield _by_tau(model, document, number)
        yield _masses_chart(model, document, number)


def _rank(entry: Entry) -> float:
    value = entry["mixes"][-1]["auroc"]["value"] if entry["mixes"] else None
    # AUROCs lie below 1: what is compared with nothing comes last.
    return (0.0 if value is None else -value) + (0.0 if entry.get("compared", True) else 1.0)


def _answer(document: MultiAnswerFields) -> Chart | None:
    """Return what is right and what is said, by the number of right answers."""
    entries = [e for e in document.results if e["probability"] and e.get("compared", True)]
    model = next((entry["model"] for entry in entries if entry["by_k"]), None)
    entries = [entry for entry in entries if entry["by_k"] and entry["model"] == model]
    if not entries:
        return None

    def change(entry: Entry) -> float:
        estimate = (entry.get("change") or {}).get("confidence") or {}
        return -abs(float(estimate.get("value") or 0))

    entries.sort(key=change)
    title = f"Share right and confidence by number of right answers, {model}"
    caption = "A confidence that follows 'right' holds."
    return _chart_by_k("answer", title, caption, entries[: _METHODS - 1])


def _chart_by_k(name: str, title: str, caption: str, entries: Entries) -> Chart | None:
    ks = [point["k"] for point in entries[0]["by_k"]]
    accuracy = [(i, p["accuracy"]) for i, p in enumerate(entries[0]["by_k"])]
    curves: list[Curve] = [("right", "plain", accuracy)]
    for tone, entry in zip(TONES, entries, strict=False):
        confidence = [(ks.index(p["k"]), p["confidence"]) for p in entry["by_k"] if p["k"] in ks]
        curves.append((str(entry["method"]), tone, confidence))
    x = Axis("right answers that a question has (k)", names=[str(k) for k in ks])
    return _filled(Chart(name, title, caption, x, Axis("share", words=percent), ()), curves)


def _by_mix(model: str, entries: Entries, number: int) -> Chart | None:
    mixes = {tuple(part["mix"]) for entry in entries for part in entry["mixes"]}
    # From few to many, wherever a line begins.
    ordered = sorted(mixes, key=lambda mix: (len(mix), mix))
    curves: list[Curve] = []
    for tone, entry in zip(TONES, entries, strict=False):
        areas = [(ordered.index(tuple(part["mix"])), part["auroc"]) for part in entry["mixes"]]
        curves.append((str(entry["method"]), tone, areas))
    chart = Chart(
        f"by-mix-{number}",
        f"{model}: telling right from wrong on mixes",
        "AUROC when questions with one and with several right answers are pooled; 0.5 is chance. "
        "A line that falls to the right is a confidence that several right answers mislead. "
        "Upright lines: intervals.",
        Axis("mix of numbers of right answers", names=["+".join(map(str, m)) for m in ordered]),
        Axis("AUROC", words=three_digits),
        (),
    )
    return _filled(chart, curves)


def _coverage_chart(model: str, document: MultiAnswerFields, number: int) -> Chart | None:
    entries = [entry for entry in document.get("coverage") or [] if entry["model"] == model]
    rows = [(i, entry["coverage"]) for i, entry in enumerate(entries)]
    chart = Chart(
        f"coverage-{number}",
        f"{model}: how many answers it holds likely",
        f"{coverage_words(document.get('coverage_rule') or {})} A model that knows all right "
        "answers has a line that rises.",
        Axis("number of right answers", names=[str(entry["k"]) for entry in entries]),
        Axis("meanings held likely", words=three_digits),
        (),
    )
    return _filled(chart, [("", "first", rows)])


def _filled(chart: Chart, curves: Sequence[Curve]) -> Chart | None:
    """Return estimates over a few places as lines side by side, with their intervals."""
    assert isinstance(chart.x, Axis)
    assert isinstance(chart.y, Axis)
    names, words, marks = chart.x.names, chart.y.words, list[Mark]()
    for number, (method, tone, rows) in enumerate(curves):
        shift = (number - (len(curves) - 1) / 2) * _APART
        points = [(i, e) for i, e in rows if e is not None and e["value"] is not None]
        places = [(i + shift, e["value"]) for i, e in points]
        look: Literal["dashed", ""] = "dashed" if tone == "plain" else ""
        marks += [Line(places, tone, method, look=look, key=method)] if points else []
        for (i, e), (px, py) in zip(points, places, strict=True):
            tip = f"{method or chart.title}, {names[i]}: {words(round(py, 3))}{between(e, words)}"
            marks.append(Dot(px, py, e["low"], e["high"], tone, size=0.12, tip=tip))
    return replace(chart, marks=marks) if marks else None


def _by_tau(model: str, document: MultiAnswerFields, number: int) -> Chart | None:
    tuned = [entry for entry in document.get("tuning") or [] if entry["model"] == model]
    lines = []
    for tone, entry in zip(TONES, tuned, strict=False):
        points = [(p["threshold"], p["auroc"]) for p in entry["curve"] if p["auroc"] is not None]
        if points:
            tips = [f"{entry['method']}, tau {t:.3g}: AUROC {a:.3f}" for t, a in points]
            lines.append(Line(points, tone, str(entry["method"]), tips=tips))
    if not lines:
        return None
    return Chart(
        f"tau-{number}",
        f"{model}: AUROC against the threshold tau",
        "Meanings with less mass than tau are left out of the sum. AUROC on the fifth of the "
        "questions that the threshold is tuned on. Thresholds of sca are quantiles of the masses.",
        Axis("tau", words=short_number, scale="symlog"),
        Axis("AUROC", words=three_digits),
        lines,
    )


def _masses_chart(model: str, document: MultiAnswerFields, number: int) -> Chart | None:
    entry = next((e for e in document.get("masses") or [] if e["model"] == model), None)
    if entry is None:
        return None
    names = [f"{low:g} to {high:g}" for low, high in pairwise(entry["edges"])] + ["above 1"]
    return Chart(
        f"masses-{number}",
        f"{model}: meanings by their mass",
        "Mass: summed probability of the draws of a meaning. Few meanings hold most of it; a "
        "threshold in the gap between them and the many small ones separates knowledge from noise.",
        Axis("meanings", words=count_words),
        Names(names),
        [
            Item(name, tone, (0, n), words=count_words(n), tip=f"{name}: {n:,} {words}", name=words)
            for tone, words, counts in (
                ("first", "meanings", entry["counts"]),
                ("second", "graded right", entry.get("right") or []),
            )
            for name, n in zip(names, counts, strict=False)
        ],
    )


Column = Callable[[Entry], cells.Cell]

_SAID, _MANY = 5, 6


def blocks(document: MultiAnswerFields) -> list[Block]:
    """Return the evaluation as neutral blocks."""
    sentences = headline(claims_of(document), _SAID)
    parts: list[Block] = [Paragraph(text, strong=True) for text in sentences]
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
            tuning = document["tuning"]
            parts.append(
                table_of(
                    [{**entry, **point} for entry in tuning for point in entry["curve"]],
                    {"model": "model", "method": "method", "tau": "threshold", "AUROC": "auroc"},
                    "AUROC against tau (development part)",
                    labels=2,
                )
            )
    return [*parts, *rows_left_out(document)]


_two_digits = partial(cells.estimate_cell, digits=2)


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
        def cell(entry: Entry) -> cells.Cell:
            part = entry["mixes"][place]
            tests = [test for test in entry["significance"] if test["mix"] == part["mix"]]
            p_values = [test["p_adjusted"] for test in tests if test["p_adjusted"] is not None]
            visible = any(p <= rule["alpha"] for p in p_values)
            return cells.estimate_cell(part["auroc"], digits=2, mark="*" if visible else "")

        return cell

    def error(entry: Entry) -> cells.Cell:
        ece = entry["mixes"][-1]["ece"]
        return "no probability" if ece is None else _two_digits(ece)

    def would_show(entry: Entry) -> cells.Cell:
        least = (entry["significance"] or [{}])[-1].get("detectable")
        return "" if least is None else cells.number_cell(least)

    left_out = sorted({name for e in entries for part in e["mixes"] for name in part["left_out"]})
    note = (
        f"A mix pools questions with these numbers of right answers. * shown to differ from "
        f"{document['reference']} on the questions that both have scored (corrected for "
        f"{rule['tests']:,} tests by Holm's rule: at most a {cells.share_cell(rule['alpha'])} "
        "chance of any false claim). Would show: the difference in the widest mix that four of "
        "five such tables would show."
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
            "change": lambda test: cells.number_cell(test["change_a"]),
            "other's": lambda test: cells.number_cell(test["change_b"]),
            "difference": lambda test: cells.estimate_cell(
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
        return lambda entry: cells.number_cell(entry["questions"][number])

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
            (str(m["model"]), words, *(cells.number_cell(count) for count in m[name]))
            for m in masses
            for name, words in (("counts", "all"), ("right", "right"))
        ),
        title="Meanings by their mass",
        note="Mass: summed probability of the draws of a meaning, not normalised.",
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
    draws = f"{math.floor(1 / rule['threshold'])} draws a question or fewer"
    return f"{text} With {draws}, every meaning drawn once counts."


def _tuning(tuning: Sequence[Entry]) -> Table:
    def area(name: str) -> Column:
        return lambda e: "" if e["threshold"] is None else _two_digits(e["mixes"][-1][name])

    reasons = Counter(entry["reason"] for entry in tuning if entry["threshold"] is None)
    return table_of(
        tuning,
        {
            "model": "model",
            "method": "method",
            "tuned": lambda e: cells.number_cell(e["threshold"], digits=2, missing="not tuned"),
            "development": lambda e: _two_digits(e["development"]) if e["mixes"] else "",
            "rest, tuned": area("tuned"),
            "rest, default": area("default"),
            "default": lambda e: cells.number_cell(e["default"], digits=2),
        },
        "Thresholds tuned on a fifth of the questions (AUROC, widest mix)",
        note=" ".join(f"Not tuned ({number}): {why}." for why, number in reasons.items()),
        labels=2,
    )
