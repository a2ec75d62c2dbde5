"""`calibrant monitor`."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli._stream import follow_file, read_stdin
from calibrant.cli.columns import Columns, takes_columns
from calibrant.cli.emit import emit
from calibrant.cli.options import (
    HtmlPath,
    JsonPath,
    OnInvalid,
    input_to_read,
    inputs_to_read,
    seconds,
)
from calibrant.core.errors import ClaimFailed, InputError
from calibrant.verbs.monitor import monitor

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_STREAM_ROWS = 100


@app.command()
@takes_columns()
def command(
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT..",
            help="Tables, days of parquet, or - for standard input.",
            callback=inputs_to_read,
        ),
    ],
    time: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of the time; else order of rows.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="UNIT|N", help="hour, day, week, month or rows.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Scores of the last verification.", callback=input_to_read
        ),
    ] = None,
    baseline_rows: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=10**12, help="Take the first N rows as the verification."
        ),
    ] = 0,
    follow: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Wait for new rows until the file rests so long.",
            callback=seconds,
        ),
    ] = None,
    bins: Annotated[int, typer.Option(help="Equal-width bins.")] = 10,
    alpha: Annotated[float, typer.Option(help="Probability of any false alarm, ever.")] = 0.05,
    tolerance: Annotated[float, typer.Option(help="Change that does not matter.")] = 0.02,
    precision: Annotated[
        float | None, typer.Option(metavar="D", help="Precision of the verification.")
    ] = None,
    drift: Annotated[
        float | None, typer.Option(metavar="RATE", help="Drift per day; else estimated.")
    ] = None,
    verified: Annotated[
        str | None, typer.Option(metavar="DATE", help="Day of the verification.")
    ] = None,
    fail_on_alarm: Annotated[
        bool, typer.Option("--fail-on-alarm", help="Exit with 1 when the alarm goes off.")
    ] = False,
    columns: Columns,
    on_invalid: OnInvalid = "error",
    json: JsonPath = None,
    html: HtmlPath = None,
) -> None:
    """Watch calibration over time, with a controlled false-alarm rate."""
    step = every or ("day" if time else str(_STREAM_ROWS))
    result = monitor(
        _sources(inputs, step, follow),
        time=time,
        every=step,
        baseline=baseline,
        baseline_rows=baseline_rows,
        bins=bins,
        alpha=alpha,
        tolerance=tolerance,
        precision=precision,
        drift=drift,
        verified=_date(verified),
        stream=_stream_name(inputs, follow),
        on_alarm=_announce if "-" in inputs or follow is not None else None,
        **columns,
        on_invalid=on_invalid,
    )
    emit(result, json=json, html=html)
    alarms = [entry for entry in result["results"] if entry["alarm"]]
    if fail_on_alarm and alarms:
        raise ClaimFailed(f"calibration has drifted: {len(alarms)} alarm(s)")


def _sources(inputs: list[str], every: str, follow: float | None) -> Any:
    rows = int(every) if every.isdigit() else _STREAM_ROWS
    if inputs == ["-"]:
        return read_stdin(rows)
    if "-" in inputs:
        raise InputError("standard input (-) is not mixed with files")
    if follow is not None:
        if len(inputs) != 1:
            raise InputError(f"one growing file can be followed, got {len(inputs)}")
        return follow_file(Path(inputs[0]), rows, follow)
    return inputs


def _stream_name(inputs: list[str], follow: float | None) -> str | None:
    """Return how messages call rows that keep coming; files have their own names."""
    if inputs == ["-"]:
        return "standard input"
    return inputs[0] if follow is not None else None


def _announce(alarm: dict[str, Any]) -> None:
    where = "overall" if alarm["bin"] is None else f"confidence {alarm['bin']}"
    sys.stderr.write(
        f"ALARM {alarm['model']} / {alarm['method']} at {alarm['when']}: {alarm['direction']} "
        f"({where}), since about {alarm['since']}\n"
    )
    sys.stderr.flush()


def _date(text: str | None) -> dt.date | None:
    if text is None:
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"a date is written like 2026-01-31, got {text!r}") from None
