"""The rules and sentences of an audit: what is tested, and the words for each outcome."""

from __future__ import annotations

from typing import Any

from calibrant.claims.claim import ALPHA, ClaimRule, Facts, declare
from calibrant.claims.grades import grades_sentence
from calibrant.claims.margins import ERROR_MARGIN, FORECAST_TRUE
from calibrant.claims.significance import SEPARATION_MARGIN
from calibrant.claims.words import count, labels_text, percent, points, points_range
from calibrant.stats.clusters import FEWEST


def _says(facts: Facts) -> str:
    name = f"{facts['name']} says" if facts["named"] else "Says"
    said = f"{name} {percent(facts['said'])}, is "
    if facts["right"] in (0.0, 1.0):
        rows = facts["rows"]
        share = f"{'always' if facts['right'] else 'never'} right ({count(rows, 'answer')})"
    else:
        share = f"right {percent(facts['right'])}"
    of_all = None if facts["right_of_all"] is None else percent(facts["right_of_all"])
    told = of_all is None or of_all == percent(facts["right"])
    rest = "" if told else f" ({of_all} with answers that state no confidence)"
    return f"{said}{share}{rest}"


def _interval(facts: Facts) -> str:
    return f"95 % interval {points_range(facts['low'], facts['high'])}"


def _off_by(word: str) -> Any:
    return lambda facts: (
        f"{_says(facts)}: {word} by {points(abs(facts['value']))} ({_interval(facts)})"
        f"{_IF_MISSING[facts['missing']]}."
    )


# What a direction rests on where answers have no confidence.
_IF_MISSING = {
    None: "",
    "whatever": ", whatever the missing confidences said",
    "if": ", if missing confidences are like those of other answers as often right",
}


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
    if facts["few_clusters"]:
        return f"{_says(facts)}: undecided. {_few(facts['few_clusters'])}"
    why = _why_open(facts["signed_low"], facts["signed_high"], 0.0, facts["p"])
    return (
        f"{_says(facts)}: undecided{why} whether it is over- or under-confident "
        f"{_difference(facts['signed_low'], facts['signed_high'])}. "
        f"{labels_text(facts['more'], facts['what']).capitalize()} would decide"
        f"{_HOW_OFTEN if facts['more'] is not None else ''}."
    )


_HOW_OFTEN = f" (such forecasts came true in {percent(FORECAST_TRUE)} of simulations or more)"


def _few(clusters: int) -> str:
    what = "1 question or topic" if clusters == 1 else f"{clusters} questions or topics"
    return f"Rows come from {what}: at least {FEWEST} are needed to speak of others like them."


def _difference(low: float | None, high: float | None) -> str:
    return f"(difference {points_range(low, high)}{' points' if low is not None else ''})"


def _depends(word: str) -> Any:
    return lambda facts: (
        grades_sentence(facts)
        if "grades" in facts
        else f"{_says(facts)}: {word} by {points(abs(facts['value']))} on the "
        f"{percent(1 - facts['missing_share'])} of answers with a confidence. The others are right "
        f"{percent(facts['missing_accuracy'])}: what they would say decides about all answers."
    )


def _direction(word: str, other: str, sign: str) -> ClaimRule:
    return declare(
        ClaimRule(
            f"audit.{word.replace('-', '_')}",
            f"Is the model {word}?",
            f"E[c] - E[y] {sign} 0",
            "the larger of Student's p between questions and the exact law of the mean gap under "
            "perfect calibration, and the calibration error shown too; between clusters: the "
            "larger of Student's p (CR2) and that of flipped signs; 'equivalent' by two one-sided "
            "tests at 2.5 %",
            "4.5 % for all sentences of the audit: weighted Holm with separation, shared by models",
            {
                "shown": _off_by(word),
                "equivalent": _agrees,
                "undecided": _direction_open,
                "depends": _depends(word),
            },
            margin=ERROR_MARGIN,
            opposite=f"audit.{other.replace('-', '_')}",
        )
    )


OVER = _direction("over-confident", "under-confident", ">")
UNDER = _direction("under-confident", "over-confident", "<")


