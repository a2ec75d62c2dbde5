"""The opening of a page: what it says first, and what it never praises."""

import pytest
from documents import KINDS, document_of

from calibrant.core.document import plain
from calibrant.report import render_html
from calibrant.report.terminal import render_text
from calibrant.report.verdict import opening_sentences


def entry(model, accuracy, *, method="verb", word="no-evidence", ece=0.1, expected=0.08, said=0.6):
    def estimate(value):
        return {"value": value, "low": value - 0.05, "high": value + 0.05, "n": 20}

    return {
        "model": model,
        "method": method,
        "group": None,
        "questions": 20,
        "probability": True,
        "metrics": {
            "accuracy": estimate(accuracy),
            "mean_confidence": estimate(said),
            "ece": estimate(ece),
        },
        "calibration_test": {"expected_ece": expected},
        "verdict": {"calibration": word, "how": "H.", "sure": "S.", "next": "N."},
    }


def audited(*entries):
    return [{"schema": "calibrant.audit/1", "results": list(entries)}]


def test_models_that_are_mostly_wrong_are_said_to_know_little_first():
    first, _, third, _ = opening_sentences(audited(entry("a", 0.3), entry("b", 0.2)))
    assert first.startswith(
        "a is right in 30% [25%, 35%] and says 60% [55%, 65%]; b is right in 20%"
    )
    assert ", on 20 questions; most" in first
    assert "they know little here" in first
    assert "a perfectly calibrated one would show 0.080" in third


def test_a_model_that_is_mostly_right_is_not_said_to_know_little():
    first = opening_sentences(audited(entry("a", 0.3), entry("b", 0.8)))[0]
    assert "little" not in first


def test_many_models_are_summed_up_by_their_range():
    first = opening_sentences(audited(*(entry(f"m{i}", 0.5 + i / 20) for i in range(5))))[0]
    assert first == (
        "5 models on 20 questions: the least accurate, m0, is right in 50% [45%, 55%] and says 60% "
        "[55%, 65%]; the most accurate, m4, is right in 70% [65%, 75%] and says 60% [55%, 65%]."
    )


def test_a_model_with_many_confidences_has_their_range():
    methods = [entry("a", 0.8, method=f"x{i}", said=0.5 + i / 10) for i in range(3)]
    first = opening_sentences(audited(*methods))[0]
    assert (
        first
        == "a is right in 80% [75%, 85%] and its 3 confidences say 50% to 70%, on 20 questions."
    )


def test_verdicts_are_counted():
    words = ("over-confident", "over-confident", "under-confident", "no-evidence")
    found = audited(*(entry(f"m{i}", 0.8, word=word) for i, word in enumerate(words)))
    second = opening_sentences(found)[1]
    assert second.startswith(
        "3 of 4 confidences are shown to be miscalibrated (2 over-confident, 1"
    )
    assert second.endswith("without a correction for their number.")


def test_the_count_states_its_correction_and_the_number_of_tests():
    words = ("over-confident", "miscalibrated", "no-evidence")
    found = audited(*(entry(f"m{i}", 0.8, word=word) for i, word in enumerate(words)))
    family = {"confidences": 3, "tests": 6}
    found[0]["multiplicity"] = {"control": "holm", "alpha": 0.05, "whole": family}
    assert opening_sentences(found)[1] == (
        "2 of 3 confidences are shown to be miscalibrated (1 over-confident, 1 without a clear "
        "direction), corrected for 6 tests by Holm's rule: at most a 5% chance of any false claim."
    )
    assert "flattered" in opening_sentences(found)[2]


def test_a_test_that_does_not_exist_is_left_out_of_the_sentence():
    third = opening_sentences(audited(entry("a", 0.8, expected=None), entry("b", 0.8, ece=0.2)))[2]
    assert third.endswith("of a.")


