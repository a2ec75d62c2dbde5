"""What the words of a report mean; the same words as in the documentation."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from msgspec import Struct

from calibrant.metrics.registry import METRICS


class Term(Struct, frozen=True):
    """A word of a report: what it means, how it is computed, where the documentation has more."""

    words: str
    formula: str = ""
    page: str = ""


# Columns whose names hold a number or a name of the data.
_NAMED_BY_DATA = (
    ("k=", "k"),
    ("change k=", "change"),
    ("[", "mix"),
    ("points against ", "points against"),
    ("rank moves at ", "rank moves"),
)


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("calibrant.report").joinpath(name).read_text("utf-8"))


def kind_words(kind: str, what: str) -> Any:
    """Return what a kind of document is called (see kinds.toml), or None.

    Examples
    --------
    >>> kind_words("audit", "section"), kind_words("groups", "badge")
    ('How sure can we be?', {'undecided': 'no group stands out'})
    """
    return _read("kinds.toml").get(kind, {}).get(what)


def glossary() -> dict[str, Term]:
    """Return all terms by the column that they explain: metrics say their own."""
    return _terms(tuple(METRICS))


@cache
def _terms(metrics: tuple[str, ...]) -> dict[str, Term]:
    statement = (METRICS[name] for name in metrics)
    terms = {metric.title: Term(metric.words, metric.formula, "metrics") for metric in statement}
    return terms | {name: Term(**term) for name, term in _read("glossary.toml").items()}


def term_of(column: str) -> str | None:
    """Return the term that explains a column, or None.

    Examples
    --------
    >>> term_of("[1,2,4]"), term_of("AUROC"), term_of("model")
    ('mix', 'AUROC', None)
    """
    if column in glossary():
        return column
    return next((term for start, term in _NAMED_BY_DATA if column.startswith(start)), None)


def explain(column: str) -> str | None:
    """Return the explanation of a column, or None.

    Examples
    --------
    >>> explain("AUROC")
    'Chance that a right answer has more confidence than a wrong one. 0.5 is chance.'
    """
    term = term_of(column)
    return None if term is None else glossary()[term].words
