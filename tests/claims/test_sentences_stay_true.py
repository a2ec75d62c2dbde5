"""Six tables that others would bring, of which audits used to say something false."""

import re

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.findings.claims.checks import failed_checks, parse_check
from support import call


def outcomes(document):
    return {claim["id"]: claim["outcome"] for claim in document["claims"]}


def crossed(seed, n=4_000):
    rng = np.random.default_rng(seed)
    said = rng.choice([0.95, 1.0], n)
    return said, (rng.random(n) < np.where(said == 0.95, 1.0, 0.95)).astype(int)


def by_topic(seed, n=1_500, topics=15, effect=0.1):
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, topics, n)
    said = rng.choice([0.5, 0.6, 0.7, 0.8, 0.85], n)
    right = rng.random(n) < said + effect * rng.choice([-1, 1], topics)[topic]
    return pl.DataFrame(
        {"confidence": said, "correct": right.astype(int), "topic": [f"t{k}" for k in topic]}
    )


def test_crossed_values_are_not_called_calibrated():
    for seed in range(5):
        document = cal.audit(*crossed(seed), resamples=20)
        assert outcomes(document)["audit.miscalibrated"] == "shown"
        error = document["results"][0]["metrics"]["error"]
        assert error["low"] > 0.03
        assert "measured in 2 bins" in document["claims"][1]["text"]


def test_topics_that_share_an_effect_are_warned_of_and_counted_once():
    false, warned = 0, 0
    for seed in range(12):
        table = by_topic(seed)
        warnings = cal.audit(table, resamples=20)["data"]["warnings"]
        warned += any(w["id"] == "data.dependent" and "topic" in w["text"] for w in warnings)
        told = outcomes(cal.audit(table, cluster="topic", resamples=20))
        false += "shown" in {told.get(f"audit.{word}_confident") for word in ("over", "under")}
    assert warned >= 10
    assert false <= 2


def test_a_column_that_says_nothing_is_not_warned_of():
    for seed in range(12):
        warnings = cal.audit(by_topic(seed, effect=0.0), resamples=20)["data"]["warnings"]
        assert [w for w in warnings if w["id"] == "data.dependent"] == []


def test_a_model_right_in_none_of_400_that_says_95_fails_the_gate(tmp_path):
    table = pl.DataFrame({"confidence": [0.95] * 400, "correct": [0] * 400})
    table.write_csv(tmp_path / "t.csv")
    assert cal.audit(table, resamples=20)["claims"][0]["outcome"] == "shown"
    done = call("audit", tmp_path / "t.csv", "--fail-if", "claim:audit.over_confident=shown")
    assert done.returncode == 1
    assert "is never right (400 answers): over-confident by 95 points" in done.stderr


def missing_wrong(seed):
    rng = np.random.default_rng(seed)
    said = rng.uniform(0.5, 1, 600)
    right = (rng.random(600) < said).astype(int)
    lost = (right == 0) & (rng.random(600) < 0.6)
    table = pl.DataFrame({"confidence": said, "correct": right})
    return table.with_columns(confidence=pl.when(pl.Series(~lost)).then("confidence"))


def test_missing_confidences_of_wrong_answers_are_no_under_confidence():
    for seed in range(6):
        document = cal.audit(missing_wrong(seed), resamples=20)
        claim, lost = document["claims"][0], document["results"][0]["missing"]
        # On the rows with a confidence alone it looks under-confident by 13 points.
        assert claim["outcome"] in ("depends", "undecided")
        assert lost["p_value"] < 1e-6
        assert lost["worst_case"]["low"] < 0 < lost["worst_case"]["high"]
        accuracy = document["results"][0]["metrics"]["accuracy"]
        assert accuracy["value"] == missing_wrong(seed)["correct"].mean()
        assert accuracy["n"] == 600
        assert f"({100 * accuracy['value']:.0f} % with answers that state no" in claim["text"]
        assert abs(lost["reweighted"]["value"]) < 0.05


def test_what_the_missing_could_have_said_may_not_matter():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"confidence": np.full(400, 0.95), "correct": rng.integers(0, 2, 400)})
    table = table.with_columns(confidence=pl.when(pl.int_range(400) % 10 > 0).then("confidence"))
    document = cal.audit(table, resamples=20)
    assert document["claims"][0]["outcome"] == "shown"
    assert "whatever the missing confidences said" in document["claims"][0]["text"]


@pytest.mark.parametrize("gap", [0.0, 0.03, 0.08])
def test_as_many_labels_as_were_forecast_decide(gap):
    from calibrant.findings.claims.margins import more_labels

    came_true, undecided = 0, 0
    for seed in range(60):
        rng = np.random.default_rng([seed, int(100 * gap)])
        said = rng.uniform(0.4, 1, 200)
        excess = said - (rng.random(200) < said - gap)
        mean, error = excess.mean(), excess.std(ddof=1) / 200**0.5
        if abs(mean) > 1.96 * error:
            continue
        undecided += 1
        ends = {"value": mean, "low": mean - 1.96 * error, "high": mean + 1.96 * error, "n": 200}
        more = more_labels(ends, 0.02)
        total = 200 + more
        later = (200 * mean + more * (gap + rng.normal() * 200**0.5 * error / more**0.5)) / total
        wide = error * (200 / total) ** 0.5
        came_true += abs(later) > 1.96 * wide or abs(later) + 1.645 * wide < 0.02
    assert came_true >= 0.8 * undecided


