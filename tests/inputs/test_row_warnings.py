"""Every verb says before its numbers which rows it was not given, and what it does not use."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data import load_scores
from calibrant.report.captions import title_line
from calibrant.verbs.monitoring import PartCounts

VERBS = {
    "decide": lambda table: cal.decide(table, max_error=0.3, on_invalid="drop"),
    "groups": lambda table: cal.groups(table, features=["topic"], on_invalid="drop"),
    "cascade": lambda table: cal.cascade(
        table,
        models=["a", "b"],
        price=[1, 2],
        features=["topic"],
        on_invalid="drop",
        random_splits=2,
    ),
    "monitor": lambda table: cal.monitor(table, every=100, on_invalid="drop"),
    "compare": lambda table: cal.compare(table, on_invalid="drop", resamples=50),
    "audit": lambda table: cal.audit(table, on_invalid="drop", resamples=20),
}
ONE_MODEL = ("decide", "groups", "monitor", "audit")


def table(n=400):
    rng = np.random.default_rng(0)
    said = rng.random(2 * n)
    return pl.DataFrame(
        {
            "question_id": np.tile(np.arange(n), 2).astype(str),
            "model": np.repeat(["a", "b"], n),
            "confidence": said,
            "correct": (rng.random(2 * n) < said).astype(int),
            "topic": rng.choice(["x", "y"], 2 * n)[np.tile(np.arange(n), 2)],
        }
    )


def of_one(frame, verb):
    return frame.filter(pl.col("model") == "a") if verb in ONE_MODEL else frame


def told(document):
    ids = [warning["id"] for warning in document["data"]["warnings"]]
    # Baselines here have no days of their own: that is no word about rows.
    return [name for name in ids if name != "data.days_unknown"]


@pytest.mark.parametrize("verb", VERBS)
def test_clean_rows_need_no_word(verb):
    assert told(VERBS[verb](of_one(table(), verb))) == []


@pytest.mark.parametrize("verb", VERBS)
def test_rows_that_are_left_out_are_told(verb):
    frame = table(1000).with_columns(
        confidence=pl.when(pl.int_range(pl.len()) % 3 == 0).then(1.5).otherwise("confidence")
    )
    assert "data.missing" in told(VERBS[verb](of_one(frame, verb)))


@pytest.mark.parametrize("verb", VERBS)
def test_weights_are_used_or_it_is_said_that_they_are_not(verb):
    weights = np.random.default_rng(1).uniform(1, 3, 800)
    weights[:7] = 0
    document = VERBS[verb](of_one(table().with_columns(weights=weights), verb))
    assert "data.weightless" in told(document)
    assert ("data.weights_unused" in told(document)) == (verb != "audit")


@pytest.mark.parametrize("verb", VERBS)
def test_columns_known_by_their_names_are_told(verb):
    frame = table().rename({"confidence": "p", "correct": "label"})
    assert told(VERBS[verb](of_one(frame, verb))) == ["data.reading"]


@pytest.mark.parametrize("verb", ["decide", "groups"])
def test_rows_without_a_feature_are_among_those_left_out(verb):
    frame = of_one(table(), verb).with_columns(
        topic=pl.when(pl.int_range(pl.len()) % 2 == 0).then(None).otherwise("topic")
    )
    options = {"max_error": 0.3} if verb == "decide" else {}
    document = getattr(cal, verb)(frame, features=["topic"], **options)
    assert document["dropped"] == {"feature_missing": 200}
    assert "data.missing" in told(document)


def test_only_the_rows_that_were_asked_for_count():
    frame = table().with_columns(
        confidence=pl.when(pl.col("model") == "b").then(1.5).otherwise("confidence")
    )
    found = cal.decide(frame, max_error=0.3, only_model="a", on_invalid="drop")
    assert told(found) == []


@pytest.mark.parametrize("name", ["weight", "sample_weight", "Sample Weight"])
def test_a_column_called_as_if_it_held_weights_is_told_of(name):
    frame = of_one(table(), "audit").with_columns(pl.lit(2.0).alias(name))
    document = cal.audit(frame, resamples=20)
    assert told(document) == ["data.likely_weights"]
    assert told(cal.audit(frame, weights=name, resamples=20)) == []
    assert told(cal.audit(frame, by=[name], resamples=20)) == []


@pytest.mark.parametrize("verb", ["decide", "groups"])
def test_a_sentence_about_part_of_the_rows_names_the_part(verb):
    frame = of_one(table(), verb)
    lost = pl.int_range(pl.len()) % 2 == 0
    half = frame.with_columns(confidence=pl.when(lost).then(1.5).otherwise("confidence"))
    for given, said in ((frame, False), (half, True)):
        texts = [claim["text"] for claim in VERBS[verb](given)["claims"]]
        assert texts
        assert ["This rests on 50 % of the rows." in text for text in texts].count(True) == said


def test_weights_that_differ_between_single_rows_of_a_stream_are_seen():
    rows = of_one(table(), "monitor").with_columns(weights=pl.int_range(1, pl.len() + 1))
    counts = PartCounts()
    for row in rows.head(40).iter_slices(1):
        counts.add(load_scores(row, repeats=True))
    assert [warning["id"] for warning in counts.warnings()] == ["data.weights_unused"]


def test_models_with_questions_of_their_own_lack_none():
    """Two models that were asked different questions; 6 answers of each state no confidence."""
    rng = np.random.default_rng(0)
    n = 260
    said = rng.choice([0.6, 0.8, 0.9, 1.0], n)
    table = pl.DataFrame(
        {
            "question": [f"q{row}" for row in range(n)],
            "model": ["a" if row % 2 else "b" for row in range(n)],
            "confidence": [None if row % 23 == 0 else float(c) for row, c in enumerate(said)],
            "correct": (rng.random(n) < said - 0.15).astype(int),
        }
    )
    models = cal.audit(table)["data"]["models"]
    assert [(entry["missing"], entry["dropped"]) for entry in models] == [(0, 6), (0, 6)]
    # Of models that were asked the same questions, one that answered half of them lacks half.
    half = pl.concat(
        [table.with_columns(model=pl.lit("c")), table.head(130).with_columns(model=pl.lit("d"))]
    )
    assert [entry["missing"] for entry in cal.audit(half)["data"]["models"]] == [0, 130]


def test_labels_beside_a_graded_table_do_not_replace_its_grades(tmp_path):
    """Whatever the column of the grades is called."""
    path = tmp_path / "table.csv"
    said = [0.5, 0.9] * 60
    graded = {"frage": range(120), "sicherheit": said, "richtig": ["ja", "nein", "ja"] * 40}
    pl.DataFrame(graded).write_csv(path)
    before = cal.audit(path)["results"]
    with pytest.raises(InputError, match="every item of the table is labelled"):
        cal.label_next(path, out=tmp_path / "batch.csv")
    assert cal.audit(path)["results"] == before


def test_an_outcome_that_is_none_is_no_outcome_of_rows_without_a_confidence(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("confidence,correct\n0.5,1\n0.6,0\n0.7,1\n,1\n,7\n0.8,1\n0.2,0\n0.3,0\n")
    audit = cal.audit(path, on_invalid="drop")
    assert audit["dropped"] == {"confidence_missing": 2, "correct_not_binary": 1}


def test_a_watch_says_in_its_title_how_many_rows_state_no_confidence(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("confidence,correct\n" + "0.5,1\n0.6,0\n,1\n" * 5)
    title = title_line(cal.monitor(path, every=5), dated=False)
    assert title == "Monitoring of scores · 10 rows · 5 rows without a confidence"
