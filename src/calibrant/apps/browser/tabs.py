"""The tabs of the app: which verb each calls, what is shown of its document, rows of a dot."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import polars as pl
from markupsafe import Markup
from msgspec import structs

import calibrant
from calibrant.apps.browser.opened import AppData, BrowserJob
from calibrant.apps.browser.state import State
from calibrant.core.errors import InputError
from calibrant.core.hints import Call
from calibrant.core.names import method_words
from calibrant.core.values import range_words
from calibrant.core.verb import COMPUTE, Parameter, declaration
from calibrant.data.sources.rows import RowQuery, Rows
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.fields import typed
from calibrant.report.answers import claims_by_entry, claims_of, entry_tone, key_of
from calibrant.report.charts import answer_of
from calibrant.report.charts.draw import MEDIUM, draw, draw_plane
from calibrant.report.charts.reliability import reliability_chart
from calibrant.report.charts.svg import percent, points
from calibrant.report.page import first_screen
from calibrant.report.page.parts import document_part, drawn, safe_json
from calibrant.report.result import Result
from calibrant.verbs.monitoring import batch_length, in_batches

_LIMIT = 0.1
_MOST_FEATURES = 6
_MOST_LACKING = 0.2
_ALSO_ASKED = ("time", "baseline_rows", "judge")
_OF_JUDGES = ("existing", "scale", "human_scale", "order", "pairs", "first", "swapped", "tie", "by",
              "model", "question", "answer")  # fmt: skip
# Chosen by the picker or a chart, not typed into a form.
_PICKED = ("models", "only_model", "only_method", "by", "save", "wrong")
_PICKED_OF_JUDGES = ("judge", "human", "save", "batch", "rated")
JUDGED_ROLES = {"judge": "judge's scores", "human": "people's ratings, a person each"}
"""What has to be known of a table before a judge is set beside people."""


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab: its place in the address, its title, the verb behind it and what that does."""

    name: str
    title: str
    verb: str = ""
    working: str = ""


TABS = (
    Tab("overview", "Overview", "audit", "Auditing"),
    Tab("compare", "Compare", "compare", "Comparing"),
    Tab("groups", "Groups", "groups", "Looking for groups"),
    Tab("decide", "Decide", "decide", "Looking for a threshold"),
    Tab("mend", "Meaning", "mend", "Learning what a confidence means"),
    Tab("judge", "Judge", "judge", "Setting the judge beside people in"),
    Tab("questions", "Questions"),
    Tab("labels", "Labels", "label status", "Reading the labels"),
    Tab("watch", "Watch", "monitor", "Watching"),
)


def tab_of(name: str) -> Tab:
    """Return the tab of this name."""
    match = next((tab for tab in TABS if tab.name == name), None)
    if match is None:
        raise InputError(f"there is no tab {name!r}")
    return match


@cache
def parameters(verb: str) -> Mapping[str, Parameter]:
    """Return the options of a verb, from its declaration."""
    function: Callable[..., Any] = getattr(calibrant, verb.replace(" ", "_"))
    return declaration(function).parameters


def focused(state: State, data: AppData) -> State:
    """Return the state with one model and method in focus: by default the most over-confident."""
    rows = data.rows()
    method = state.method or rows.methods[0]
    if state.model is not None:
        return replace(state, method=method)
    gaps = rows.gaps(method)
    able = [name for name in state.models or rows.models if name in gaps] or rows.models
    return replace(state, model=max(able, key=lambda name: gaps.get(name, 0.0)), method=method)


def call_of(tab: Tab, state: State, data: AppData) -> Call:
    """Return the call of the verb behind a tab: what was picked, then what was typed."""
    picked: dict[str, object] = {}
    if tab.name == "overview" and state.group and state.group[0] in data.rows().facets:
        picked = {"by": [state.group[0]]}
    elif tab.name == "compare" and state.models:
        picked = {"models": list(state.models)}
    elif tab.name == "groups":
        picked = _groups(state, data)
    elif tab.name == "decide":
        picked = _decide(state, data)
    elif tab.name == "mend":
        picked = _one(state, data)
    elif tab.name == "judge":
        picked = {role: data.judged()[role] for role in JUDGED_ROLES}
    call = Call(tab.verb, **{**picked, **state.settings(tab.verb, parameters(tab.verb))})
    if tab.name == "judge" and not all(call.settings[role] for role in JUDGED_ROLES):
        rule = "which columns hold the judge's scores, and which people's ratings?"
        raise InputError(rule, hint="tick both below")
    return call


