"""Charts of questions with several right answers: by their number, on mixes, by mass."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from calibrant.bench.tables import coverage_words
from calibrant.findings.documents.fields import Entries, MultiAnswerFields
from calibrant.report.charts.chart import TONES, Axis, Chart, Dot, Item, Line, Mark, Names, between
from calibrant.report.charts.scales import count_words, percent, short_number, three_digits

_METHODS = len(TONES)
# How far apart the methods of one place stand, so that their intervals do not cover each other.
_APART = 0.09

Curve = tuple[str, str, Sequence[tuple[int, Mapping[str, Any]]]]
"""Name, tone, and estimates at the places of a list of names."""


def charts(document: MultiAnswerFields) -> Iterator[Chart]:
    """Yield what is right and said by the number of right answers, then each model's charts."""
    yield from (chart for chart in _charts(document) if chart is not None)


def _charts(document: MultiAnswerFields) -> Iterator[Chart | None]:
    """Yield the answer, then for each model all methods by k, mix, coverage, threshold and mass."""
    yield _answer(document)
    models = dict.fromkeys(entry["model"] for entry in document.results)
    for number, model in enumerate(models, 1):
        entries = [entry for entry in document.results if entry["model"] == model]
        visible = sorted(entries, key=_rank)[:_METHODS]
        caption = (
            "With more right answers accuracy (grey, dashed; that of the answers of "
            f"{visible[0]['method']}) should rise; a confidence that falls takes variety "
            "for doubt. "
            "Upright lines: intervals."
        )
        if len(entries) > _METHODS:
            caption += f" The {_METHODS} methods with the largest AUROC of {len(entries)}."
        title = f"{model}: accuracy and confidence by number of right answers"
        yield _by_k(f"by-k-{number}", title, caption, visible)
        yield _by_mix(model, visible, number)
        yield _coverage(model, document, number)
        yield _by_tau(model, document, number)
        yield _masses(model, document, number)


def _rank(entry: Mapping[str, Any]) -> float:
    value = entry["mixes"][-1]["auroc"]["value"] if entry["mixes"] else None
    # AUROCs lie below 1: what is compared with nothing comes last.
    return (0.0 if value is None else -value) + (0.0 if entry.get("compared", True) else 1.0)


def _answer(document: MultiAnswerFields) -> Chart | None:
    """Return what is right and what is said, by the number of right answers."""
    results = [
        entry
        for entry in document.results
        if entry["probability"] and entry["by_k"] and entry.get("compared", True)
    ]
    if not results:
        return None
    model = results[0]["model"]
    entries = [entry for entry in results if entry["model"] == model]
    entries.sort(
        key=lambda e: -abs(((e.get("change") or {}).get("confidence") or {}).get("value") or 0)
    )
    title = f"Share right and confidence by number of right answers, {model}"
    caption = "A confidence that follows 'right' holds."
    return _by_k("answer", title, caption, entries[: _METHODS - 1])


def _by_k(name: str, title: str, caption: str, entries: Entries) -> Chart | None:
    ks = [point["k"] for point in entries[0]["by_k"]]
    curves: list[Curve] = [
        ("right", "plain", [(i, p["accuracy"]) for i, p in enumerate(entries[0]["by_k"])])
    ]
    for tone, entry in zip(TONES, entries, strict=False):
        confidence = [(ks.index(p["k"]), p["confidence"]) for p in entry["by_k"] if p["k"] in ks]
        curves.append((str(entry["method"]), tone, confidence))
    words = "right answers that a question has (k)"
    return _curves(name, title, caption, (words, [str(k) for k in ks]), "share", percent, curves)


def _by_mix(model: str, entries: Entries, number: int) -> Chart | None:
    mixes = {tuple(part["mix"]) for entry in entries for part in entry["mixes"]}
    # From few to many, wherever a line begins.
    ordered = sorted(mixes, key=lambda mix: (len(mix), mix))
    curves: list[Curve] = []
    for tone, entry in zip(TONES, entries, strict=False):
        areas = [(ordered.index(tuple(part["mix"])), part["auroc"]) for part in entry["mixes"]]
        curves.append((str(entry["method"]), tone, areas))
    return _curves(
        f"by-mix-{number}",
        f"{model}: telling right from wrong on mixes",
        "AUROC when questions with one and with several right answers are pooled; 0.5 is chance. "
        "A line that falls to the right is a confidence that several right answers mislead. "
        "Upright lines: intervals.",
        ("mix of numbers of right answers", ["+".join(map(str, mix)) for mix in ordered]),
        "AUROC",
        three_digits,
        curves,
    )


def _coverage(model: str, document: MultiAnswerFields, number: int) -> Chart | None:
    entries = [entry for entry in document.get("coverage") or [] if entry["model"] == model]
    rows = [(i, entry["coverage"]) for i, entry in enumerate(entries)]
    return _curves(
        f"coverage-{number}",
        f"{model}: how many answers it holds likely",
        f"{coverage_words(document.get('coverage_rule') or {})} A model that knows all right "
        "answers has a line that rises.",
        ("number of right answers", [str(entry["k"]) for entry in entries]),
        "meanings held likely",
        three_digits,
        [("", "first", rows)],
    )


def _curves(
    name: str,
    title: str,
    caption: str,
    x: tuple[str, Sequence[str]],
    y: str,
    words: Callable[[float], str],
    curves: Sequence[Curve],
) -> Chart | None:
    """Return estimates over a few places as lines side by side, with their intervals."""
    marks: list[Mark] = []
    for number, (method, tone, rows) in enumerate(curves):
        shift = (number - (len(curves) - 1) / 2) * _APART
        points = [(i, e) for i, e in rows if e is not None and e["value"] is not None]
        if not points:
            continue
        places = [(i + shift, e["value"]) for i, e in points]
        look: Literal["dashed", ""] = "dashed" if tone == "plain" else ""
        marks.append(Line(places, tone, method, look=look, key=method))
        for (i, e), (px, py) in zip(points, places, strict=True):
            tip = f"{method or title}, {x[1][i]}: {words(round(py, 3))}{between(e, words)}"
            marks.append(Dot(px, py, e["low"], e["high"], tone, size=0.12, tip=tip))
    if not marks:
        return None
    return Chart(name, title, caption, Axis(x[0], names=x[1]), Axis(y, words=words), marks)


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


def _masses(model: str, document: MultiAnswerFields, number: int) -> Chart | None:
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
