"""The JSON Schema of a verb's options, from its declaration."""

from __future__ import annotations

import inspect
from typing import Any

from calibrant.core.verb import Parameter, Verb

_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string"}
_KINDS: dict[str, dict[str, Any]] = {
    "names": {"type": "array", "items": {"type": "string"}},
    "several": {"type": "array", "items": {"type": "string"}},
    "whole numbers": {"type": "array", "items": {"type": "integer"}},
    "numbers": {"type": "array", "items": {"type": "number"}},
    "map": {"type": "object", "additionalProperties": {"type": "number"}},
    "map or numbers": {
        "anyOf": [
            {"type": "object", "additionalProperties": {"type": "number"}},
            {"type": "array", "items": {"type": "number"}},
        ]
    },
    "date": {"type": "string", "format": "date"},
    "name or number": {"type": ["string", "number"]},
}
_ENDS = {
    "min": "minimum",
    "max": "maximum",
    "above": "exclusiveMinimum",
    "below": "exclusiveMaximum",
}


def options_schema(verb: Verb, words: str) -> dict[str, Any]:
    """Return the schema of the options that a verb takes beside its data.

    Parameters
    ----------
    verb
        The declared verb.
    words
        What it is called on the command line.

    Examples
    --------
    >>> from typing import Annotated
    >>> from calibrant.core.verb import Option, declaration, verb
    >>> @verb()
    ... def count(bins: Annotated[int, Option("Bins.", min=1, max=9)] = 5) -> int:
    ...     return bins
    >>> options_schema(declaration(count), "count")["properties"]["bins"]
    {'description': 'Bins.', 'type': 'integer', 'minimum': 1, 'maximum': 9, 'default': 5}
    """
    given = {
        name: parameter
        for name, parameter in verb.parameters.items()
        if not parameter.option.argument
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Options of calibrant {words}",
        "type": "object",
        "properties": {name: _property(parameter) for name, parameter in given.items()},
        "required": [name for name, parameter in given.items() if parameter.is_required],
        "additionalProperties": False,
    }


def _property(parameter: Parameter) -> dict[str, Any]:
    option = parameter.option
    found: dict[str, Any] = {"description": option.help}
    found |= _KINDS.get(option.kind) or {"type": _type(parameter)}
    if option.choices:
        found["enum"] = list(option.choices)
    ends = {name: getattr(option, end) for end, name in _ENDS.items()}
    found |= {name: end for name, end in ends.items() if end is not None}
    default = parameter.default
    if isinstance(default, tuple):
        default = list(default)
    if default is not inspect.Parameter.empty:
        given = found.get("type")
        if default is None and given is not None:
            found["type"] = [*([given] if isinstance(given, str) else given), "null"]
        found["default"] = default
    return found


def _type(parameter: Parameter) -> str | list[str]:
    # A list that may also be written as one text.
    text_or_list = ["array", "string"]
    is_list = isinstance(parameter.default, tuple | list)
    return text_or_list if is_list else _TYPES.get(parameter.type, "string")
