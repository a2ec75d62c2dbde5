"""The options that name the columns of a table: declared once, handed to a verb as one mapping."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from calibrant.cli.options import (
    AnswerColumn,
    ConfidenceColumn,
    CorrectColumn,
    MethodColumn,
    ModelColumn,
    QuestionColumn,
    WeightsColumn,
)

__all__ = ["Columns", "takes_columns"]

Columns: TypeAlias = dict[str, str | None]

_OPTIONS: dict[str, Any] = {
    "confidence": ConfidenceColumn,
    "correct": CorrectColumn,
    "model": ModelColumn,
    "method": MethodColumn,
    "question": QuestionColumn,
    "answer": AnswerColumn,
    "weights": WeightsColumn,
}


def takes_columns(*more: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command --confidence, --correct, --model, --method, --question and `more`.

    The command takes its parameters by name, and these as one, ``columns``: a mapping from role to
    the name that was given, or None. In the help the options stand where ``columns`` stands.

    Parameters
    ----------
    more
        Further roles: ``answer``, ``weights``.

    Examples
    --------
    >>> @takes_columns("answer")
    ... def command(*, source: str, columns: Columns) -> None:
    ...     print(columns["model"], list(columns))
    >>> command(source="scores.csv", model="who")
    who ['confidence', 'correct', 'model', 'method', 'question', 'answer']
    """
    roles = ("confidence", "correct", "model", "method", "question", *more)

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)

        @wraps(command)
        def with_options(**given: Any) -> None:
            columns = {role: given.pop(role, None) for role in roles}
            command(columns=columns, **given)

        parameters = []
        for parameter in signature.parameters.values():
            parameters += _options(roles) if parameter.name == "columns" else [parameter]
        # The command line is read off the signature, with the options in place of the mapping.
        with_options.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=parameters
        )
        return with_options

    return decorated


def _options(roles: tuple[str, ...]) -> list[inspect.Parameter]:
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(role, kind, default=None, annotation=_OPTIONS[role]) for role in roles
    ]