def _subject(facts: Facts) -> str:
    return f"{facts['name']}: calibration" if facts["named"] else "Calibration"


def _cells(facts: Facts) -> str:
    """Say where the error was measured: at stated values, in slices of the scale, or both."""
    values, slices = facts["values"], facts["slices"]
    of_values = f"at each of {values} stated values" if values > 1 else "at one stated value"
    of_slices = "in one slice of the scale" if slices == 1 else f"in {slices} slices of the scale"
    parts = [of_values] * bool(values) + [of_slices] * bool(slices)
    return " and ".join(parts)


def _error_shown(facts: Facts) -> str:
    if facts["low"] > 0:
        size = f"{points(facts['value'])} ({_interval(facts)})"
    else:
        size = f"{points(facts['value'])}, at most {points(facts['high'])}, but not none"
    return f"{_subject(facts)} error {size}, measured {_cells(facts)}."


def _error_open(facts: Facts) -> str:
    start = f"{_subject(facts)} error {points(facts['value'])}: undecided."
    if facts["few_clusters"]:
        return f"{start} {_few(facts['few_clusters'])}"
    if facts["tested"]:
        return f"{start} It could be as large as {points(facts['upper'])}."
    return (
        f"{start} These rows cannot show it to be within {points(facts['margin'])}: "
        f"at best {points(facts['at_best'])}."
    )


MISCALIBRATED = declare(
    ClaimRule(
        "audit.miscalibrated",
        "Do the stated confidences match the share of right answers along the whole scale?",
        "sum_k P(k) |E[c - y | k]| > 0 over cells k: stated values that carry rows, else slices",
        "mean gap, Spiegelhalter's score and cells under perfect calibration, combined (Cauchy); "
        "between clusters: flipped signs; 'equivalent' where a calibrated model could reach it, "
        "the 97.5 % upper bound and the exact interval of the accuracy lie within the margin, and "
        "no structure is seen inside slices",
        "4.5 % for all sentences of the audit: weighted Holm with separation, shared by models; "
        "'equivalent' 2.5 %, Holm over models",
        {
            "shown": _error_shown,
            "equivalent": lambda facts: (
                f"{_subject(facts)} error {points(facts['value'])}, at most "
                f"{points(facts['upper'])}: calibrated within {points(facts['margin'])}, measured "
                f"{_cells(facts)}."
            ),
            "undecided": _error_open,
            "depends": grades_sentence,
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
        "the larger p of ranks with ties (Mann and Whitney) and of the AUROC against 0.5 (DeLong); "
        "'equivalent' when it is within 0.05 of 0.5 by two one-sided tests at 3 %",
        "4.5 % for all sentences of the audit: weighted Holm with calibration, shared by models",
        {
            "shown": _separation,
            "equivalent": lambda facts: (
                f"{_who(facts)} hardly separates right from wrong answers: AUROC "
                f"{facts['value']:.2f}, within 0.05 of chance."
            ),
            "undecided": _separation_open,
            "depends": grades_sentence,
        },
        margin=SEPARATION_MARGIN,
    )
)


def _most_over(facts: Facts) -> str:
    over, models = facts["over"], facts["models"]
    number = f"{over} of {models} models"
    if over == models:
        number = "both models" if models == 2 else f"all {count(models, 'model')}"
    who = f"{facts['before']}{number}{facts['behind']}"
    ends = ""
    if facts["best"] is not None:
        best, worst = (_named_error(facts[name]) for name in ("best", "worst"))
        ends = f" Calibration errors go from {best} to {worst}."
    return (
        f"{who[0].upper()}{who[1:]} say more than they know, by {points_range(*facts['range'])} "
        f"points.{ends}"
    )


def _named_error(entry: Any) -> str:
    error = entry["metrics"]["error"]
    return f"{points(error['value'])} ({entry['model']}, {_interval(error)})"


MODELS_OVER = declare(
    ClaimRule(
        "audit.models_over_confident",
        "How many of the models are over-confident?",
        "E[c_k] - E[y_k] > 0 for each of the models counted",
        "each model's own claim must be shown",
        "that of the models' own claims: any false one among them has a chance of at most 4.5 %",
        {"shown": _most_over},
    )
)
