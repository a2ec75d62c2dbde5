"""Values of options: the same rules for a call from Python and for a command."""

from __future__ import annotations

import datetime as dt
import math
import operator
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from calibrant.core.errors import InputError, error_source
from calibrant.core.hints import Hint
from calibrant.core.places import check_input, check_output, check_output_folder

if TYPE_CHECKING:
    from calibrant.core.verb import Option

LARGEST = 1e15
"""The largest number in a map of numbers by name."""
_LONGEST_SHOWN = 60


def checked(option: Option, name: str, value: Any, base: Any) -> Any:
    """Return a value given from Python as the verb takes it, or refuse it.

    Examples
    --------
    >>> from calibrant.core.verb import Option
    >>> checked(Option("Equal-width bins.", min=1, max=100), "bins", 0, int)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: bins is a whole number from 1 to 100, got 0
    """
    is_path = {Path} <= set(get_args(base)) <= {str, Path, NoneType}
    if is_path and not isinstance(value, str | os.PathLike):
        raise _refused(name, "is a path", _shown(value))
    if option.place:
        _check_places(option, name, value)
        # One file may stand alone, as one name may.
        several = option.kind == "several" and not option.argument
        return [value] if several and isinstance(value, str | Path) else value
    if option.kind in _READ:
        return _READ[option.kind](option, name, value)
    if option.kind == "name or number" and not isinstance(value, Real | str):
        raise _refused(name, "is a word or a number", _shown(value))
    if option.choices:
        _check_choice(option, name, value)
    elif base in (int, float) or (option.kind == "name or number" and isinstance(value, Real)):
        return _check_number(option, name, value, base)
    elif base is bool and type(value).__name__ not in ("bool", "bool_"):
        raise _refused(name, "is True or False", _shown(value))
    elif base is str and not isinstance(value, str):
        hint = "values belong into the table; name their column here"
        raise _refused(name, "is a text", _shown(value), hint=hint)
    return value


