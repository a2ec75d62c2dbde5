"""What to type next, by kind of document: one command with the reader's file, or one call."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from calibrant.claims.next_step import as_call, input_words, read_as
from calibrant.core.document import given_places, kind_of
from calibrant.report.next_decision import decision_step

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
    "label": ("Label the next batch", "calibrant label next {input} --out {batch}"),
    "monitor": ("Audit the latest rows", "calibrant audit {input}"),
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
    >>> next_step({"schema": "calibrant.audit/1", "source": "runs/my scores.csv"})[1]
    "calibrant decide 'runs/my scores.csv' --max-error 0.10"
    """
    step = _own_step(document)
    done = {kind_of(other): other for other in beside}
    if step is not None and _verb(step[1]) in done:
        # Comparing or choosing is done: what was chosen is taken from there.
        later = _filled_in(_DECIDE, document)
        step = _own_step(done["decide"]) if "decide" in done else later
    return None if step is None else (step[0], as_call(step[1]))


def without_folders(command: str, document: Mapping[str, Any]) -> str:
    """Return the command with the bare names of its files: a page shows no place of a machine.

    Examples
    --------
    >>> without_folders("calibrant audit '/me/my s.csv' --by a/b", {"source": "/me/my s.csv"})
    "calibrant audit 'my s.csv' --by a/b"
    """
    entries = [e for e in document.get("results") or () if isinstance(e, Mapping)]
    written = [document.get("batch") or {}, *(entry.get("policy") or entry for entry in entries)]
    beside = (document.get("samples") or {}).get("references_file")
    known = [*given_places(document), *(part.get("path") for part in written), beside]
    for place in filter(None, map(str, filter(None, known))):
        bare = PurePath(place.replace("\\", "/")).name
        command = command.replace(shlex.quote(place), shlex.quote(bare))
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
        return _filled_in(_EXPORT, document)
    if kind_of(document) == "label" and document.get("batch"):
        return _taken_back(document, str(document["batch"]["path"]))
    if isinstance(own, Mapping):
        return str(own["why"]), str(own["command"])
    if own:
        return "Look closer", str(own[0])
    if kind_of(document) == "plan" and not document.get("source"):
        # A plan by formula is about no answers that could be labelled.
        return None
    if kind_of(document) == "plan" and _labels_at_hand(document):
        return _filled_in(_AT_HAND, document)
    found = decision_step(document, input_words(document))
    if found is not None:
        return found
    step = _STEPS.get(kind_of(document))
    return None if step is None else _filled_in(step, document)


def _labels_at_hand(document: Mapping[str, Any]) -> bool:
    """Whether the table that was planned for is labelled already, in part or whole."""
    return any(block["verification"]["labels"] for block in document.get("measured") or ())


def _taken_back(document: Mapping[str, Any], batch: str) -> Step:
    """Return how a batch comes back once its labels are filled in."""
    read = read_as(document.get("settings") or {}, "label add")
    command = f"calibrant label add {input_words(document)} {shlex.quote(batch)}{read}"
    return "Take it back when it is filled in", command


def _may_stop(document: Mapping[str, Any]) -> bool:
    entries = document.get("results") or ()
    return bool(entries) and all((entry.get("stop") or {}).get("stop") for entry in entries)


def _filled_in(step: Step, document: Mapping[str, Any]) -> Step:
    """Return a step with its input, and with columns and rules where the verb reads the table."""
    words, command = step
    named = input_words(document)
    if kind_of(document) in _OF_SCORES:
        verb = command.removeprefix("calibrant ").partition(" {input}")[0]
        named += read_as(document.get("settings") or {}, verb)
    # A batch that was given out may still be open: the next one has a name of its own.
    number = len(document.get("waves") or ())
    batch = f"batch{number + 1}.csv" if number else "batch.csv"
    return words, command.format(input=named, batch=batch)
