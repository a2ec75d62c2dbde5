"""What stands beside a document: how the table is read, what a policy did, and files to save."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from calibrant.apps.browser.opened import AppData
from calibrant.apps.browser.state import State
from calibrant.apps.browser.tabs import JUDGED_ROLES, Tab, call_of, parameters, resolved
from calibrant.core.document import dump_document
from calibrant.core.errors import CalibrantError, InputError, QuestionError
from calibrant.core.hints import Call
from calibrant.data import load_scores
from calibrant.data.reading.names import name_roles
from calibrant.data.tables import collect, neutral_cells, scan_table
from calibrant.report.charts import answer_of
from calibrant.report.charts.chart import Axis, Chart, Dot, Line, ReferenceLine
from calibrant.report.charts.draw import chart_file, save_chart
from calibrant.report.charts.svg import percent
from calibrant.report.page import render_html
from calibrant.report.page.parts import drawn
from calibrant.report.result import Result
from calibrant.verbs.opening.open_input import read

_ROLES = {"confidence": "confidence", "correct": "right or wrong", "answer": "answer",
          "gold": "right answer", "model": "model", "question": "question",
          "unit": "document or run that rows belong to"}  # fmt: skip
_TYPED = {
    "scale": ("scale of the confidence", "percent, 1-5, low=0.3,high=0.9"),
    "right": ("words that mean right", "yes,pass"),
    "probs": ("columns of class probabilities", "p_"),
}
_ROWS, _SHOWN, _NUMBER = 200, 5, "number of the row"
"""Rows that a preview is made of, and those of them that it shows."""


def reading_fields(
    data: AppData, reading: Mapping[str, str] | None = None
) -> list[dict[str, object]]:
    """Return the fields that say which column is what; none where the input is no table.

    Parameters
    ----------
    data
        What is looked at.
    reading
        The column that was read, by role.
    """
    names = data.columns()
    if not names:
        return []
    likely = [name for name in names if name_roles(name).stated >= 2]
    likely_all = [(",".join(likely), f"all {len(likely)}: {', '.join(likely)}")] * (len(likely) > 1)
    columns = [(name, name) for name in names]
    selects = [
        {
            "name": role,
            "words": words,
            "choices": [*likely_all, *columns] if role == "confidence" else columns,
            "value": data.table.get(role, ""),
            "guess": (reading or {}).get("question_id" if role == "question" else role, ""),
        }
        for role, words in _ROLES.items()
    ]
    typed = [
        {"name": name, "words": words, "hint": hint, "value": data.table.get(name, "")}
        for name, (words, hint) in _TYPED.items()
    ]
    return [*selects, *typed]


def judged_columns(state: State, data: AppData) -> list[dict[str, object]]:
    """Return what is ticked to say which columns are the judge's, and which people's."""
    columns, typed = data.judged(), state.settings("judge", parameters("judge"))
    return [
        {
            "name": f"judge.{role}",
            "words": words,
            "choices": columns["scored"] or data.columns(),
            "chosen": typed.get(role) or columns[role],
        }
        for role, words in JUDGED_ROLES.items()
    ]


_SETTING = re.compile(r'(\w+)=(\[[^\]]*\]|"[^"]*")')


def proposed_settings(error: str) -> tuple[str, dict[str, str]]:
    r"""Return a refusal without the call that it proposes, and what that call says by option.

    Examples
    --------
    >>> proposed_settings('no order yet\n-> say so:\ncalibrant.judge(t.csv, order=["bad", "ok"])')
    ('no order yet\n-> say so:', {'order': 'bad,ok'})
    """
    lines = error.splitlines()
    calls = [line for line in lines if line.lstrip().startswith("calibrant.")]
    settings = [pair for call in calls for pair in _SETTING.findall(call)]
    values = {name: orjson.loads(text) for name, text in settings if name not in JUDGED_ROLES}
    proposed = {k: v if isinstance(v, str) else ",".join(map(str, v)) for k, v in values.items()}
    return "\n".join(line for line in lines if line not in calls), proposed


def reading_question(data: AppData) -> dict[str, Any] | None:
    """Return what is asked about the table, and each reading with a preview; None if nothing is."""
    try:
        read(data.data, **data.table)
    except QuestionError as question:
        first = str(question).splitlines()[0].removeprefix(f"{data.paths[0]}: ")
        first = first.removeprefix("Which columns are meant? ")
        readings = []
        for reading in question.readings:
            options: dict[str, Any] = {**data.table, **reading.options}
            rows = preview(data, options)
            readings.append({"text": reading.text, "options": options, "rows": rows})
        return {"words": first, "ways": readings}
    except CalibrantError:
        return None
    return None


def preview(data: AppData, options: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return five rows as they stand and as they would be read; none where they cannot be.

    Parameters
    ----------
    data
        What is looked at.
    options
        Options of the reading.
    """
    path = data.paths[0]
    try:
        head = collect(scan_table(path).head(_ROWS), path).with_row_index(_NUMBER, offset=1)
        scores = load_scores(head, **options, ranks=True, features=[_NUMBER], labels="optional")
    except CalibrantError:
        return []
    frame = scores.frame.unique(_NUMBER, keep="first", maintain_order=True)
    # Rows that differ show more than the first ones.
    kinds = [
        frame.unique(names, keep="first", maintain_order=True)
        for names in (["correct"], ["confidence", "correct"])
    ]
    rows = pl.concat([*kinds, frame]).unique(_NUMBER, keep="first", maintain_order=True)
    columns = _columns(options, head.columns)
    return [_row(row, head, columns) for row in rows[:_SHOWN].sort(_NUMBER).iter_rows(named=True)]


