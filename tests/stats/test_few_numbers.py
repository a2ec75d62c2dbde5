"""Special functions of a few numbers are those of scipy, and load nothing of it."""

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import special

from calibrant.metrics.stats import few_numbers

SHARES = np.concatenate([10.0 ** -np.arange(1.0, 13), np.linspace(0.02, 0.98, 49), [0.9975]])
POINTS = np.concatenate([-(10.0 ** np.linspace(-6, 2, 30)), 10.0 ** np.linspace(-6, 2, 30), [0.0]])
DEGREES = [1, 2, 3, 4.5, 9, 19, 50, 199, 999]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("ndtr", np.linspace(-30, 9, 200)),
        ("ndtri", SHARES),
        ("erf", np.linspace(-6, 6, 99)),
        ("digamma", np.concatenate([np.linspace(0.01, 10, 90), np.arange(1.0, 400)])),
    ],
)
def test_functions_of_one_number(name, numbers):
    own, theirs = getattr(few_numbers, name), getattr(special, name)
    np.testing.assert_allclose(own(numbers), theirs(numbers), rtol=1e-11, atol=1e-13)
    assert own(float(numbers[3])) == own(numbers)[3]


@pytest.mark.parametrize("degrees", DEGREES)
def test_students_law(degrees):
    np.testing.assert_allclose(
        few_numbers.stdtr(degrees, POINTS), special.stdtr(degrees, POINTS), rtol=1e-10
    )
    np.testing.assert_allclose(
        few_numbers.stdtrit(degrees, SHARES), special.stdtrit(degrees, SHARES), rtol=1e-10
    )


def test_beta_laws_and_log_odds():
    for a in (1, 7, 300, 999):
        for b in (1, 30, 999):
            for x in np.linspace(0.01, 0.99, 25):
                own, theirs = few_numbers.betainc(a, b, x), special.betainc(a, b, x)
                assert math.isclose(own, theirs, rel_tol=1e-10, abs_tol=1e-280)
    for x in (-900.0, -30.0, -0.1, 0.0, 2.0, 900.0):
        assert math.isclose(few_numbers.expit(x), special.expit(x), rel_tol=1e-14)
    np.testing.assert_allclose(few_numbers.logit(SHARES), special.logit(SHARES), atol=1e-14)
    x, y = np.array([0.0, 0.0, 1.0, 0.5]), np.array([0.0, 0.5, 0.0, 0.3])
    np.testing.assert_allclose(few_numbers.xlogy(x, y), special.xlogy(x, y), rtol=1e-14)


def test_ends_and_what_is_no_number():
    assert few_numbers.ndtri(0.0) == -math.inf
    assert few_numbers.ndtri(1.0) == math.inf
    assert few_numbers.stdtrit(5, 0.5) == 0.0
    assert few_numbers.stdtrit(5, 1.0) == math.inf
    assert few_numbers.stdtr(5, math.inf) == 1.0
    assert few_numbers.stdtr(5, -math.inf) == 0.0
    for found in (few_numbers.ndtri(2.0), few_numbers.stdtr(5, math.nan), few_numbers.ndtr(np.nan)):
        assert math.isnan(found)


def test_many_numbers_and_large_laws_are_scipys():
    many = np.linspace(-3, 3, few_numbers.FEW + 1)
    assert np.array_equal(few_numbers.ndtr(many), special.ndtr(many))
    assert few_numbers.stdtr(1e6, -2.0) == special.stdtr(1e6, -2.0)
    assert few_numbers.betainc(5e6, 5e6, 0.5001) == special.betainc(5e6, 5e6, 0.5001)


def test_an_audit_of_a_small_table_does_without_scipy(tmp_path):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 200).round(2)
    rows = zip(confidence, (rng.random(200) < confidence - 0.1).astype(int), strict=True)
    table = tmp_path / "scores.csv"
    table.write_text("confidence,correct\n" + "".join(f"{c},{y}\n" for c, y in rows))
    code = (
        "import sys, calibrant; calibrant.audit(sys.argv[1]); "
        "print([name for name in sys.modules if name.startswith('scipy')])"
    )
    run = [sys.executable, "-c", code, str(table)]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "[]\n"
