"""Evaluation by number of right answers and on mixes."""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from calibrant.answers.confidence import Question, class_mass, score_table, table_of
from calibrant.bench.evaluate import bench_evaluate
from calibrant.bench.macro import (
    knowledge_coverage,
    leaves,
    macro_auroc,
    macro_mean,
    mixes_of,
    spearman,
)
from calibrant.bench.multi_answer import evaluate_multi_answer
from calibrant.bench.significance import compare_aurocs
from calibrant.bench.thresholds import (
    development_part,
    mass_grid,
    mass_histogram,
    tune_aggregation,
    tune_scores,
)
from calibrant.core.errors import InputError


def world(n=600, seed=0):
    """Scores of two methods in two plain domains and Math with two kinds."""
    rng = np.random.default_rng(seed)
    domain = rng.choice(["award", "river", "math", "math"], n)
    subtype = np.where(domain == "math", rng.choice(["prime", "cube"], n), "")
    correct = rng.random(n) < 0.6
    base = {
        "question_id": [f"q{i}" for i in range(n)],
        "model": ["m"] * n,
        "correct": correct.astype(float),
        "k": rng.choice([1, 2, 4, 6], n),
        "domain": domain,
        "subtype": subtype,
    }
    good = 1 / (1 + np.exp(-(correct * 2.0 - 1 + rng.normal(size=n))))
    return pl.concat(
        pl.DataFrame(base).with_columns(method=pl.lit(name), confidence=pl.Series(values))
        for name, values in (("good", good), ("noise", rng.random(n)))
    )


def test_math_is_the_mean_of_its_kinds_and_counts_as_one_domain():
    frame = world().filter(pl.col("method") == "good")
    confidence, correct = frame["confidence"].to_numpy(), frame["correct"].to_numpy()

    def area(*where):
        rows = frame.select(pl.all_horizontal(*where)).to_series().to_numpy()
        return roc_auc_score(correct[rows], confidence[rows])

    kinds = [area(pl.col("subtype") == kind) for kind in ("cube", "prime")]
    plain = [area(pl.col("domain") == name) for name in ("award", "river")]
    expected = np.mean([*plain, np.mean(kinds)])
    found = macro_auroc(confidence, correct, leaves(frame["domain"], frame["subtype"]))
    assert found.estimate.value == pytest.approx(expected, abs=1e-12)
    assert found.estimate.low < expected < found.estimate.high


def test_the_document_holds_the_same_numbers_as_direct_computation():
    frame = world()
    document = evaluate_multi_answer(frame, reference="good")
    [good, noise] = document["results"]
    rows = frame.filter(pl.col("method") == "good", pl.col("k").is_in([1, 2]))
    pair = rows["confidence"].to_numpy(), rows["correct"].to_numpy()
    expected = macro_auroc(*pair, leaves(rows["domain"]))
    by_kind = macro_auroc(*pair, leaves(rows["domain"], rows["subtype"]))
    assert good["mixes"][1]["auroc_math_by_kind"] == by_kind.estimate
    assert document["mixes"] == [[1], [1, 2], [1, 2, 4], [1, 2, 4, 6]]
    assert good["mixes"][1]["auroc"] == expected.estimate
    ones = rows.filter(pl.col("k") == 1)
    by_part = ones.group_by("domain", "subtype").agg(pl.col("correct").mean())
    accuracy = by_part.group_by("domain").agg(pl.col("correct").mean())["correct"].mean()
    assert good["by_k"][0]["accuracy"].value == pytest.approx(accuracy)
    assert noise["significance"][-1]["p"] < 0.01
    assert noise["significance"][-1]["difference"].value > 0
    assert good["significance"] == []


def test_two_methods_are_compared_on_one_outcome_per_question():
    """The other method is about other answers: its own grades flatter it, the same do not."""
    frame = world()
    noise = frame.filter(pl.col("method") == "noise")
    flattered = noise.with_columns(correct=(pl.col("confidence") > 0.5).cast(pl.Float64))
    both = pl.concat([frame.filter(pl.col("method") == "good"), flattered])
    test = evaluate_multi_answer(both, reference="good")["results"][1]["significance"][-1]
    fair = evaluate_multi_answer(frame, reference="good")["results"][1]["significance"][-1]
    assert test["difference"] == fair["difference"]
    assert test["difference"].value > 0.2
    assert test["own_difference"].value < -0.2
    changed = (flattered["correct"] != noise["correct"]).sum()
    assert test["outcomes_differ"] == changed > 100
    assert fair["outcomes_differ"] == 0


