"""What a served policy did, day by day: questions, share answered, cost, and what was wrong."""

from pathlib import Path
from typing import Any

import polars as pl

from calibrant.data.tables import scan_table
from calibrant.report.charts.chart import Axis, Chart, Dot, Line, ReferenceLine
from calibrant.report.charts.scales import percent
from calibrant.report.page.parts import drawn

# The columns that `serve` writes and no other table has together.
_SERVED = ("time", "decision", "cost", "seconds", "policy", "promised", "shift")


def traffic_of(paths: list[str]) -> dict[str, object] | None:
    """Return what the tab Watch shows of served rows; None where the input is another table."""
    if len(paths) != 1 or not Path(paths[0]).is_file():
        return None
    rows = scan_table(paths[0])
    if not set(_SERVED) <= set(rows.collect_schema().names()):
        return None
    answers_served = rows.select(_SERVED).with_columns(
        day=pl.col("time").cast(pl.String).str.head(10)
    )
    days = answers_served.group_by("day").agg(
        pl.len().alias("questions"),
        pl.col("decision").eq("answer").mean().alias("answered"),
        pl.col("cost").sum(),
        pl.col("promised").filter(decision="answer").mean(),
        pl.col("shift").cast(pl.String).drop_nulls().first(),
    )
    daily = days.sort("day").collect()
    seconds = answers_served.select(pl.col("seconds").median()).collect().item()
    count = int(daily["questions"].sum())
    answers = float((daily["answered"] * daily["questions"]).sum()) / count
    return {
        "tiles": [
            ("questions", f"{count:,}", ""),
            ("answered alone", percent(answers), ""),
            ("cost", f"{daily['cost'].sum():,.4g}", ""),
            ("half of them took less, in seconds", f"{seconds:.2g}", ""),
        ],
        "picture": drawn(_chart(daily)),
        "alarms": _alarms(daily),
    }


def _chart(days: pl.DataFrame) -> Chart:
    most = days["questions"].max()
    rows = list(days.iter_rows(named=True))
    places = [(place, row["answered"]) for place, row in enumerate(rows)]
    dots = [
        Dot(
            place,
            row["answered"],
            size=0.3 * row["questions"] / most,
            tip=_day(row),
            key=f"␟␟served = {row['day']}",
        )
        for place, row in enumerate(rows)
    ]
    rules = [
        ReferenceLine(rows.index(row), "x", words, "second", dashed=True)
        for words, row in _first_alarms(days).items()
    ]
    return Chart(
        "traffic",
        "Share of questions answered alone, day by day",
        "Large dots are days of many questions.",
        Axis(names=[row["day"] for row in rows]),
        Axis("answered alone", low=0, high=1),
        [Line(places, "plain", look="faint"), *dots, *rules],
    )


def _day(row: dict[str, Any]) -> str:
    return f"{row['day']}: {row['questions']:,} questions, {percent(row['answered'])} answered"


def _first_alarms(days: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the first day on which questions were unlike the labels, or nothing was promised."""
    shifted = days.filter(pl.col("shift").is_not_null())
    ended = days.filter(pl.col("promised") < 1)
    alarms = {"unlike the labels": shifted, "promise ended": ended}
    return {words: subset.row(0, named=True) for words, subset in alarms.items() if subset.height}


def _alarms(days: pl.DataFrame) -> list[str]:
    texts = {"unlike the labels": "questions unlike the labelled ones: {shift}",
             "promise ended": "answers were given without the promise"}  # fmt: skip
    return [
        f"From {row['day']} on {texts[words].format(**row)}"
        for words, row in _first_alarms(days).items()
    ]
