"""What the app saves: page, result, picture, policy and rows, as files of the browser."""

from collections.abc import Callable

import polars as pl

from calibrant.apps.browser.opened import AppData
from calibrant.apps.browser.state import State
from calibrant.apps.browser.tabs import Tab, call_of, resolved
from calibrant.core.document import dump_document
from calibrant.core.errors import InputError
from calibrant.core.hints import Call
from calibrant.data.tables import neutral_cells
from calibrant.report.charts import answer_of
from calibrant.report.charts.chart import Chart
from calibrant.report.charts.draw import chart_file, save_chart
from calibrant.report.page import render_html
from calibrant.report.result import Result

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
    rows = data.rows()
    questions, note = rows.questions()
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
    if tab.verb not in ("decide", "mend"):
        raise InputError("a policy is saved on the tab Decide, a map on the tab Meaning")
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
