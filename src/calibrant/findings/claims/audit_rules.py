"""The rules and sentences of an audit: what is tested, and the words for each outcome."""

from calibrant.findings.claims import (
    ALPHA,
    ClaimRule,
    Facts,
    count,
    labels_text,
    percent,
    points,
    points_range,
    rule,
)
from calibrant.findings.claims.grades import grades_sentence
from calibrant.findings.claims.margins import ERROR_MARGIN, FORECAST_TRUE
from calibrant.findings.claims.significance import SEPARATION_MARGIN
from calibrant.findings.documents.audits import AuditBlock
from calibrant.metrics.stats.clusters import FEWEST


def _says(facts: Facts) -> str:
    name = f"{facts['name']} says" if facts["named"] else "Says"
    confidence = f"{name} {percent(facts['said'])}, is "
    if facts["right"] in (0.0, 1.0):
        rows = facts["rows"]
        share = f"{'always' if facts['right'] else 'never'} right ({count(rows, 'answer')})"
    else:
        share = f"right {percent(facts['right'])}"
    of_all = None if facts["right_of_all"] is None else percent(facts["right_of_all"])
    notes = of_all is None or of_all == percent(facts["right"])
    remainder = "" if notes else f" ({of_all} with answers that state no confidence)"
    return f"{confidence}{share}{remainder}"


# What a direction rests on where answers have no confidence.
_IF_MISSING = {
    None: "",
    "whatever": ", whatever the missing confidences said",
    "if": ", if missing confidences are like those of other answers as often right",
}


def _why_open(low: float | None, high: float | None, middle: float, p: float | None) -> str:
    """Say why it is open where the interval alone would decide: tests are counted, it is not."""
    if low is None or high is None or low <= middle <= high:
        return ""
    several = p is not None and p <= ALPHA
    return f" {'after counting all tests of this audit' if several else 'by the stricter test'}"


def _forecast(facts: Facts) -> str:
    text = f"{labels_text(facts['more'], facts['what']).capitalize()} would decide"
    return text if facts["more"] is None else f"{text}{_HOW_OFTEN}"


_HOW_OFTEN = f" (such forecasts came true in {percent(FORECAST_TRUE)} of simulations or more)"


def _few_clusters(facts: Facts) -> str:
    what = facts["few_clusters"]
    return f"Rows come from {what}: at least {FEWEST} are needed to speak of others like them."


def _depends(facts: Facts) -> str:
    """Return what a claim depends on: grades, which groups are meant, or missing confidences."""
    return next((name for name in ("grades", "of_these") if name in facts), "missing")


def _direction(name: str, opposite: str) -> ClaimRule:
    return rule(
        f"audit.{name}",
        margin=ERROR_MARGIN,
        opposite=f"audit.{opposite}",
        undecided=lambda facts: "few" if facts["few_clusters"] else "open",
        depends=_depends,
        says=_says,
        if_missing=lambda facts: _IF_MISSING[facts["missing"]],
        # A small mean gap may hide gaps of both signs: the verdict beside is then about those.
        along=lambda facts: ", but along the scale they differ" if facts["off_along"] else "",
        why=lambda facts: _why_open(facts["signed_low"], facts["signed_high"], 0.0, facts["p"]),
        difference=_difference,
        forecast=_forecast,
        few=_few_clusters,
        grades_sentence=grades_sentence,
        stated=lambda facts: percent(1 - facts["lost"]["share"]),
    )


def _difference(facts: Facts) -> str:
    low, high = facts["signed_low"], facts["signed_high"]
    return f"(difference {points_range(low, high)}{' points' if low is not None else ''})"


OVER = _direction("over_confident", "under_confident")
UNDER = _direction("under_confident", "over_confident")


def _cells(facts: Facts) -> str:
    """Say where the error was measured: bins are stated values and slices of the scale."""
    return f"in {count(facts['values'] + facts['slices'], 'bin')}"


MISCALIBRATED = rule(
    "audit.miscalibrated",
    margin=ERROR_MARGIN,
    shown=lambda facts: "above" if facts["low"] > 0 else "some",
    undecided=lambda facts: (
        "few" if facts["few_clusters"] else "tested" if facts["tested"] else "unreachable"
    ),
    depends=lambda facts: "of_these" if "of_these" in facts else "grades",
    grades_sentence=grades_sentence,
    subject=lambda facts: f"{facts['name']}: calibration" if facts["named"] else "Calibration",
    cells=_cells,
    few=_few_clusters,
)


def _who(facts: Facts) -> str:
    name = str(facts["name"])
    if not facts["named"] or name.startswith("The confidence"):
        return name if facts["named"] else "Confidence"
    return f"The confidence of {name}"


SEPARATES = rule(
    "audit.separates",
    margin=SEPARATION_MARGIN,
    shown=lambda facts: "separates" if facts["value"] > 0.5 else "turned",
    undecided=lambda facts: "open" if facts["varies"] else "constant",
    depends=grades_sentence,
    who=_who,
    of_whom=lambda facts: _who(facts)[0].lower() + _who(facts)[1:],
    why=lambda facts: _why_open(facts["low"], facts["high"], 0.5, facts["p"]),
)


def _most_over(facts: Facts) -> str:
    over, models = facts["over"], facts["models"]
    number = f"{over} of {models} models"
    if over == models:
        number = "both models" if models == 2 else f"all {count(models, 'model')}"
    # Of one confidence a headline says behind the number which it is, of all of them before it.
    person = f"{number}{facts['where']}" if facts["method"] else f"{facts['where']}{number}"
    ends = ""
    if facts["best"] is not None:
        best, worst = (_named_error(facts[name]) for name in ("best", "worst"))
        ends = f" Calibration errors go from {best} to {worst}."
    return (
        f"{person[0].upper()}{person[1:]} say more than they know, by "
        f"{points_range(*facts['range'])} "
        f"points.{ends}"
    )


def _named_error(entry: AuditBlock) -> str:
    error = entry.metric("error")
    interval = points_range(error.low, error.high)
    return f"{points(error.value or 0.0)} ({entry.model}, 95 % interval {interval})"


MODELS_OVER = rule("audit.models_over_confident", shown=_most_over)
