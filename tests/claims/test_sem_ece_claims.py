"""What may be said about calibration over meanings."""

import pytest
from msgspec import convert

from calibrant.findings.claims.sem_ece import meaning_claims, sample_warnings
from calibrant.findings.documents.audits import AuditBlock, SemanticEntry
from calibrant.report.tables.meanings import semantic_tables


def block(gap=0.1, width=0.02, p_law=0.2, **more):
    entry = {
        "model": "m",
        "group": None,
        "draws": 20,
        "sem2": {"value": 0.12, "low": 0.08, "high": 0.16, "n": 500},
        "leading": {
            "confidence": 0.6 + gap,
            "accuracy": 0.6,
            "gap": {"value": gap, "low": gap - width, "high": gap + width, "n": 500},
            "p_value": 0.001 if abs(gap) > width else 0.5,
            "within": [gap - 0.8 * width, gap + 0.8 * width],
        },
        "noise_floor": {"sem2": {"floor": 0.06, "p": p_law}},
        **more,
    }
    return convert(entry, SemanticEntry)


def outcomes(*blocks, results=()):
    return [
        (c.id.removeprefix("audit.meanings_"), c.outcome)
        for c in meaning_claims(blocks, results, 0.02)
    ]


def test_a_clear_gap_is_shown_with_its_direction():
    assert outcomes(block(0.1))[0] == ("over_confident", "shown")
    assert outcomes(block(-0.1))[0] == ("under_confident", "shown")
    claim = meaning_claims([block(-0.1)], [], 0.02)[0]
    assert claim.text == (
        "The answer that leads 20 draws has 50 % of them and is right 60 % of the time: "
        "under-confident by 10 points (95 % interval 8 to 12)."
    )


def test_within_the_margin_is_equivalent_and_a_wide_interval_is_undecided():
    assert outcomes(block(0.005, width=0.008))[0][1] == "equivalent"
    claim = meaning_claims([block(0.005, width=0.1)], [], 0.02)[0]
    assert claim.outcome == "undecided"
    assert "would decide" in claim.text


def test_the_law_is_tested_and_corrected_for_the_number_of_models():
    assert outcomes(block(p_law=0.03))[1] == ("miscalibrated", "shown")
    two = [block(p_law=0.03, model="a"), block(p_law=0.04, model="b")]
    assert [o for i, o in outcomes(*two) if i == "miscalibrated"] == ["undecided", "undecided"]


def test_groups_do_not_blur_the_whole():
    whole, group = block(p_law=0.03), block(p_law=0.03, group={"domain": "x"})
    assert outcomes(whole, group)[1] == ("miscalibrated", "shown")


def test_a_model_whose_sem2_is_audited_has_its_direction_claimed_there():
    results = [AuditBlock(model="m", method="sem2", n=9, metrics={})]
    assert [name for name, _ in outcomes(block(), results=results)] == ["miscalibrated"]


def test_a_refused_test_makes_no_claim():
    refused = block(noise_floor={"sem2": None, "refused": "several"})
    assert [name for name, _ in outcomes(refused)] == ["over_confident"]


def test_the_guide_never_says_that_the_truth_lies_between():
    (table,) = semantic_tables([])
    text = table.note
    assert "may lie outside both" in text
    assert "between" not in text


@pytest.mark.parametrize("guessed", [[], ["samples"]])
def test_guesses_are_warnings(guessed):
    how = {"columns": {"samples": "answers"}, "guessed": guessed, "notes": ["one row was odd"]}
    texts = [warning["text"] for warning in sample_warnings(how)]
    assert ("Guessed columns: answers (sampled answers)." in texts) == bool(guessed)
    assert "One row was odd." in texts
