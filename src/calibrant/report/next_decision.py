"""What to type after `decide`, `cascade` or `compare`: it depends on what was found and saved."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from calibrant.claims.next_step import read_as
from calibrant.core.document import kind_of

__all__ = ["decision_step"]

_LIMIT_STEP = 0.05


def decision_step(document: Mapping[str, Any], table: str) -> tuple[str, str] | None:
    """Return words and a command; None for other kinds of documents, or where nothing follows.

    Parameters
    ----------
    document
        What was found.
    table
        The input as a command takes it.

    Examples
    --------
    >>> entry = {"model": "m", "method": "confidence", "certified": True, "path": "p.json"}
    >>> found = {"schema": "calibrant.decide/1", "results": [entry], "settings": {}}
    >>> decision_step(found, "s.csv")[1]
    'calibrant monitor s.csv --policy p.json --time COLUMN'
    """
    kind, entries = kind_of(document), document.get("results") or []
    if not entries or kind not in _STEPS:
        return None
    return _STEPS[kind](document, entries, table + read_as(document.get("settings") or {}))


def _decided(document: Mapping[str, Any], entries: Any, table: str) -> tuple[str, str]:
    settings = document.get("settings") or {}
    again = f"calibrant decide {table}{_features(settings)}"
    if len(entries) > 1:
        best = max(entries, key=lambda entry: (bool(entry["certified"]), _answered(entry)))
        keys = [k for k in ("model", "method") if len({entry[k] for entry in entries}) > 1]
        chosen = "".join(f" --only-{key} {shlex.quote(best[key])}" for key in keys)
        return "Save the policy of one", f"{again}{chosen}{_goal(settings)} --save policy.json"
    (entry,) = entries
    if len(document.get("input") or ()) > 1:
        # A study holds several models and methods; the decision is about one of them.
        one = (("--only-model", entry["model"]), ("--only-method", entry["method"]))
        again += "".join(f" {option} {shlex.quote(name)}" for option, name in one)
    if not entry["certified"] and settings.get("max_error") is not None:
        limit = _reachable(entry, settings["max_error"])
        return "See what a higher limit allows", f"{again} --max-error {limit:.2f}"
    if entry.get("path"):
        place = shlex.quote(str(entry["path"]))
        watched = f"calibrant monitor {table} --policy {place} --time COLUMN"
        return "Watch whether the promise still holds", watched
    return "Save this threshold for your program", f"{again}{_goal(settings)} --save policy.json"


def _answered(entry: Mapping[str, Any]) -> float:
    return float((entry.get("answered") or {}).get("value") or 0.0)


def _goal(settings: Mapping[str, Any]) -> str:
    limit, costs = settings.get("max_error"), settings.get("costs")
    words = "" if limit is None else f" --max-error {limit:g}"
    if costs:
        words += " --costs " + ",".join(f"{name}={value:g}" for name, value in costs.items())
    return words


def _features(settings: Mapping[str, Any]) -> str:
    names = settings.get("features")
    return f" --features {shlex.quote(','.join(names))}" if names else ""


def _reachable(entry: Mapping[str, Any], limit: float) -> float:
    """Return the next limit, in steps of 5 points, that the labels at hand do not exclude."""
    seen = [point["error"]["high"] for point in entry.get("curve") or () if point["error"]["n"]]
    lowest = max(min(seen, default=limit), limit + 1e-9)
    return min(math.ceil(lowest / _LIMIT_STEP - 1e-9) * _LIMIT_STEP, 0.95)


def _cascaded(document: Mapping[str, Any], entries: Any, table: str) -> tuple[str, str]:
    settings, policy = document.get("settings") or {}, entries[0].get("policy") or {}
    if policy.get("path"):
        place = shlex.quote(str(policy["path"]))
        ends = " ".join(f"--endpoint {shlex.quote(f'{m}=URL')}" for m in settings["models"])
        return "Put it in front of the models", f"calibrant serve {place} {ends}"
    models, price = settings.get("models") or (), settings.get("price") or {}
    words = f"calibrant cascade {table} --models {shlex.quote(','.join(models))}"
    if price:
        words += f" --price {','.join(f'{price[name]:g}' for name in models)}"
    if settings.get("cost"):
        words += f" --cost {shlex.quote(settings['cost'])}"
    words += f"{_features(settings)} --budget 0.5 --save policy.json"
    return "Save the policy for half of the largest model's cost", words


def _compared(_: Mapping[str, Any], entries: Any, table: str) -> tuple[str, str] | None:
    """Return a cascade of the least and the most accurate; prices are the reader's."""
    known = [entry for entry in entries if (entry.get("accuracy") or {}).get("value") is not None]
    methods = list(dict.fromkeys(entry["method"] for entry in known))
    known = [e for e in known if e["method"] in methods[:1] and e.get("group") is None]
    if len(known) < 2:
        return None
    order = sorted(known, key=lambda entry: entry["accuracy"]["value"])
    pair = shlex.quote(f"{order[0]['model']},{order[-1]['model']}")
    words = f"calibrant cascade {table} --models {pair} --price 1,10"
    if len(methods) > 1:
        words += f" --only-method {shlex.quote(methods[0])}"
    return "Let the cheaper model answer first (with your prices)", words


_STEPS = {"decide": _decided, "cascade": _cascaded, "compare": _compared}
