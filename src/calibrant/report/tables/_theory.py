"""What else a plan was asked for: growth, dynamics, depth, transfer, correlation, two scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from calibrant.claims.words import count, points, points_range
from calibrant.report.blocks import Table
from calibrant.report.cells import Cell, Number, number_cell, said_cell

Row = tuple[Cell, ...]


def is_asked(found: Mapping[str, Any]) -> bool:
    """Return whether an option asked for any of this, not the table alone."""
    return bool(found.keys() - {"temperature", "self_evaluation"})


def theory_tables(found: Mapping[str, Any]) -> list[Table]:
    """Return what is a rate, for random and for chosen labels, and what was computed."""
    rates, computed = (
        tuple(row for name, made in rows.items() if name in found for row in made(found[name]))
        for rows in (_RATES, _COMPUTED)
    )
    return [
        table
        for table in (
            Table(
                ("asked", "random labels", "chosen labels"),
                rates,
                title="What else was asked",
                note="Rates of the worst case, with constant 1.",
            ),
            Table(
                ("asked", "answer"),
                computed,
                title="What the numbers themselves say",
                note="Correlations are between ranks of bins of confidence, tested by permutation.",
                labels=2,
            ),
        )
        if table.rows
    ]


def _horizon(found: Mapping[str, Any]) -> Iterator[Row]:
    sizes = (said_cell(found[kind], f"{found[kind]:,.3g}") for kind in ("passive", "active"))
    yield ("largest size still verified", *sizes)


def _scaling(found: Mapping[str, Any]) -> Iterator[Row]:
    yield (f"labels at size {found['size']:,.3g}", "", Number(found["labels"], unit="count"))


def _dynamics(found: Mapping[str, Any]) -> Iterator[Row]:
    def when(side: Mapping[str, Any]) -> str:
        if side["outcome"] in ("always", "never"):
            return str(side["outcome"])
        return (
            f"{side['outcome']} time {side['time']:,.3g} on"
            if side["outcome"] == "from"
            else (f"until time {side['time']:,.3g}")
        )

    yield ("labelling keeps up", when(found["passive"]),
           when(found["active"]))  # fmt: skip


def _transfer(found: Mapping[str, Any]) -> Iterator[Row]:
    yield (
        f"labels for a shift of {points(found['shift'])}",
        number_cell(found["labels"]),
        "",
    )


def _effective(found: float) -> Iterator[Row]:
    yield ("worth, in independent labels", Number(found, unit="count"), "")


def _robustness(found: Mapping[str, Any]) -> Iterator[Row]:
    yield (
        "precision when perturbed",
        points(found["passive"]),
        points(found["active"]),
    )


def _depth(found: Mapping[str, Any]) -> Iterator[Row]:
    stages = count(found["deepest"], "stage")
    yield (f"deepest pipeline, steepness {found['stage']:g}", stages, "")


def _published(found: Mapping[str, Any]) -> Iterator[Row]:
    gap = found["gap"]
    told = f"{100 * gap['value']:+.1f} ({points_range(gap['low'], gap['high'])}) points"
    yield ("difference of the scores, 95 % interval", told)
    if found["labels_needed"] is not None:
        yield ("questions to tell it from 0", number_cell(found["labels_needed"]))


def _temperature(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for entry in found:
        name = f"{entry['model']}: " if len(found) > 1 else ""
        yield (f"{name}if a temperature is off", points(entry["error"]))


def _self_evaluation(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for entry in found:
        name = f"{entry['model']}: " if len(found) > 1 else ""
        gap, right = entry["gap"], entry["accuracy"]
        if gap["correlation"] is None or right["correlation"] is None:
            continue
        for what, part in (("the size of its gap", gap), ("accuracy", right)):
            told = f"correlation {part['correlation']:.2f} (p {part['p_value']:.2g})"
            yield (f"{name}confidence against {what}", told)


_RATES: dict[str, Any] = {
    "horizon": _horizon,
    "scaling": _scaling,
    "dynamics": _dynamics,
    "depth": _depth,
    "transfer": _transfer,
    "effective_labels": _effective,
    "robustness_floor": _robustness,
}
_COMPUTED: dict[str, Any] = {
    "published": _published,
    "temperature": _temperature,
    "self_evaluation": _self_evaluation,
}