def _groups(state: State, data: AppData) -> dict[str, object]:
    rows, state = data.rows(), focused(state, data)
    lacking = {name: rows.index[name].null_count() for name in rows.facets}
    facets = [name for name, missing in lacking.items() if missing <= _MOST_LACKING * rows.height]
    if not facets:
        raise InputError(
            "no column puts the rows into groups",
            hint="add a column such as topic or language to the table",
        )
    one = {"models": [state.model]} if len(rows.models) > 1 else {}
    features = facets[:_MOST_FEATURES]
    # Rows without a group are left out and counted, where they are few.
    remaining = {"on_invalid": "drop"} if any(lacking[name] for name in features) else {}
    return {"features": features, **one, **remaining}


def _decide(state: State, data: AppData) -> dict[str, object]:
    typed = {name.partition(".")[2] for name, text in state.options.items() if text.strip()}
    limit = {} if {"costs", "max_error"} & typed else {"max_error": _LIMIT}
    return {**limit, **_one(state, data)}


def _one(state: State, data: AppData) -> dict[str, object]:
    """Return the model and the method in focus, where there are several."""
    rows, state = data.rows(), focused(state, data)
    one = {"only_model": state.model} if len(rows.models) > 1 else {}
    return {**one, **({"only_method": state.method} if len(rows.methods) > 1 else {})}


# -- what is shown ------------------------------------------------------------------------


def shown_of(tab: Tab, state: State, job: BrowserJob) -> dict[str, object]:
    """Return what the template of a tab takes; `state` has one model and method in focus.

    What does not depend on the focus is made once for a document: a click has to be quick.
    """
    document = job.result
    assert document is not None
    if not job.shown:
        job.shown.update(_of_document(document))
    display = {**job.shown, "tab": tab, "form": form_of(tab.verb, state)}
    if tab.name == "overview":
        entry = focus_entry(state, document)
        display["focus"] = None if entry is None else _focus(entry, document)
        if len(document["results"]) == 1:
            display["summary"] = None
    else:
        display.pop("summary")
    if tab.name in ("groups", "decide", "mend"):
        display |= {"model": state.model, "method": _method_words(str(state.method))}
    if tab.name == "decide":
        display |= _decision(document)
    if tab.name == "mend":
        display["entry"] = document["results"][0]
    return display


def _of_document(document: Result) -> dict[str, object]:
    screen = first_screen(document)
    # How the table was read stands beside its name already.
    sentence = (document.get("reading") or {}).get("sentence")
    notes = [text for text in screen.notes if text != sentence]
    warnings = [*screen.warnings, *screen.more_warnings]
    chart = screen.chart
    return {
        "screen": replace(screen, warnings=warnings[:1], more_warnings=warnings[1:], notes=notes),
        "picture": None if chart is None else drawn(chart),
        "summary": None if chart is None else Markup(draw(chart, wide=False)),
        "part": document_part(document, 0, leads=True),
    }


def focus_entry(state: State, document: Result) -> AuditBlock | None:
    """Return the confidence in focus; where there is none, the first that has a diagram."""
    able = [e for e in typed(document).blocks if e.reliability and e.probability]
    group = None if state.group is None else {state.group[0]: state.group[1]}
    fits = [e for e in able if (e.group or None) == group and e.model == state.model]
    exact = [e for e in fits if e.method == state.method]
    return next(iter([*exact, *fits, *able]), None)


