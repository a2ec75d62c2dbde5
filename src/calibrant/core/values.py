"""Values of options: the same rules for a call from Python and for a command."""

from __future__ import annotations

import datetime as dt
import math
import operator
import os
from collections import Counter
from collections.abc import Mapping, Sequence
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
    if {Path} <= set(get_args(base)) <= {str, Path, NoneType}:
        _check_path(name, value)
    if option.place:
        _check_places(option, name, value)
        return value
    if option.kind in ("names", "several"):
        return _names(name, value)
    if option.kind == "date":
        return _date(name, value)
    if option.kind in ("whole numbers", "numbers"):
        return _numbers(option, name, value)
    if option.kind in ("map", "map or numbers"):
        return _checked_map(option, name, value)
    if option.kind == "name or number" and not isinstance(value, Real | str):
        raise InputError(_about(name, "is a word or a number, got {0}", _shown(value)))
    if option.choices:
        _check_choice(option, name, value)
    elif base in (int, float) or (option.kind == "name or number" and isinstance(value, Real)):
        return _check_number(option, name, value, base)
    elif base is bool and type(value).__name__ not in ("bool", "bool_"):
        raise InputError(_about(name, "is True or False, got {0}", _shown(value)))
    elif base is str and not isinstance(value, str):
        raise InputError(
            _about(name, "is a text, got {0}", _shown(value)),
            hint="values belong into the table; name their column here",
        )
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
            raise _refusal(option, name, repr(text), base) from None
    return text


def _about(name: str, rule: str = "", *data: object) -> Hint:
    """Return a message that begins with the name of an option."""
    gap = "" if not rule or rule.startswith(",") else " "
    return Hint("{" + name + "}" + gap + rule, *data)


# -- numbers ------------------------------------------------------------------------------------


def _check_number(option: Option, name: str, value: Any, base: Any) -> Any:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not _is_inside(option, float(value)):
        shown = f"{value:g}" if isinstance(value, float) else repr(value)
        raise _refusal(option, name, shown, base)
    if base is int:
        try:
            operator.index(value)
        except TypeError:
            raise _refusal(option, name, repr(value), base) from None
    return value


def _is_inside(option: Option, value: float) -> bool:
    return (
        (option.min is None or value >= option.min)
        and (option.max is None or value <= option.max)
        and (option.above is None or value > option.above)
        and (option.below is None or value < option.below)
        and not math.isnan(value)
    )


def _refusal(option: Option, name: str, shown: str, base: Any) -> InputError:
    return InputError(_about(name, "{0}, got {1}", _rule(option, base), shown))


def _rule(option: Option, base: Any) -> str:
    """Return the range of an option in words.

    Examples
    --------
    >>> from calibrant.core.verb import Option
    >>> _rule(Option("", above=0, below=1), float), _rule(Option("", min=0), int)
    ('lies between 0 and 1', 'is a whole number, at least 0')
    """
    if option.above is not None and option.below is not None:
        return f"lies between {_told(option.above)} and {_told(option.below)}"
    kind = "a whole number" if base is int else "a number"
    kind += f" of {option.unit}" if option.unit else ""
    if option.min is not None and option.max is not None:
        return f"is {kind} from {_told(option.min)} to {_told(option.max)}"
    if option.min is not None and option.below is not None:
        return f"is {kind} from {_told(option.min)} to below {_told(option.below)}"
    if option.above is not None and option.max is not None:
        return f"is {kind} above {_told(option.above)}, up to {_told(option.max)}"
    if option.above is not None:
        return f"is {kind} above {_told(option.above)}"
    if option.min is not None:
        return f"is {kind}, at least {_told(option.min)}"
    if option.max is not None:
        return f"is {kind} up to {_told(option.max)}"
    return f"is {kind}"


def _told(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:g}"


# -- words and lists ----------------------------------------------------------------------------


def _check_choice(option: Option, name: str, value: Any) -> None:
    if not isinstance(value, str) or value not in option.choices:
        *most, last = option.choices
        words = f"{most[0]} or {last}" if len(most) == 1 else f"one of {', '.join(option.choices)}"
        raise InputError(_about(name, "is {0}, got {1}", words, _shown(value)))


def _names(name: str, value: Any) -> list[str]:
    """Return names as a list; a single one may stand alone."""
    if isinstance(value, str | Path):
        return [str(value)]
    try:
        found = [str(part) for part in value]
    except TypeError:
        raise InputError(_about(name, "is a list of names, got {0}", _shown(value))) from None
    _refuse_twice(name, found, value)
    return found


def _split(name: str, text: str) -> list[str]:
    found = [part.strip() for part in text.split(",")]
    rule = "is a list of names separated by commas, got {0}"
    if not all(found):
        raise InputError(_about(name, rule, repr(text)))
    _refuse_twice(name, found, text)
    return found


