"""The law of random splits against enumeration, sampling and its own identities."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibrant.core.errors import InputError
from calibrant.stats.splits import sample_splits, split_law


def _enumerated(counts: list[int], block: int, free: list[bool]) -> tuple[np.ndarray, np.ndarray]:
    pool = [place for place, count in enumerate(counts) for _ in range(count)]
    chosen, held, splits = np.zeros(len(counts)), np.zeros(len(counts)), 0
    for rows in combinations(range(len(pool)), block):
        splits += 1
        taken = np.bincount([pool[row] for row in rows], minlength=len(counts))
        rival = np.where(free, taken, 0)
        if rival.max() == 0:
            continue
        best = int(np.argmax(rival))
        chosen[best] += 1
        held[best] += (counts[best] - taken[best]) / (len(pool) - block)
    return chosen / splits, held / splits


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_law_equals_enumeration(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    assume(2 <= sum(counts) <= 12)
    block = data.draw(st.integers(1, sum(counts) - 1))
    free = data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
    law = split_law([counts], block, selectable=[free])
    chosen, held = _enumerated(counts, block, free)
    np.testing.assert_allclose(law.selection[0], chosen, atol=1e-13)
    np.testing.assert_allclose(law.heldout[0], held, atol=1e-13)


def test_sampled_splits_follow_the_law() -> None:
    counts = np.array([[20, 15, 10, 5], [25, 25, 0, 0], [50, 0, 0, 0]])
    law = split_law(counts, 25)
    drawn = sample_splits(counts, 25, splits=20_000, rng=1)
    for row in range(3):
        share = np.bincount(drawn.selected[row], minlength=4) / 20_000
        np.testing.assert_allclose(share, law.selection[row], atol=0.015)
    np.testing.assert_allclose(drawn.confidence, law.confidence, atol=0.003)


def test_same_seed_same_splits() -> None:
    counts = [[7, 3, 2]]
    a = sample_splits(counts, 6, splits=30, rng=5)
    b = sample_splits(counts, 6, splits=30, rng=5)
    assert (a.selected == b.selected).all()
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
