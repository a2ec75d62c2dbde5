"""Confidence methods in a few plain words, for sentences and headings.

The registry of methods says exactly what each one computes (`calibrant methods`); these words say
what a reader has to picture. They stand here because sentences are made without loading methods.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Any

from calibrant.core.names import data_beside

METHOD_WORDS: dict[str, str] = json.loads(
    resources.files(__package__).joinpath("method_words.json").read_text(encoding="utf-8")
)


def method_words(name: str | None) -> str:
    """Return what a method is, in a few words; nothing for a column of the reader's own.

    Examples
    --------
    >>> method_words("verb"), method_words("my_column")
    ('stated confidence', '')
    """
    return METHOD_WORDS.get(name or "", "")


def method_name(name: str, *, aside: bool = False) -> str:
    """Return a method as a sentence calls it: its name, and what it is where that is known.

    Parameters
    ----------
    name
        Name of the method.
    aside
        Whether the sentence stands in parentheses already.

    Examples
    --------
    >>> method_name("verb"), method_name("verb", aside=True), method_name("my_column")
    ('verb (stated confidence)', 'verb: stated confidence', 'my_column')
    """
    words = method_words(name)
    if not words:
        return name
    return f"{name}: {words}" if aside else f"{name} ({words})"


def method_legend(names: Iterable[str | None]) -> list[str]:
    """Return every known method once with its words, in the order given.

    Examples
    --------
    >>> method_legend(["verb", "perplexity", "my_column", "verb"])
    ['verb: stated confidence', 'perplexity: average token probability']
    """
    methods = dict.fromkeys(name for name in names if name and method_words(name))
    return [method_name(name, aside=True) for name in methods]


# Ends the name of a method whose numbers are made as the authors' published ones were.
PAPER = ":paper"


def ranking_methods() -> frozenset[str]:
    """Return the methods whose score ranks answers and is no probability.

    Their variants as published are among them: `sca:paper` exceeds 1 as `sca` does.

    Examples
    --------
    >>> sorted({"consistency", "eigv", "sca:paper"} & ranking_methods())
    ['eigv', 'sca:paper']
    """
    facts = catalogue()["methods"].items()
    names = frozenset(name for name, notes in facts if not notes.get("probability", True))
    return names | {f"{name}{PAPER}" for name in names}


@lru_cache(maxsize=1)
def catalogue() -> dict[str, Any]:
    """Return what `methods.toml` says of methods and of the inputs that they need."""
    return data_beside(__file__, "methods.toml")
