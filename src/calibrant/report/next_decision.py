"""What to type after `decide`, `cascade` or `compare`: it depends on what was found and saved."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from calibrant.claims.next_step import can_read, read_as
from calibrant.core.document import kind_of

Read = Callable[[str], str]
"""The input with the columns and rules that a verb takes, by the verb."""

_LIMIT_STEP = 0.05
# A limit this many times the one asked for, or of half the answers, is no help: labels are.
_FAR, _HALF = 2.0, 0.5
_FEWEST_SEEN = 25
_DELTA = 0.1
# What a cascade may be asked to reach.
_TARGETS = ("budget", "accuracy", "guarantee")


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
    >>> settings = {"max_error": 0.1}
    >>> found = {"schema": "calibrant.decide/1", "results": [entry], "settings": settings}
    >>> decision_step(found, "s.csv")[1]
    'calibrant monitor s.csv --policy p.json'
    """
    kind, entries = kind_of(document), document.get("results") or []
    if not entries or kind not in _STEPS:
        return None
    settings = document.get("settings") or {}
    return _STEPS[kind](document, entries, lambda verb: table + read_as(settings, verb))


def _decided(document: Mapping[str, Any], entries: Any, read: Read) -> tuple[str, str]:
    settings = document.get("settings") or {}
    again = f"calibrant decide {read('decide')}{_features(settings)}"
    if len(entries) > 1:
        best = max(entries, key=lambda entry: (bool(entry["certified"]), _answered(entry)))
        keys = [k for k in ("model", "method") if len({entry[k] for entry in entries}) > 1]
        chosen = "".join(f" --only-{key} {shlex.quote(best[key])}" for key in keys)
        if not best["certified"] and settings.get("max_error") is not None:
            return "See what one of them allows", f"{again}{chosen}{_goal(settings)}"
        return "Save the policy of one", f"{again}{chosen}{_goal(settings)} --save policy.json"
    (entry,) = entries
    if len(document.get("input") or ()) > 1:
        # A study holds several models and methods; the decision is about one of them.
        again += _only({"only_model": entry["model"], "only_method": entry["method"]})
    else:
        again += _only(settings)
    if not entry["certified"] and settings.get("max_error") is not None:
        return _uncertified(entry, settings, again, read)
    if entry.get("path"):
        return _saved(entry, settings, again, read)
    return "Save this threshold for your program", f"{again}{_goal(settings)} --save policy.json"


def _uncertified(
    entry: Mapping[str, Any], settings: Mapping[str, Any], again: str, read: Read
) -> tuple[str, str]:
    """Return a limit that can be reached; where it is far off, what labels would do."""
    asked = settings["max_error"]
    limit = _reachable(entry, asked)
    # The claim asks for labels where they would help; see `calibrant.claims.decide`.
    seen = any(point["error"]["n"] >= _FEWEST_SEEN for point in entry.get("curve") or ())
    helped = entry.get("labels_needed") is not None or not seen
    if helped and limit > min(_FAR * asked, _HALF) + 1e-9:
        command = f"calibrant plan {read('plan')} --claim 'ece<0.05'"
        return "See how many labels its confidence needs", command
    if limit > _HALF:
        return "See how far the confidence can be trusted", f"calibrant audit {read('audit')}"
    return "See what a higher limit allows", f"{again} --max-error {limit:.2f}{_delta(settings)}"


def _saved(
    entry: Mapping[str, Any], settings: Mapping[str, Any], again: str, read: Read
) -> tuple[str, str]:
    """Return how a saved promise is watched; a policy by costs alone has none yet."""
    if settings.get("max_error") is not None:
        place = shlex.quote(str(entry["path"]))
        watched = f"calibrant monitor {read('monitor')} --policy {place}"
        return "Watch whether the promise still holds", watched
    seen = (entry.get("error") or {}).get("high")
    if not _answered(entry) or seen is None or seen >= 1:
        return "See how far the confidence can be trusted", f"calibrant audit {read('audit')}"
    limit = _in_steps(seen)
    return "Promise an error too", f"{again} --max-error {limit:.2f}{_goal(settings)}"