@pytest.mark.parametrize(("among", "least"), [(30, 0.83), (1, None)])
def test_as_many_labels_decide_for_the_model_that_stands_out_of_thirty(among, least):
    from scipy.special import ndtri

    from calibrant.findings.claims.margins import more_labels

    level, error, came_true, told = 0.05 / 30, 0.035, 0, 0
    strict, within = -ndtri(level / 2), -ndtri(level)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        gap = rng.normal(0, 0.02, 30)
        seen = gap + rng.normal(0, error, 30)
        largest = int(np.abs(seen).argmax())
        if abs(seen[largest]) > strict * error:
            continue
        told += 1
        mean = seen[largest]
        ends = {"value": mean, "low": mean - 1.96 * error, "high": mean + 1.96 * error, "n": 200}
        more = more_labels(ends, 0.02, shown=level, within=level, among=among)
        fresh = gap[largest] + rng.normal() * error * (200 / more) ** 0.5
        later, wide = (
            (200 * mean + more * fresh) / (200 + more),
            error * (200 / (200 + more)) ** 0.5,
        )
        came_true += abs(later) > strict * wide or abs(later) + within * wide < 0.02
    assert told > 150
    # Forgetting that it was picked out of thirty, most forecasts would be false.
    assert came_true < 0.5 * told if least is None else came_true >= least * told


def gate(document, text, **options):
    return failed_checks(document, [parse_check(text)], **options)


def test_gates_fail_closed():
    rng = np.random.default_rng(2)
    said = rng.uniform(0.5, 0.95, 300)
    open_one = cal.audit(said, rng.random(300) < said, resamples=20)
    condition = "claim:audit.over_confident=shown"
    assert "not decided" in gate(open_one, condition)[0]
    assert gate(open_one, condition, allow_undecided=True) == []
    under = cal.audit(said, rng.random(300) < said + 0.3, resamples=20)
    assert outcomes(under)["audit.under_confident"] == "shown"
    assert gate(under, condition) == []
    # A claim that is made only where it holds is silent elsewhere.
    assert gate(under, "claim:audit.models_over_confident=shown") == []
    # No draws: nothing was said about meanings.
    assert "was not made" in gate(under, "claim:audit.meanings_over_confident=shown")[0]
    # One model has answers of one outcome: whether its confidence separates was not tested.
    rows = under["results"][0], {**under["results"][0], "model": "other"}
    both = {"results": rows, "claims": under["claims"]}
    assert "other / confidence: audit.separates was not tested here" in gate(
        both, "claim:audit.separates=equivalent"
    )


def test_many_models_have_one_first_sentence():
    rng = np.random.default_rng(3)
    frames = []
    for number, over in enumerate((0.05, 0.2, 0.3, 0.0)):
        said = rng.uniform(0.6, 0.95, 800)
        right = rng.random(800) < said - over
        frames.append(
            pl.DataFrame({"confidence": said, "correct": right.astype(int)}).with_columns(
                model=pl.lit(f"m{number}"), question_id=pl.int_range(800)
            )
        )
    first = cal.audit(pl.concat(frames), resamples=20)["claims"][0]
    assert first["id"] == "audit.models_over_confident"
    assert first["text"].startswith("3 of 4 models say more than they know, by ")
    assert re.search(
        r"go from \S+ points? \(m3, 95 % interval .*\) to \S+ points \(m2, 95 % interval",
        first["text"],
    )


def test_the_best_of_models_that_may_be_alike_is_not_named():
    rng = np.random.default_rng(8)
    said = rng.uniform(0.6, 0.95, (4, 300))
    table = pl.DataFrame(
        {
            "confidence": said.ravel(),
            "correct": (rng.random((4, 300)) < said - 0.2).ravel().astype(int),
            "model": np.repeat(["a", "b", "c", "d"], 300),
            "question_id": np.tile(np.arange(300), 4),
        }
    )
    first = cal.audit(table, resamples=20)["claims"][0]
    assert first["text"].startswith("All 4 models say more than they know")
    assert "go from" not in first["text"]


def test_a_step_that_cannot_succeed_is_not_offered():
    rng = np.random.default_rng(4)
    hopeless = cal.audit(rng.uniform(0.8, 1, 500), rng.random(500) < 0.01, resamples=20)
    assert "decide" not in hopeless["next"]["command"]
    said = np.repeat([0.99, 0.9], 300)
    right = np.r_[np.ones(297), np.zeros(3), rng.random(300) < 0.5]
    able = cal.audit(said, right, resamples=20)
    assert "decide" in able["next"]["command"]