def test_a_part_without_wrong_answers_is_left_out_and_named():
    found = macro_auroc(
        np.array([0.9, 0.2, 0.7, 0.6]), np.array([1.0, 0.0, 1.0, 1.0]), leaves(["a", "a", "b", "b"])
    )
    assert (found.estimate.value, found.left_out) == (1.0, ("b",))
    nothing = macro_auroc(np.ones(2), np.ones(2), leaves(["a", "a"]))
    assert math.isnan(nothing.estimate.value)


def test_intervals_of_the_macro_auroc_cover_the_truth():
    truth = stats.norm.cdf(1 / math.sqrt(2))  # shift 1, unit noise on both sides
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        domain = np.repeat(["a", "b", "c"], [40, 60, 150])
        correct = (rng.random(250) < 0.5).astype(float)
        confidence = correct + rng.normal(size=250)
        estimate = macro_auroc(confidence, correct, leaves(domain)).estimate
        covered += estimate.low <= truth <= estimate.high
    assert 0.91 <= covered / 200 <= 0.99


def test_intervals_hold_where_right_answers_are_rare():
    truth = stats.norm.cdf(1 / math.sqrt(2))
    covered = tried = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        correct = (rng.random(120) < 0.07).astype(float)
        found = macro_auroc(
            correct + rng.normal(size=120), correct, leaves(np.repeat(["a", "b", "c", "d"], 30))
        )
        if not math.isnan(found.estimate.value):
            tried += 1
            covered += found.estimate.low <= truth <= found.estimate.high
    assert tried > 250
    assert covered / tried >= 0.93


def test_a_part_of_one_question_takes_the_spread_of_the_others():
    values = np.array([0.2, 0.4, 0.6, 0.8, 0.9])
    found = macro_mean(values, leaves(["a"] * 4 + ["b"])).estimate
    spread = values[:4].std(ddof=1)
    error = math.sqrt((0.5 * spread / 2) ** 2 + (0.5 * spread) ** 2)
    half = stats.t.ppf(0.975, 4) * error
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))


def test_the_test_never_draws_more_questions_than_there_are():
    rng = np.random.default_rng(0)
    correct = (rng.random(80) < 0.5).astype(float)
    pair = ((correct + rng.normal(size=80), correct), (rng.normal(size=80), correct))
    limited = compare_aurocs(*pair, leaves(["a"] * 80), items=1_000, rng=3)
    assert limited.items == 80
    assert limited == compare_aurocs(*pair, leaves(["a"] * 80), items=None, rng=3)


def test_the_test_holds_its_level_and_finds_real_differences():
    rejected = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        correct = (rng.random(300) < 0.5).astype(float)
        pair = [correct + 1.5 * rng.normal(size=300) for _ in range(2)]
        test = compare_aurocs(
            (pair[0], correct), (pair[1], correct), leaves(["a"] * 300),
            draws=200, items=None, rng=seed,
        )  # fmt: skip
        rejected += test.p < 0.05
    assert rejected / 120 <= 0.11
    rng = np.random.default_rng(1)
    correct = (rng.random(2_000) < 0.5).astype(float)
    better, worse = correct + rng.normal(size=2_000), correct + 2 * rng.normal(size=2_000)
    test = compare_aurocs((better, correct), (worse, correct), leaves(["a"] * 2_000))
    assert test.p == pytest.approx(2 / 1_001)
    assert test.difference.low > 0
    back = compare_aurocs((worse, correct), (better, correct), leaves(["a"] * 2_000))
    assert back.difference.value == pytest.approx(-test.difference.value)


def test_a_resampled_auroc_is_that_of_the_resampled_rows():
    from calibrant.bench.significance import _resampled_areas, _times_taken

    rng = np.random.default_rng(0)
    score, correct = rng.integers(5, size=50) / 4, (rng.random(50) < 0.5).astype(float)
    taken = rng.integers(50, size=(20, 30))
    areas = _resampled_areas(score, correct, _times_taken(taken, 50))
    expected = [roc_auc_score(correct[row], score[row]) for row in taken]
    np.testing.assert_allclose(areas, expected)


def test_knowledge_coverage_counts_meanings_with_a_tenth_of_the_mass():
    units = ["q"] * 20 + ["r"] * 10
    classes = [0] * 15 + [1] * 2 + [2] * 2 + [-1] + [0] * 10
    names, found = knowledge_coverage(units, classes)
    assert dict(zip(names, found, strict=True)) == {"q": 3, "r": 1}
    _, by_mass = knowledge_coverage(["q"] * 3, [0, 1, 1], [0.5, 0.06, 0.03])
    assert by_mass.tolist() == [1]


