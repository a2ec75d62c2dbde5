"""The filters of lm-evaluation-harness that read the answer in a reply.

A log holds the filtered answer of one repeat only; the others are read in the same way, from the
settings that stand in the results file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_CHOOSING = ("take_first", "take_first_k", "majority_vote")
_NOT_FOUND = "[invalid]"


@dataclass(frozen=True, slots=True)
class Extraction:
    """Steps from a reply to its answer; `unknown` names a step that is not known here."""

    steps: tuple[Callable[[str], str], ...]
    unknown: str | None = None

    def __call__(self, text: str) -> str:
        """Return the answer in a reply."""
        for step in self.steps:
            text = step(text)
        return text


def extraction(config: Mapping[str, Any], name: str) -> Extraction | None:
    """Return the steps of a filter up to the one that chooses among repeats.

    Parameters
    ----------
    config
        The task's settings from the results file.
    name
        Name of the filter.

    Examples
    --------
    >>> step = {"function": "regex", "regex_pattern": "#### ([0-9]+)"}
    >>> found = extraction({"filter_list": [{"name": "strict", "filter": [step]}]}, "strict")
    >>> found("so it is #### 42"), found("it is 42")
    ('42', '[invalid]')
    """
    for entry in config.get("filter_list") or []:
        if entry.get("name") == name:
            break
    else:
        return Extraction(()) if name == "none" and config else None
    steps: list[Callable[[str], str]] = []
    for setting in entry.get("filter") or []:
        function = str(setting.get("function"))
        if function in _CHOOSING:
            break
        step = _step(function, setting)
        if step is None:
            return Extraction(tuple(steps), unknown=function)
        steps.append(step)
    return Extraction(tuple(steps))


def _step(function: str, setting: Mapping[str, Any]) -> Callable[[str], str] | None:
    if function == "lowercase":
        return str.lower
    if function == "uppercase":
        return str.upper
    if function == "remove_whitespace":
        return str.lstrip
    if function != "regex":
        return None
    try:
        pattern = re.compile(str(setting.get("regex_pattern", r"#### (\-?[0-9\.\,]+)")))
    except re.error:
        return None
    place = int(setting.get("group_select", 0))
    fallback = str(setting.get("fallback", _NOT_FOUND))
    return lambda text: _match(pattern, text, place, fallback)


def _match(pattern: re.Pattern[str], text: str, place: int, fallback: str) -> str:
    found = pattern.findall(text)
    if not found:
        return fallback
    try:
        match = found[place]
    except IndexError:
        return fallback
    if isinstance(match, tuple):
        filled = [part for part in match if part]
        if not filled:
            return fallback
        match = filled[0]
    return str(match).strip()