def _columns(options: Mapping[str, Any], names: list[str]) -> list[str]:
    values = [str(options.get(role, "")) for role in ("confidence", "answer", "gold", "correct")]
    return [
        n for text in values for n in ([text] if text in names else text.split(",")) if n in names
    ]


def _row(row: Mapping[str, Any], head: pl.DataFrame, columns: list[str]) -> dict[str, object]:
    confidence, right = row["confidence"], row["correct"]
    shares = confidence is not None and 0 <= confidence <= 1
    return {
        "number": row[_NUMBER],
        "cells": {name: str(head[name][row[_NUMBER] - 1])[:60] for name in columns},
        "says": "–"
        if confidence is None
        else f"{100 * confidence:.0f} %"
        if shares
        else f"{confidence:.3g}",
        "means": "–" if right is None else "right" if right >= 0.5 else "wrong",
    }


# The columns that `serve` writes and no other table has together.
_SERVED = ("time", "decision", "cost", "seconds", "policy", "promised", "shift")
_ALARMS = {"unlike the labels": "questions unlike the labelled ones: {shift}",
           "promise ended": "answers were given without the promise"}  # fmt: skip


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
        "picture": drawn(_traffic_chart(daily)),
        "alarms": [
            f"From {row['day']} on {_ALARMS[words].format(**row)}"
            for words, row in _first_alarms(daily).items()
        ],
    }


def _traffic_chart(days: pl.DataFrame) -> Chart:
    most = days["questions"].max()
    rows = list(days.iter_rows(named=True))
    places = [(place, row["answered"]) for place, row in enumerate(rows)]
    dots = [
        Dot(
            place,
            row["answered"],
            size=0.3 * row["questions"] / most,
            tip="{day}: {questions:,} questions, {share} answered".format(
                **row, share=percent(row["answered"])
            ),
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


def _first_alarms(days: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the first day on which questions were unlike the labels, or nothing was promised."""
    shifted = days.filter(pl.col("shift").is_not_null())
    ended = days.filter(pl.col("promised") < 1)
    alarms = {"unlike the labels": shifted, "promise ended": ended}
    return {words: subset.row(0, named=True) for words, subset in alarms.items() if subset.height}


_MOST_ROWS = 100_000
_COLUMNS = ("row", "question_id", "question", "answer", "reference", "model", "method",
            "confidence", "correct")  # fmt: skip


def saved(name: str, tab: Tab, state: State, data: AppData) -> tuple[str, bytes]:
    """Return the kind and the content of a file that was asked for."""
    makers: dict[str, tuple[str, Callable[[Tab, State, AppData], bytes]]] = {
        "page.html": ("text/html", _page),
        "result.json": ("application/json", lambda *of: dump_document(_result(*of).to_dict())),
        "chart.svg": ("image/svg+xml", lambda *of: chart_file(_chart(*of)).encode()),
        "chart.png": ("image/png", _png),
        "policy.json": ("application/json", _policy),
        "rows.csv": ("text/csv", _rows),
        "corrected.csv": ("text/csv", lambda *of: _csv(of[-1].corrected())),
    }
    if name not in makers:
        raise InputError(f"{name} is nothing that can be saved")
    kind, make = makers[name]
    return kind, make(tab, state, data)


def _result(tab: Tab, state: State, data: AppData) -> Result:
    if not tab.verb:
        raise InputError("this tab has rows and no result of its own")
    job = data.document(call_of(tab, state, data))
    if job.result is None:
        raise InputError(job.error or "the result is not there yet")
    return job.result


def _page(tab: Tab, state: State, data: AppData) -> bytes:
    # Ratings have no confidence, and so no rows to go through.
    questions, note = ([], "") if tab.name == "judge" else data.rows().questions()
    page = render_html([_result(tab, state, data)], questions=questions, questions_note=note)
    return page.encode()


def _chart(tab: Tab, state: State, data: AppData) -> Chart:
    chart = answer_of(_result(tab, state, data))
    if chart is None:
        raise InputError("this result has no chart")
    return chart


def _png(tab: Tab, state: State, data: AppData) -> bytes:
    (path,) = save_chart(_chart(tab, state, data), data.folder, formats=["png"])
    return path.read_bytes()


def _policy(tab: Tab, state: State, data: AppData) -> bytes:
    if tab.verb not in ("decide", "mend", "judge"):
        raise InputError("a policy is saved on the tab Decide, a map on the tab Meaning or Judge")
    path = data.folder / "policy.json"
    data.make(Call(tab.verb, **call_of(tab, state, data).settings, save=str(path)))
    return path.read_bytes()


def _rows(tab: Tab, state: State, data: AppData) -> bytes:  # noqa: ARG001
    rows = data.rows().page(resolved(state, data).rows(size=_MOST_ROWS)).rows
    names = [name for name in _COLUMNS if not rows or name in rows[0]]
    cells = {name: [row[name] for row in rows] for name in names}
    return _csv(pl.DataFrame(cells, strict=False))


def _csv(frame: pl.DataFrame) -> bytes:
    """Return a table for a spreadsheet: no text of a model is run as a formula."""
    return neutral_cells(frame).write_csv().encode()
