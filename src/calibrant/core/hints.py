"""Messages that name options: as flags for whoever types a command, as arguments in Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from calibrant.core.calls import Call

_NAMED = re.compile(r"\{(\w+)\}")


class Hint(str):
    """A message with named options; as text it reads as Python does.

    Parameters
    ----------
    template
        The message. ``{name}`` stands for an option, ``{0}`` for the first of `data`.
    data
        Text of the user's, which is shown as it is, a `Call`, or a message with options of its own.
    values
        Values of options, or a `Call`.

    Examples
    --------
    >>> hint = Hint("use {on_invalid} to leave such rows out", on_invalid="drop")
    >>> print(hint)
    use on_invalid="drop" to leave such rows out
    >>> hint.shell()
    'use --on-invalid drop to leave such rows out'
    >>> Hint("{level} lies between 0 and 1, got {0}", 7).shell()
    '--level lies between 0 and 1, got 7'
    >>> (Hint("use {by}") + " or " + Hint("{seed}, got {0}", 3)).shell()
    'use --by or --seed, got 3'
    >>> Hint("see {call}", call=Call("audit", "T", graded=True)).shell()
    'see calibrant audit T --graded'
    >>> print(Hint("see {0}", Call("audit", "T", graded=True)))
    see calibrant.audit(T, graded=True)
    >>> Hint("{0} or {1}", Hint("{by}", by="a"), Hint("{by}", by="b")).shell()
    '--by a or --by b'
    """

    template: str
    data: tuple[str | Call, ...]
    values: Mapping[str, Any]

    def __new__(cls, template: str, *data: object, **values: Any) -> Hint:
        """Return the message; as text it is the one for Python."""
        texts = tuple(part if isinstance(part, Call | Hint) else str(part) for part in data)
        made = super().__new__(cls, _filled(template, texts, values, None))
        made.template, made.data, made.values = template, texts, values
        return made

    def shell(self, names: Mapping[str, str] | None = None) -> str:
        """Return the message for a command line.

        Parameters
        ----------
        names
            Names of options by argument, where the two differ.
        """
        return _filled(self.template, self.data, self.values, names or {})

    def __add__(self, other: str, /) -> Hint:
        """Return both messages in one; text stays as it is."""
        if not isinstance(other, Hint):
            other = Hint("{0}", other)
        shift = len(self.data)
        template = _NAMED.sub(
            lambda match: f"{{{int(match[1]) + shift}}}" if match[1].isdigit() else match[0],
            other.template,
        )
        values = {**self.values, **other.values}
        return Hint(self.template + template, *self.data, *other.data, **values)

    @property
    def options(self) -> tuple[str, ...]:
        """The options named."""
        named = [name for name in _NAMED.findall(self.template) if not name.isdigit()]
        named += [name for part in self.data if isinstance(part, Hint) for name in part.options]
        return tuple(name for name in named if not isinstance(self.values.get(name), Call))


def _filled(
    template: str,
    data: tuple[str | Call, ...],
    values: Mapping[str, Any],
    names: Mapping[str, str] | None,
) -> str:
    """Fill in the names; `names` is None for Python."""

    def shown(match: re.Match[str]) -> str:
        name = match[1]
        value: Any = values.get(name)
        if name.isdigit():
            value = data[int(name)] if int(name) < len(data) else match[0]
        if isinstance(value, Call):
            return value.python() if names is None else value.shell()
        if isinstance(value, Hint) and names is not None:
            return value.shell(names)
        if name.isdigit():
            return str(value)
        return _argument(name, value) if names is None else _flag(name, value, names)

    return _NAMED.sub(shown, template)


def _argument(name: str, value: Any) -> str:
    if value is None:
        return name
    shown = json.dumps(value, ensure_ascii=False) if isinstance(value, str | list) else repr(value)
    return f"{name}={shown}"


def _flag(name: str, value: Any, names: Mapping[str, str]) -> str:
    flag = "--" + names.get(name, name).replace("_", "-")
    if value is None or value is True:
        return flag
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"{flag} {','.join(map(str, value))}"
    return f"{flag} {value}"
