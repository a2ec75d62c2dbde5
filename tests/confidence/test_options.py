"""Which pair of words a first-token probe was answered with."""

import math

import numpy as np
import polars as pl
import pytest

from calibrant.answers.confidence.alternatives import yes_no_masses


def listed(**logprobs):
    return [{"token": token, "logprob": value} for token, value in logprobs.items()]


def masses_of(*rows):
    return yes_no_masses(pl.DataFrame({"first_token_top_logprobs": list(rows)}))


def test_the_pair_with_the_largest_mass_decides():
    """A prompt that asks for A or B still lists True and False far down."""
    yes, no = masses_of(listed(A=-0.77, B=-0.82, true=-6.61, false=-6.86))
    assert yes[0] == pytest.approx(math.exp(-0.77))
    assert no[0] == pytest.approx(math.exp(-0.82))


def test_rows_choose_their_own_pair():
    yes, _ = masses_of(
        listed(True_=-9.0, Yes=-0.1, No=-2.5), listed(**{" True": -0.2, "False": -1.8})
    )
    assert yes.tolist() == pytest.approx([math.exp(-0.1), math.exp(-0.2)])


def test_what_is_not_listed_is_unknown():
    yes, no = masses_of(listed(Yes=-0.1), listed(Paris=-0.1))
    assert yes[0] == pytest.approx(math.exp(-0.1))
    assert np.isnan(no[0])
    assert np.isnan([yes[1], no[1]]).all()
