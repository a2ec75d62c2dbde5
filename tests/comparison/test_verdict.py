"""The verdict: every footing, and claims that hold in worlds with a known truth."""

import importlib.util
import sys

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.comparison.compare import compare_models
from calibrant.comparison.decision import MARGIN, decide_pairs
from calibrant.comparison.questions import resample_counts
from calibrant.comparison.statements import CLIP, NEAR_CLIP, shift_confidence
from calibrant.core.errors import InputError
from comparison.worlds import block_of, calibrated, evidence_of, pair_of, table_of, views_of


def mass_bins(c, bins=10):
    """Equal mass, ties together, as the recipe writes it."""
    _, inverse, rows = np.unique(c, return_inverse=True, return_counts=True)
    middle = (np.cumsum(rows) - rows / 2) / c.size
    number = np.minimum((middle * bins).astype(int), bins - 1)
    return np.unique(number, return_inverse=True)[1][inverse]


def shifted_ece(c, z, target, *, clip=CLIP, place=None):
    """The error at a common accuracy, row by row; without a clip statements stay as they are."""
    a = z.mean()
    moved = c
    if target != a and clip:
        moved = expit(logit(np.clip(c, clip, 1 - clip)) + logit(target) - logit(a))
    residual = target / a * z * (moved - 1) + (1 - target) / (1 - a) * (1 - z) * moved
    place = mass_bins(c) if place is None else place
    return np.abs(np.bincount(place, residual)).sum() / c.size


@pytest.mark.parametrize("graded", [False, True])
def test_every_footing_agrees_with_plain_computation(graded):
    rng = np.random.default_rng(0)
    first, second = calibrated(0.0, 500, rng), calibrated(1.4, 500, rng, moved=0.7)
    if graded:
        first = first[0], rng.choice([0.0, 0.3, 1.0], 500)
    first[0][:40] = rng.choice([0.0, 1.0], 40)
    gaps = evidence_of(pair_of(first, second)).gaps
    (c, z), (d, y) = first, second
    a, b = z.mean(), y.mean()
    own = shifted_ece(c, z, a), shifted_ece(d, y, b)
    wanted = {
        "raw": own[0] - own[1],
        "os_a": own[0] - shifted_ece(d, y, a),
        "os_b": shifted_ece(c, z, b) - own[1],
        "os_a_near": own[0] - shifted_ece(d, y, a, clip=NEAR_CLIP),
        "os_b_near": shifted_ece(c, z, b, clip=NEAR_CLIP) - own[1],
        "sda": (own[0] - shifted_ece(d, y, a, clip=0) + shifted_ece(c, z, b, clip=0) - own[1]) / 2,
    }
    for name, value in wanted.items():
        assert gaps[name].value == pytest.approx(value, abs=1e-9), name
    assert abs(gaps["os_b"].value - gaps["os_b_near"].value) > 1e-4


@pytest.mark.parametrize("lacks", [60, 400])
def test_footings_of_a_pair_are_those_of_its_own_questions(lacks):
    """Bins are those of all answers of a model; sums and accuracies those of the pair."""
    rng = np.random.default_rng(6)
    first, second = calibrated(0.0, 500, rng), calibrated(1.4, 500, rng, moved=0.7)
    block = pair_of(first, second)
    block.confidence[1, :lacks] = np.nan
    _, views = views_of(block)
    c, z, place = first[0][lacks:], first[1][lacks:], mass_bins(first[0])[lacks:]
    goal = second[1][lacks:].mean()
    found = views[0][1]
    assert found.shifted.error[0] == pytest.approx(shifted_ece(c, z, goal, place=place), abs=1e-9)
    assert found.mixed[0] == pytest.approx(shifted_ece(c, z, goal, clip=0, place=place), abs=1e-9)
    raw = np.abs(np.bincount(place, c - z)).sum() / c.size
    assert found.raw.error[0] == pytest.approx(raw, abs=1e-12)


def test_many_partners_get_what_each_would_alone():
    rng = np.random.default_rng(2)
    models = [calibrated(odds, 300, rng, moved=0.4) for odds in np.linspace(-2, 3, 9)]
    c, z = (np.stack(part) for part in zip(*models, strict=True))
    _, views = views_of(block_of(c, z), resamples=20)
    for a, b in ((0, 8), (8, 0), (4, 5)):
        wanted = shifted_ece(c[a], z[a], z[b].mean())
        assert views[a][b].shifted.error[0] == pytest.approx(wanted, abs=1e-8)
        _, alone = views_of(block_of(c[[a, b]], z[[a, b]]), resamples=20)
        np.testing.assert_allclose(views[a][b].shifted.error, alone[0][1].shifted.error, atol=1e-4)


