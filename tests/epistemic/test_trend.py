"""Does the grouping loss fall with size and tuning?"""

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from calibrant.core.errors import InputError
from calibrant.trust.grouping_loss import exact_difference, size_trend, tuned_pairs
from calibrant.verbs.groups import groups


def models_table(depths):
    """Return answers of models that are the less aware of a topic the larger their depth."""
    rng = np.random.default_rng(3)
    parts = []
    for name, depth in depths.items():
        topic = rng.choice(["law", "maths"], 2000)
        chance = 0.6 + depth * np.where(topic == "law", -1, 1)
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(2000),
                    "model": [name] * 2000,
                    "confidence": np.clip(0.6 + 0.02 * rng.normal(size=2000), 0, 1),
                    "correct": (rng.random(2000) < chance).astype(int),
                    "topic": topic,
                }
            )
        )
    return pl.concat(parts)


def test_the_command_tells_the_trend_by_size_and_by_tuning():
    depths = {"a-1": 0.35, "a-2": 0.28, "a-4": 0.2, "a-8": 0.1, "b": 0.3, "b-it": 0.1}
    found = groups(
        models_table(depths),
        features=["topic"],
        sizes={"a-1": 1, "a-2": 2, "a-4": 4, "a-8": 8},
        tuned=["b=b-it"],
    )
    trend = found["trend"]
    assert trend["of"] == "grouping_loss"
    # The loss is the squared depth: from 0.1225 to 0.01 over three doublings.
    assert trend["size"]["per_doubling"]["value"] == pytest.approx(-0.0375, abs=0.006)
    assert trend["size"]["per_doubling"]["high"] < 0
    assert trend["size"]["p_value"] == pytest.approx(2 / 24)
    (pair,) = trend["tuned"]["pairs"]
    assert pair["difference"] == pytest.approx(0.01 - 0.09, abs=0.015)


def test_sizes_dealt_anew_are_rarely_called_a_trend():
    rng = np.random.default_rng(0)
    # Six models are tried in every order, nine in 9,999 of them.
    for count, runs, most in ((6, 200, 20), (9, 20, 4)):
        names = [f"m{n}" for n in range(count)]
        sizes = {name: 2.0**n for n, name in enumerate(names)}
        losses = (dict(zip(names, rng.normal(size=count), strict=True)) for _ in range(runs))
        small = [size_trend(loss, sizes, seed=1).p_value <= 0.05 for loss in losses]
        assert sum(small) <= most


@pytest.mark.parametrize(
    ("sizes", "word"),
    [
        ({"a": 1, "x": 2, "b": 3}, "'x'"),
        ({"a": 1, "b": 2}, "three"),
        ({"a": 1, "b": 1, "c": 1}, "same"),
    ],
)
def test_sizes_that_tell_nothing_are_refused(sizes, word):
    with pytest.raises(InputError, match=word):
        size_trend({"a": 0.1, "b": 0.2, "c": 0.3}, sizes)


def test_an_unknown_partner_is_named():
    with pytest.raises(InputError, match="'c'"):
        tuned_pairs({"a": 0.1}, [("a", "c")])


def one_outcome(rng, rows):
    """Two models of one outcome that know one of two equally telling columns each."""
    known = rng.normal(size=(2, rows))
    right = (rng.random(rows) < expit(1.5 * known[0] + 0.7 * known[1])).astype(float)
    return right, expit(0.5 * known[1] - 0.2), expit(3 * known[0] + 0.3)


def test_the_exact_difference_covers_the_difference_of_grouping_losses():
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    weights /= weights.sum()
    chance = expit(1.5 * points[:, None] + 0.7 * points[None, :])
    by_first, by_second = chance @ weights, weights @ chance
    losses = [weights @ ((chance - m) ** 2 @ weights) for m in (by_second, by_first[:, None])]
    truth = float(losses[1] - losses[0])
    rng = np.random.default_rng(0)
    found = [exact_difference(*one_outcome(rng, 500), seed=run) for run in range(80)]
    assert np.mean([each.low <= truth <= each.high for each in found]) >= 0.9
    assert np.mean([each.value for each in found]) == pytest.approx(truth, abs=0.004)


def test_models_of_one_outcome_are_compared_without_a_tree_and_the_answer_comes_first():
    right, base, tuned = one_outcome(np.random.default_rng(1), 1500)
    group = np.arange(1500) % 3
    rows = [
        pl.DataFrame({"question_id": np.arange(1500), "model": name, "confidence": said,
                      "correct": right, "part": group})
        for name, said in (("base", base), ("tuned", tuned))
    ]  # fmt: skip
    found = groups(pl.concat(rows), features=["part"], tuned=["base=tuned"], estimator="tree")
    (pair,) = found["trend"]["tuned"]["pairs"]
    assert pair["exact"]["high"] < 0
    assert pair["reach"] > 0
    first = next(line for line in str(found).splitlines()[1:] if line.startswith("tuned"))
    assert first.startswith("tuned instead of base lowers the grouping loss by 0.0")
    # Where each model is asked whether it is right itself, there is no one outcome.
    other = rows[1].with_columns(correct=1 - pl.col("correct"))
    found = groups(pl.concat([rows[0], other]), features=["part"], tuned=["base=tuned"])
    assert found["trend"]["tuned"]["pairs"][0]["exact"] is None
