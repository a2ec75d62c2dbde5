"""The five kinds of numbers: which ones lie in an interval, exactly."""

from __future__ import annotations

import bisect
import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Protocol

from calibrant.core.errors import InputError
from calibrant.core.registry import Registry

_SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_SMALL_PRODUCT = math.prod(_SMALL_PRIMES)
# Bases that make Miller-Rabin exact below a bound (C. Pomerance et al. 1980, G. Jaeschke 1993,
# J. Sorenson and J. Webster 2015).
_WITNESSES = (
    (2_047, (2,)),
    (9_080_191, (31, 73)),
    (4_759_123_141, (2, 7, 61)),
    (1_122_004_669_633, (2, 13, 23, 1_662_803)),
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


class NumberKind(Protocol):
    """Positive numbers of one kind, in order."""

    def previous(self, number: int) -> int:
        """Return the largest member <= `number`, or 0."""

    def following(self, number: int) -> int:
        """Return the smallest member >= `number`."""


class _Primes:
    def previous(self, number: int) -> int:
        if number < 3:
            return 2 if number == 2 else 0
        candidate = number if number % 2 else number - 1
        while not is_prime(candidate):
            candidate -= 2
        return candidate

    def following(self, number: int) -> int:
        if number <= 2:
            return 2
        candidate = number if number % 2 else number + 1
        while not is_prime(candidate):
            candidate += 2
        return candidate


class NumberSequence(ABC):
    """A kind with a formula for its member of index 1, 2, ..."""

    @abstractmethod
    def member(self, index: int) -> int:
        """Return the member of this index, counted from 1."""

    @abstractmethod
    def count(self, number: int) -> int:
        """Return how many members are <= `number`."""

    def previous(self, number: int) -> int:
        """Return the largest member <= `number`, or 0."""
        index = self.count(number)
        return self.member(index) if index else 0

    def following(self, number: int) -> int:
        """Return the smallest member >= `number`."""
        return self.member(self.count(number - 1) + 1)


class _Squares(NumberSequence):
    def member(self, index: int) -> int:
        return index * index

    def count(self, number: int) -> int:
        return math.isqrt(number) if number > 0 else 0


class _Cubes(NumberSequence):
    def member(self, index: int) -> int:
        return index * index * index

    def count(self, number: int) -> int:
        if number < 1:
            return 0
        root: int = round(
            float(number) ** (1 / 3)
        )  # within one of the truth, then corrected exactly
        while root**3 > number:
            root -= 1
        while (root + 1) ** 3 <= number:
            root += 1
        return root


class _Triangular(NumberSequence):
    def member(self, index: int) -> int:
        return index * (index + 1) // 2

    def count(self, number: int) -> int:
        return (math.isqrt(8 * number + 1) - 1) // 2 if number > 0 else 0


@lru_cache(maxsize=1)
def _fibonacci() -> tuple[int, ...]:
    """Return 1, 2, 3, 5, ... (each value once) up to about 1e30."""
    values = [1, 2]
    while values[-1] < 10**30:
        values.append(values[-1] + values[-2])
    return tuple(values)


class _Fibonacci(NumberSequence):
    def member(self, index: int) -> int:
        return _fibonacci()[index - 1]

    def count(self, number: int) -> int:
        return bisect.bisect_right(_fibonacci(), number)


KINDS: Registry[NumberKind] = Registry("kind of number")
KINDS.add("prime", _Primes())
KINDS.add("square", _Squares())
KINDS.add("cube", _Cubes())
KINDS.add("fibonacci", _Fibonacci())
KINDS.add("triangular", _Triangular())


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
    found = []
    number = KINDS[kind].following(max(lower, 1))
    while number <= upper:
        found.append(number)
        number = KINDS[kind].following(number + 1)
    return found