@pytest.mark.parametrize(
    ("floors", "word", "said"),
    [
        ((0.2, 0.1), "no-evidence", "at worst 20 labels cannot show an error below 0.2, so that"),
        ((None, 0.1), "no-evidence", "at worst 20 labels, however well chosen, cannot show an"),
        ((None, None), "no-evidence", "would show 0.080."),
        ((0.2, 0.1), "over-confident", "20 labels show its size no finer than this interval."),
    ],
)
def test_what_the_labels_cannot_show_is_said_of_the_smallest_error(floors, word, said):
    found = audited(*(entry(name, 0.8, word=word) for name in "ab"))
    for one in found[0]["results"]:
        passive, active = ({"value": value} for value in floors)
        one |= {"n": 20, "verification": {"passive_floor": passive, "active_floor": active}}
    assert said in opening_sentences(found)[2]


def pair(method, *, better, turned):
    return {
        "a": "small",
        "b": "large",
        "method": method,
        "verdict": "V.",
        "reversal": {"da": turned},
        "reversal_resolved": {"da": turned and better is not None},
        "better": {"da": better},
        "accuracy_gap": {"n": 40},
    }


def compared(*pairs):
    rule = {"control": "holm", "alpha": 0.05, "groups": {"pairs": 0}}
    rule["whole"] = {"pairs": len(pairs)}
    document = {"schema": "calibrant.compare/1", "pairs": list(pairs), "multiplicity": rule}
    return opening_sentences([document])[0]


def test_models_that_are_not_told_apart_have_no_order_that_could_turn_round():
    ties = [pair(name, better=None, turned=True) for name in ("verb", "sem1")]
    rule = "pairs: in each view the chance of any false claim is at most 5%."
    assert compared(*ties) == (
        "small and large, by 2 confidences, on 40 questions: at equal accuracy none of 2 "
        "comparisons says which model is better calibrated: these labels do not tell them apart. "
        f"Which model is better is corrected by Holm's rule for 2 {rule}"
    )
    clear = pair("p_true", better="small", turned=True)
    assert compared(*ties, clear) == (
        "small and large, by 3 confidences, on 40 questions: at equal accuracy 1 of 3 comparisons "
        "show which model is better calibrated, and in 1 of these the other one has the smaller "
        "raw error (shown in 1); the rest are not told apart by these labels. "
        f"Which model is better is corrected by Holm's rule for 3 {rule}"
    )


def test_a_cascade_of_one_strategy_is_compared_with_nothing():
    document = plain(document_of("cascade"))
    (result,) = document["results"]
    only = [one for one in result["strategies"] if one["name"] == "confidence"]
    verdict = {**result["verdict"], "against": {}, "compared": "confidence"}
    alone = {**result, "strategies": only, "comparisons": [], "verdict": verdict}
    text = " ".join(render_text({**document, "results": [alone]}).split())
    assert text.startswith("At its most accurate setting the cascade on raw confidence is not")
    assert "minus this" not in text
    assert "Policy" not in text


def test_a_setting_that_is_shown_to_be_worse_is_called_worse():
    document = plain(document_of("cascade"))
    gain = {"value": -0.1, "low": -0.15, "high": -0.05, "n": 100}
    (result,) = document["results"]
    result["verdict"] |= {"best_gain": gain, "beats_largest": False}
    assert "is less accurate than large alone: accuracy against it -0.100 [-0.150, -0.050]" in (
        " ".join(render_text(document).split())
    )


def test_one_confidence_has_its_own_three_sentences():
    assert opening_sentences(audited(entry("a", 0.8))) == ["H.", "S.", "N."]


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"analysis", "report", "methods"}))
def test_every_page_opens_with_a_verdict(kind):
    sentences = opening_sentences([plain(document_of(kind))])
    assert 1 <= len(sentences) <= 4
    assert all(sentence.strip() for sentence in sentences)


def test_the_page_does_not_repeat_its_verdict():
    document = plain(document_of("groups"))
    (sentence,) = opening_sentences([document])
    assert render_html([document]).count(sentence) == 1
