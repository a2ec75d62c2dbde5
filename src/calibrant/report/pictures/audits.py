"""Pictures of what labels show: audits, comparisons, groups, ranks, several right answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims import Claim
from calibrant.core.method_words import method_legend, method_name, method_words
from calibrant.report.answers import (
    claims_by_entry,
    claims_of,
    entry_key,
    entry_tone,
    headline,
    told,
)
from calibrant.report.pictures.bars import Bar, bar_chart
from calibrant.report.pictures.dots import Item, dot_plot
from calibrant.report.pictures.heat import gap_map
from calibrant.report.pictures.lines import TONES, Chart, Series, line_chart
from calibrant.report.pictures.matrix import Standing, win_matrix
from calibrant.report.pictures.picture import Picture
from calibrant.report.pictures.reliability import reliability_diagram
from calibrant.report.pictures.scales import percent

_PANELS = 3
_SERIES = 5
_NOTED = 24


def audit_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return the reliability diagram of one confidence, or all confidences in their rank."""
    claims = claims_by_entry(claims_of(document))
    entries = [entry for entry in _shown(document) if _gap(entry) is not None]
    if not entries:
        return _by_meaning(document.get("sem_ece") or [])
    if len(entries) == 1 and entries[0].get("reliability"):
        return _one(entries[0], claims)
    items = _items(entries, claims)
    words = "Share of right answers (dot) and mean confidence (diamond) of each, best first"
    panels = {item.panel for item in items}
    # Rows and panels of methods say themselves what they are.
    said = any(item.note for item in items) and len(items) <= _NOTED
    legend = "" if said else _legend(entries)
    caption = f"Gap: mean confidence minus share right, in percentage points. {legend}".strip()
    if len(panels) > _PANELS:
        title = "How far confidence is from the share of right answers, in points"
        return Picture(title, legend or title, lambda wide: gap_map(items, title, wide=wide))
    if len(panels) > 1:
        # On a phone two or three panels are read better as numbers in a grid.
        return Picture(
            words,
            caption,
            lambda wide: (
                dot_plot(items, words, wide=True) if wide else gap_map(items, words, wide=False)
            ),
        )
    return Picture(words, caption, lambda wide: dot_plot(items, words, wide=wide))


