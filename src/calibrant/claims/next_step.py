"""The one command that comes next, and why; a call in Python where the data were never a file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims.claim import Claim
from calibrant.core.document import given_places

_COMMON = frozenset({"confidence", "correct", "model", "method", "question"})
COLUMNS: dict[str, frozenset[str]] = {
    "audit": _COMMON | {"answer", "weights"},
    "cascade": _COMMON,
    "compare": _COMMON | {"answer"},
    "decide": _COMMON,
    "label add": _COMMON | {"answer"},
    "label export": _COMMON | {"answer"},
    "label next": _COMMON | {"answer"},
    "monitor": _COMMON,
    "plan": _COMMON,
}
"""Roles of columns that a verb can be told, for each verb that may come next."""

READINGS: dict[str, frozenset[str]] = {
    "audit": frozenset({"scale", "graded", "repeats", "recalibrate"}),
    "compare": frozenset({"scale", "graded"}),
}
"""Ways to read a table that a verb can be told; the others take it as it is."""

_FINDS_WEIGHTS = frozenset({"audit", "plan"})
_LISTS = frozenset({"features", "models", "price"})
TABLE = "TABLE"
"""Stands in a command for data that lie in memory."""


def next_step(
    verb: str, head: Mapping[str, Any], claims: Sequence[Claim], *, weighted: bool = False
) -> dict[str, str]:
    """Return a command to copy, and the reason for it.

    Parameters
    ----------
    verb
        What was done.
    head
        Head of the document: its input and its columns.
    claims
        What was found.
    weighted
        Whether rows have unequal weights, also where no column of them was named.

    Examples
    --------
    >>> next_step("audit", {"source": "s.csv", "input": [{"path": "s.csv"}]}, [])["command"]
    "calibrant plan s.csv --claim 'ece<0.05'"
    """
    columns = (head.get("samples") or {}).get("columns")
    if columns:
        command, why = _graded(head, columns)
    else:
        following, goal, why = _step(verb, claims)
        settings = head.get("settings") or {}
        if not can_read(settings, following):
            following, goal, why = "audit", " --html audit.html", "See all of it on a page"
        read = read_as(settings, following)
        command = f"calibrant {following} {input_words(head)}{read}{goal}"
        named = bool((settings.get("columns") or {}).get("weights"))
        # A verb that cannot be told their column may still find one that is called so.
        lost = named or (weighted and following not in _FINDS_WEIGHTS)
        why += _without_weights(following) if lost else ""
    return {"command": as_call(command), "why": why}


def graded_step(head: Mapping[str, Any], out: Any) -> dict[str, str]:
    """Return what to do with graded answers: audit the study, or write one first.

    Examples
    --------
    >>> samples = {"columns": {}, "references_file": "gold.csv"}
    >>> head = {"source": "s.csv", "input": [{"path": "s.csv"}], "samples": samples}
    >>> graded_step(head, "my study")["command"]
    "calibrant audit 'my study'"
    >>> graded_step(head, None)["command"]
    'calibrant grade s.csv --references gold.csv --out study'
    """
    if out is not None:
        command = f"calibrant audit {shlex.quote(str(out))}"
        return {"command": command, "why": "See how far the confidence can be trusted"}
    command, why = _graded(head, head["samples"]["columns"])
    return {"command": as_call(command), "why": why}


def _graded(head: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[str, str]:
    """Return how sampled answers become a study, which every other verb reads."""
    # Samples or references are named in any case: they say that answers are to be graded.
    guessed = {*head["samples"].get("guessed", ())} - {"samples", "reference"}
    named = [
        f"--{role} {shlex.quote(columns[role])}"
        for role in ("samples", "reference", "correct", "question", "model")
        if role in columns and role not in guessed
    ]
    beside = head["samples"].get("references_file")
    named += [f"--references {shlex.quote(beside)}"] if beside else []
    command = " ".join(["calibrant grade", input_words(head), *named, "--out study"])
    return command, "Keep the grades: decide, compare and groups read them"


def _step(verb: str, claims: Sequence[Claim]) -> tuple[str, str, str]:
    """Return the next verb, its own options and the reason."""
    if verb == "audit" and any(claim.outcome == "shown" for claim in claims):
        models = {claim.subject.get("model") for claim in claims if claim.subject.get("model")}
        if len(models) > 1:
            return "compare", "", "Is one model better calibrated, or only more accurate?"
        return "decide", " --max-error 0.10", "Where may it answer alone?"
    return "plan", " --claim 'ece<0.05'", "How many labels would decide it?"


def _without_weights(verb: str) -> str:
    """Return what a reader should know whose weights the next verb cannot be told."""
    lost = "weights" not in COLUMNS[verb]
    return f" (`{verb}` has no weights: every row counts once)" if lost else ""


def as_call(command: str) -> str:
    """Return a command about data in memory as the call in Python; any other as it is.

    Examples
    --------
    >>> as_call("calibrant decide TABLE --confidence p --max-error 0.10")
    'calibrant.decide(table, confidence="p", max_error=0.10)'
    >>> as_call("calibrant label next TABLE --out batch.csv")
    'calibrant.label_next(table, out="batch.csv")'
    >>> as_call("calibrant decide TABLE --costs wrong=10,ask=1 --features topic")
    'calibrant.decide(table, costs={"wrong": 10, "ask": 1}, features=["topic"])'
    >>> as_call("calibrant audit TABLE --confidence verbal,logit")
    'calibrant.audit(table, confidence="verbal,logit")'
    >>> as_call("calibrant audit TABLE --graded --html audit.html")
    'calibrant.audit(table, graded=True).to_html("audit.html")'
    >>> as_call("calibrant decide scores.csv --max-error 0.10")
    'calibrant decide scores.csv --max-error 0.10'
    """
    words = shlex.split(command)
    if TABLE not in words:
        return command
    place = words.index(TABLE)
    options: list[str] = []
    for word in words[place + 1 :]:
        if word.startswith("--"):
            options.append(f"{word.removeprefix('--').replace('-', '_')}=True")
        else:
            name = options.pop().removesuffix("=True")
            options.append(f"{name}={_literal(word, several=name in _LISTS)}")
    page = "".join(f".to_html({part[5:]})" for part in options if part.startswith("html="))
    options = [part for part in options if not part.startswith("html=")]
    return f"calibrant.{'_'.join(words[1:place])}({', '.join(['table', *options])}){page}"


def _literal(text: str, *, several: bool) -> str:
    """Return a value of the command line as Python writes it: a number, a text, a list, a dict."""
    pairs = [part.split("=") for part in text.split(",")]
    if all(len(pair) == 2 for pair in pairs):
        inside = (f"{json.dumps(key)}: {_literal(value, several=False)}" for key, value in pairs)
        return "{" + ", ".join(inside) + "}"
    if several:
        return f"[{', '.join(_literal(part, several=False) for part in text.split(','))}]"
    return text if _is_number(text) else json.dumps(text, ensure_ascii=False)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_as(settings: Mapping[str, Any], verb: str) -> str:
    """Return how the input was read, as options that the next command takes.

    Parameters
    ----------
    settings
        How the input was read.
    verb
        What comes next: a column that it cannot be told is left out.

    Examples
    --------
    >>> read_as({"columns": {"confidence": "p", "weights": "w"}, "on_invalid": "drop"}, "decide")
    ' --confidence p --on-invalid drop'
    """
    columns = (settings.get("columns") or {}).items()
    given = "".join(
        f" --{role} {shlex.quote(str(name))}"
        for role, name in columns
        if name and role in COLUMNS[verb]
    )
    # What had to be dropped here would stop the next command too.
    given += " --on-invalid drop" if settings.get("on_invalid") == "drop" else ""
    told = {name: value for name, value in _readings(settings).items() if name in _takes(verb)}
    return given + "".join(
        f" --{name}" if value is True else f" --{name} {shlex.quote(str(value))}"
        for name, value in told.items()
    )


def can_read(settings: Mapping[str, Any], verb: str) -> bool:
    """Return whether a verb can read the table as it was read here.

    Examples
    --------
    >>> can_read({"scale": "percent"}, "compare"), can_read({"scale": "percent"}, "decide")
    (True, False)
    """
    return _readings(settings).keys() <= _takes(verb)


def _takes(verb: str) -> frozenset[str]:
    return READINGS.get(verb, frozenset())


def _readings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a table was read, other than by default; a study or a log has its own rules."""
    if settings.get("whole_record"):
        return {}
    found = {name: settings.get(name) or None for name in ("graded", "repeats")}
    found["scale"] = "percent" if settings.get("scale") == "percent" else None
    found["recalibrate"] = settings.get("recalibrate") if settings.get("raw_scores") else None
    return {name: value for name, value in found.items() if value is not None}


def input_words(head: Mapping[str, Any]) -> str:
    """Return the input as a command takes it: each place that was given, quoted.

    Examples
    --------
    >>> files = [{"path": "runs/a.csv"}, {"path": "runs/my b.csv"}]
    >>> input_words({"source": "runs/a.csv, runs/my b.csv", "input": files})
    "runs/a.csv 'runs/my b.csv'"
    """
    return shlex.join(given_places(head)) or TABLE
