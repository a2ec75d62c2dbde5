"""The rules and sentences of an audit: what is tested, and the words for each outcome."""

from __future__ import annotations

from typing import Any

from calibrant.claims.claim import ALPHA, ClaimRule, Facts, declare
from calibrant.claims.margins import ERROR_MARGIN
from calibrant.claims.significance import SEPARATION_MARGIN
from calibrant.claims.words import labels_text, percent, points, points_range


def _says(facts: Facts) -> str:
    name = f"{facts['name']} says" if facts["named"] else "Says"
    return f"{name} {percent(facts['said'])}, is right {percent(facts['right'])}"


def _interval(facts: Facts) -> str:
    return f"95 % interval {points_range(facts['low'], facts['high'])}"


def _off_by(word: str) -> Any:
    return lambda facts: (
        f"{_says(facts)}: {word} by {points(abs(facts['value']))} ({_interval(facts)})."
    )


def _agrees(facts: Facts) -> str:
    # A small mean gap may hide gaps of both signs: the verdict beside this sentence is then
    # about those.
    along = ", but along the scale they differ" if facts["off_along"] else ""
    return f"{_says(facts)}: on average the two agree within {points(facts['margin'])}{along}."


def _why_open(low: float | None, high: float | None, middle: float, p: float | None) -> str:
    """Say why it is open where the interval alone would decide: tests are counted, it is not."""
    if low is None or high is None or low <= middle <= high:
        return ""
    many = p is not None and p <= ALPHA
    return f" {'after counting all tests of this audit' if many else 'by the stricter test'}"


def _direction_open(facts: Facts) -> str:
    why = _why_open(facts["signed_low"], facts["signed_high"], 0.0, facts["p"])
    return (
        f"{_says(facts)}: undecided{why} whether it is over- or under-confident "
        f"{_difference(facts['signed_low'], facts['signed_high'])}. "
        f"{labels_text(facts['more']).capitalize()} would decide."
    )


def _difference(low: float | None, high: float | None) -> str:
    return f"(difference {points_range(low, high)}{' points' if low is not None else ''})"


def _direction(word: str, sign: str) -> ClaimRule:
    return declare(
        ClaimRule(
            f"audit.{word.replace('-', '_')}",
            f"Is the model {word}?",
            f"E[c] - E[y] {sign} 0",
            "the larger of Student's p between questions and the exact law of the mean gap under "
            "perfect calibration; 'equivalent' by two one-sided tests at 5 %",
            "Holm over all tests of whole models, and apart from them over those of groups",
            {
                "shown": _off_by(word),
                "equivalent": _agrees,
                "undecided": _direction_open,
            },
            margin=ERROR_MARGIN,
        )
    )


OVER = _direction("over-confident", ">")
UNDER = _direction("under-confident", "<")


def _subject(facts: Facts) -> str:
    return f"{facts['name']}: calibration" if facts["named"] else "Calibration"


def _chance(facts: Facts) -> str:
    expected = points(facts["expected"])
    if facts["expected"] >= facts["value"]:
        return f"no more than chance alone shows ({expected})"
    return f"of which chance alone explains {expected}"


MISCALIBRATED = declare(
    ClaimRule(
        "audit.miscalibrated",
        "Do the stated confidences match the share of right answers along the whole scale?",
        "sum_b P(b) |E[c - y | b]| > 0",
        "law of the binned error under perfect calibration; 'equivalent' when the 95 % upper "
        "bound of the error, by inversion of a test, is below the margin",
        "Holm, in the family of the mean gaps",
        {
            "shown": lambda facts: (
                f"{_subject(facts)} error {points(facts['value'])} ({_interval(facts)}); "
                f"a calibrated model would show {points(facts['expected'])} here."
            ),
            "equivalent": lambda facts: (
                f"{_subject(facts)} error {points(facts['value'])}, at most "
                f"{points(facts['upper'])}: calibrated within {points(facts['margin'])}."
            ),
            "undecided": lambda facts: (
                f"{_subject(facts)} error {points(facts['value'])}, {_chance(facts)}: undecided. "
                f"It could be as large as {points(facts['upper'])}."
            ),
        },
        margin=ERROR_MARGIN,
    )
)


def _separation(facts: Facts) -> str:
    right = "separates right from wrong answers"
    how = right if facts["value"] > 0.5 else "is higher for wrong answers than for right ones"
    return (
        f"{_who(facts)} {how}: AUROC {facts['value']:.2f} "
        f"(95 % interval {facts['low']:.2f} to {facts['high']:.2f}; 0.5 is chance)."
    )


def _who(facts: Facts, *, start: bool = True) -> str:
    if facts["named"]:
        return f"{'The c' if start else 'the c'}onfidence of {facts['name']}"
    return "Confidence" if start else "confidence"


def _separation_open(facts: Facts) -> str:
    if not facts["varies"]:
        return (
            f"{_who(facts)} is always the same: it separates no right from wrong answers until it "
            "varies."
        )
    return (
        f"Undecided{_why_open(facts['low'], facts['high'], 0.5, facts['p'])} whether "
        f"{_who(facts, start=False)} separates right from wrong answers "
        f"(AUROC {facts['low']:.2f} to {facts['high']:.2f}; 0.5 is chance). "
        "More labels would decide."
    )


SEPARATES = declare(
    ClaimRule(
        "audit.separates",
        "Is confidence higher for right answers than for wrong ones?",
        "AUROC != 0.5, and on which side",
        "AUROC against 0.5, at 4 %; 'equivalent' when its 90 % interval lies within 0.05 of 0.5",
        "Holm over the models and methods of the audit",
        {
            "shown": _separation,
            "equivalent": lambda facts: (
                f"{_who(facts)} hardly separates right from wrong answers: AUROC "
                f"{facts['value']:.2f}, within 0.05 of chance."
            ),
            "undecided": _separation_open,
        },
        margin=SEPARATION_MARGIN,
    )
)


ALL_OVER = declare(
    ClaimRule(
        "audit.all_over_confident",
        "Are all models over-confident?",
        "E[c_k] - E[y_k] > 0 for every model k",
        "each model's own claim must be shown",
        "Holm over all models, so that any one false claim among them has a chance of at most 5 %",
        {
            "shown": lambda facts: (
                f"{facts['of']} say more than they know, by {points_range(*facts['range'])} points."
            ),
        },
    )
)