def test_spearman_agrees_with_scipy_and_is_undefined_for_constants():
    rng = np.random.default_rng(0)
    a = rng.normal(size=50)
    b = a + rng.normal(size=50)
    found = spearman(a, b)
    assert found.value == pytest.approx(stats.spearmanr(a, b).statistic)
    assert found.low < found.value < found.high
    assert math.isnan(spearman(a, np.ones(50)).value)


def test_the_development_part_is_a_fifth_of_every_domain_under_every_method():
    questions = [f"q{i}" for i in range(100)] * 2
    domains = (["a"] * 60 + ["b"] * 40) * 2
    part = development_part(questions, domains, seed=4)
    assert part[:60].sum() == 12
    assert part[60:100].sum() == 8
    assert part[:100].tolist() == part[100:].tolist()


def test_tuning_finds_the_threshold_that_ranks_best():
    rng = np.random.default_rng(0)
    correct = (rng.random(500) < 0.5).astype(float)
    signal, noise = correct + rng.normal(size=500), rng.normal(size=500)
    ids = [str(i) for i in range(500)]
    own = {"question_id": ids, "model": "m", "method": "sca", "domain": "a", "k": 1}
    frame = pl.concat(
        pl.DataFrame(
            {**own, "confidence": signal if tau == 0.2 else noise, "correct": correct}
        ).with_columns(tau=pl.lit(tau))
        for tau in (0.0, 0.1, 0.2, 0.3)
    )
    found = tune_scores(frame)
    part = development_part(ids, ["a"] * 500)
    assert found["threshold"] == 0.2
    rest = found["mixes"][-1]["tuned"]
    assert rest.n == 400
    assert rest.value == pytest.approx(roc_auc_score(correct[~part], signal[~part]))


def simulated_model(per_k=150, seed=0):
    """A model with broad knowledge: it knows each right answer with the question's own chance.

    Known answers are about equally probable; what is left spreads over many wrong answers.
    Every text is one token with its true log-prob.
    """
    rng = np.random.default_rng(seed)
    questions, rows = [], []
    for k in (1, 2, 4, 6):
        for index in range(per_k):
            known = rng.random(k) < rng.beta(3.0, 1.0)
            right = np.where(known, rng.gamma(5.0, size=k), 1e-3)
            chance = np.concatenate([right, 2 * rng.dirichlet(np.ones(20))])
            chance /= chance.sum()
            drawn = rng.choice(chance.size, size=20, p=chance)
            rows.append((f"{k}-{index}", k))
            questions.append(
                Question(
                    classes=drawn.tolist(),
                    correct=(drawn < k).tolist(),
                    answers=[str(one) for one in drawn],
                    token_logprobs=[[math.log(chance[one])] for one in drawn],
                    question_id=f"{k}-{index}",
                    model="broad",
                )
            )
    frame = pl.DataFrame(rows, schema=["question_id", "k"], orient="row")
    return table_of(questions), frame.with_columns(domain=pl.lit("award"))


def test_broad_knowledge_more_right_answers_less_consistency_and_sca_keeps_its_ranking():
    table, questions = simulated_model()
    scores = score_table(table, methods=["consistency", "sca"]).scores
    frame = scores.join(questions, on="question_id")
    document = evaluate_multi_answer(frame, ranking_methods={"sca"})
    found = {entry["method"]: entry for entry in document["results"]}
    accuracy = [part["accuracy"].value for part in found["consistency"]["by_k"]]
    confidence = [part["confidence"].value for part in found["consistency"]["by_k"]]
    assert accuracy[-1] > accuracy[0]
    assert confidence == sorted(confidence, reverse=True)
    assert found["consistency"]["change"]["confidence"].high < 0
    widest = {name: entry["mixes"][-1]["auroc"].value for name, entry in found.items()}
    assert widest["sca"] > widest["consistency"] + 0.02
    assert found["consistency"]["significance"][-1]["p"] < 0.05
    assert found["sca"]["mixes"][-1]["ece"] is None


def test_golden_snca_and_sfca_with_tau_zero_are_constant():
    table, questions = simulated_model(per_k=30)
    for name in ("snca", "sfca"):
        scores = score_table(table, methods=[name], tau=0.0).scores.join(
            questions, on="question_id"
        )
        rounded = scores.with_columns(pl.col("confidence").round(12))
        entry = evaluate_multi_answer(rounded)["results"][0]
        assert [part["auroc"].value for part in entry["mixes"]] == [0.5] * 4


