"""The page of recommendations: its numbers by hand, and its marks where the study writes."""

import numpy as np
import polars as pl
import pytest
from studies import _confidence_situations as page


def scores_of(rng, questions=400, *, shared):
    """Two models; their scores share the question's noise, or do not."""
    right = rng.random(questions) < 0.4
    common = rng.normal(size=questions)
    rows = []
    for model in ("a", "b"):
        own = common if shared else rng.normal(size=questions)
        rows.append(
            pl.DataFrame(
                {
                    "question_id": np.arange(questions),
                    "model": model,
                    "method": "m",
                    "confidence": right + own,
                    "correct": right.astype(float),
                }
            )
        )
    return pl.concat(rows)


def test_area_and_its_error_against_pairs_and_the_bootstrap():
    rng = np.random.default_rng(0)
    right = rng.random(300) < 0.3
    score = np.round(rng.normal(size=300) + right, 1)
    area, influence = page.area_with_influence(score, right)
    hits, misses = score[right][:, None], score[~right][None, :]
    assert area == pytest.approx(((hits > misses) + 0.5 * (hits == misses)).mean())
    assert influence.mean() == pytest.approx(0, abs=1e-12)
    drawn = rng.integers(0, 300, (1500, 300))
    spread = np.std([page.area_with_influence(score[k], right[k])[0] for k in drawn])
    assert np.sqrt((influence**2).sum()) / 300 == pytest.approx(spread, rel=0.1)


def test_models_that_share_questions_share_their_errors():
    rng = np.random.default_rng(1)
    widths = {}
    for shared in (True, False):
        _, low, high = page.mean_areas(scores_of(rng, shared=shared))["m"]
        widths[shared] = high - low
    # Two equal models are worth one, two independent ones sqrt(2) times less error.
    assert widths[True] / widths[False] == pytest.approx(2**0.5, rel=0.2)


def test_a_method_does_not_differ_from_itself():
    table = scores_of(np.random.default_rng(2), shared=False)
    twice = pl.concat([table, table.with_columns(method=pl.lit("again"))])
    assert page.area_difference(twice, "m", "again") == pytest.approx((0, 0, 0), abs=1e-12)


def test_the_study_finds_its_places_in_the_page(tmp_path, monkeypatch):
    copy = tmp_path / "page.md"
    copy.write_text(page.PAGE.read_text())
    monkeypatch.setattr(page, "PAGE", copy)
    page.write_situations("The answer.", [("here", "`m`", "numbers", "1 call")], ["- A remark."])
    text = copy.read_text()
    assert "The answer." in text
    assert "| here | `m` | numbers | 1 call |" in text
    assert "- A remark." in text
    assert "Short answer" not in text
