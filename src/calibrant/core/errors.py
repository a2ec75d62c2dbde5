"""The error tree. Messages state the rule, the value received and what to do next."""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "CalibrantError",
    "CapabilityError",
    "ClaimFailed",
    "ClientError",
    "InputError",
    "MissingDependencyError",
    "PermanentClientError",
    "SchemaError",
    "TransientClientError",
    "UnavailableError",
    "UndefinedMetricWarning",
]


class CalibrantError(Exception):
    """Base of every error that calibrant raises on purpose."""

    exit_code = 2


class InputError(CalibrantError, ValueError):
    """The data or an option breaks a rule.

    Parameters
    ----------
    message
        The rule that is broken and the value received.
    source, row
        File (or other origin) and 1-based data row, where known.
    hint
        What the reader can do about it.
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
        place = ", ".join(
            part for part in (source, f"row {row}" if row is not None else None) if part
        )
        text = f"{place}: {message}" if place else message
        super().__init__(f"{text}\n  -> {hint}" if hint else text)


class SchemaError(InputError):
    """A table or document has another schema or version than the one that can be read."""


class UnavailableError(InputError):
    """A method's inputs are missing; nothing is computed from a substitute."""


class ClaimFailed(CalibrantError):
    """A check the caller asked for (`--fail-if`) does not hold."""

    exit_code = 1


class MissingDependencyError(CalibrantError, ImportError):
    """An optional dependency is not installed; the message names the install command."""


class ClientError(CalibrantError):
    """A model endpoint could not be used as asked."""


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
