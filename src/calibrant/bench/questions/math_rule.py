"""Math questions: an interval that holds exactly k numbers of a kind, true by rule."""

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct

from calibrant.bench.questions.question import BenchQuestion
from calibrant.core.arrays import named_stream
from calibrant.core.errors import InputError
from calibrant.core.names import Registry

_SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_SMALL_PRODUCT = math.prod(_SMALL_PRIMES)
# Bases that make Miller-Rabin exact below a bound (G. Jaeschke 1993, J. Sorenson and J. Webster
# 2015).
_WITNESSES = (
    (4_759_123_141, (2, 7, 61)),
    (3_317_044_064_679_887_385_961_981, (*_SMALL_PRIMES, 41)),
)


def is_prime(number: int) -> bool:
    """Tell whether `number` is prime; exact below 3.3e24.

    Examples
    --------
    >>> [n for n in range(20) if is_prime(n)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    >>> is_prime(999_999_999_989), is_prime(3_215_031_751)
    (True, False)
    """
    if number < 2:
        return False
    if number in _SMALL_PRIMES:
        return True
    if math.gcd(number, _SMALL_PRODUCT) > 1:
        return False
    for bound, bases in _WITNESSES:
        if number < bound:
            return all(_passes(number, base) for base in bases)
    raise InputError(f"primality is decided below {_WITNESSES[-1][0]}, got {number}")


def _passes(number: int, base: int) -> bool:
    """Tell whether odd `number` is a strong probable prime to `base`."""
    if base % number == 0:
        return True
    twos = ((number - 1) & -(number - 1)).bit_length() - 1
    power = pow(base, (number - 1) >> twos, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False


class NumberKind(Struct, frozen=True):
    """Positive numbers of one kind: the member of index 1, 2, .., and how many are <= a number."""

    member: Callable[[int], int]
    count: Callable[[int], int]

    def previous(self, number: int) -> int:
        """Return the largest member <= `number`, or 0."""
        index = self.count(max(number, 0))
        return self.member(index) if index else 0

    def following(self, number: int) -> int:
        """Return the smallest member >= `number`."""
        return self.member(self.count(max(number - 1, 0)) + 1)


class _Primes(NumberKind, frozen=True):
    """Primes have no formula: they are looked for one by one."""

    def previous(self, number: int) -> int:
        while number > 1 and not is_prime(number):
            number -= 1
        return max(number, 0) if number > 1 else 0

    def following(self, number: int) -> int:
        number = max(number, 2)
        while not is_prime(number):
            number += 1
        return number


def _cube_root(number: int) -> int:
    """Return the whole cube root: a float is within one of it, then corrected exactly."""
    near: int = round(float(number) ** (1 / 3))
    return max(root for root in (near - 1, near, near + 1) if root**3 <= number)


@lru_cache(maxsize=1)
def _fibonacci() -> tuple[int, ...]:
    """Return 1, 2, 3, 5, ... (each value once) up to about 1e30."""
    values = [1, 2]
    while values[-1] < 10**30:
        values.append(values[-1] + values[-2])
    return tuple(values)


KINDS: Registry[NumberKind] = Registry("kind of number")
KINDS.add("prime", _Primes(lambda index: index, lambda number: number))
KINDS.add("square", NumberKind(lambda index: index**2, math.isqrt))
KINDS.add("cube", NumberKind(lambda index: index**3, _cube_root))
KINDS.add(
    "fibonacci",
    NumberKind(
        lambda index: _fibonacci()[index - 1],
        lambda number: bisect.bisect_right(_fibonacci(), number),
    ),
)
KINDS.add(
    "triangular",
    NumberKind(
        lambda index: index * (index + 1) // 2,
        lambda number: (math.isqrt(8 * number + 1) - 1) // 2,
    ),
)


def members(kind: str, lower: int, upper: int) -> list[int]:
    """Return every number of the kind from `lower` to `upper`, both included.

    Zero is counted by none of the kinds; builders ask for positive numbers only.

    Examples
    --------
    >>> members("triangular", 1, 20)
    [1, 3, 6, 10, 15]
    >>> members("fibonacci", 1, 20)
    [1, 2, 3, 5, 8, 13]
    >>> members("prime", 10**12 - 60, 10**12)
    [999999999959, 999999999961, 999999999989]
    """
    numbers = []
    number = KINDS[kind].following(max(lower, 1))
    while number <= upper:
        numbers.append(number)
        number = KINDS[kind].following(number + 1)
    return numbers


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
) -> list[BenchQuestion]:
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
    ('Name one perfect cube from 19 to 82, both included.', (('27',), ('64',)))
    """
    if k < 1 or count < 0:
        raise InputError(f"k is at least 1 and the count at least 0, got k={k}, count={count}")
    if not 2 <= limit <= 10**24:
        raise InputError(f"the largest number is between 2 and 1e24, got {limit}")
    questions = []
    for position, kind in enumerate(kinds):
        share = count // len(kinds) + (position < count % len(kinds))
        questions.extend(_of_kind(kind, k, share, limit, named_stream(seed, "math", kind, k)))
    return questions


def _of_kind(
    kind: str, k: int, count: int, limit: int, rng: np.random.Generator
) -> list[BenchQuestion]:
    questions: list[BenchQuestion] = []
    earlier: set[tuple[int, int]] = set()
    misses = 0
    for first in _starts(kind, k, limit, rng):
        if len(questions) == count or misses > _PATIENCE:
            break
        run = _run(kind, first, k)
        interval = _interval(kind, run, limit, rng) if run[-1] <= limit else None
        if interval is None or interval in earlier:
            misses += 1
            continue
        misses = 0
        earlier.add(interval)
        questions.append(_question(kind, run, *interval))
    return questions


def _starts(kind: str, k: int, limit: int, rng: np.random.Generator) -> Iterator[int]:
    """Yield the smallest answer of one question after the other, without end."""
    numbers = KINDS[kind]
    if isinstance(numbers, _Primes):
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
) -> tuple[int, int] | None:
    """Return random ends around the run that take in none of its neighbours, or None.

    An end is no answer itself: the question would name it.
    """
    before = KINDS[kind].previous(run[0] - 1) + 1
    after = min(KINDS[kind].following(run[-1] + 1), limit + 1)
    if before >= run[0] or run[-1] + 1 >= after:
        return None
    return int(rng.integers(before, run[0])), int(rng.integers(run[-1] + 1, after))


def _question(kind: str, run: Sequence[int], lower: int, upper: int) -> BenchQuestion:
    return BenchQuestion(
        text=f"Name one {NUMBER_NAMES[kind]} from {lower} to {upper}, both included.",
        references=tuple((str(number),) for number in run),
        domain="math",
        subtype=kind,
        source=MATH_SOURCE,
        kind="number",
        meta={"subjects": [kind], "lower": lower, "upper": upper},
    )