def _focus(entry: AuditBlock, document: Result) -> dict[str, object]:
    about = claims_by_entry(claims_of(document))
    tone, metrics = entry_tone(entry, about), entry.metrics
    group = ", ".join((entry.group or {}).values())
    words = _method_words(entry.method)
    names = [entry.model if len(document["results"]) > 1 else "", words, group]
    title = ", ".join(filter(None, names))
    assert entry.reliability is not None
    chart = reliability_chart(entry.reliability, tone, title)
    key = key_of(entry)
    tiles = [
        (title, *_value_and_interval(metrics[name], unit))
        for title, name, unit in (
            ("says", "mean_confidence", "share"),
            ("is right", "accuracy", "share"),
            ("gap, in points", "confidence_gap", "points"),
            ("calibration error, in points", "error" if "error" in metrics else "ece", "points"),
            ("tells right from wrong (AUROC)", "auroc", ""),
        )
        if metrics.get(name)
    ]
    return {
        "key": key,
        "model": entry.model,
        "method": entry.method,
        "title": f"{title}: where on the scale",
        "diagram": Markup(draw_plane(chart, MEDIUM).svg()),
        "caption": chart.caption,
        "tiles": tiles,
        "claims": [claim.text for claim in about.get(key, ())][:3],
    }


def _method_words(name: str) -> str:
    return method_words(name) or name.replace("_", " ")


def _value_and_interval(estimate: EstimateEntry, unit: str) -> tuple[str, str]:
    writers = {"points": lambda value: points(value).lstrip("+"), "share": percent}
    write = writers.get(unit, "{:.2f}".format)
    value, low, high = estimate.value, estimate.low, estimate.high
    interval = "" if low is None or high is None else f"{write(low)} to {write(high)}"
    return "–" if value is None else write(value), interval


# How a program asks a policy of whole units.
_USES = {"stop": "stops([0.93, 0.41])", "drop": "keeps([0.93, 0.41])"}


def _decision(document: Result) -> dict[str, object]:
    """Return the curve as numbers, so that a limit can be tried before it is asked for."""
    entry = next((e for e in document["results"] if e.get("curve")), None)
    if entry is None:
        return {"entry": None}
    chart = answer_of(document)
    curve = [
        [point["threshold"], point["share"], point["error"]["value"], point["error"]["n"]]
        for point in entry["curve"]
        if point["share"] is not None and point["error"]["value"] is not None
    ]
    score = (entry.get("unit") or {}).get("score")
    return {
        "entry": entry,
        "use": _USES.get(str(score), "answers(0.93)" if score is None else "answers([0.93, 0.88])"),
        "chart": None if chart is None else Markup(draw_plane(chart, MEDIUM).svg()),
        "curve": safe_json(sorted(curve, key=lambda point: point[1])),
        "limit": entry.get("max_error"),
        "at": entry.get("max_error") or (entry.get("error") or {}).get("value"),
        "costs": (document.get("settings") or {}).get("costs") or {},
    }


def form_of(
    verb: str, state: State, proposed: Mapping[str, str] | None = None
) -> list[dict[str, object]]:
    """Return the fields of a tab's settings: the options of its verb that say what to compute.

    What is `proposed` stands in a field that nobody filled.
    """
    fields = []
    also, picked = (_OF_JUDGES, _PICKED_OF_JUDGES) if verb == "judge" else (_ALSO_ASKED, _PICKED)
    for name, parameter in parameters(verb).items():
        option = parameter.option
        request = option.group == COMPUTE or name in also
        if not request or name in picked or option.argument:
            continue
        typed = state.options.get(f"{verb}.{name}", "") or (proposed or {}).get(name, "")
        fields.append(
            {
                "name": f"{verb}.{name}",
                "words": parameter.word.replace("-", " "),
                "help": option.help,
                "hint": _placeholder(parameter),
                "choices": option.choices,
                "flag": parameter.base is bool,
                "value": typed,
                "default": "" if parameter.default in (None, (), False) else parameter.default,
            }
        )
    return fields