def test_resamples_are_shifted_to_their_own_accuracy():
    """The linear shift of a resample is the exact one up to 0.002."""
    rng = np.random.default_rng(1)
    first, second = calibrated(0.0, 600, rng), calibrated(1.4, 600, rng)
    counts = resample_counts(600, 20, 5).counts
    _, views = views_of(pair_of(first, second), resamples=20, rng=5)
    place, z = mass_bins(first[0]), first[1]
    for draw in range(1, 21):
        k = counts[:, draw]
        a, goal = (z @ k) / 600, (second[1] @ k) / 600
        moved = shift_confidence(first[0], float(logit(goal) - logit(a)))
        residual = k * (goal / a * z * (moved - 1) + (1 - goal) / (1 - a) * (1 - z) * moved)
        exact = np.abs(np.bincount(place, residual)).sum() / 600
        assert views[0][1].shifted.error[draw] == pytest.approx(exact, abs=2e-3)


@pytest.fixture(scope="module")
def recipe(shared_data):
    """The scripts that the rule was validated with."""
    folder = shared_data.parent / "recipes" / "fair_comparison"
    if not folder.is_dir():
        pytest.skip(f"no scripts of the rule in {folder}")
    found = {}
    for name in ("old_worlds", "worlds", "engine", "decide"):
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        found[name] = importlib.util.module_from_spec(spec)
        # One of them imports another by its plain name.
        known, sys.modules[name] = sys.modules.get(name), found[name]
        spec.loader.exec_module(found[name])
        if known is not None:
            sys.modules[name] = known
    yield found
    for name, module in found.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]


NAMES = {"a": "os_a", "b": "os_b", "a'": "os_a_near", "b'": "os_b_near", "SDA": "sda", "SOS": "sos"}


@pytest.mark.parametrize("place", range(0, 52, 3))
def test_numbers_and_verdict_are_those_of_the_recipe(recipe, place):
    world = recipe["worlds"].NAMES[place]
    n, draws = 500, 60
    ca, za, _, cb, zb, _ = recipe["worlds"].gen(world, np.random.default_rng(place), n)
    counts = resample_counts(n, draws, 5).counts
    engine = recipe["engine"]
    wanted = dict(zip(engine.FIELDS, engine.analyse(ca, za, cb, zb, C=counts), strict=True))
    found = evidence_of(block_of([ca, cb], [za, zb]), resamples=draws, rng=5)
    for theirs, ours in {"raw": "raw", **NAMES}.items():
        gap = found.gaps[ours]
        assert gap.value == pytest.approx(wanted[f"{theirs}|v"], abs=1e-5), world
        assert gap.sd == pytest.approx(wanted[f"{theirs}|sd"], abs=5e-5), world
        assert gap.bias == pytest.approx(wanted[f"{theirs}|b"], abs=1e-4), world
    for theirs in ("raw", "a", "b"):
        ours = NAMES.get(theirs, theirs)
        assert found.squares[ours] == pytest.approx(wanted[f"{theirs}|Z"], rel=0.02, abs=0.05)
        assert found.rms[ours] == pytest.approx(wanted[f"{theirs}|rms"], abs=1e-4)
    bound = max(wanted[f"{name}|eq"] for name in ("raw", "a", "b", "a'", "b'"))
    if bound < MARGIN:
        assert found.bound == pytest.approx(bound, abs=1e-4)
    else:
        assert found.bound >= MARGIN
    if np.isfinite([wanted["W0hi"], wanted["W1hi"]]).all():
        assert found.laws_high == pytest.approx((wanted["W0hi"], wanted["W1hi"]), abs=1e-4)
    assert found.clip == pytest.approx(wanted["clip|lo"], abs=1e-4)
    (decision,) = decide_pairs([found])
    word = decision.word + (f": {decision.depends_on}" if decision.depends_on else "")
    assert (word, decision.winner) == recipe["decide"].decide(wanted), world


def verdicts(make, runs, n=600, resamples=100):
    found = []
    for run in range(runs):
        rng = np.random.default_rng([run, n])
        evidence = evidence_of(make(rng, n), resamples=resamples, rng=rng)
        (decision,) = decide_pairs([evidence])
        found.append((decision.word, decision.winner))
    return found


def same_law(rng, n, accuracies, *, right=(8, 2), wrong=(5, 3)):
    """Confidence depends on the outcome alone, and alike for both."""
    models = []
    for accuracy in accuracies:
        z = (rng.random(n) < accuracy).astype(float)
        models.append((np.where(z == 1, rng.beta(*right, n), rng.beta(*wrong, n)), z))
    return pair_of(*models)