def _refuse_twice(name: str, found: Sequence[str], given: Any) -> None:
    twice = [part for part, count in Counter(found).items() if count > 1]
    if twice:
        rule = "names {0} more than once, got {1}"
        raise InputError(_about(name, rule, repr(twice[0]), _shown(given)))


def _numbers(option: Option, name: str, value: Any) -> Any:
    """Return a list of numbers; a text is read as on the command line."""
    if isinstance(value, str):
        return _number_list(option, name, value) if value else value
    base = int if option.kind == "whole numbers" else float
    try:
        found = list(value)
    except TypeError:
        raise InputError(_about(name, "is a list of numbers, got {0}", _shown(value))) from None
    for number in found:
        _check_number(option, name, number, base)
    return value


def _checked_map(option: Option, name: str, value: Any) -> Any:
    """Return numbers by name, or in their order; a text is read as on the command line."""
    if isinstance(value, str):
        return _numbers_by_name(option, name, value)
    if isinstance(value, Mapping):
        found = list(value.values())
    elif option.kind == "map or numbers" and hasattr(value, "__iter__"):
        found = list(value)
    else:
        rule = "is written {0}, got {1}"
        raise InputError(_about(name, rule, option.example, _shown(value)))
    for number in found:
        if isinstance(number, bool) or not isinstance(number, Real) or math.isnan(float(number)):
            raise InputError(_about(name, "holds numbers, got {0}", _shown(value)))
        if isinstance(value, Mapping) and abs(float(number)) > LARGEST:
            rule = "holds numbers up to {0}, got {1}"
            raise InputError(_about(name, rule, f"{LARGEST:g}", _shown(value)))
    return value


def _number_list(option: Option, name: str, text: str) -> list[Any]:
    whole = option.kind == "whole numbers"
    try:
        found = [int(part) if whole else float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(_is_inside(option, number) for number in found):
        kind = "a comma list of whole numbers" if whole else "a list of numbers separated by commas"
        ends = (
            "" if option.max is None else f" from {_told(option.min or 0)} to {_told(option.max)}"
        )
        rule = "is {0}, got {1}"
        raise InputError(_about(name, rule, kind + ends, repr(text)))
    return found


def _numbers_by_name(option: Option, name: str, text: str) -> dict[str, float] | list[float]:
    """Return numbers by name from 'c10=1,c01=5', or a bare list of numbers in their order."""
    try:
        if option.kind == "map or numbers" and "=" not in text:
            return [float(part) for part in text.split(",")]
        pairs = [part.rsplit("=", 1) for part in _split(name, text)]
        found = {key.strip(): float(value) for key, value in pairs}
    except InputError:
        raise
    except ValueError:
        rule = "is written {0}, got {1}"
        raise InputError(_about(name, rule, option.example, repr(text))) from None
    if not all(abs(number) <= LARGEST for number in found.values()):
        rule = "holds numbers up to {0}, got {1}"
        raise InputError(_about(name, rule, f"{LARGEST:g}", repr(text)))
    if len(found) < len(pairs):
        rule = "gives one name several numbers, got {0}"
        raise InputError(_about(name, rule, repr(text)))
    return found


def _date(name: str, value: Any) -> dt.date:
    if isinstance(value, dt.date):
        return value
    try:
        return dt.date.fromisoformat(value)
    except (TypeError, ValueError):
        rule = ", a date, is written like 2026-01-31, got {0}"
        raise InputError(_about(name, rule, _shown(value))) from None


# -- places -------------------------------------------------------------------------------------


def _check_path(name: str, value: Any) -> None:
    if not isinstance(value, str | os.PathLike):
        raise InputError(_about(name, "is a path, got {0}", _shown(value)))


def _check_places(option: Option, name: str, value: Any) -> None:
    many = isinstance(value, Sequence) and not isinstance(value, str)
    for path in value if many else [value]:
        if not isinstance(path, str | Path):
            continue
        if option.place == "read":
            # An option is named in the message, what the verb works on is not.
            with error_source(None if option.argument else _about(name)):
                check_input(path if str(path).strip() else "")
        else:
            _check_output(option, name, path)


def _check_output(option: Option, name: str, path: str | Path) -> None:
    """Refuse a place without a name: the folder one is in is a dot, and - is for JSON alone."""
    if str(path) == "-":
        rule = "names a file or a folder; only {json} goes to standard output (-)"
        raise InputError(_about(name, rule), hint="name a file, or write to /dev/stdout")
    if not str(path).strip():
        rule = "is a path to write to, got {0}"
        hint = "name a file or a folder; . is the folder you are in"
        raise InputError(_about(name, rule, repr(str(path))), hint=hint)
    is_file = option.place.startswith("write") or (
        option.place == "file or folder" and Path(path).suffix
    )
    if is_file:
        check_output(path, makes_folders=option.place != "write")
    else:
        check_output_folder(path)
