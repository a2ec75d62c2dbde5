"""When draws may stop: the error is what was promised, however often one looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulations.adaptive_draws import false_modes

from calibrant.collect.rounds import StopRule, mode_settled
from calibrant.core.errors import InputError


def test_false_modes_stay_below_the_promised_chance():
    for name, runs, share in false_modes(runs=150, most=60, chance=0.2):
        # 0.2 promised; three standard errors of 150 runs are 0.1.
        assert share <= 0.3, (name, runs, share)


def test_a_rule_without_evidence_never_settles():
    assert not mode_settled([])
    assert not mode_settled(["a", "b"] * 50)
    assert not mode_settled(list(range(100)))


def test_later_leaders_need_more():
    late = ["x", "y", "z", *["a"] * 9]
    assert mode_settled(["a"] * 9)
    assert not mode_settled(late)
    assert mode_settled([*late, *["a"] * 12])


@given(st.lists(st.sampled_from("abc"), max_size=40), st.integers(2, 30), st.integers(2, 8))
def test_sizes_grow_and_end(draws, most, step):
    rule = StopRule(most=most, least=step, step=step)
    size = 0
    for _ in range(60):
        wanted = rule.next_size(draws[:size])
        assert size <= wanted <= most
        if wanted == size or wanted > len(draws):
            return
        size = wanted
    raise AssertionError("does not end")


def test_a_chance_is_a_probability():
    with pytest.raises(InputError, match="chance"):
        mode_settled(["a"], chance=0.0)
