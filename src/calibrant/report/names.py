"""Names and rules that must fit: shared words go first, numbers stay whole, all stay apart."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, takewhile

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

Measure = Callable[[str], float]
"""Room that a text takes."""
Fits = Callable[[str], bool]
"""Whether there is room for a text."""

_LEAST_SHARED = 4
_WORDS = re.compile(r"[^-_/: ]*[-_/: ]+|[^-_/: ]+")
_SEPARATORS = "-_/: "
# Dates and counters tell a reader less than any word does.
_DIGITS = re.compile(r"\d{2,}")


def without_shared_start(names: Iterable[str]) -> dict[str, str]:
    """Return names without the beginning that all of them share, which tells nothing apart.

    Examples
    --------
    >>> without_shared_start(["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"])
    {'qwen2.5-coder-0.5b': '…0.5b', 'qwen2.5-coder-1.5b': '…1.5b'}
    >>> without_shared_start(["small", "large"])
    {'small': 'small', 'large': 'large'}
    """
    distinct = list(dict.fromkeys(names))
    # What the first and the last in order begin with, all between them do.
    first, last = min(distinct, default=""), max(distinct, default="")
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    shared = "".join(letter for letter, _ in alike) if len(distinct) > 1 else ""
    # Only whole words are left out, and never a whole name.
    ends = [mark.end() for mark in re.finditer(r"[-_/: ]", shared)]
    cut = ends[-1] if ends and ends[-1] >= _LEAST_SHARED else 0
    if not cut or any(len(name) == cut for name in distinct):
        return {name: name for name in distinct}
    return {name: f"…{name[cut:]}" for name in distinct}


def short_names(
    names: Iterable[str], width: float, *, measure: Measure = cell_len
) -> dict[str, str]:
    """Return each name in at most `width`; different names stay different.

    Words that many names share give way before the word that tells a name from the others.
    Where nothing else does, a number tells them apart; that takes a width of four letters for up
    to a hundred names.

    Parameters
    ----------
    names
        Names of one column.
    width
        Room that a name may take.
    measure
        Room that a text takes: cells of a terminal, or pixels of a picture.

    Examples
    --------
    >>> llamas = [f"Meta-Llama-3.1-{size}-Instruct-Turbo" for size in ("405B", "70B", "8B")]
    >>> list(short_names([*llamas, "gpt-4o"], 20).values())
    ['Meta-Llama-3.1-405B…', 'Meta-Llama-3.1-70B…', 'Meta-Llama-3.1-8B…', 'gpt-4o']
    """

    def fits(text: str) -> bool:
        return measure(text) <= width

    whole = list(dict.fromkeys(names))
    if all(map(fits, whole)):
        return {name: name for name in whole}
    # The beginning of a rule is a column: without it the rest says nothing.
    difference = (
        {name: name for name in whole} if any(map(is_rule, whole)) else without_shared_start(whole)
    )
    shortened = {name: text for name, text in difference.items() if fits(text)}
    for form in _forms(list(difference.values()), fits):
        # A form counts for those names only that it keeps apart from all others.
        tried = {name: form(text) for name, text in difference.items() if name not in shortened}
        often = Counter([*shortened.values(), *tried.values()])
        shortened |= {name: short for name, short in tried.items() if often[short] == 1}
    for name in whole:
        if name not in shortened:
            shortened[name] = _numbered(difference[name], fits, set(shortened.values()))
    return {name: shortened[name] for name in whole}


def cut_cells(text: str, width: int) -> str:
    """Return a text in exactly `width` cells: filled up, or cut in its middle.

    Examples
    --------
    >>> cut_cells("Meta-Llama-3.1-405B-Instruct", 20)
    'Meta-Llama…-Instruct'
    >>> cut_cells("gpt", 5)
    'gpt  '
    """
    return set_cell_size(_middle(text, lambda cut: cell_len(cut) <= width), width)


def _forms(names: Sequence[str], fits: Fits) -> list[Callable[[str], str]]:
    """Return ways to shorten a name, the most telling first."""
    if any(map(is_rule, names)):
        return [lambda name: short_rule(name, fits), lambda name: short_rule(name, fits, least=1)]
    # Names of one family begin alike; within it, a word that all have tells nothing.
    families = {name: next(iter(_words(name)), "") for name in names}
    often = Counter((families[name], word) for name in names for word in set(_words(name)))

    def dateless(name: str) -> str:
        """Leave out words until the name fits: dates first, then what most share."""
        parts, words, family = _WORDS.findall(name), _words(name), families[name]
        marks = [(bool(_DIGITS.fullmatch(word)), often[family, word]) for word in words]
        order = sorted(range(len(parts)), key=lambda place: (marks[place], place), reverse=True)
        # The word with the lowest mark stays, whatever its length.
        for left_out in range(1, len(order)):
            short = _without(parts, set(order[:left_out]))
            if fits(short):
                return short
        return _middle(_without(parts, set(order[:-1])), fits)

    return [dateless, lambda name: _middle(name, fits)]


def _numbered(name: str, fits: Fits, selection: set[str]) -> str:
    start = rule_start if is_rule(name) else _end
    tried = (start(name, fits, f"…{number}") for number in count(2))
    return next(short for short in tried if short not in selection)


def _without(parts: Sequence[str], dropped: set[int]) -> str:
    rows = "".join("\0" if place in dropped else part for place, part in enumerate(parts))
    # What was left out at the end takes the separator before it along.
    return re.sub(r"…?\0+…?", "…", re.sub(rf"[{re.escape(_SEPARATORS)}]+\0+$", "\0", rows))


def _words(name: str) -> list[str]:
    return [part.strip(_SEPARATORS) for part in _WORDS.findall(name)]


def _middle(text: str, fits: Fits) -> str:
    def kept(letters: int) -> str:
        return text[: (letters + 1) // 2] + "…" + text[len(text) - letters // 2 :]

    return text if fits(text) else _longest(kept, len(text), fits)


def _end(text: str, fits: Fits, mark: str) -> str:
    """Return the beginning of a text, and the mark."""

    def kept(letters: int) -> str:
        return text[:letters].rstrip() + mark

    return text + mark if fits(text + mark) else _longest(kept, len(text), fits)


def _longest(selection: Callable[[int], str], most: int, fits: Fits) -> str:
    """Return as many letters as fit, found by halving: a name may be a whole answer."""
    return selection(
        most - bisect_left(range(most), True, key=lambda out: fits(selection(most - out)))
    )


_CLAUSE = re.compile(r"(?P<column>.+?) (?P<sign><=|>=|!=|<|>|=) (?P<value>.+)")
_NUMBER = re.compile(r"[-+−]?[\d.,]+(e[-+]?\d+)?", re.IGNORECASE)
# Two signs that are never parted: half a number or operator would be another one.
_TOGETHER = re.compile(r"[-+−\d.,][\d.,]|[<>!]=")
_JOINED = " and "
# What no shortened word ends in.
_LOOSE = " _-"
# Letters of a word from which a reader guesses the rest of it.
_GUESSED = 4


class _Clause(Struct, frozen=True):
    """One comparison: a column, an operator and a value."""

    column: str
    sign: str
    value: str

    def text(self, column: int, value: int) -> str:
        """Return it with at most so many letters of the column and of a value in words."""
        selection = self.value if _NUMBER.fullmatch(self.value) else _begin(self.value, value)
        return f"{_begin(self.column, column)} {self.sign} {selection}"


def is_rule(text: str) -> bool:
    """Return whether a text is a rule such as 'age >= 29 and sex = F'.

    Examples
    --------
    >>> is_rule("age >= 29 and sex = F"), is_rule("gpt-4o (verbal)")
    (True, False)
    """
    return _clauses(text) is not None


def short_rule(text: str, fits: Fits, *, least: int = _GUESSED) -> str:
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
    for form in _rule_forms(_clauses(text) or [], least):
        if fits(form):
            return form
        shortest = form
    return rule_start(shortest, fits)


def rule_start(text: str, fits: Fits, mark: str = "…") -> str:
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


def _rule_forms(clauses: list[_Clause], least: int) -> Iterator[str]:
    """Yield the rule in fewer and fewer letters."""
    for selection in range(len(clauses), 0, -1):
        first = clauses[:selection]
        columns = max(len(clause.column) for clause in first)
        values = max(len(clause.value) for clause in first)
        remainder = f"{_JOINED}…" if selection < len(clauses) else ""
        sizes = [(size, values) for size in range(columns, least - 1, -1)]
        sizes += [(min(columns, least), size) for size in range(values, least - 1, -1)]
        for column, value in sizes or [(columns, values)]:
            yield _JOINED.join(clause.text(column, value) for clause in first) + remainder


def _clauses(text: str) -> list[_Clause] | None:
    matches = [_CLAUSE.fullmatch(part) for part in text.split(_JOINED)]
    if not all(matches):
        return None
    return [_Clause(part["column"], part["sign"], part["value"]) for part in matches if part]


def _begin(word: str, most: int) -> str:
    """Return the beginning of a word; dots only where they save more than one letter."""
    return word if len(word) <= most + 1 else f"{word[:most].rstrip(_LOOSE)}…"
