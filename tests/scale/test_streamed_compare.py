"""A comparison in parts is the comparison in memory, with other draws of the same bootstrap."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.comparison import questions
from calibrant.core.document import dump_document
from calibrant.core.errors import InputError

pytest.importorskip("pyarrow")
OPTIONS = {"resamples": 400, "models": ["large", "medium", "small"]}


def frame(n=6_000, seed=0):
    """Three models on questions in order of difficulty; each lacks some of them."""
    rng = np.random.default_rng(seed)
    hard = np.sort(rng.normal(size=n))
    parts = []
    for name, skill in (("small", 0.2), ("medium", 0.6), ("large", 1.2)):
        chance = 1 / (1 + np.exp(-(skill - hard)))
        parts.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(n),
                    "model": [name] * n,
                    "confidence": np.clip(chance**0.8, 0.001, 0.999),
                    "correct": (rng.random(n) < chance).astype(np.int8),
                    "topic": np.where(hard > 0, "hard", "easy"),
                }
            ).filter(pl.Series(rng.random(n) < 0.97))
        )
    return pl.concat(parts)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.parquet"
    frame().write_parquet(path, row_group_size=1_000)
    return path


@pytest.fixture
def in_parts(monkeypatch):
    """Small tables are streamed, in five parts of three blocks each."""
    monkeypatch.setattr("calibrant.verbs.compare.STREAM_ROWS", 100)
    monkeypatch.setattr("calibrant.comparison.parts.PART_ROWS", 4_000)
    monkeypatch.setattr(questions, "BLOCK_QUESTIONS", 400)


def width(estimate):
    return estimate["high"] - estimate["low"]


def same_estimate(mine, other, *, spread, exact=True):
    # Equal-mass bins of parts have edges to the width of a cell.
    assert mine["value"] == pytest.approx(other["value"], abs=1e-12 if exact else 2e-3)
    assert mine["n"] == other["n"]
    if np.isfinite(width(other)):
        assert width(mine) == pytest.approx(width(other), rel=spread)


def test_every_value_is_that_of_memory_and_every_interval_is_as_wide(table, in_parts):
    streamed = cal.compare(table, by=["topic"], **OPTIONS)
    memory = cal.compare(frame(), by=["topic"], **OPTIONS)
    how = {"way": "streamed", "rows": frame().height, "parts": 5}
    assert streamed["reading"].items() >= how.items()
    assert streamed["reading"]["columns"] == memory["reading"]["columns"]
    assert streamed["settings"] == memory["settings"]
    (file,) = streamed["input"]
    assert (file["path"], file["rows"]) == (str(table), frame().height)
    assert len(file["footer_sha256"]) == 64
    found = {(row["model"], str(row["group"])): row for row in streamed["results"]}
    assert len(found) == 9
    for other in memory["results"]:
        mine = found[(other["model"], str(other["group"]))]
        same_estimate(mine["accuracy"], other["accuracy"], spread=0.25)
        same_estimate(mine["mean_confidence"], other["mean_confidence"], spread=1e-9)
        assert mine["target_curve"]["ece"] == pytest.approx(other["target_curve"]["ece"])
        for view, scores in other["views"].items():
            for metric, estimate in scores.items():
                exact = view in ("raw", "da", "ia")
                same_estimate(mine["views"][view][metric], estimate, spread=0.3, exact=exact)
        assert mine["verification"]["labels"] == other["verification"]["labels"]
    pairs = {(row["a"], row["b"], str(row["group"])): row for row in streamed["pairs"]}
    for other in memory["pairs"]:
        mine = pairs[(other["a"], other["b"], str(other["group"]))]
        for view, gaps in other["gaps"].items():
            for metric, estimate in gaps.items():
                exact = view in ("raw", "da", "ia")
                same_estimate(mine["gaps"][view][metric], estimate, spread=0.3, exact=exact)
        assert mine["retention"] == pytest.approx(other["retention"])
        assert set(mine) == set(other)
        assert mine["verdict"] == other["verdict"]
        for view, p_value in other["p_value"].items():
            assert mine["p_value"][view] == pytest.approx(p_value, rel=0.5, abs=0.1)
            if not 0.005 < other["p_adjusted"][view] < 0.3:
                assert mine["better"][view] == other["better"][view]
        assert mine["effective_size"] == pytest.approx(other["effective_size"])
        assert mine["floor"] == pytest.approx(other["floor"])
    assert streamed["multiplicity"] == memory["multiplicity"]


def test_what_is_left_out_is_counted_as_in_memory(table, in_parts):
    streamed = cal.compare(table, **OPTIONS)["summaries"][0]
    memory = cal.compare(frame(), **OPTIONS)["summaries"][0]
    for name in ("keys", "questions", "left_out"):
        assert streamed[name] == memory[name]
    assert sum(memory["left_out"].values()) > 0


def test_the_document_does_not_depend_on_the_engine_or_the_files(table, in_parts, tmp_path):
    alone = cal.compare(table, resamples=50).to_dict()
    again = cal.compare(table, resamples=50, engine="local").to_dict()
    assert dump_document(alone) == dump_document(again)
    folder = tmp_path / "runs"
    for (name,), part in frame().partition_by("model", as_dict=True).items():
        (folder / f"model={name}").mkdir(parents=True)
        shuffled = part.drop("model").sample(fraction=1, shuffle=True, seed=3)
        shuffled.write_parquet(folder / f"model={name}" / "part.parquet")
    apart = cal.compare(folder, resamples=50).to_dict()
    for name in ("pairs", "results", "summaries"):
        assert apart[name] == alone[name]


def test_a_broken_row_is_named_or_dropped(table, in_parts):
    broken = frame().with_columns(
        confidence=pl.when(pl.int_range(pl.len()) == 4_321).then(1.5).otherwise("confidence")
    )
    broken.write_parquet(table, row_group_size=1_000)
    with pytest.raises(InputError, match=r"table\.parquet, row 4322: .* at most 1"):
        cal.compare(table, on_invalid="error", resamples=20)
    streamed = cal.compare(table, **OPTIONS)
    memory = cal.compare(broken, **OPTIONS)
    assert streamed["dropped"] == memory["dropped"] == {"confidence_above_1": 1}
    assert streamed["summaries"][0]["questions"] == memory["summaries"][0]["questions"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop("question_id"), "no column 'question_id'"),
        (lambda t: pl.concat([t, t.head(1)]), "several rows of 'small'"),
        (lambda t: t.with_columns(model=pl.lit("one")), "at least two models"),
        (
            lambda t: t.with_columns(question_id=pl.col("question_id") + 10**6 * pl.col("model")
                .rank("dense").cast(pl.Int64)),
            "no question in common",
        ),
        (lambda t: t.with_columns(correct=pl.lit(1)), "accuracy 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(table, in_parts, change, message):
    change(frame()).write_parquet(table)
    with pytest.raises(InputError, match=message):
        cal.compare(table, resamples=20)


def test_blocks_of_a_sorted_table_are_dealt_at_random(in_parts):
    """Neighbours in one block would hide how much questions differ, and intervals would shrink."""
    whole = questions.align_models(frame(), OPTIONS["models"])
    shares = np.array([np.nanmean(b.correct, axis=1) for b in questions.deal_blocks(whole)])
    assert shares.shape == (15, 3)
    chance = np.sqrt(shares.mean() * (1 - shares.mean()) / 400)
    assert shares.std(axis=0, ddof=1) == pytest.approx(np.full(3, chance), rel=0.6)


def test_a_document_in_parts_has_every_key_of_memory(table, in_parts):
    streamed = cal.compare(table, by=["topic"], **OPTIONS).to_dict()
    memory = cal.compare(frame(), by=["topic"], **OPTIONS).to_dict()
    assert list(streamed) == list(memory)
    for name in ("results", "pairs", "league", "summaries"):
        assert [list(entry) for entry in streamed[name]] == [list(entry) for entry in memory[name]]
    assert [claim["id"] for claim in streamed["claims"]] == [c["id"] for c in memory["claims"]]
    for mine, other in zip(streamed["data"]["missing"], memory["data"]["missing"], strict=True):
        assert (mine["model"], mine["missing"]) == (other["model"], other["missing"])


def test_one_model_that_is_never_right_does_not_stop_the_others(table, in_parts):
    wrong = frame().filter(pl.col("model") == "small")
    wrong = wrong.with_columns(model=pl.lit("broken"), correct=pl.lit(0, dtype=pl.Int8))
    pl.concat([frame(), wrong]).write_parquet(table)
    document = cal.compare(table, resamples=50)
    assert {entry["model"] for entry in document["results"]} == {"small", "medium", "large"}
    (entry,) = document["not_compared"]
    assert entry["model"] == "broken"
    assert "never right" in entry["reason"]


def test_scores_that_are_no_probability_are_not_compared(table, in_parts):
    both = [frame().with_columns(method=pl.lit(name)) for name in ("sem1", "number_of_classes")]
    pl.concat(both).write_parquet(table)
    document = cal.compare(table, resamples=50)
    assert {entry["method"] for entry in document["results"]} == {"sem1"}
    (entry,) = document["not_compared"]
    assert "no probability" in entry["reason"]
