"""What is looked at, as the address holds it: back, bookmark and share come with that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.values import parsed
from calibrant.core.verb import Parameter
from calibrant.data.sources.rows import SORTS, RowQuery

PAGE = 25


@dataclass(frozen=True, slots=True)
class State:
    """The choices that every tab shares.

    Parameters
    ----------
    models
        Models that are looked at; none stands for all.
    model, method, group
        The one in focus: a model, its confidence, and a column with its value.
    query
        Which of their rows are listed.
    options
        Options of verbs as they are typed, by ``verb.option``.
    """

    models: tuple[str, ...] = ()
    model: str | None = None
    method: str | None = None
    group: tuple[str, str] | None = None
    query: RowQuery = field(default_factory=RowQuery)
    options: Mapping[str, str] = field(default_factory=dict)

    def rows(self, *, size: int = PAGE) -> RowQuery:
        """Return the rows that are meant."""
        models = (self.model,) if self.model else self.models
        methods = (self.method,) if self.method else ()
        groups = (self.group,) if self.group else ()
        return replace(self.query, models=models, methods=methods, groups=groups, size=size)

    def settings(self, verb: str, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
        """Return the options of a verb that were typed, as it takes them."""
        settings: dict[str, Any] = {}
        for name, text in self.options.items():
            owner, _, option = name.partition(".")
            if owner == verb and option in parameters and text.strip():
                parameter = parameters[option]
                if parameter.base is bool:
                    settings[option] = text == "on"
                else:
                    value = parsed(parameter.option, option, text.strip(), parameter.type)
                    settings[option] = parameter.taken(value)
        return settings


def read_state(pairs: Iterable[tuple[str, str]]) -> State:
    """Return the state that an address holds; what it does not name is as it is by default.

    Examples
    --------
    >>> state = read_state([("model", "a"), ("group", "topic=law"), ("span", "0.9:1")])
    >>> state.model, state.group, state.query.low, state.query.high
    ('a', ('topic', 'law'), 0.9, 1.0)
    """
    given_values: dict[str, list[str]] = {}
    for name, value in pairs:
        given_values.setdefault(name, []).append(value)

    def one(name: str) -> str:
        return given_values.get(name, [""])[-1]

    column, mark, value = one("group").partition("=")
    low, high, *without = _range(one("span"))
    query = RowQuery(
        low=low,
        high=high,
        without=tuple(without),
        grade=one("grade") if one("grade") in ("right", "wrong", "open", "silent") else "",
        split=one("split") == "1",
        words=one("words")[:200],
        sort=one("sort") if one("sort") in SORTS else "worst",
        start=int(one("start")) if one("start").isdecimal() else 0,
    )
    return State(
        models=tuple(given_values.get("models", ())),
        model=one("model") or None,
        method=one("method") or None,
        group=(column, value) if mark else None,
        query=query,
        options={name: values[-1][:500] for name, values in given_values.items() if "." in name},
    )


def _range(text: str) -> list[Any]:
    """Return the ends of a range and the values inside that are not meant; None without ends."""
    try:
        numbers = list(map(float, text.split(":"))) if text else [None, None]
    except ValueError:
        numbers = []
    if len(numbers) < 2:
        raise InputError(f"a range is written LOW:HIGH, got {text!r}")
    return numbers