def test_thresholds_are_tuned_on_one_part_and_reported_on_the_other():
    table, questions = simulated_model()
    found = tune_aggregation(table, questions, methods=["sca", "sfca"])
    assert [entry["method"] for entry in found] == ["sca", "sfca"]
    for entry in found:
        assert entry["development_questions"] == 120
        assert entry["mixes"][-1]["tuned"].n == 480
        best = max(point["auroc"] for point in entry["curve"])
        assert entry["development"].value == best
    with pytest.raises(InputError, match="no threshold"):
        tune_aggregation(table, questions, methods=["consistency"])


def test_too_few_questions_to_tune_on_do_not_cost_the_evaluation():
    table, questions = simulated_model(per_k=1)
    (entry,) = tune_aggregation(table, questions, methods=["sca"])
    assert entry["threshold"] is None
    assert "too few questions" in entry["reason"]


def test_the_verb_joins_questions_and_is_deterministic():
    frame = world()
    questions = frame.select("question_id", "k", "domain", "subtype").unique(maintain_order=True)
    bare = frame.drop("k", "domain", "subtype")
    first, again = (bench_evaluate(bare, questions=questions, resamples=200) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert first.kind == "multi_answer"
    assert "AUROC" in str(first)
    with pytest.raises(InputError, match="'k'"):
        bench_evaluate(bare)


def test_mixes_grow_by_one_number_of_answers():
    assert mixes_of([1, 6, 2, 2, 4]) == [[1], [1, 2], [1, 2, 4], [1, 2, 4, 6]]


def test_a_question_probed_once_still_has_a_document():
    """One row per k is too little for intervals, and says so instead of failing."""
    frame = pl.DataFrame(
        {"question_id": ["a", "b"], "model": ["m"] * 2, "method": ["verb"] * 2,
         "confidence": [0.5, 0.7], "correct": [1.0, 0.0], "k": [1, 2], "domain": ["x", "x"]}
    )  # fmt: skip
    entry = evaluate_multi_answer(frame)["results"][0]
    assert math.isnan(entry["by_k"][0]["accuracy"].low)
    assert math.isnan(entry["mixes"][0]["auroc"].value)


def test_deepseek_v3_accuracy_rises_and_consistency_falls_with_k(shared_data):
    recorded = pl.read_parquet(shared_data / "mace" / "deepseek_v3.parquet")
    kind = pl.col("question").str.extract(r"Name an? (\w+) number").fill_null("")
    base = recorded.select(
        pl.col("id").alias("question_id"), "k", "domain", kind.alias("subtype"),
        pl.lit("deepseek-v3").alias("model"), pl.col("greedy_correct").cast(float).alias("correct"),
        "consistency_conf", "verb_conf",
    )  # fmt: skip
    frame = pl.concat(
        base.with_columns(method=pl.lit(name), confidence=pl.col(f"{name}_conf")).drop(
            "consistency_conf", "verb_conf"
        )
        for name in ("consistency", "verb")
    )
    result = bench_evaluate(frame, reference="consistency", on_invalid="drop")
    consistency, verb = result["results"]
    means = [part["confidence"]["value"] for part in consistency["by_k"]]
    assert means == sorted(means, reverse=True)
    assert consistency["change"]["accuracy"]["low"] > 0
    assert consistency["change"]["confidence"]["high"] < 0
    assert verb["change"]["confidence"]["value"] > -0.01
    areas = [part["auroc"]["value"] for part in consistency["mixes"]]
    assert areas == sorted(areas, reverse=True)


def test_thresholds_fit_the_masses_and_the_histogram_counts_every_meaning():
    table, questions = simulated_model(per_k=40)
    (entry,) = tune_aggregation(table, questions, methods=["sca"])
    tried = [point["threshold"] for point in entry["curve"]]
    assert tried[0] == 0.0
    assert tried[-1] == pytest.approx(mass_grid(table)[-1])
    assert tried[-1] > 1.0, "sums over draws exceed 1, and so do thresholds that fit them"
    (found,) = mass_histogram(table)
    classes = table.samples.classes
    assert sum(found["counts"]) == int(classes.answered.sum())
    above = class_mass(table.samples)[classes.answered] > 1.0
    assert found["counts"][-1] == int(above.sum()) > 0
    right = classes.correct[classes.answered] == 1
    assert sum(found["right"]) == int(right.sum()) > 0
    assert found["right"][-1] == int((above & right).sum())


def test_scoring_choices_of_the_verb_score_the_draws_again(tmp_path):
    table, questions = simulated_model(per_k=20)
    scores = score_table(table, methods=["sfca", "consistency"]).scores.join(
        questions, on="question_id"
    )
    with pytest.raises(InputError, match="how draws are scored"):
        bench_evaluate(scores, reference="consistency", tau=0.3, tune=[])
    rows = [
        {"question_id": table.question_id[int(unit)], "model": "broad", "draw": i, "class_id": c,
         "correct": bool(right), "purpose": "answer", "text": str(c)}
        for i, (unit, c, right) in enumerate(
            zip(table.samples.unit, table.samples.class_id, table.samples.correct, strict=True)
        )
    ]  # fmt: skip
    draws = pl.DataFrame(rows)
    plain, at = (
        bench_evaluate(scores, draws=draws, reference="consistency", tau=tau, tune=[])
        for tau in (None, 0.3)
    )
    mean = {
        found["settings"]["scoring"]["tau"]: found["results"][0]["by_k"][0]["confidence"]["value"]
        for found in (plain, at)
    }
    assert mean[0.3] < mean[None]


def two_models(drop, n=1200, seed=0):
    """Two models on the same questions; the second loses `drop` more confidence from k=1 to 6."""
    rng = np.random.default_rng(seed)
    k, domain = rng.choice([1, 6], n), rng.choice(["award", "river"], n)
    shared = rng.normal(size=n)
    frames = []
    for model, extra in (("small", 0.0), ("large", drop)):
        said = 0.6 + 0.1 * shared + 0.05 * rng.normal(size=n) - (0.05 + extra) * (k == 6)
        frames.append(
            pl.DataFrame(
                {
                    "question_id": [f"q{i}" for i in range(n)],
                    "model": model,
                    "method": "consistency",
                    "confidence": said.clip(0, 1),
                    "correct": (rng.random(n) < 0.6).astype(float),
                    "k": k,
                    "domain": domain,
                }
            )
        )
    return pl.concat(frames)


def test_models_are_tested_against_each_other_question_by_question():
    (test,) = evaluate_multi_answer(two_models(0.1))["between_models"]
    assert (test["a"], test["b"], test["quantity"]) == ("small", "large", "confidence")
    assert test["difference"].low < 0.1 < test["difference"].high
    assert test["change_a"] - test["change_b"] == pytest.approx(test["difference"].value)
    # Questions are shared, so their spread (0.1) does not enter: only 0.05 of each model does.
    width = test["difference"].high - test["difference"].low
    assert width == pytest.approx(2 * 1.96 * math.sqrt(2 * 0.05**2 * 2 / 600), rel=0.15)
    assert test["p_adjusted"] < 1e-6


def test_models_that_change_alike_are_rarely_told_apart():
    found = [
        evaluate_multi_answer(two_models(0.0, 200, seed), draws=100)["between_models"][0]["p_value"]
        for seed in range(100)
    ]
    assert sum(p <= 0.05 for p in found) <= 12


def test_known_answers_are_compared_too():
    frame = two_models(0.0)
    coverage = frame.select(
        "question_id",
        "model",
        coverage=1 + (pl.col("k") == 6) * pl.when(pl.col("model") == "large").then(2).otherwise(1)
        + pl.int_range(pl.len()) % 7 % 2,
    )  # fmt: skip
    tests = evaluate_multi_answer(frame, coverage=coverage)["between_models"]
    (known,) = [test for test in tests if test["quantity"] == "known answers"]
    assert known["difference"].value == pytest.approx(-1.0, abs=0.2)


def test_what_a_test_could_have_shown_is_told():
    document = evaluate_multi_answer(world(), reference="good")
    (tests,) = [e["significance"] for e in document["results"] if e["method"] == "noise"]
    z = stats.norm.ppf(1 - 0.04 / (2 * document["multiplicity"]["tests"])) + stats.norm.ppf(0.8)
    assert tests[-1]["detectable"] == pytest.approx(z * tests[-1]["error"])


def test_any_table_is_evaluated_by_the_names_of_its_columns():
    wide = (
        world()
        .pivot("method", index=["question_id", "correct", "k", "domain"], values="confidence")
        .rename({"correct": "graded"})
    )
    found = bench_evaluate(wide, confidence="good,noise", correct="graded", reference="noise")
    assert [entry["method"] for entry in found["results"]] == ["good", "noise"]


def test_a_part_with_one_question_does_not_end_the_comparison_of_models():
    frame = two_models(0.1)
    lonely = frame.group_by("model", maintain_order=True).head(1).select(frame.columns)
    frame = pl.concat(
        [frame, lonely.with_columns(question_id=pl.lit("alone"), domain=pl.lit("rare"))]
    )
    (test,) = evaluate_multi_answer(frame, draws=100)["between_models"]
    assert test["difference"].low < 0.1 < test["difference"].high
