"""The law of random splits against enumeration, sampling and its own identities."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibrant.core.errors import InputError
from calibrant.metrics.stats.splits import sample_splits, split_law


def _enumerated(
    counts: list[int], block: int, free: list[bool]
) -> tuple[np.ndarray, np.ndarray, float]:
    pool = [place for place, count in enumerate(counts) for _ in range(count)]
    chosen, held, splits, several = np.zeros(len(counts)), np.zeros(len(counts)), 0, 0
    for rows in combinations(range(len(pool)), block):
        splits += 1
        taken = np.bincount([pool[row] for row in rows], minlength=len(counts))
        rival = np.where(free, taken, 0)
        if rival.max() == 0:
            continue
        tied = np.flatnonzero(rival == rival.max())
        chosen[tied] += 1 / tied.size
        held[tied] += (np.asarray(counts) - taken)[tied] / (len(pool) - block) / tied.size
        several += tied.size > 1
    return chosen / splits, held / splits, several / splits


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_law_equals_enumeration(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    assume(2 <= sum(counts) <= 12)
    block = data.draw(st.integers(1, sum(counts) - 1))
    free = data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
    law = split_law([counts], block, selectable=[free])
    chosen, held, several = _enumerated(counts, block, free)
    np.testing.assert_allclose(law.selection[0], chosen, atol=1e-13)
    np.testing.assert_allclose(law.heldout[0], held, atol=1e-13)
    assert law.tied[0] == pytest.approx(several, abs=1e-13)


@pytest.mark.parametrize(
    ("shares", "draws"),
    [((0.5, 0.5), 4), ((0.6, 0.4), 6), ((0.5, 0.3, 0.2), 6), ((0.4, 0.3, 0.2, 0.1), 5)],
)
@pytest.mark.parametrize("half", [0, 1])
def test_the_held_out_frequency_is_unbiased_given_the_selection(
    shares: tuple[float, ...], draws: int, half: int
) -> None:
    """All sequences of draws: E[c2 | z = k] = pi_k, whichever size the selection block has."""
    chance = np.array(shares)
    block = draws // 2 - half
    selected, held = np.zeros((2, chance.size))
    for sequence in product(range(chance.size), repeat=draws):
        law = split_law([np.bincount(sequence, minlength=chance.size)], block)
        weight = chance[list(sequence)].prod()
        selected += weight * law.selection[0]
        held += weight * law.heldout[0]
    np.testing.assert_allclose(held / selected, chance, atol=1e-13)


def test_a_fair_question_with_four_draws_has_a_fair_confidence() -> None:
    """A rule that looks at the evaluation block to break a tie gives .5625."""
    confidence = [
        split_law([[first, 4 - first]], 2).confidence[0] * weight
        for first, weight in enumerate([1, 4, 6, 4, 1])
    ]
    assert sum(confidence) / 16 == pytest.approx(0.5, abs=1e-15)


def test_the_order_of_columns_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    counts = rng.multinomial(12, np.ones(5) / 5, size=20)
    order = rng.permutation(5)
    plain, moved = split_law(counts, 6), split_law(counts[:, order], 6)
    np.testing.assert_allclose(plain.selection[:, order], moved.selection, atol=1e-15)


def test_large_pools_do_not_overflow() -> None:
    law = split_law([[1500, 1400, 100]], 1500)
    assert law.selection.sum() == pytest.approx(1, abs=1e-9)
    assert law.confidence[0] == pytest.approx(0.5, abs=0.01)


def test_sampled_splits_follow_the_law() -> None:
    counts = np.array([[20, 15, 10, 5], [25, 25, 0, 0], [50, 0, 0, 0]])
    law = split_law(counts, 25)
    drawn = sample_splits(counts, 25, splits=20_000, rng=1)
    np.testing.assert_allclose(drawn.selection, law.selection, atol=0.015)
    np.testing.assert_allclose(drawn.confidence, law.confidence, atol=0.003)
    np.testing.assert_allclose(drawn.tied, law.tied, atol=0.015)


def test_same_seed_same_splits() -> None:
    counts = [[7, 3, 2]]
    a = sample_splits(counts, 6, splits=30, rng=5)
    b = sample_splits(counts, 6, splits=30, rng=5)
    assert (a.selection == b.selection).all()
    assert (a.heldout == b.heldout).all()


def test_selection_is_certain_without_refusals() -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(50, np.ones(9) / 9, size=40)
    law = split_law(counts, 25)
    np.testing.assert_allclose(law.selection.sum(axis=1), 1.0, atol=1e-12)
    assert (law.confidence <= counts.max(axis=1) / 50 + 0.01).all()


def test_blocks_of_different_sizes_in_one_table() -> None:
    both = split_law([[4, 2, 0], [5, 3, 2]], [3, 4])
    np.testing.assert_allclose(both.selection[0], split_law([[4, 2, 0]], 3).selection[0])
    np.testing.assert_allclose(both.heldout[1], split_law([[5, 3, 2]], 4).heldout[0])


@pytest.mark.parametrize("block", [0, 6, 7])
def test_impossible_blocks_are_refused(block: int) -> None:
    with pytest.raises(InputError, match="leave at least 1"):
        split_law([[4, 2]], block)
