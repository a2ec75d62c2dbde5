"""Math questions: an interval that holds exactly k numbers of a kind, true by rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.rng import named_stream
from calibrant.sources.mace.numbers import KINDS, NumberSequence
from calibrant.sources.mace.question import Question

MATH_SOURCE = "rule: every integer of the interval is tested"
NUMBER_NAMES = {
    "prime": "prime number",
    "square": "perfect square",
    "cube": "perfect cube",
    "fibonacci": "Fibonacci number",
    "triangular": "triangular number",
}
# A run of answers that gave no new interval this many times in a row has none left to give.
_PATIENCE = 200


def math_questions(
    k: int,
    count: int,
    *,
    kinds: Sequence[str] = tuple(NUMBER_NAMES),
    limit: int = 1_000_000,
    seed: int = 0,
) -> list[Question]:
    """Return `count` questions with exactly `k` right answers, shared evenly by the kinds.

    The answers of a question are `k` neighbours within their kind. Squares, cubes, Fibonacci
    and triangular numbers are drawn by position, so small and large ones are met alike; primes
    are drawn by size. Answer sets repeat only when a kind has fewer of them than are asked
    for, and no two questions have the same interval.

    Parameters
    ----------
    k
        Number of right answers.
    count
        Number of questions.
    kinds
        Some of prime, square, cube, fibonacci, triangular.
    limit
        Largest number that may be an end of an interval, up to 1e24.
    seed
        The same seed gives the same questions.

    Examples
    --------
    >>> [one] = math_questions(2, 1, kinds=["cube"], limit=100)
    >>> one.text, one.references
    ('Name one perfect cube from 1 to 19, both included.', (('1',), ('8',)))
    """
    if k < 1 or count < 0:
        raise InputError(f"k is at least 1 and the count at least 0, got k={k}, count={count}")
    if not 2 <= limit <= 10**24:
        raise InputError(f"the largest number is between 2 and 1e24, got {limit}")
    found = []
    for position, kind in enumerate(kinds):
        share = count // len(kinds) + (position < count % len(kinds))
        found.extend(_of_kind(kind, k, share, limit, named_stream(seed, "math", kind, k)))
    return found


def _of_kind(kind: str, k: int, count: int, limit: int, rng: np.random.Generator) -> list[Question]:
    found: list[Question] = []
    seen: set[tuple[int, int]] = set()
    misses = 0
    for first in _starts(kind, k, limit, rng):
        if len(found) == count or misses > _PATIENCE:
            break
        run = _run(kind, first, k)
        interval = _interval(kind, run, limit, rng) if run[-1] <= limit else None
        if interval is None or interval in seen:
            misses += 1
            continue
        misses = 0
        seen.add(interval)
        found.append(_question(kind, run, *interval))
    return found


def _starts(kind: str, k: int, limit: int, rng: np.random.Generator) -> Iterator[int]:
    """Yield the smallest answer of one question after the other, without end."""
    numbers = KINDS[kind]
    if not isinstance(numbers, NumberSequence):
        while True:
            yield numbers.previous(2 + int(rng.integers(limit - 1)))
    runs = numbers.count(limit) - k + 1
    if runs < 1:
        return
    while True:
        # A fresh order for every round: each run of answers is used once before any is used
        # again. Beyond a million runs a repetition is as good as impossible.
        order = rng.permutation(runs) if runs <= 1_000_000 else rng.integers(runs, size=100_000)
        for index in order:
            yield numbers.member(int(index) + 1)


def _run(kind: str, first: int, k: int) -> list[int]:
    """Return the k neighbours of a kind from `first` on."""
    run = [first]
    while len(run) < k:
        run.append(KINDS[kind].following(run[-1] + 1))
    return run


def _interval(
    kind: str, run: Sequence[int], limit: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Return random ends around the run that take in none of its neighbours."""
    before = KINDS[kind].previous(run[0] - 1)
    after = min(KINDS[kind].following(run[-1] + 1), limit + 1)
    return int(rng.integers(before + 1, run[0] + 1)), int(rng.integers(run[-1], after))


def _question(kind: str, run: Sequence[int], lower: int, upper: int) -> Question:
    return Question(
        text=f"Name one {NUMBER_NAMES[kind]} from {lower} to {upper}, both included.",
        references=tuple((str(number),) for number in run),
        domain="math",
        subtype=kind,
        source=MATH_SOURCE,
        kind="number",
        meta={"subjects": [kind], "lower": lower, "upper": upper},
    )
