"""What to type next, by kind of document: one command with the reader's file, or one call."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from calibrant.claims.next_step import TABLE, as_call, read_as
from calibrant.core.document import kind_of
from calibrant.report.next_decision import decision_step

__all__ = ["Step", "broken_command", "next_step", "with_folders"]

Step = tuple[str, str]
"""Words, and the command."""

_DECIDE = ("Choose when it may answer alone", "calibrant decide {input} --max-error 0.10")
_EXPORT = (
    "Take the labels out, with their weights",
    "calibrant label export {input} --out labels.csv",
)
_AT_HAND = ("See what the labels at hand show already", "calibrant audit {input}")
_STEPS: dict[str, Step] = {
    "audit": _DECIDE,
    "groups": _DECIDE,
    "leaderboard": ("See whether the order holds at equal accuracy", "calibrant compare {input}"),
    "multi_answer": ("See which confidence is calibrated", "calibrant audit {input}"),
    "plan": ("Choose which answers to label first", "calibrant label next {input} --out batch.csv"),
    "label": ("Label the next batch", "calibrant label next {input} --out batch.csv"),
    "monitor": ("Audit the latest rows", "calibrant audit {input}"),
    "bench": ("Ask a model these questions", "calibrant run STUDY"),
    "bench_check": ("Ask a model these questions", "calibrant run STUDY"),
    "methods": ("Ask a model and compute them", "calibrant run STUDY"),
    "semantics": ("See how far the confidence can be trusted", "calibrant audit {input}"),
    "grade": ("See how far the confidence can be trusted", "calibrant audit {input}"),
    "study": ("See how far the confidence can be trusted", "calibrant audit {input}"),
    "run": ("See how far the confidence can be trusted", "calibrant audit {input}"),
    "import_logs": ("See how far the confidence can be trusted", "calibrant audit {input}"),
}
# Kinds whose next verb reads the same table of scores, with the same names of columns.
_OF_SCORES = frozenset({"audit", "groups", "leaderboard", "plan", "label", "monitor"})


def next_step(document: Mapping[str, Any], beside: Sequence[Mapping[str, Any]] = ()) -> Step | None:
    """Return the next step: the document's own where it names one.

    Parameters
    ----------
    document
        What was found.
    beside
        Documents that the reader has already: no step leads to one of them.

    Examples
    --------
    >>> next_step({"schema": "calibrant.audit/1", "source": "/data/my scores.csv"})[1]
    "calibrant decide 'my scores.csv' --max-error 0.10"
    """
    step = _own_step(document)
    done = {kind_of(other): other for other in beside}
    if step is not None and _verb(step[1]) in done:
        # Comparing or choosing is done: what was chosen is taken from there.
        later = (_DECIDE[0], _DECIDE[1].format(input=_read_again(document)))
        step = _own_step(done["decide"]) if "decide" in done else later
    return None if step is None else (step[0], as_call(step[1]))


def with_folders(command: str, document: Mapping[str, Any]) -> str:
    """Return the command with its files where they lie, for the terminal that they were named in.

    Examples
    --------
    >>> with_folders("calibrant audit s.csv", {"source": "runs/s.csv"})
    'calibrant audit runs/s.csv'
    """
    entries = document.get("results") or ()
    entries = [entry for entry in entries if isinstance(entry, Mapping)]
    written = [entry.get("policy") or entry for entry in entries]
    given = document.get("source") or document.get("study")
    batch = document.get("batch") or {}
    known = [
        *(given if isinstance(given, list) else [given]),
        *(part.get("path") for part in (batch, *written) if isinstance(part, Mapping)),
    ]
    places = {PurePath(str(p).replace("\\", "/")).name: str(p) for p in known if p}
    for name, place in places.items():
        if name != place:
            bare, whole = re.escape(shlex.quote(name)), shlex.quote(place)
            command = re.sub(rf"(?<= ){bare}(?= |$)", whole.replace("\\", r"\\"), command)
    return command


def broken_command(command: str, width: int) -> list[str]:
    r"""Return a command on lines that fit and that can be copied as they stand.

    Examples
    --------
    >>> print(*broken_command("calibrant audit a.csv --confidence p --correct y", 34), sep="\n")
    calibrant audit a.csv \
      --confidence p --correct y
    >>> print(*broken_command('calibrant.audit(table, confidence="p", correct="y")', 40), sep="\n")
    calibrant.audit(table, confidence="p",
      correct="y")
    """
    python = command.startswith("calibrant.")
    parts = re.split(r"(?<=,) " if python else r" (?=--)", command)
    end = "" if python else " \\"
    lines = [parts[0]]
    for part in parts[1:]:
        if len(f"{lines[-1]} {part}{end}") <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += end
            lines.append(f"  {part}")
    return lines


def _verb(command: str) -> str:
    """Return the verb of a command or a call."""
    found = re.match(r"calibrant[ .](\w+)", command)
    return found[1] if found else ""


def _own_step(document: Mapping[str, Any]) -> Step | None:
    own = document.get("next")
    if kind_of(document) == "label" and _may_stop(document):
        return _EXPORT[0], _EXPORT[1].format(input=_read_again(document))
    if kind_of(document) == "label" and document.get("batch"):
        return _filled(document, str(document["batch"]["path"]))
    if isinstance(own, Mapping):
        return str(own["why"]), _without_folder(str(own["command"]), document)
    if own:
        return "Look closer", str(own[0])
    if kind_of(document) == "plan" and not document.get("source"):
        # A plan by formula is about no answers that could be labelled.
        return None
    if kind_of(document) == "plan" and _labels_at_hand(document):
        return _AT_HAND[0], _AT_HAND[1].format(input=_read_again(document))
    found = decision_step(document, _input(document))
    if found is not None:
        return found
    step = _STEPS.get(kind_of(document))
    return None if step is None else (step[0], step[1].format(input=_read_again(document)))


def _labels_at_hand(document: Mapping[str, Any]) -> bool:
    """Whether a claim was planned for a pool of which a part is labelled already."""
    made = sum(block["verification"]["labels"] for block in document.get("measured") or ())
    return bool(0 < made < sum(plan["items"] for plan in document.get("plans") or ()))


def _filled(document: Mapping[str, Any], batch: str) -> Step:
    """Return how a batch comes back once its labels are filled in."""
    place = shlex.quote(PurePath(batch.replace("\\", "/")).name)
    read = read_as(document.get("settings") or {})
    command = f"calibrant label add {_input(document)} {place}{read}"
    return "Take it back when it is filled in", command


def _may_stop(document: Mapping[str, Any]) -> bool:
    entries = document.get("results") or ()
    return bool(entries) and all((entry.get("stop") or {}).get("stop") for entry in entries)


def _without_folder(command: str, document: Mapping[str, Any]) -> str:
    """Return the command with the bare name of the input: a page shows no place of a machine."""
    source = str(document.get("source") or "")
    name = PurePath(source.replace("\\", "/")).name
    for shown in (shlex.quote(source), source):
        if source and shown in command:
            return command.replace(shown, shlex.quote(name))
    return command


def _read_again(document: Mapping[str, Any]) -> str:
    """Return the input with the columns and the rule that it was read by, where a table was."""
    named = _input(document)
    if kind_of(document) in _OF_SCORES:
        named += read_as(document.get("settings") or {})
    return named


def _input(document: Mapping[str, Any]) -> str:
    source = document.get("source") or document.get("study")
    if isinstance(source, list):
        source = source[0] if source else None
    if not source or str(source).endswith(" in memory"):
        return TABLE
    first = str(source).split(", ")[0]
    return shlex.quote(PurePath(first.replace("\\", "/")).name)
