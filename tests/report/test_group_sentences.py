"""An audit by groups has a sentence about them, and no sentence contradicts the verdict beside."""

import numpy as np
import polars as pl
import pytest

from calibrant.report.answers import badge_of, claims_of, headline
from calibrant.verbs.audit import audit


@pytest.fixture(scope="module")
def opposed():
    """One half says 10 points too much, the other too little: on average they agree."""
    rng = np.random.default_rng(8)
    n = 8_000
    said = rng.uniform(0.3, 0.7, n)
    side = np.where(np.arange(n) % 2, "much", "little")
    right = rng.random(n) < said + np.where(side == "much", -0.1, 0.1)
    table = pl.DataFrame({"confidence": said, "correct": right.astype(int), "side": side})
    return audit(table, by=["side"])


def test_the_groups_that_stand_out_are_said_first(opposed):
    text = " ".join(str(opposed).split())
    assert "(side much) says" in text
    assert "(side little) says" in text
    said = headline(claims_of(opposed.to_dict()), 3)
    assert said[0].startswith("Says 50 %")
    assert len(said) == 3
    page = opposed.to_html()
    assert page.index("(side much)") < page.index("<table")


def test_one_sentence_is_about_the_whole(opposed):
    (only,) = headline(claims_of(opposed.to_dict()), 1)
    assert only.startswith("Says 50 %, is right 50 %")
    assert "(side" not in only


def test_groups_of_one_direction_take_one_sentence():
    rng = np.random.default_rng(9)
    said = rng.uniform(0.6, 0.9, 6_000)
    topic = np.array(["law", "art", "math"])[np.arange(6_000) % 3]
    lift = np.select([topic == "law", topic == "art"], [0.4, 0.2], 0.1)
    right = (rng.random(6_000) < said - lift).astype(int)
    found = audit(pl.DataFrame({"confidence": said, "correct": right, "topic": topic}), by="topic")
    said_first = headline(claims_of(found.to_dict()), 3)
    assert [text for text in said_first if "(topic" in text] == [said_first[-1]]
    assert "(topic law)" in said_first[-1]


def test_agreement_on_average_beside_a_bad_scale_says_both():
    """Too low at the top, too high at the bottom: the mean agrees, the scale does not."""
    rng = np.random.default_rng(4)
    said = rng.uniform(0.0, 1.0, 10_000)
    right = (rng.random(10_000) < 0.5 + 0.7 * (said - 0.5)).astype(int)
    document = audit({"confidence": said, "correct": right}).to_dict()
    claims = claims_of(document)
    assert badge_of(document, claims).words == "miscalibrated"
    assert "agree within 2 points, but along the scale they differ." in headline(claims, 1)[0]
    fair = (rng.random(10_000) < said).astype(int)
    calm = claims_of(audit({"confidence": said, "correct": fair}).to_dict())
    assert headline(calm, 1)[0].endswith("agree within 2 points.")
