"""Three findings that need numbers of their own: two nulls, a misfit, a missing confidence."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import polars as pl
from simulations._epistemic_worlds import loss_world

import calibrant as cal
from calibrant.core.arrays import named_stream
from calibrant.trust import BinnedGroupingLoss, GroupingLoss, TreeGroupingLoss
from studies._page import DATA, StudyPage

QUESTIONS, RUNS, ROWS = 20_000, 40, 4_000
VIEWS = {
    "raw": "as answered",
    "da": "DA, weaker accuracy",
    "os_weakest": "odds moved, weaker accuracy",
    "os_strongest": "odds moved, stronger accuracy",
    "sda": "equal shares",
}
VERBAL = "verbal_numerical_confidence"


def main() -> None:
    page = StudyPage("findings", "Numbers behind three findings")
    two_nulls(page)
    misfit(page)
    missing(page)
    page.write()


def models(world: str) -> pl.DataFrame:
    """Return two models that differ in accuracy alone: 50 % and 75 %."""
    rng = named_stream(0, "two nulls", world)
    parts = []
    for name, accuracy in (("weak", 0.5), ("strong", 0.75)):
        if world == "both calibrated":
            said = rng.beta(4 * accuracy, 4 * (1 - accuracy), QUESTIONS)
            right = rng.random(QUESTIONS) < said
        else:
            right = rng.random(QUESTIONS) < accuracy
            said = np.where(right, rng.beta(6, 2, QUESTIONS), rng.beta(4, 3, QUESTIONS))
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(QUESTIONS),
                    "model": name,
                    "confidence": said,
                    "correct": right,
                }
            )
        )
    return pl.concat(parts)


def two_nulls(page: StudyPage) -> None:
    page.heading("Two ways to differ in accuracy alone")
    page.text(
        f"Two models of 50 % and 75 % accuracy, {QUESTIONS:,} questions. Either both are "
        "calibrated, or both say the same when right and the same when wrong. Error of the weak "
        "model minus that of the strong one, in points: above 0 the strong one looks better."
    )
    rows, drawn = [], []
    for world in ("both calibrated", "same words given right and wrong"):
        pair = cal.compare(models(world), models=["weak", "strong"], resamples=100)["pairs"][0]
        sign = 1 if pair["a"] == "weak" else -1
        gaps = {view: 100 * sign * pair["gaps"][view]["ece"]["value"] for view in VIEWS}
        rows.append((world, *(f"{gap:+.1f}" for gap in gaps.values()), pair["verdict"]))
        drawn += [{"world": world, "view": VIEWS[view], "gap": gap} for view, gap in gaps.items()]
    page.table(("world", *VIEWS.values(), "verdict"), rows)
    chart = (
        alt.Chart(alt.Data(values=drawn))
        .mark_bar()
        .encode(
            x=alt.X("gap:Q", title="weak minus strong, points"),
            y=alt.Y("view:N", sort=list(VIEWS.values()), title=None, axis={"labelLimit": 220}),
            row=alt.Row("world:N", title=None),
        )
        .properties(width=420, height=130)
    )
    page.figure("nulls", chart, "No single view is fair to both kinds of models")


def misfit(page: StudyPage) -> None:
    page.heading("A grouping loss where there is none")
    page.text(
        f"The only column is a copy of the confidence, so the true grouping loss is 0; the share "
        f"of right answers waves with the confidence. {RUNS} runs of {ROWS:,} rows."
    )
    found: dict[str, list[float]] = {name: [] for name in ("tree", "binned", "value", "bound")}
    claimed = 0
    for run in range(RUNS):
        rng = named_stream(0, "misfit", run)
        x, f, y, _ = loss_world("copy of the confidence, wavy truth", ROWS, rng)
        tree = TreeGroupingLoss(seed=run).fit(x, f, y)
        claimed += tree.interval_[0] > 0
        ours = GroupingLoss(seed=run).fit(x, f, y)
        found["tree"].append(tree.value_)
        found["binned"].append(BinnedGroupingLoss(seed=run).fit(x, f, y).value_)
        found["value"].append(ours.value_)
        found["bound"].append(ours.lower_)
    page.table(
        ("estimator", "mean", "smallest", "largest", "claims a loss"),
        [
            _loss("honest tree on residuals of Platt scaling (published)", found["tree"], claimed),
            _loss("within bins of confidence (published)", found["binned"], None),
            _loss("beyond a spline of the confidence: value", found["value"], None),
            _loss("beyond a spline of the confidence: 95 % lower bound", found["bound"],
                  int(np.count_nonzero(found["bound"]))),
        ],
    )  # fmt: skip
    names = {"tree": "honest tree, Platt", "binned": "within bins", "value": "beyond a spline"}
    drawn = [{"by": names[key], "loss": one} for key in names for one in found[key]]
    chart = (
        alt.Chart(alt.Data(values=drawn))
        .mark_tick(thickness=2, size=16)
        .encode(x=alt.X("loss:Q", title="grouping loss (truth: 0)"), y=alt.Y("by:N", title=None))
        .properties(width=420, height=110)
    )
    page.figure("misfit", chart, "The published estimator finds a loss that is not there")


def _loss(name: str, values: list[float], claimed: int | None) -> tuple[object, ...]:
    told = "" if claimed is None else f"{claimed} of {len(values)}"
    return (name, *(f"{v:.4f}" for v in (np.mean(values), min(values), max(values))), told)


def missing(page: StudyPage) -> None:
    page.heading("Answers without a stated confidence")
    page.text(
        "MMLU-Pro, stated confidence, 15 models (phi-4 has no answers). 'None stated': nothing "
        "that can be read as a number from 0 to 1. 'Reported' is accuracy where one is stated."
    )
    table = pl.read_parquet(DATA / "scores" / "mmlu_pro_16_models.parquet").with_columns(
        pl.col("model").cast(pl.String), pl.col("correct").cast(pl.Float64)
    )
    rows = []
    for (model,), part in table.filter(pl.col("model") != "phi-4").group_by("model"):
        stated = part[VERBAL].cast(pl.Float64).is_between(0, 1).fill_null(False)
        rows.append(_missing(str(model), part.with_columns(stated=stated)))
    rows.sort(key=lambda row: -row["share"])
    page.table(
        ("model", "none stated", "right, all answers", "reported", "right where none is stated"),
        [
            (row["model"], *(_percent(row[key]) for key in ("share", "all", "with", "without")))
            for row in rows
        ],
    )
    chart = (
        alt.Chart(alt.Data(values=[row for row in rows if row["without"] is not None]))
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X("with:Q", title="right where a confidence is stated", axis={"format": "%"}),
            y=alt.Y("without:Q", title="right where none is", axis={"format": "%"}),
            tooltip="model:N",
        )
        .properties(width=300, height=300)
    )
    page.figure("missing", chart, "A model that states no confidence is mostly wrong")


def _missing(model: str, part: pl.DataFrame) -> dict[str, float | str | None]:
    stated = part.filter(pl.col("stated"))
    silent = part.filter(~pl.col("stated"))
    return {
        "model": model,
        "share": silent.height / part.height,
        "all": part["correct"].mean(),
        "with": stated["correct"].mean(),
        "without": silent["correct"].mean() if silent.height >= 20 else None,
    }


def _percent(value: float | Mapping | None) -> str:
    return "too few" if value is None else f"{100 * value:.1f} %"
