"""Names that must fit: words that many share go first, and two names never become one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

from rich.cells import cell_len, set_cell_size

from calibrant.report.short_rules import is_rule, rule_start, short_rule

Measure = Callable[[str], float]
"""Room that a text takes."""

_LEAST_SHARED = 4
_WORDS = re.compile(r"[^-_/: ]*[-_/: ]+|[^-_/: ]+")
_SEPARATORS = "-_/: "
# Dates and counters tell a reader less than any word does.
_DIGITS = re.compile(r"\d{2,}")


def told_apart(names: Iterable[str]) -> dict[str, str]:
    """Return names without the beginning that all of them share, which tells nothing apart.

    Examples
    --------
    >>> told_apart(["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"])
    {'qwen2.5-coder-0.5b': '…0.5b', 'qwen2.5-coder-1.5b': '…1.5b'}
    >>> told_apart(["small", "large"])
    {'small': 'small', 'large': 'large'}
    """
    known = list(dict.fromkeys(names))
    shared = _shared_start(min(known), max(known)) if len(known) > 1 else ""
    # Only whole words are left out, and never a whole name.
    ends = [found.end() for found in re.finditer(r"[-_/: ]", shared)]
    cut = ends[-1] if ends and ends[-1] >= _LEAST_SHARED else 0
    if not cut or any(len(name) == cut for name in known):
        return {name: name for name in known}
    return {name: f"…{name[cut:]}" for name in known}


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
    known = list(dict.fromkeys(names))
    if all(measure(name) <= width for name in known):
        return {name: name for name in known}
    # The beginning of a rule is a column: without it the rest says nothing.
    apart = {name: name for name in known} if any(map(is_rule, known)) else told_apart(known)
    found = {name: text for name, text in apart.items() if measure(text) <= width}
    for form in _forms(list(apart.values()), _Room(width, measure)):
        # A form counts for those names only that it keeps apart from all others.
        tried = {name: form(text) for name, text in apart.items() if name not in found}
        often = Counter([*found.values(), *tried.values()])
        found |= {name: short for name, short in tried.items() if often[short] == 1}
    for name in known:
        if name not in found:
            found[name] = _numbered(apart[name], _Room(width, measure), set(found.values()))
    return {name: found[name] for name in known}


def cut_cells(text: str, width: int) -> str:
    """Return a text in exactly `width` cells: filled up, or cut in its middle.

    Examples
    --------
    >>> cut_cells("Meta-Llama-3.1-405B-Instruct", 20)
    'Meta-Llama…-Instruct'
    >>> cut_cells("gpt", 5)
    'gpt  '
    """
    return set_cell_size(_middle(text, _Room(width, cell_len)), width)


@dataclass(frozen=True, slots=True)
class _Room:
    """How much a name may take."""

    width: float
    measure: Measure

    def holds(self, text: str) -> bool:
        return self.measure(text) <= self.width


def _forms(names: Sequence[str], room: _Room) -> list[Callable[[str], str]]:
    """Return ways to shorten a name, the most telling first."""
    # Names of one family begin alike; within it, a word that all have tells nothing.
    families = {name: next(iter(_words(name)), "") for name in names}
    often = Counter((families[name], word) for name in names for word in set(_words(name)))
    after = _differ_after(names)

    def shared(name: str, word: str) -> int:
        return often[families[name], word]

    def dateless(name: str) -> str:
        return _rare_words(
            name, room, lambda word: (bool(_DIGITS.fullmatch(word)), shared(name, word))
        )

    def rare(name: str) -> str:
        return _rare_words(name, room, lambda word: (shared(name, word),))

    def differing(name: str) -> str:
        # The beginning, and what follows the letters that its nearest neighbour has too.
        third = next((k for k in range(1, len(name)) if room.measure(name[:k]) * 3 > room.width), 1)
        return _end(f"{name[:third]}…{name[max(after[name], third) :]}", room)

    def rule(name: str) -> str:
        return short_rule(name, room.holds)

    def tight_rule(name: str) -> str:
        return short_rule(name, room.holds, least=1)

    if any(map(is_rule, names)):
        return [rule, tight_rule]
    return [dateless, rare, differing, lambda name: _middle(name, room)]


def _numbered(name: str, room: _Room, taken: set[str]) -> str:
    for number in count(2):
        mark = f"…{number}"
        short = rule_start(name, room.holds, mark) if is_rule(name) else _end(name, room, mark)
        if short not in taken:
            return short
    raise AssertionError


def _rare_words(text: str, room: _Room, told: Callable[[str], tuple[int, ...]]) -> str:
    """Leave out words until the name fits: those with the highest mark, from the end on."""
    parts = _WORDS.findall(text)
    marks = [(*told(part.strip(_SEPARATORS)), place) for place, part in enumerate(parts)]
    order = sorted(range(len(parts)), key=marks.__getitem__, reverse=True)
    # The word with the lowest mark stays, whatever its length.
    for left_out in range(1, len(order)):
        short = _without(parts, set(order[:left_out]))
        if room.holds(short):
            return short
    return _middle(_without(parts, set(order[:-1])), room)


def _without(parts: Sequence[str], dropped: set[int]) -> str:
    kept = "".join("\0" if place in dropped else part for place, part in enumerate(parts))
    # What was left out at the end takes the separator before it along.
    return re.sub(r"…?\0+…?", "…", re.sub(rf"[{re.escape(_SEPARATORS)}]+\0+$", "\0", kept))


def _words(name: str) -> list[str]:
    return [part.strip(_SEPARATORS) for part in _WORDS.findall(name)]


def _middle(text: str, room: _Room) -> str:
    if room.holds(text):
        return text

    def without(dropped: int) -> str:
        keep = len(text) - dropped
        return text[: (keep + 1) // 2] + "…" + text[len(text) - keep // 2 :]

    return without(_fewest(len(text), lambda dropped: room.holds(without(dropped))))


def _end(text: str, room: _Room, mark: str = "") -> str:
    """Return the beginning of a text, and the mark; one that is cut ends in dots."""
    if room.holds(text + mark):
        return text + mark
    mark = mark or "…"

    def without(dropped: int) -> str:
        return text[: len(text) - dropped].rstrip() + mark

    return without(_fewest(len(text), lambda dropped: room.holds(without(dropped))))


def _fewest(most: int, fits: Callable[[int], bool]) -> int:
    """Return how many letters to leave out until a text fits; a name may be a whole answer."""
    return bisect_left(range(most), True, key=fits)


def _differ_after(names: Sequence[str]) -> dict[str, int]:
    """Return per name how many letters it shares with the neighbour that is most like it."""
    ordered = sorted(names)
    shared = [len(_shared_start(a, b)) for a, b in pairwise(ordered)]
    return {
        name: max(before, behind)
        for name, before, behind in zip(ordered, [0, *shared], [*shared, 0], strict=True)
    }


def _shared_start(first: str, last: str) -> str:
    """Return what the first and the last of sorted names begin with, and so all between them."""
    size = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    if size is None:
        return min(first, last, key=len)
    return first[:size]