def _shown(value: Any) -> str:
    """Return a value in a few signs, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + ".."


def parsed(option: Option, name: str, text: str, base: Any) -> Any:
    """Return the value that a text of the command line stands for.

    Examples
    --------
    >>> from calibrant.core.verb import Option
    >>> parsed(Option("Models.", kind="names"), "models", "small, large", list)
    ['small', 'large']
    >>> parsed(Option("Costs.", kind="map", example="c10=1"), "costs", "c10=1,c01=5", dict)
    {'c10': 1.0, 'c01': 5.0}
    >>> parsed(Option("Bins."), "bins", "many", int)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: bins is a whole number, got 'many'
    """
    if option.kind == "names":
        return _split(name, text)
    if option.kind in ("map", "map or numbers"):
        return _numbers_by_name(option, name, text)
    if option.kind in ("whole numbers", "numbers"):
        return _number_list(option, name, text)
    if option.kind == "name or number":
        try:
            return float(text)
        except ValueError:
            return text
    if base in (int, float):
        try:
            return base(text)
        except ValueError:
            raise _refused(name, "{1}", repr(text), range_words(option, base)) from None
    return text


def _refused(
    name: str, rule: str, got: str = "", *data: object, hint: str | None = None
) -> InputError:
    """Return the refusal of a value: the option by name, its rule, and what was given instead."""
    gap, end = "" if rule.startswith(",") else " ", ", got {0}" if got else ""
    return InputError(Hint(f"{{{name}}}{gap}{rule}{end}", got, *data), hint=hint)


# -- numbers ------------------------------------------------------------------------------------


def _check_number(option: Option, name: str, value: Any, base: Any) -> Any:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not _is_inside(option, float(value)):
        text = f"{value:g}" if isinstance(value, float) else repr(value)
        raise _refused(name, "{1}", text, range_words(option, base))
    if base is int:
        try:
            operator.index(value)
        except TypeError:
            raise _refused(name, "{1}", repr(value), range_words(option, base)) from None
    return value


def _is_inside(option: Option, value: float) -> bool:
    ends = ((option.min, operator.ge), (option.max, operator.le),
            (option.above, operator.gt), (option.below, operator.lt))  # fmt: skip
    return not math.isnan(value) and all(end is None or holds(value, end) for end, holds in ends)


_RULES = {
    ("above", "below"): "lies between {above} and {below}",
    ("min", "max"): "is {kind} from {min} to {max}",
    ("min", "below"): "is {kind} from {min} to below {below}",
    ("max", "above"): "is {kind} above {above}, up to {max}",
    ("above",): "is {kind} above {above}",
    ("min",): "is {kind}, at least {min}",
    ("max",): "is {kind} up to {max}",
}


def range_words(option: Option, base: Any) -> str:
    """Return the range of an option in words.

    Examples
    --------
    >>> from calibrant.core.verb import Option
    >>> range_words(Option("", above=0, below=1), float), range_words(Option("", min=0), int)
    ('lies between 0 and 1', 'is a whole number, at least 0')
    """
    kind = "a whole number" if base is int else "a number"
    kind += f" of {option.unit}" if option.unit else ""
    values = {name: getattr(option, name) for name in ("min", "max", "above", "below")}
    ends = {name: _told(end) for name, end in values.items() if end is not None}
    return _RULES.get(tuple(ends), "is {kind}").format(kind=kind, **ends)


def _told(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:g}"


# -- words and lists ----------------------------------------------------------------------------


def _check_choice(option: Option, name: str, value: Any) -> None:
    if not isinstance(value, str) or value not in option.choices:
        *most, last = option.choices
        words = f"{most[0]} or {last}" if len(most) == 1 else f"one of {', '.join(option.choices)}"
        raise _refused(name, "is {1}", _shown(value), words)


def _names(_: Option, name: str, value: Any) -> list[str]:
    """Return names as a list; a single one may stand alone."""
    if isinstance(value, str | Path):
        return [str(value)]
    try:
        names = [str(part) for part in value]
    except TypeError:
        raise _refused(name, "is a list of names", _shown(value)) from None
    _refuse_twice(name, names, value)
    return names


def _split(name: str, text: str) -> list[str]:
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise _refused(name, "is a list of names separated by commas", repr(text))
    _refuse_twice(name, names, text)
    return names


def _refuse_twice(name: str, names: Sequence[str], values: Any) -> None:
    twice = [part for part, count in Counter(names).items() if count > 1]
    if twice:
        raise _refused(name, "names {1} more than once", _shown(values), repr(twice[0]))


def _numbers(option: Option, name: str, value: Any) -> Any:
    """Return a list of numbers; a text is read as on the command line."""
    if isinstance(value, str):
        return _number_list(option, name, value) if value else value
    base = int if option.kind == "whole numbers" else float
    try:
        numbers = list(value)
    except TypeError:
        raise _refused(name, "is a list of numbers", _shown(value)) from None
    for number in numbers:
        _check_number(option, name, number, base)
    return value


def _checked_map(option: Option, name: str, value: Any) -> Any:
    """Return numbers by name, or in their order; a text is read as on the command line."""
    if isinstance(value, str):
        return _numbers_by_name(option, name, value)
    if isinstance(value, Mapping):
        numbers = list(value.values())
    elif option.kind == "map or numbers" and hasattr(value, "__iter__"):
        numbers = list(value)
    else:
        raise _refused(name, "is written {1}", _shown(value), option.example)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, Real) or math.isnan(float(number)):
            raise _refused(name, "holds numbers", _shown(value))
        if isinstance(value, Mapping) and abs(float(number)) > LARGEST:
            raise _refused(name, "holds numbers up to {1}", _shown(value), f"{LARGEST:g}")
    return value


def _number_list(option: Option, name: str, text: str) -> list[Any]:
    whole = option.kind == "whole numbers"
    try:
        numbers = [int(part) if whole else float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(_is_inside(option, number) for number in numbers):
        kind = "a comma list of whole numbers" if whole else "a list of numbers separated by commas"
        ends = (
            "" if option.max is None else f" from {_told(option.min or 0)} to {_told(option.max)}"
        )
        raise _refused(name, "is {1}", repr(text), kind + ends)
    return numbers


def _numbers_by_name(option: Option, name: str, text: str) -> dict[str, float] | list[float]:
    """Return numbers by name from 'c10=1,c01=5', or a bare list of numbers in their order."""
    try:
        if option.kind == "map or numbers" and "=" not in text:
            return [float(part) for part in text.split(",")]
        pairs = [part.rsplit("=", 1) for part in _split(name, text)]
        numbers = {key.strip(): float(value) for key, value in pairs}
    except InputError:
        raise
    except ValueError:
        raise _refused(name, "is written {1}", repr(text), option.example) from None
    if not all(abs(number) <= LARGEST for number in numbers.values()):
        raise _refused(name, "holds numbers up to {1}", repr(text), f"{LARGEST:g}")
    if len(numbers) < len(pairs):
        raise _refused(name, "gives one name several numbers", repr(text))
    return numbers


def _date(_: Option, name: str, value: Any) -> dt.date:
    if isinstance(value, dt.date):
        return value
    try:
        return dt.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise _refused(name, ", a date, is written like 2026-01-31", _shown(value)) from None


_READ: dict[str, Callable[[Option, str, Any], Any]] = {
    **dict.fromkeys(("names", "several"), _names),
    **dict.fromkeys(("whole numbers", "numbers"), _numbers),
    **dict.fromkeys(("map", "map or numbers"), _checked_map),
    "date": _date,
}
"""What reads a value by its kind, where the type alone does not say it."""


# -- places -------------------------------------------------------------------------------------


def _check_places(option: Option, name: str, value: Any) -> None:
    several = isinstance(value, Sequence) and not isinstance(value, str)
    for path in value if several else [value]:
        if not isinstance(path, str | Path):
            continue
        if option.place == "read":
            # An option is named in the message, what the verb works on is not.
            with error_source(None if option.argument else Hint(f"{{{name}}}")):
                check_input(path if str(path).strip() else "")
        else:
            _check_output(option, name, path)


def _check_output(option: Option, name: str, path: str | Path) -> None:
    """Refuse a place without a name: the folder one is in is a dot, and - is for JSON alone."""
    if str(path) == "-":
        rule = "names a file or a folder; only {json} goes to standard output (-)"
        raise _refused(name, rule, hint="name a file, or write to /dev/stdout")
    if not str(path).strip():
        hint = "name a file or a folder; . is the folder you are in"
        raise _refused(name, "is a path to write to", repr(str(path)), hint=hint)
    either = option.place == "file or folder"
    if option.place.startswith("write") or (either and Path(path).suffix):
        check_output(path, makes_folders=option.place != "write")
    else:
        check_output_folder(path)
