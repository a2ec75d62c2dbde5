"""Kinds of numbers against definitions that share no code with them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bench.questions.math_rule import KINDS, is_prime, members


def sieve(lower: int, upper: int) -> list[int]:
    """Return the primes of an interval by a segmented sieve."""
    root = math.isqrt(upper) + 1
    small = np.ones(root + 1, dtype=bool)
    small[:2] = False
    for number in range(2, math.isqrt(root) + 1):
        if small[number]:
            small[number * number :: number] = False
    segment = np.ones(upper - lower + 1, dtype=bool)
    for prime in np.flatnonzero(small).tolist():
        first = max(prime * prime, -(-lower // prime) * prime)
        segment[first - lower :: prime] = False
    return [lower + place for place in np.flatnonzero(segment).tolist() if lower + place > 1]


def is_square(number: int) -> bool:
    return number >= 0 and math.isqrt(number) ** 2 == number


DEFINITIONS = {
    "square": is_square,
    "cube": lambda n: n in {root**3 for root in range(20)},
    "triangular": lambda n: is_square(8 * n + 1),
    "fibonacci": lambda n: is_square(5 * n * n + 4) or is_square(5 * n * n - 4),
}


@pytest.mark.parametrize("start", [1, 10_000, 10**9 - 2_000, 10**12 - 2_000])
def test_primes_agree_with_a_segmented_sieve(start):
    assert members("prime", start, start + 2_000) == sieve(start, start + 2_000)


@pytest.mark.parametrize(
    "number",
    # Composites that pass Miller-Rabin for the first 1 to 7 prime bases (Jaeschke 1993).
    [2_047, 1_373_653, 25_326_001, 3_215_031_751, 2_152_302_898_747, 3_474_749_660_383,
     341_550_071_728_321],
)  # fmt: skip
def test_strong_pseudoprimes_are_not_prime(number):
    assert not is_prime(number)


@pytest.mark.parametrize("kind", DEFINITIONS)
@given(lower=st.integers(1, 4_000), width=st.integers(0, 200))
def test_members_follow_the_definition(kind, lower, width):
    expected = [n for n in range(lower, lower + width + 1) if DEFINITIONS[kind](n)]
    assert members(kind, lower, lower + width) == expected


@pytest.mark.parametrize("kind", KINDS)
@given(number=st.integers(1, 10**13))
def test_neighbours_enclose_a_number(kind, number):
    below, above = KINDS[kind].previous(number), KINDS[kind].following(number)
    assert below <= number <= above
    assert members(kind, below + 1, above - 1) == []
    assert (below == number) == (above == number)
