"""`mend=` in every verb that reads a table."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError

SAID = np.array([0.7, 0.8, 0.9, 0.95])
OVER = {"a": 0.25, "b": 0.1}


def table(seed: int, n: int = 1500) -> pl.DataFrame:
    """Return two models that say too much, by 25 and by 10 points."""
    rng = np.random.default_rng(seed)
    parts = []
    for name, over in OVER.items():
        said = rng.choice(SAID, n)
        right = (rng.random(n) < said - over).astype(int)
        topic = rng.choice(["x", "y"], n)
        columns = {"question_id": np.arange(n), "model": [name] * n, "confidence": said}
        parts.append(pl.DataFrame({**columns, "correct": right, "topic": topic}))
    return pl.concat(parts)


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    path = tmp_path_factory.mktemp("mend") / "mend.json"
    cal.mend(table(1), save=path)
    return path


def test_an_audit_of_new_rows_finds_the_mended_confidence_right(maps):
    new = table(2)
    before, after = cal.audit(new), cal.audit(new, mend=maps)
    for stated, mended in zip(before["results"], after["results"], strict=True):
        over = OVER[stated["model"]]
        assert stated["metrics"]["ece"]["value"] == pytest.approx(over, abs=0.04)
        assert mended["metrics"]["ece"]["value"] < 0.04
        promised = cal.load_mend(maps, model=stated["model"]).promise["off_by"]
        assert mended["metrics"]["ece"]["value"] < promised + 0.02
    assert any("mended by" in warning["text"] for warning in after["data"]["warnings"])
    assert after["settings"]["mend"] == str(maps)


def test_every_verb_takes_it(maps):
    new = table(3)
    one = new.filter(pl.col("model") == "a")
    assert cal.compare(new, resamples=50, mend=maps)["pairs"][0]["errors"]["a"] < 0.04
    for found in (
        cal.groups(one, features=["topic"], mend=maps),
        cal.decide(one, max_error=0.3, mend=maps),
        cal.plan(one, mend=maps),
    ):
        assert "mended by" in found["reading"]["mended"]
    stated, mended = (cal.monitor([one[:700], one[700:]], mend=of) for of in (None, maps))
    assert "off" in stated["claims"][0]["text"]
    assert "No alarm" in mended["claims"][0]["text"]


def test_rows_without_a_confidence_stay_without(maps):
    new = table(4).with_columns(
        confidence=pl.when(pl.int_range(pl.len()) % 50 > 0).then(pl.col("confidence"))
    )
    found = cal.audit(new, mend=maps)
    assert found["dropped"] == {"confidence_missing": 60}


def test_other_confidences_are_warned_of(maps):
    odd = table(5).with_columns(confidence=pl.col("confidence") - 0.2)
    found = cal.audit(odd, mend=maps)
    assert any("the promise does not hold" in w["text"] for w in found["data"]["warnings"])


def test_a_model_without_a_map_is_refused(maps):
    other = table(6).with_columns(pl.col("model").replace({"a": "c"}))
    with pytest.raises(InputError, match=r"no map for c \(confidence\); the file has a"):
        cal.audit(other, mend=maps)


def test_a_single_map_serves_a_single_model_of_any_name(tmp_path):
    one = table(1).filter(pl.col("model") == "a").drop("model")
    cal.mend(one, save=tmp_path / "one.json")
    named = table(2).filter(pl.col("model") == "a")
    found = cal.audit(named, mend=tmp_path / "one.json")
    assert found["results"][0]["metrics"]["ece"]["value"] < 0.04


def test_what_is_saved_decides_on_stated_confidences(maps, tmp_path):
    one = table(2).filter(pl.col("model") == "a")
    with pytest.raises(InputError, match="confidences as stated"):
        cal.decide(one, max_error=0.3, mend=maps, save=tmp_path / "policy.json")
    with pytest.raises(InputError, match="as stated"):
        cal.mend(one, mend=maps)
    assert not (tmp_path / "policy.json").exists()


def test_the_badge_says_whether_mending_is_worth_it():
    rng = np.random.default_rng(0)
    p = rng.beta(4, 2, 800)
    right = (rng.random(800) < p).astype(int)
    assert "NOT WORTH CORRECTING" in str(cal.mend({"confidence": p, "correct": right}))
    over = {"confidence": np.minimum(p + 0.2, 0.99), "correct": right}
    assert "CORRECTED" in str(cal.mend(over))
    few = {"confidence": p[:30], "correct": right[:30]}
    assert "TOO FEW LABELS" in str(cal.mend(few))


@pytest.mark.data
def test_the_loop_closes_on_new_rows_of_real_models(shared_data, tmp_path):
    said, names = "verbal_numerical_confidence", ["gpt-4o-2024-08-06", "Qwen3-14B"]
    frame = pl.read_parquet(shared_data / "scores" / "mmlu_pro_16_models.parquet")
    frame = frame.filter(pl.col("model").is_in(names), pl.col(said).is_between(0, 1)).select(
        "model", "question_id", "correct", confidence=said
    )
    old = pl.col("question_id").rank("dense") % 12 == 0
    assert 900 < frame.filter(old, pl.col("model") == names[0]).height < 1100
    cal.mend(frame.filter(old), cluster="question_id", save=tmp_path / "mend.json")
    new = frame.filter(~old)
    before, after = cal.audit(new), cal.audit(new, mend=tmp_path / "mend.json")
    for stated, mended in zip(before["results"], after["results"], strict=True):
        fitted = cal.load_mend(tmp_path / "mend.json", model=stated["model"])
        own = new.filter(pl.col("model") == stated["model"])
        applied = fitted.apply(own)
        assert applied.height == own.height
        again = cal.audit(applied, confidence="mended")["results"][0]["metrics"]["ece"]["value"]
        assert again == pytest.approx(mended["metrics"]["ece"]["value"])
        assert stated["metrics"]["ece"]["value"] > 0.15
        assert mended["metrics"]["ece"]["value"] < fitted.promise["off_by"]
