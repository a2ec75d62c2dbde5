"""Real models: matrix, league and sentences agree, and accuracies are those of all grades."""

import polars as pl
import pytest

import calibrant as cal

IDS = {
    "better": "compare.better_calibrated",
    "only more accurate": "compare.only_more_accurate",
    "more accurate, alike": "compare.more_accurate_alike",
    "reversal": "compare.reversal",
    "equivalent": "compare.equivalent",
    "depends": "compare.depends",
    "undecided": "compare.better_calibrated",
}
FILES = {
    "mmlu_pro_16_models": {"confidence": "logit_perplexity_confidence"},
    "mcq_5_benchmarks_7_models": {},
}


@pytest.fixture(scope="module", params=FILES)
def compared(request, shared_data):
    frame = pl.read_parquet(shared_data / "scores" / f"{request.param}.parquet")
    if "prompt" in frame.columns:
        frame = frame.filter(pl.col("prompt") == frame["prompt"][0]).with_columns(
            question_id=pl.concat_str("dataset", "question_id", separator=":")
        )
    frame = frame.filter(pl.col("correct").is_not_null())
    kept = frame["question_id"].unique().sort().head(2_000)
    frame = frame.filter(pl.col("question_id").is_in(kept.implode()))
    options = {"resamples": 60, "on_invalid": "drop", "method": None, **FILES[request.param]}
    return frame, cal.compare(frame, **options)


def test_no_pair_has_a_matrix_a_league_and_a_sentence_that_disagree(compared):
    _, document = compared
    (league,) = document["league"]
    place = {row["model"]: row for row in league["entries"]}
    matrix = league["win_matrix"]
    cell = {
        (a, b): matrix["table"][i][j]
        for i, a in enumerate(matrix["models"])
        for j, b in enumerate(matrix["models"])
    }
    claims = {(c["subject"].get("a"), c["subject"].get("b"), c["id"]) for c in document["claims"]}
    texts = {claim["text"] for claim in document["claims"]}
    assert len(document["pairs"]) == len(place) * (len(place) - 1) // 2
    for pair in document["pairs"]:
        a, b, word = pair["a"], pair["b"], pair["verdict"]
        assert (a, b, IDS[word]) in claims
        assert pair["text"] in texts
        beats = b in place[a]["beats"] or a in place[b]["beats"]
        assert beats == (word == "better") == (not pair["tie"])
        if word == "better":
            loser = b if pair["winner"] == a else a
            assert cell[pair["winner"], loser] == "better"
            assert cell[loser, pair["winner"]] == "worse"
            if place[loser]["tier"] and place[pair["winner"]]["tier"]:
                assert place[loser]["tier"] > 1
        else:
            assert "better" not in (cell[a, b], cell[b, a])


def test_accuracies_are_those_of_all_graded_answers(compared):
    frame, document = compared
    own = dict(frame.group_by("model").agg(pl.col("correct").cast(float).mean()).iter_rows())
    for entry in document["results"]:
        assert entry["accuracy"]["value"] == pytest.approx(own[entry["model"]], abs=1e-9)


def test_the_lead_is_told_of_the_models_that_have_a_place(compared):
    """A model without a place may be better calibrated than one that leads."""
    _, document = compared
    (league,) = document["league"]
    placed = [row for row in league["entries"] if row["tier"] is not None]
    (lead,) = [claim for claim in document["claims"] if claim["id"] == "compare.leads"]
    partly = len(placed) < len(league["entries"])
    assert (
        f"the {len(placed)} of {len(league['entries'])} models with a place" in lead["text"]
    ) == (partly)
    for row in placed:
        if row["model"] in lead["subject"]["models"]:
            assert not {other["model"] for other in placed} & {*row["beaten_by"]}
