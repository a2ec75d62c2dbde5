"""What else a plan was asked for: growth, dynamics, depth, transfer, correlation, two scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from calibrant.claims.words import count, points, points_range
from calibrant.report.blocks import Table

__all__ = ["is_asked", "theory_table"]

Row = tuple[str, str, str]


def is_asked(found: Mapping[str, Any]) -> bool:
    """Return whether an option asked for any of this, not the table alone."""
    return bool(found.keys() - {"temperature", "self_evaluation"})


def theory_table(found: Mapping[str, Any]) -> Table:
    """Return a row per question, answered for random and for chosen labels."""
    rows = [row for name, made in _ROWS.items() if name in found for row in made(found[name])]
    return Table(
        ("asked", "random labels", "chosen labels"),
        tuple(rows),
        title="What else was asked",
        note=(
            "Worst-case rates with constant 1; scores (95 % interval), temperature and rank "
            "correlations are computed from the numbers or the table."
        ),
    )


def _horizon(found: Mapping[str, Any]) -> Iterator[Row]:
    asked = "largest size still verified"
    yield (asked, f"{found['passive']:,.3g}", f"{found['active']:,.3g}")


def _scaling(found: Mapping[str, Any]) -> Iterator[Row]:
    labels = f"{found['labels']:,.0f}"
    yield (
        f"labels at size {found['size']:,.3g}",
        "",
        labels,
    )


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
        f"{found['labels']:,}",
        "",
    )


def _effective(found: float) -> Iterator[Row]:
    yield ("worth, in independent labels", f"{found:,.0f}", "")


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
    yield ("difference of the scores", told, "")
    if found["labels_needed"] is not None:
        yield ("questions to tell it from 0", f"{found['labels_needed']:,}", "")


def _temperature(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for entry in found:
        name = f"{entry['model']}: " if len(found) > 1 else ""
        yield (f"{name}if a temperature is off", points(entry["error"]), "")


def _self_evaluation(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for entry in found:
        name = f"{entry['model']}: " if len(found) > 1 else ""
        gap, right = entry["gap"], entry["accuracy"]
        if gap["correlation"] is None or right["correlation"] is None:
            continue
        told = f"{gap['correlation']:.2f} (p {gap['p_value']:.2g})"
        beside = f"accuracy {right['correlation']:.2f} (p {right['p_value']:.2g})"
        yield (f"{name}confidence against its gap", told, beside)


_ROWS: dict[str, Any] = {
    "published": _published,
    "horizon": _horizon,
    "scaling": _scaling,
    "dynamics": _dynamics,
    "depth": _depth,
    "transfer": _transfer,
    "effective_labels": _effective,
    "robustness_floor": _robustness,
    "temperature": _temperature,
    "self_evaluation": _self_evaluation,
}