_MOST_SHOWN = 100_000
# By what a shell is told of an option.
_WRITTEN = {
    **dict.fromkeys(("COL", "COLUMN"), "Name of a column"),
    **dict.fromkeys(("COL,..", "COL,COL"), "Names of columns"),
    "MODEL": "Name of a model",
    "WORD": "tie",
    "NAME": "One of these names",
    "A,B,..": "Names, separated by commas",
    "RULE": "age<25 and sex=F",
    "UNIT|N": "day, or 500",
    "DATE": "2026-01-31",
    "BAD,OK,GOOD": "bad,ok,good",
    **dict.fromkeys(("FILE", "TABLE"), "Path of a file"),
}


def _placeholder(parameter: Parameter) -> str:
    """Return what stands in an empty field: the role of a column, or how a value is written."""
    option = parameter.option
    role = re.split("[:;.,]", option.help)[0]
    if role.startswith("Column"):
        return role
    if parameter.type in (int, float):
        # An end that only guards against nonsense helps nobody.
        high = None if (option.max or 0) > _MOST_SHOWN else option.max
        words = range_words(structs.replace(option, max=high), parameter.type)
        return words.partition(" ")[2].capitalize()
    return _WRITTEN.get(option.metavar, option.metavar)


def picker(data: AppData, state: State) -> dict[str, object]:
    """Return what the picker offers: models, methods and groups of the rows."""
    rows = data.rows()
    gaps = rows.gaps(state.method or rows.methods[0])
    gap_texts = {name: points(gap) for name, gap in gaps.items() if abs(gap) <= 1}
    return {
        "models": [(name, gap_texts.get(name, "")) for name in rows.models],
        "methods": [(name, _method_words(name)) for name in rows.methods],
        "facets": {name: rows.values(name) for name in rows.facets},
        "state": state,
        "name": data.name,
        "answers": rows.page(RowQuery(methods=(rows.methods[0],), size=0)).total,
        "sentence": rows.sentence,
    }


WATCHED, SERVED = "watched", "served"
"""Names of the groups: batches as `monitor` makes them of each model, days of what was served."""


def resolved(state: State, data: AppData) -> State:
    """Return the state with a stretch of time as a column of the rows, made when it is asked for.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/t.csv"
    >>> _ = pl.DataFrame({"confidence": [0.5, 0.6, 0.7], "correct": [1, 0, 1]}).write_csv(path)
    >>> data = AppData(path)
    >>> state = State(group=("watched", "batch 2"), options={"monitor.every": "2"})
    >>> [row["row"] for row in data.rows().page(resolved(state, data).rows()).rows]
    [3]
    """
    rows = data.rows()
    name, value = state.group or ("", "")
    if name not in (WATCHED, SERVED) or name in rows.facets:
        return state
    request = state.settings("monitor", parameters("monitor")) if name == WATCHED else {}
    time = request.get("time") if name == WATCHED else "time"
    total = batch_length(request.get("every"), time)
    if len(data.paths) > 1 and (time is None or str(total).isdigit()):
        raise InputError(
            "rows of several files are counted file by file, so that a dot cannot list its own",
            hint="name the column of the time in the settings of Watch",
        )
    column = f"{name} {time} {total}"
    rows.add_column(column, lambda: _names(rows, name, time, total))
    choice = state.model if state.model in rows.models else None
    return replace(state, group=(column, value), model=choice)


def _names(rows: Rows, name: str, time: str | None, whole: str | int) -> pl.Series:
    """Return the name of each row's batch, by place; empty where a row belongs to none."""
    indexed = rows.index.select("place", "model", "method", "confidence").sort("place")
    if time is not None:
        indexed = indexed.with_columns(rows.stored.whole(time)[time])
    if name == SERVED:
        parts = [indexed]
    else:
        # What states no confidence is in no batch of the watch.
        confidence = indexed.filter(pl.col("confidence").is_not_null())
        parts = confidence.partition_by("model", "method", maintain_order=True)
    marked = [in_batches(part, time, whole, "the table") for part in parts]
    names = pl.concat(part.select("place", "stream_batch") for part in marked)
    return indexed.join(names, on="place", how="left", maintain_order="left")["stream_batch"]
