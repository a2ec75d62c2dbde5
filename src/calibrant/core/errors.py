"""The error tree. Messages state the rule, the value received and what to do next."""

import copy
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from calibrant.core.hints import TABLE, Hint


class CalibrantError(Exception):
    """Base of every error that calibrant raises on purpose."""

    exit_code = 2

    def for_shell(self, names: Mapping[str, str] | None = None) -> None:
        """Name options as flags from now on; `names` has those that differ from the argument."""


# What a terminal would obey instead of showing: names of files and models may hold it.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Return a text with control characters and turned directions written out.

    Examples
    --------
    >>> print(printable("a" + chr(27) + "[31m"))
    a\x1b[31m
    """
    return _CONTROL.sub(lambda found: repr(found.group())[1:-1], text)


class InputError(CalibrantError, ValueError):
    """The data or an option breaks a rule.

    Parameters
    ----------
    message
        The rule that is broken and the value received.
    source, row
        File (or other origin) and 1-based data row, where known.
    hint
        What the reader can do about it; a `Hint` names options as whoever reads it writes them.

    Examples
    --------
    >>> error = InputError("no row is left", source="a.csv", hint=Hint("use {by}", by="topic"))
    >>> print(error)
    a.csv: no row is left
      -> use by="topic"
    >>> error.for_shell()
    >>> print(error)
    a.csv: no row is left
      -> use --by topic
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        row: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.rule = message
        self.source = source
        self.row = row
        self.hint = hint
        self._names: Mapping[str, str] | None = None
        super().__init__(message)

    def for_shell(self, names: Mapping[str, str] | None = None) -> None:
        """Name options as flags from now on."""
        self._names = names or {}

    def __str__(self) -> str:
        row = f"row {self.row}" if self.row is not None else None
        place = ", ".join(part for part in (self._told(self.source or ""), row) if part)
        rule = self._told(self.rule)
        text = f"{place}: {rule}" if place else rule
        return printable(f"{text}\n  -> {self._told(self.hint)}" if self.hint else text)

    def _told(self, text: str) -> str:
        if self._names is None or not isinstance(text, Hint):
            return text
        # A command is complete: it names the file, where the data lie in one.
        table = self.source if self.source and os.path.exists(self.source) else TABLE
        return text.shell(self._names, table)


class PossibleReading(NamedTuple):
    """One of the ways to read an input: in words, and as the options that choose it."""

    text: str
    options: Mapping[str, Any]


class QuestionError(InputError):
    """An input that can be read in several ways: whoever calls chooses one of `readings`.

    `command` is a complete command that chooses the first, where the question is for a shell.

    Examples
    --------
    >>> ways = [PossibleReading(f"p, {name}: 3 rows", {"correct": name}) for name in ("ok", "y")]
    >>> error = QuestionError("Which?", readings=ways)
    >>> print(error)
    Which?
      1) p, ok: 3 rows
      2) p, y: 3 rows
      -> for the first: correct="ok"
    >>> dict(error.readings[0].options)
    {'correct': 'ok'}
    """

    command: str | None = None

    def __init__(
        self, message: str, *, readings: Sequence[PossibleReading] = (), **place: Any
    ) -> None:
        self.readings = tuple(readings)
        if readings and place.get("hint") is None and (first := readings[0].options):
            names = ", ".join(f"{{{name}}}" for name in first)
            place["hint"] = Hint(f"for the first: {names}", **first)
        super().__init__(message, **place)

    def __str__(self) -> str:
        first, *tail = super().__str__().split("\n  -> ")
        several = self.readings if len(self.readings) > 1 else ()
        modes = [f"\n  {n}) {mode.text}" for n, mode in enumerate(several, start=1)]
        # The command says it where one of several readings is chosen.
        hints = [] if several and self.command else [f"\n  -> {hint}" for hint in tail]
        last = f"\n{self.command}" if self.command else ""
        return printable(first + "".join([*modes, *hints]) + last)


class OutOfRangeError(InputError):
    """A confidence lies outside [0, 1]: another scale, or a score that is no probability."""


class SchemaError(InputError):
    """A table or document has another schema or version than the one that can be read."""


class StorageError(InputError):
    """What must be kept cannot be written at the moment: a full disk, a file that is locked."""


class UnavailableError(InputError):
    """A method's inputs are missing; nothing is computed from a substitute."""


class NoConfidenceError(InputError):
    """There are grades and no confidence: shares right can be told, and differences.

    `graded` names the columns that may hold the outcome, where the input is a table.
    """

    graded: tuple[str, ...] = ()


class ClaimFailed(CalibrantError):
    """A check the caller asked for (`--fail-if`) does not hold."""

    exit_code = 1


class MissingDependencyError(CalibrantError, ImportError):
    """An optional dependency is not installed; the message names the install command."""


class Interrupted(CalibrantError):
    """The user stopped work that can be taken up again."""

    exit_code = 130


class ClientError(CalibrantError):
    """A model endpoint could not be used as asked; `status` is what it said over HTTP."""

    status: int | None = None


class CapabilityError(ClientError):
    """The endpoint cannot give what is asked for; raised before anything is sent."""


class TransientClientError(ClientError):
    """A failure that may pass (rate limit, time-out, server error).

    Parameters
    ----------
    message
        What happened.
    retry_after
        Seconds that the endpoint asked to wait, where it said so.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PermanentClientError(ClientError):
    """A failure that a repetition cannot mend (bad request, refused key)."""


class BudgetError(CalibrantError):
    """A cap on money, tokens or calls would be exceeded; nothing was sent."""


class UndefinedMetricWarning(UserWarning):
    """A metric is undefined on this data; its value is NaN."""


IN_MEMORY = "a table in memory"
"""How messages call a table that has no name of its own."""


@contextmanager
def error_source(source: str | None, *, rows_before: int = 0) -> Iterator[None]:
    """Put the name of the source into an error that has none.

    Parameters
    ----------
    source
        What the reader calls the data; None leaves errors as they are.
    rows_before
        Rows that came before this part of a stream: the row named is counted from its start.

    Examples
    --------
    >>> with error_source("scores.csv", rows_before=100):
    ...     raise InputError("the confidence is missing", source=IN_MEMORY, row=6)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: scores.csv, row 106: the confidence is missing
    """
    try:
        yield
    except InputError as error:
        nameless = (None, IN_MEMORY)
        if source in nameless or error.source not in nameless:
            raise
        again = copy.copy(error)
        again.source = source
        again.row = None if error.row is None else error.row + rows_before
        raise again from None


@contextmanager
def error_about(words: str, source: str) -> Iterator[None]:
    """Say at the end of an error what it is about, and where the data came from.

    Examples
    --------
    >>> with error_about("model small", "scores.csv"):
    ...     raise InputError("2 labels are too few", hint="label more")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: scores.csv: 2 labels are too few (model small)
      -> label more
    """
    try:
        yield
    except InputError as error:
        rule = f"{error.rule} ({words})"
        raise InputError(rule, source=source, row=error.row, hint=error.hint) from None


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a hint that names the closest known names, or all of them when none is close."""
    import difflib  # few commands end in a misspelt name

    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(item) for item in close) + "?"
    return "known: " + ", ".join(sorted(known))


def require_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a value that is not among the choices.

    Examples
    --------
    >>> require_choice("mode", "fast", ("slow", "slower"))
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: mode must be one of slow, slower, got 'fast'
    """
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def require_known(
    given: Iterable[str], known: Collection[str], rule: str, *, source: str | None = None
) -> None:
    """Refuse the first name that is not known, by a rule whose braces stand for it.

    Examples
    --------
    >>> require_known(["red", "rde"], ["red", "blue"], "there is no colour {}")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: there is no colour 'rde'
      -> did you mean 'red'?
    """
    for name in given:
        if name not in known:
            message = rule.replace("{}", repr(name))
            raise InputError(message, source=source, hint=did_you_mean(str(name), known)) from None