def test_two_calibrated_models_of_different_accuracy_are_never_called_better():
    """The distribution-aligned view prefers the weak model here in every run."""

    def world(rng, n):
        return pair_of(calibrated(0.0, n, rng), calibrated(1.5, n, rng))

    words = ("undecided", "only more accurate", "more accurate, alike")
    assert all(word in words for word, _ in verdicts(world, 20))
    assert verdicts(world, 1, n=6_000) == [("more accurate, alike", 1)]
    _, views = views_of(world(np.random.default_rng(0), 2_000))
    assert views[0][1].paper["da"].ece[0] + 0.05 < views[1][0].paper["da"].ece[0]


def test_models_that_state_alike_given_the_outcome_differ_in_accuracy_alone():
    """The odds-shifted views call the strong model better here in every run."""
    found = verdicts(lambda rng, n: same_law(rng, n, (0.5, 0.75)), 8, n=1_000)
    # 'Only' where some view shows the weak one ahead; alike in either case.
    assert sum("more accurate" in word and winner == 1 for word, winner in found) >= 7
    evidence = evidence_of(same_law(np.random.default_rng(0), 2_000, (0.5, 0.75)))
    assert evidence.gaps["os_a"].side() == evidence.gaps["os_b"].side() == 1


def test_the_over_confident_model_loses_whichever_is_stronger():
    def strong_over(rng, n):
        return pair_of(calibrated(0.0, n, rng), calibrated(1.5, n, rng, moved=1.5))

    def weak_over(rng, n):
        return pair_of(calibrated(0.0, n, rng, moved=1.5), calibrated(1.5, n, rng))

    assert verdicts(strong_over, 8, n=1_000).count(("better", -1)) >= 7
    assert verdicts(weak_over, 8, n=1_000).count(("better", 1)) >= 7


def test_equivalence_needs_many_questions_and_a_small_difference():
    rng = np.random.default_rng(4)
    hard = rng.normal(0, 1.2, 6_000)
    close = pair_of(*(calibrated(0.5, 6_000, rng, difficulty=hard) for _ in range(2)))
    (decision,) = decide_pairs([evidence_of(close, resamples=200)])
    assert decision.word == "equivalent"
    few = block_of(close.confidence[:, :200], close.correct[:, :200])
    (decision,) = decide_pairs([evidence_of(few, resamples=200)])
    assert decision.word == "undecided"


def reversal(rng, n):
    """The weak model is a little over-confident; the strong one always says 99 %."""
    weak = calibrated(-0.55, n, rng, moved=1.1)
    return pair_of(weak, (np.full(n, 0.99), (rng.random(n) < 0.85).astype(float)))


def test_a_model_that_looks_better_may_be_worse_at_equal_accuracy():
    found = verdicts(reversal, 4, n=8_000)
    assert found.count(("reversal", 1)) >= 3
    block = reversal(np.random.default_rng(1), 8_000)
    (pair,) = compare_models(table_of(block.confidence, block.correct), resamples=100)["pairs"]
    assert pair["text"].startswith("m1 looks better than m0 on its own answers (by ")
    assert "is worse at equal accuracy" in pair["text"]
    assert pair["tie"] is True


def test_near_certain_statements_are_named_and_no_clip_decides():
    rng = np.random.default_rng(3)
    n = 1_000
    weak = np.clip(0.905 + rng.normal(0, 0.01, n), 0, 1), (rng.random(n) < 0.3).astype(float)
    strong = 1 - 1e-4 * rng.random(n), (rng.random(n) < 0.9).astype(float)
    (decision,) = decide_pairs([evidence_of(pair_of(weak, strong), resamples=120)])
    assert (decision.word, decision.depends_on) == ("depends", "near-certain")


def test_many_pairs_are_corrected_together():
    rng = np.random.default_rng(5)
    pairs = [
        evidence_of(
            pair_of(calibrated(0.0, 350, rng), calibrated(1.5, 350, rng, moved=1.0)), resamples=200
        )
        for _ in range(12)
    ]
    alone = [decide_pairs([pair])[0].word == "better" for pair in pairs]
    together = decide_pairs(pairs)
    assert 0 < sum(d.word == "better" for d in together) < sum(alone)
    assert any(d.alone for d in together)
    least = min(together, key=lambda d: d.p_adjusted)
    assert least.p_adjusted == pytest.approx(min(12 * min(p.p_value for p in pairs), 1))


