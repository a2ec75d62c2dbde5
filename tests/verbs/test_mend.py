"""`mend` at the command line: sentences, the saved file, several models, repeated questions."""

import json
import re

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from support import call


def table(n=800, models=("a",), by=0.25, seed=0):
    rng = np.random.default_rng(seed)
    frames = []
    for model in models:
        said = rng.choice([0.7, 0.8, 0.9, 0.95, 1.0], n)
        right = (rng.random(n) < said - by).astype(int)
        frames.append(
            pl.DataFrame(
                {
                    "question_id": [f"q{row}" for row in range(n)],
                    "model": model,
                    "confidence": said,
                    "correct": right,
                }
            )
        )
    return pl.concat(frames)


def test_a_promise_a_file_and_the_same_number_in_python(tmp_path):
    path, saved = tmp_path / "scores.csv", tmp_path / "mend.json"
    table().write_csv(path)
    before = path.read_bytes()
    done = call("mend", path, "--save", saved, "--json", tmp_path / "out.json")
    assert done.returncode == 0
    assert "corrected confidence is off by at most" in " ".join(done.stdout.split())
    assert path.read_bytes() == before
    document = json.loads((tmp_path / "out.json").read_text())
    (entry,) = document["results"]
    assert entry["verdict"] == "mended"
    mended = cal.load_mend(saved)
    for row in entry["table"]:
        assert mended.probability(row["says"]) == row["means"]
    assert {claim["id"] for claim in document["claims"]} == {"mend.off_by", "mend.gain"}
    # The document itself can be loaded as well.
    assert cal.load_mend(tmp_path / "out.json").probability(0.9) == mended.probability(0.9)


def test_every_model_has_its_map_and_its_name_in_the_sentence(tmp_path):
    saved = tmp_path / "mend.json"
    found = cal.mend(table(models=("a", "b")), save=saved)
    assert [entry["model"] for entry in found["results"]] == ["a", "b"]
    assert all(claim["text"].startswith(("a:", "b:")) for claim in found["claims"])
    assert cal.load_mend(saved, model="b").model == "b"


@pytest.mark.parametrize(
    ("by", "n", "verdict", "words"),
    [
        (0.0, 2000, "not worth it", "stays close to the confidence as stated, and nothing is"),
        (0.25, 30, "too few", "Not enough labels (30) for a promise"),
    ],
)
def test_nothing_is_promised_without_a_gain(by, n, verdict, words):
    """A map is served all the same: only the promise is withheld."""
    rng = np.random.default_rng(2)
    said = rng.beta(8, 2, n)
    right = (rng.random(n) < said - by).astype(int)
    found = cal.mend({"confidence": said, "correct": right})
    (entry,) = found["results"]
    assert entry["verdict"] == verdict
    assert entry["promise"]["off_by"] is None
    (claim,) = found["claims"]
    assert claim["id"] == "mend.gain"
    assert words in claim["text"]
    assert claim["outcome"] in ("equivalent", "undecided")


def test_what_is_mended_is_calibrated_on_new_rows():
    mended = cal.Mend().fit(*table(3000).select("confidence", "correct")).map_
    fresh = table(20_000, seed=9)
    after = cal.audit(
        mended.probabilities(fresh["confidence"].to_numpy()), fresh["correct"].to_numpy()
    )
    assert after["results"][0]["metrics"]["ece"]["value"] < 0.03


@pytest.mark.data
def test_real_models_are_off_by_no_more_than_promised(shared_data):
    frame = pl.read_parquet(shared_data / "scores" / "mmlu_pro_16_models.parquet")
    frame = frame.filter(pl.col("verbal_numerical_confidence").is_between(0, 1))
    kept = 0
    models = ["gpt-4o-2024-08-06", "Qwen3-14B", "Meta-Llama-3.1-8B-Instruct-Turbo"]
    for model in models:
        rows = frame.filter(model=model).sample(fraction=1, shuffle=True, seed=0)
        c = rows["verbal_numerical_confidence"].cast(pl.Float64).to_numpy()
        y = rows["correct"].cast(pl.Float64).to_numpy()
        mended = cal.Mend().fit(c[:1000], y[:1000]).map_
        assert mended.verdict == "mended"
        value = np.round(mended.probabilities(c[1000:]), 9)
        gaps = (
            pl.DataFrame({"p": value, "y": y[1000:]})
            .group_by("p")
            .agg(pl.len(), gap=(pl.col("p") - pl.col("y")).mean().abs())
        )
        off = (gaps["gap"] * gaps["len"]).sum() / gaps["len"].sum()
        kept += off <= mended.promise["off_by"]
    assert kept == len(models)


def test_arrays_are_mended_as_the_same_table_is():
    said, right = table(800).select("confidence", "correct")
    whole = cal.mend(pl.DataFrame({"confidence": said, "correct": right}))
    for given in ((said, right), (said.to_numpy(), right.to_list())):
        assert cal.mend(*given)["results"] == whole["results"]
    named = cal.mend(pl.DataFrame({"confidence": said, "good": right}), "good")
    assert named["results"][0]["promise"] == whole["results"][0]["promise"]
    with pytest.raises(InputError, match="equal lengths"):
        cal.mend(said, right[:-1])


def test_graded_answers_are_written_with_what_their_confidence_means(tmp_path):
    rng = np.random.default_rng(0)
    drawn = rng.random((300, 10)) < rng.beta(2, 1, 300)[:, None]
    answers = [[str(n) if hit else str(n + 500) for hit in row] for n, row in enumerate(drawn)]
    asked = {"question": [f"Which is {n}?" for n in range(300)], "gold": map(str, range(300))}
    samples = pl.DataFrame({**asked, "gold": list(asked["gold"]), "answers": answers})
    path, saved, study = tmp_path / "s.jsonl", tmp_path / "mend.json", tmp_path / "study"
    samples.write_ndjson(path)
    cal.grade(path, tmp_path / "first", samples="answers", reference="gold")
    cal.mend(tmp_path / "first", save=saved)
    cal.grade(path, study, samples="answers", reference="gold", mend=saved)
    scores = pl.read_parquet(study / "tables" / "scores.parquet")
    plain = pl.read_parquet(tmp_path / "first" / "tables" / "scores.parquet")
    assert scores.drop("mended", "mended_low", "mended_high").equals(plain)
    known = scores.drop_nulls("mended")
    assert 0 < known.height < scores.height
    assert (known["mended_low"] <= known["mended"]).all()
    one = known.filter(method="discrete_semantic_entropy").row(5, named=True)
    maps = json.loads(saved.read_text())
    assert one["method"] in str(maps)
    assert one["mended"] != one["confidence"]
    other = tmp_path / "other.json"
    other.write_text(re.sub(r'"model":\s*"model"', '"model": "another"', saved.read_text()))
    with pytest.raises(InputError, match="no map of these models"):
        cal.grade(path, tmp_path / "third", samples="answers", reference="gold", mend=other)
