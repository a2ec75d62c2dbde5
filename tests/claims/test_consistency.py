"""No document contradicts itself: over random audits, and over all documents that are stored."""

import copy

import pytest

from claims.consistency import contradictions
from claims.worlds import random_audit
from golden.cases import CASES
from golden.stored import stored


@pytest.mark.parametrize("batch", range(10))
def test_no_two_claims_of_a_random_audit_contradict(batch):
    for seed in range(20 * batch, 20 * batch + 20):
        document = random_audit(seed)
        assert not list(contradictions(document)), seed


@pytest.mark.parametrize("name", CASES)
def test_no_two_claims_of_a_stored_document_contradict(name):
    assert not list(contradictions(stored(name)))


def test_every_n_is_the_rows_that_the_number_used():
    for seed in range(20):
        document = random_audit(seed)
        for entry in document["results"]:
            assert entry["metrics"]["accuracy"]["n"] == entry["questions"] <= entry["n"]
        kept = sum(entry["n"] for entry in document["results"] if entry["group"] is None)
        assert kept == document["data"]["rows"]


def test_numbers_in_sentences_are_those_of_the_document():
    for seed in range(40):
        document = random_audit(seed)
        entries = {(e["model"], str(e["group"])): e for e in document["results"]}
        for claim in document["claims"]:
            if claim["id"] not in ("audit.over_confident", "audit.under_confident"):
                continue
            entry = entries[claim["subject"]["model"], str(claim["subject"]["group"])]
            gap = entry["metrics"]["confidence_gap"]
            assert abs(claim["value"]) == abs(gap["value"])
            said = entry["metrics"]["mean_confidence"]["value"]
            assert f"{100 * said:.0f} %" in claim["text"] or f"{100 * said:.1f} %" in claim["text"]


def test_a_contradiction_is_seen():
    """The checks themselves can fail."""
    document = copy.deepcopy(random_audit(3))
    claim = next(c for c in document["claims"] if c["id"] == "audit.over_confident")
    document["claims"].append({**claim, "id": "audit.under_confident"})
    assert any("both" in found for found in contradictions(document))
    document["results"][0]["metrics"]["ece"]["value"] = 1.2
    assert any("outside" in found for found in contradictions(document))