def test_among_equal_models_a_false_claim_is_rare():
    """Six calibrated models of different accuracy, fifteen pairs: no run names a better one."""
    claimed = 0
    for run in range(8):
        rng = np.random.default_rng([7, run])
        models = [calibrated(odds, 250, rng) for odds in np.linspace(-0.5, 1.5, 6)]
        table = table_of([c for c, _ in models], [z for _, z in models])
        pairs = compare_models(table, resamples=100, rng=rng)["pairs"]
        claimed += any(pair["verdict"] == "better" for pair in pairs)
    assert claimed <= 1


def test_the_sentence_names_both_errors_and_what_is_certain():
    rng = np.random.default_rng(8)
    models = [calibrated(0.0, 900, rng), calibrated(1.5, 900, rng, moved=1.5)]
    document = compare_models(
        table_of([c for c, _ in models], [z for _, z in models]), resamples=200
    )
    (pair,) = document["pairs"]
    assert (pair["verdict"], pair["winner"], pair["tie"]) == ("better", "m0", False)
    assert pair["text"].startswith("m0 is better calibrated than m1, on its own answers (")
    (claim,) = [c for c in document["claims"] if c["id"] == "compare.better_calibrated"]
    assert claim["text"] == pair["text"]
    assert 0 < claim["low"] <= claim["value"] <= claim["high"]


def test_accuracy_counts_answers_without_a_stated_confidence():
    """60 % of the wrong answers of the second model state none: it is no more often right."""
    rng = np.random.default_rng(10)
    first, second = calibrated(0.5, 2_000, rng), calibrated(0.5, 2_000, rng)
    said = np.where((second[1] == 0) & (rng.random(2_000) < 0.6), np.nan, second[0])
    table = pl.concat(
        [
            pl.DataFrame(
                {"question_id": np.arange(2_000), "model": name, "confidence": c, "correct": z}
            )
            for name, c, z in (("a", *first), ("b", said, second[1]))
        ]
    )
    document = compare_models(table, resamples=100)
    (pair,) = document["pairs"]
    assert pair["accuracy_gap"].n == 2_000
    assert pair["accuracy_gap"].value == pytest.approx(first[1].mean() - second[1].mean())
    accuracies = {row["model"]: row["accuracy"].value for row in document["results"]}
    assert accuracies["b"] == pytest.approx(second[1].mean())
    assert pair["n"] == (~np.isnan(said)).sum()
    accurate = [c for c in document["claims"] if c["id"] == "compare.more_accurate"]
    assert [claim["outcome"] for claim in accurate] == ["undecided"]
    assert pair["verdict"] in ("undecided", "depends")
    entry = next(row for row in document["league"]["entries"] if row["model"] == "b")
    assert not entry["placed"]


def test_a_verdict_that_missing_statements_could_overturn_depends_on_them():
    rng = np.random.default_rng(11)
    first, second = calibrated(0.0, 2_000, rng), calibrated(1.5, 2_000, rng, moved=1.5)
    whole = pair_of(first, second)
    (decision,) = decide_pairs([evidence_of(whole, resamples=120)])
    assert decision.word == "better"
    whole.confidence[0, rng.random(2_000) < 0.005] = np.nan
    (decision,) = decide_pairs([evidence_of(whole, resamples=120)])
    assert decision.word == "better"
    whole.confidence[0, rng.random(2_000) < 0.2] = np.nan
    (decision,) = decide_pairs([evidence_of(whole, resamples=120)])
    assert (decision.word, decision.depends_on, decision.by) == ("depends", "missing", "better")


def test_models_with_the_same_answers_are_equivalent():
    rng = np.random.default_rng(9)
    said = rng.beta(4, 2, 1_500)
    table = pl.DataFrame(
        {
            "question_id": list(range(1_500)) * 2,
            "model": ["a"] * 1_500 + ["b"] * 1_500,
            "confidence": np.tile(said, 2),
            "correct": np.tile((rng.random(1_500) < said) * 1, 2),
        }
    )
    texts = {claim["id"]: claim["text"] for claim in cal.compare(table, resamples=200)["claims"]}
    assert texts["compare.equivalent"].startswith("a and b are equally well calibrated within 5")
    assert texts["compare.more_accurate"] == (
        "a and b are right on the same questions: undecided who is more often. "
        "Questions that only one of them gets right would decide."
    )


def test_of_two_models_none_can_be_left_out():
    table = {
        "question_id": list(range(60)) * 2,
        "model": ["a"] * 60 + ["b"] * 60,
        "confidence": [0.7] * 60 + [0.6, 0.8] * 30,
        "correct": [1] * 60 + [0, 1] * 30,
    }
    with pytest.raises(InputError, match="a has accuracy 1") as told:
        cal.compare(table)
    assert "leave this model out" not in str(told.value)