def _answered(entry: Mapping[str, Any]) -> float:
    return float((entry.get("answered") or {}).get("value") or 0.0)


def _goal(settings: Mapping[str, Any]) -> str:
    limit, costs = settings.get("max_error"), settings.get("costs")
    words = "" if limit is None else f" --max-error {limit:g}"
    if limit is not None:
        words += _delta(settings)
    if costs:
        words += " --costs " + ",".join(f"{name}={value:g}" for name, value in costs.items())
    return words


def _delta(settings: Mapping[str, Any]) -> str:
    given = settings.get("delta")
    return "" if given in (None, _DELTA) else f" --delta {given:g}"


def _only(settings: Mapping[str, Any]) -> str:
    """Return which of several models and methods was chosen."""
    return "".join(
        f" --{name.replace('_', '-')} {shlex.quote(str(settings[name]))}"
        for name in ("only_model", "only_method")
        if settings.get(name)
    )


def _features(settings: Mapping[str, Any]) -> str:
    names = settings.get("features")
    return f" --features {shlex.quote(','.join(names))}" if names else ""


def _reachable(entry: Mapping[str, Any], limit: float) -> float:
    """Return the next limit, in steps of 5 points, that the labels at hand do not exclude."""
    seen = [point["error"]["high"] for point in entry.get("curve") or () if point["error"]["n"]]
    return _in_steps(max(min(seen, default=limit), limit + 1e-9))


def _in_steps(error: float) -> float:
    return min(math.ceil(error / _LIMIT_STEP - 1e-9) * _LIMIT_STEP, 0.95)


def _cascaded(document: Mapping[str, Any], entries: Any, read: Read) -> tuple[str, str]:
    settings, policy = document.get("settings") or {}, entries[0].get("policy") or {}
    if policy.get("path"):
        place = shlex.quote(str(policy["path"]))
        ends = " ".join(f"--endpoint {shlex.quote(f'{m}=URL')}" for m in settings["models"])
        return "Put it in front of the models", f"calibrant serve {place} {ends}"
    if policy.get("rule", "") is None:
        # Too few questions to choose a policy: one cannot be saved either.
        return "See how far the confidence can be trusted", f"calibrant audit {read('audit')}"
    models, price = settings.get("models") or (), settings.get("price") or {}
    words = f"calibrant cascade {read('cascade')} --models {shlex.quote(','.join(models))}"
    if price:
        words += f" --price {','.join(f'{price[name]:g}' for name in models)}"
    if settings.get("cost"):
        words += f" --cost {shlex.quote(settings['cost'])}"
    words += f"{_features(settings)}{_only(settings)}"
    asked = [f" --{name} {settings[name]:g}" for name in _TARGETS if settings.get(name)]
    if asked:
        words += f"{''.join(asked)}{_delta(settings) if settings.get('guarantee') else ''}"
        return "Save this policy for your program", f"{words} --save policy.json"
    words += " --budget 0.5 --save policy.json"
    return "Save the policy for half of the largest model's cost", words


def _compared(document: Mapping[str, Any], entries: Any, read: Read) -> tuple[str, str] | None:
    """Return a cascade of the least and the most accurate; prices are the reader's."""
    if not can_read(document.get("settings") or {}, "cascade"):
        return None
    known = [entry for entry in entries if (entry.get("accuracy") or {}).get("value") is not None]
    methods = list(dict.fromkeys(entry["method"] for entry in known))
    known = [e for e in known if e["method"] in methods[:1] and e.get("group") is None]
    if len(known) < 2:
        return None
    order = sorted(known, key=lambda entry: entry["accuracy"]["value"])
    pair = shlex.quote(f"{order[0]['model']},{order[-1]['model']}")
    words = f"calibrant cascade {read('cascade')} --models {pair} --price 1,10"
    if len(methods) > 1:
        words += f" --only-method {shlex.quote(methods[0])}"
    return "Let the cheaper model answer first (with your prices)", words


_STEPS = {"decide": _decided, "cascade": _cascaded, "compare": _compared}
