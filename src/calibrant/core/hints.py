"""Messages and calls that name options: flags for a command line, arguments in Python."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

# Functions that are not called like their verb: a verb may be a word of Python.
_FUNCTIONS = {"import": "import_logs", "report": "write_report"}
TABLE = "TABLE"
"""Stands in a call for data that lie in memory."""


class Declared(NamedTuple):
    """What a call needs to know of an option."""

    flag: str
    takes: str
    default: Any


@cache
def _verbs() -> dict[str, dict[str, Declared]]:
    text = resources.files(__package__).joinpath("verbs.json").read_text(encoding="utf-8")
    return {
        words: {name: Declared(*option) for name, option in options.items()}
        for words, options in json.loads(text).items()
    }


def declared_options(verb: str) -> Mapping[str, Declared]:
    """Return the options of a verb by argument, as they are stored.

    ``python -m calibrant.cli.reference`` writes them from the signatures, so that naming a verb
    does not load it.

    Examples
    --------
    >>> declared_options("decide")["max_error"]
    Declared(flag='max-error', takes='number', default=None)
    """
    return _verbs().get(verb, {})


class Call:
    """A call of a verb: what to do next, in a message, a document or on a page.

    Parameters
    ----------
    verb
        The verb's words, such as ``label next``.
    data
        What is given to it: paths, or `TABLE` for data in memory.
    settings
        Its options. A number that is written as text keeps its digits; None is left out.

    Examples
    --------
    >>> call = Call("label next", "my scores.csv", out="batch.csv")
    >>> call.shell()
    "calibrant label next 'my scores.csv' --out batch.csv"
    >>> Call("decide", TABLE, costs={"wrong": 10, "ask": 1}, features=["topic"]).text()
    'calibrant.decide(table, costs={"wrong": 10, "ask": 1}, features=["topic"])'
    >>> Call("audit", TABLE, graded=True, html="audit.html").text()
    'calibrant.audit(table, graded=True).to_html("audit.html")'
    >>> Call("decide", "s.csv", best=True).text()
    Traceback (most recent call last):
    ...
    ValueError: decide has no option best
    """

    def __init__(self, verb: str, *data: object, **settings: Any) -> None:
        self.verb = verb
        self.data = tuple(str(part) for part in data)
        self.settings = {name: value for name, value in settings.items() if value is not None}

    def about(self, table: str) -> Call:
        """Return the call with a file for what lies in memory."""
        data = (table if part == TABLE else part for part in self.data)
        return Call(self.verb, *data, **self.settings)

    def _option(self, name: str) -> Declared:
        # An option may be so new that it is not stored yet: a message can name it.
        return declared_options(self.verb).get(name) or Declared(name.replace("_", "-"), "", None)

    def text(self) -> str:
        """Return what a reader types: a command, or Python where the data were never a file."""
        unknown = [name for name in self.settings if name not in declared_options(self.verb)]
        if unknown:
            raise ValueError(f"{self.verb} has no option {', '.join(unknown)}")
        if TABLE not in self.data:
            return self.shell()
        return Call(self.verb, *map(str.lower, self.data), **self.settings).python()

    def shell(self) -> str:
        """Return the call as a command."""
        words = [f"calibrant {self.verb}", *map(shlex.quote, self.data)]
        for name, value in self.settings.items():
            flag, takes, _ = self._option(name)
            for item in value if takes == "several" and not isinstance(value, str) else [value]:
                words.append(f"--{flag}" if item is True else f"--{flag} {_typed(item)}")
        return " ".join(words)

    def python(self) -> str:
        """Return the call as Python; what a command writes is a method of the result."""
        words, pieces = list(self.data), ""
        for name, value in self.settings.items():
            takes = self._option(name).takes
            display = _literal(value, takes)
            if takes == "output":
                pieces += f".to_{name}({display})"
            else:
                words.append(f"{name}={display}")
        name = _FUNCTIONS.get(self.verb, self.verb.replace(" ", "_"))
        return f"calibrant.{name}({', '.join(words)}){pieces}"


def in_python(command: str) -> str:
    """Return a command as Python calls it; what Python cannot call stays as it is.

    Examples
    --------
    >>> in_python("calibrant decide 'my scores.csv' --max-error 0.10 --costs wrong=10,ask=1")
    'calibrant.decide("my scores.csv", max_error=0.10, costs={"wrong": 10, "ask": 1})'
    >>> in_python("calibrant audit a.csv --graded --by topic --html page.html")
    'calibrant.audit("a.csv", graded=True, by=["topic"]).to_html("page.html")'
    >>> in_python("pip install calibrant")
    'pip install calibrant'
    """
    words = shlex.split(command)
    verb = next((name for name in (" ".join(words[1:3]), *words[1:2]) if name in _verbs()), "")
    names = {f"--{option.flag}": name for name, option in declared_options(verb).items()}
    tail = words[1 + len(verb.split()) :]
    if words[:1] != ["calibrant"] or not {word for word in tail if word[:2] == "--"} <= {*names}:
        return command
    data, settings, queue = [], dict[str, Any](), iter(tail)
    for word in queue:
        name = names.get(word, "")
        if not name:
            data.append(json.dumps(word, ensure_ascii=False))
        elif (takes := declared_options(verb)[name].takes) == "flag":
            settings[name] = True
        elif takes == "several":
            settings[name] = [*settings.get(name, ()), next(queue)]
        else:
            settings[name] = _untyped(next(queue), takes)
    return Call(verb, *data, **settings).python()


def _untyped(text: str, takes: str) -> Any:
    """Return the value that stands behind a flag."""
    if takes.startswith("map") and "=" in text:
        return {k: float(v) for k, _, v in (part.partition("=") for part in text.split(","))}
    if "number" in takes and takes not in ("number", "name or number"):
        return [float(part) for part in text.split(",")]
    return text.split(",") if takes == "names" else text


def _typed(value: Any) -> str:
    """Return a value as it is typed behind its flag."""
    if isinstance(value, Mapping):
        return shlex.quote(",".join(f"{name}={_plain(part)}" for name, part in value.items()))
    if isinstance(value, Iterable) and not isinstance(value, str):
        return shlex.quote(",".join(map(_plain, value)))
    return shlex.quote(_plain(value))


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _literal(value: Any, takes: str) -> str:
    """Return a value as Python writes it."""
    if isinstance(value, Mapping):
        inside = (f"{json.dumps(name)}: {_literal(part, '')}" for name, part in value.items())
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, bool | int | float):
        return str(value) if isinstance(value, bool) else _plain(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{', '.join(_literal(part, '') for part in value)}]"
    return str(value) if takes == "number" else json.dumps(str(value), ensure_ascii=False)


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
        message = super().__new__(cls, _filled(template, texts, values, None))
        message.template, message.data, message.values = template, texts, values
        return message

    def shell(self, names: Mapping[str, str] | None = None, table: str = TABLE) -> str:
        """Return the message for a command line.

        Parameters
        ----------
        names
            Names of options by argument, where the two differ.
        table
            The file that calls in it are about.
        """
        return _filled(self.template, self.data, self.values, names or {}, table)

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
        names = [name for name in _NAMED.findall(self.template) if not name.isdigit()]
        names += [name for part in self.data if isinstance(part, Hint) for name in part.options]
        return tuple(name for name in names if not isinstance(self.values.get(name), Call))


def _filled(
    template: str,
    data: tuple[str | Call, ...],
    values: Mapping[str, Any],
    names: Mapping[str, str] | None,
    table: str = TABLE,
) -> str:
    """Fill in the names; `names` is None for Python."""

    def shown(match: re.Match[str]) -> str:
        name = match[1]
        value: Any = values.get(name)
        if name.isdigit():
            value = data[int(name)] if int(name) < len(data) else match[0]
        if isinstance(value, Call):
            return value.python() if names is None else value.about(table).shell()
        if isinstance(value, Hint) and names is not None:
            return value.shell(names, table)
        if name.isdigit():
            return str(value)
        if names is not None:
            flag = "--" + names.get(name, name).replace("_", "-")
            return flag if value is None or value is True else f"{flag} {_typed(value)}"
        is_json = isinstance(value, str | list)
        text = json.dumps(value, ensure_ascii=False) if is_json else repr(value)
        return name if value is None else f"{name}={text}"

    return _NAMED.sub(shown, template)