def _legend(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return what the methods are, as a sentence."""
    known = method_legend(entry["method"] for entry in entries)
    return f"{'; '.join(known)}." if known else ""


def _shown(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return groups where there are any, or else whole models; never-right models are said."""
    results: Sequence[Mapping[str, Any]] = told(document)["results"]
    grouped = [entry for entry in results if entry.get("group")]
    return [entry for entry in grouped or results if entry["probability"]]


def _gap(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    metrics = entry["metrics"]
    says, right = metrics.get("mean_confidence"), metrics["accuracy"]
    if not says or says["value"] is None or right["value"] is None:
        return None
    found: Mapping[str, Any] | None = metrics.get("confidence_gap")
    if found and found["value"] is not None:
        return found
    return {"value": says["value"] - right["value"], "low": None, "high": None}


def _one(entry: Mapping[str, Any], claims: Mapping[str, Sequence[Claim]]) -> Picture:
    tone = entry_tone(entry, claims)
    label = f"Share of right answers against confidence, {entry['n']:,} rows"
    block = entry["reliability"]
    return Picture(
        label,
        "Dots: share right in each bin, with its interval. Grey: where a perfectly calibrated "
        "model would lie. Bars: number of rows.",
        lambda wide: reliability_diagram([("", tone, block)], label, wide=wide),
    )


def _by_meaning(blocks: Sequence[Mapping[str, Any]]) -> Picture | None:
    if not blocks:
        return None
    block = blocks[0]["reliability"]
    label = f"Share of right answers against confidence by meaning, {blocks[0]['model']}"
    diagrams = [
        (name, tone, {"bins": block[key]})
        for name, tone, key in (
            ("all draws", "second", "sem1"),
            ("held-out draws", "first", "sem2"),
        )
        if block.get(key)
    ]
    return Picture(
        label,
        "Confidence of the most frequent meaning, read off all draws and off draws that did not "
        "choose it.",
        lambda wide: reliability_diagram(diagrams, label, wide=wide),
    )


def _items(
    entries: Sequence[Mapping[str, Any]], claims: Mapping[str, Sequence[Claim]]
) -> list[Item]:
    """Return the entries in rows and panels: what varies least makes the panels."""
    labels = [_labels(entry) for entry in entries]
    varied = {name: {own[name] for own in labels} for name in ("model", "method", "group")}
    varied = {name: values for name, values in varied.items() if len(values) > 1}
    panel = min(varied, key=lambda name: len(varied[name])) if len(varied) > 1 else None
    rows = [name for name in varied if name != panel] or ["model"]
    return [
        Item(
            row=" / ".join(own[name] for name in rows if own[name]) or own["model"],
            panel="" if panel is None else own[panel] or "all",
            right=entry["metrics"]["accuracy"],
            says=entry["metrics"]["mean_confidence"],
            gap=_gap(entry) or {},
            tone=entry_tone(entry, claims),
            key=entry_key(entry),
            note=method_words(own["method"]) if rows == ["method"] else "",
        )
        for own, entry in zip(labels, entries, strict=True)
    ]


def _labels(entry: Mapping[str, Any]) -> dict[str, str]:
    group = ", ".join(f"{name}={value}" for name, value in (entry.get("group") or {}).items())
    return {"model": str(entry["model"]), "method": str(entry["method"] or ""), "group": group}


def compare_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return tiers and the win matrix of the confidence that tells most models apart."""
    leagues = document.get("league") or []
    whole = [league for league in leagues if not league.get("group")] or leagues
    if not whole:
        return _old_comparison(document)
    # The first sentence is about this confidence.
    claims = claims_of(document)
    said = next(iter(headline(claims, 1)), None)
    first = next((claim.subject.get("method") for claim in claims if claim.text == said), None)
    league = next((part for part in whole if part["method"] == first), whole[0])
    rows = [
        Standing(str(entry["model"]), entry["score"], entry["tier"]) for entry in league["entries"]
    ]
    names = league["win_matrix"]["models"]
    outcomes = {
        (a, b): str(cell)
        for a, row in zip(names, league["win_matrix"]["table"], strict=True)
        for b, cell in zip(names, row, strict=True)
        if cell is not None
    }
    label = "Who is better calibrated"
    label += f", by {method_name(league['method'])}" if len(whole) > 1 else ""
    return Picture(
        label,
        "Signs: lower calibration error, as answered and at equal accuracy. Score: skill, which "
        "also counts how well confidence separates; 0 if constant, 100 if perfect. A line parts "
        "tiers.",
        lambda wide: win_matrix(
            rows, outcomes, label, wide=wide, value_title="score (higher is better)"
        ),
    )


def _old_comparison(document: Mapping[str, Any]) -> Picture | None:
    """Return the matrix of a document that was written before leagues."""
    pairs = [pair for pair in document["pairs"] if not pair.get("group")]
    if not pairs:
        return None
    own = [pair for pair in pairs if pair["method"] == pairs[0]["method"]]
    entries = [
        entry
        for entry in document["results"]
        if entry["method"] == own[0]["method"] and not entry.get("group")
    ]
    entries.sort(key=lambda entry: entry["views"]["da"]["ece"]["value"])
    rows = [Standing(str(entry["model"]), entry["views"]["da"]["ece"]) for entry in entries]
    outcomes: dict[tuple[str, str], str] = {}
    for pair in own:
        winner = pair["better"]["da"]
        if winner is not None:
            loser = pair["b"] if winner == pair["a"] else pair["a"]
            outcomes[winner, loser], outcomes[loser, winner] = "better", "worse"
    label = "Who is better calibrated at equal accuracy"
    return Picture(
        label,
        "Error: calibration error at equal accuracy, in points.",
        lambda wide: win_matrix(rows, outcomes, label, wide=wide, value_title="error, points"),
    )


def groups_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return the groups by what is special about them, largest first."""
    entries = [entry for entry in document["results"] if entry["groups"]]
    if not entries:
        return None
    several = len(entries) > 1
    found = [
        _group_bar(group, entry, several=several)
        for entry in entries
        for group in entry["groups"]
        # The same rows under another name are no group of their own.
        if not group.get("echo_of")
    ]
    bars = sorted(found, key=lambda bar: -abs(bar.value))
    special = entries[0]["groups"][0].get("beyond") is not None
    than = "answers of equal confidence" if special else "share right"
    label = f"How much more each group says than {than}, in points"
    return Picture(
        label,
        "Each group beyond those found before it. Lines: intervals. Grey: undecided.",
        lambda wide: bar_chart(bars, label, wide=wide, sides=("says too little", "says too much")),
    )


def _group_bar(group: Mapping[str, Any], entry: Mapping[str, Any], *, several: bool) -> Bar:
    beyond = group.get("beyond") or {"value": group["gap"], **(group.get("gap_interval") or {})}
    tone = str(group["direction"]).replace("-", "_") if group["flagged"] else "undecided"
    name = f"{entry['model']}: {group['rule']}" if several else str(group["rule"])
    said, right = percent(group["mean_confidence"]), percent(group["rate"])
    note = f"{group['n']:,} rows, says {said}, right {right}"
    return Bar(name, beyond["value"], beyond.get("low"), beyond.get("high"), tone, note)


def leaderboard_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return every model with its interval, best first."""
    metric = document["metric"]
    bars = [
        Bar(
            str(entry["model"]),
            entry[metric]["value"],
            entry[metric]["low"],
            entry[metric]["high"],
            tone="first" if entry["rank_low"] == entry["rank_high"] else "undecided",
            note=f"rank {entry['rank_low']} to {entry['rank_high']}",
        )
        for entry in document["results"]
    ]
    if not bars:
        return None
    label = f"Models by {metric}, with intervals"
    return Picture(
        label,
        "Grey: the data leave the rank open.",
        lambda wide: bar_chart(bars, label, wide=wide, words=percent, dots=True, title=metric),
    )


def multi_answer_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return what is right and what is said, by the number of right answers."""
    results = [entry for entry in document["results"] if entry["probability"] and entry["by_k"]]
    if not results:
        return None
    model = results[0]["model"]
    own = [entry for entry in results if entry["model"] == model]
    own.sort(
        key=lambda e: -abs(((e.get("change") or {}).get("confidence") or {}).get("value") or 0)
    )
    right = [(point["k"], point["accuracy"]["value"]) for point in own[0]["by_k"]]
    series = [Series("right", "plain", _known(right))]
    for tone, entry in zip(TONES, own[: _SERIES - 1], strict=False):
        said = [(point["k"], point["confidence"]["value"]) for point in entry["by_k"]]
        series.append(Series(str(entry["method"]), tone, _known(said)))
    label = f"Share right and confidence by number of right answers, {model}"
    chart = Chart(
        label,
        "right answers that a question has (k)",
        "share",
        [part for part in series if part.places],
        x_ticks=lambda value: f"{value:g}",
        x_at=[k for k, _ in right],
        x_from=None,
        y_from=0.0,
    )
    return Picture(
        label, "A confidence that follows 'right' holds.", lambda wide: line_chart(chart, wide=wide)
    )


def _known(places: Sequence[tuple[float, float | None]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in places if y is not None]
