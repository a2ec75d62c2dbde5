"""What is looked at, as the address holds it: back, bookmark and share come with that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.values import parsed
from calibrant.core.verb import Parameter
from calibrant.inputs.rows import SORTS, RowQuery

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
    span, without
        Ends of a range of confidence, and values inside that are not meant.
    grade, split, words, sort, start
        Which rows are listed, see `RowQuery`.
    options
        Options of verbs as they are typed, by ``verb.option``.
    """

    models: tuple[str, ...] = ()
    model: str | None = None
    method: str | None = None
    group: tuple[str, str] | None = None
    span: tuple[float, float] | None = None
    without: tuple[float, ...] = ()
    grade: str = ""
    split: bool = False
    words: str = ""
    sort: str = "worst"
    start: int = 0
    options: Mapping[str, str] = field(default_factory=dict)

    def rows(self, *, size: int = PAGE) -> RowQuery:
        """Return the rows that are meant."""
        low, high = self.span or (None, None)
        return RowQuery(
            models=(self.model,) if self.model else self.models,
            methods=(self.method,) if self.method else (),
            groups=(self.group,) if self.group else (),
            low=low,
            high=high,
            without=self.without,
            grade=self.grade,
            split=self.split,
            words=self.words,
            sort=self.sort,
            start=self.start,
            size=size,
        )

    def settings(self, verb: str, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
        """Return the options of a verb that were typed, as it takes them."""
        found = {}
        for name, text in self.options.items():
            whose, _, option = name.partition(".")
            if whose == verb and option in parameters and text.strip():
                own = parameters[option]
                found[option] = (
                    text == "on" if own.base is bool else _value(own, option, text.strip())
                )
        return found


def _value(parameter: Parameter, name: str, text: str) -> Any:
    found = parsed(parameter.option, name, text, parameter.type)
    return parameter.taken(found)


def read_state(pairs: Iterable[tuple[str, str]]) -> State:
    """Return the state that an address holds; what it does not name is as it is by default.

    Examples
    --------
    >>> state = read_state([("model", "a"), ("group", "topic=law"), ("span", "0.9:1")])
    >>> state.model, state.group, state.span
    ('a', ('topic', 'law'), (0.9, 1.0))
    """
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value)

    def one(name: str) -> str:
        return given.get(name, [""])[-1]

    column, mark, value = one("group").partition("=")
    return State(
        models=tuple(given.get("models", ())),
        model=one("model") or None,
        method=one("method") or None,
        group=(column, value) if mark else None,
        span=_numbers(":".join(one("span").split(":")[:2]), 2),
        without=_numbers(",".join(one("span").split(":")[2:]).replace(",", ":")) or (),
        grade=one("grade") if one("grade") in ("right", "wrong", "open", "silent") else "",
        split=one("split") == "1",
        words=one("words")[:200],
        sort=one("sort") if one("sort") in SORTS else "worst",
        start=int(one("start")) if one("start").isdecimal() else 0,
        options={name: values[-1][:500] for name, values in given.items() if "." in name},
    )


def _numbers(text: str, wanted: int | None = None) -> Any:
    """Return numbers between colons; None where there are none."""
    parts = text.split(":") if text else []
    if not parts:
        return None
    try:
        found = tuple(map(float, parts))
    except ValueError:
        found = ()
    if not found or (wanted is not None and len(found) != wanted):
        raise InputError(f"a range is written LOW:HIGH, got {text!r}")
    return found
