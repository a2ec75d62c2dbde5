"""Rules of groups in less room: operators and numbers stay whole, names of columns give way."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_CLAUSE = re.compile(r"(?P<column>.+?) (?P<sign><=|>=|!=|<|>|=) (?P<value>.+)")
_NUMBER = re.compile(r"[-+−]?[\d.,]+(e[-+]?\d+)?", re.IGNORECASE)
# Two signs that are never parted: half a number or operator would be another one.
_TOGETHER = re.compile(r"[-+−\d.,][\d.,]|[<>!]=")
_JOINED = " and "
# What no shortened word ends in.
_LOOSE = " _-"
# Letters of a word from which a reader guesses the rest of it.
_GUESSED = 4


@dataclass(frozen=True, slots=True)
class _Clause:
    """One comparison: a column, an operator and a value."""

    column: str
    sign: str
    value: str

    def text(self, column: int, value: int) -> str:
        """Return it with at most so many letters of the column and of a value in words."""
        kept = self.value if _NUMBER.fullmatch(self.value) else _begin(self.value, value)
        return f"{_begin(self.column, column)} {self.sign} {kept}"


def is_rule(text: str) -> bool:
    """Return whether a text is a rule such as 'age >= 29 and sex = F'.

    Examples
    --------
    >>> is_rule("age >= 29 and sex = F"), is_rule("gpt-4o (verbal)")
    (True, False)
    """
    return _clauses(text) is not None


def short_rule(text: str, fits: Callable[[str], bool], *, least: int = _GUESSED) -> str:
    """Return the rule with as many letters as fit.

    The ends of long column names go first, then the ends of long words they are compared with,
    then the last comparisons. What is left of a rule that still does not fit is its beginning.

    Parameters
    ----------
    text
        The rule.
    fits
        Whether a text has room.
    least
        Letters that a shortened word keeps.

    Examples
    --------
    >>> rule = "category = computer science and token_length <= 181"
    >>> short_rule(rule, lambda text: len(text) <= 45)
    'catego… = computer science and token… <= 181'
    >>> short_rule(rule, lambda text: len(text) <= 34)
    'cate… = computer… and toke… <= 181'
    >>> short_rule(rule, lambda text: len(text) <= 26)
    'cate… = computer sc… and …'
    """
    shortest = text
    for form in _forms(_clauses(text) or [], least):
        if fits(form):
            return form
        shortest = form
    return rule_start(shortest, fits)


def rule_start(text: str, fits: Callable[[str], bool], mark: str = "…") -> str:
    """Return the beginning of a rule and a mark, cut beside a number or an operator.

    Examples
    --------
    >>> rule_start("age >= 29", lambda text: len(text) <= 8)
    'age >=…'
    """
    sizes = [k for k in range(len(text), 0, -1) if not _TOGETHER.fullmatch(text[k - 1 : k + 1])]

    def start(size: int) -> str:
        return f"{text[:size].rstrip()}{mark}"

    place = bisect_left(sizes, True, key=lambda size: fits(start(size)))
    return start(sizes[place]) if place < len(sizes) else mark


def _forms(clauses: list[_Clause], least: int) -> Iterator[str]:
    """Yield the rule in fewer and fewer letters."""
    for count in range(len(clauses), 0, -1):
        first = clauses[:count]
        columns, values = (max(map(len, words)) for words in _words(first))
        rest = f"{_JOINED}…" if count < len(clauses) else ""
        sizes = [(size, values) for size in range(columns, least - 1, -1)]
        sizes += [(min(columns, least), size) for size in range(values, least - 1, -1)]
        for column, value in sizes or [(columns, values)]:
            yield _JOINED.join(clause.text(column, value) for clause in first) + rest


def _words(clauses: list[_Clause]) -> tuple[list[str], list[str]]:
    return [clause.column for clause in clauses], [clause.value for clause in clauses]


def _clauses(text: str) -> list[_Clause] | None:
    found = [_CLAUSE.fullmatch(part) for part in text.split(_JOINED)]
    if not all(found):
        return None
    return [_Clause(part["column"], part["sign"], part["value"]) for part in found if part]


def _begin(word: str, most: int) -> str:
    """Return the beginning of a word; dots only where they save more than one letter."""
    return word if len(word) <= most + 1 else f"{word[:most].rstrip(_LOOSE)}…"
