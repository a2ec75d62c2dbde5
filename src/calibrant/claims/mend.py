"""What `mend` may say: how far off the mended confidence is, and what it gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.claim import Claim, ClaimRule, Facts, declare
from calibrant.claims.words import points, subject_name

_OUTCOME = {"mended": "shown", "not worth it": "equivalent", "too few": "undecided"}


def _lead(facts: Facts, name: str, alone: str) -> str:
    return f"{facts['name']}: {name}" if facts["named"] else alone


def _promise(facts: Facts) -> str:
    start = _lead(facts, "on new questions like these", "On new questions like these")
    text = (
        f"{start} the mended confidence is off by at most {points(facts['off_by'])} on average "
        "(95 %)."
    )
    if facts["rising"]:
        return text
    return (
        f"{text} Higher confidence does not mean more often right here; mending changes the order."
    )


OFF_BY = declare(
    ClaimRule(
        "mend.off_by",
        "How far off is the mended confidence?",
        "E|mended(c) - P(right | c)| <= x",
        "99 % quantile of that distance over draws of a wide belief about the curve",
        "none: one promise per model and method",
        {"shown": _promise},
    )
)


def _gained(facts: Facts) -> str:
    start = _lead(facts, "mending", "Mending")
    return f"{start} lowers the Brier score by {facts['gain']:.3f} (at least {facts['low']:.3f})."


def _small(facts: Facts) -> str:
    start = _lead(facts, "mending", "Mending")
    return (
        f"{start} would lower the Brier score by less than {facts['margin']:.2f}: nothing is "
        "mended, and the confidence is used as it is."
    )


def _open(facts: Facts) -> str:
    start = _lead(facts, "not enough labels", "Not enough labels")
    return f"{start} ({facts['n']:,}): nothing is mended. {facts['advice']}"


GAIN = declare(
    ClaimRule(
        "mend.gain",
        "Is the mended confidence better than the stated one?",
        "E[(c - y)^2 - (mended(c) - y)^2] > 0",
        "mean gain of maps fitted on other questions, one-sided at 5 %",
        "none: one claim per model and method",
        {"shown": _gained, "equivalent": _small, "undecided": _open},
        margin=0.01,
    )
)


def mend_claims(entry: Mapping[str, Any], *, named: bool) -> list[Claim]:
    """Return the claims of one map.

    Parameters
    ----------
    entry
        Entry of a mend document, as plain data.
    named
        Whether the sentences name the model: there are several.
    """
    subject = {"model": entry["model"], "method": entry["method"]}
    promise, n = entry["promise"], entry["n"]
    facts = {
        "name": subject_name(subject),
        "named": named,
        "n": n,
        "rising": entry["rising"],
        "off_by": promise["off_by"],
        "gain": promise["gain"],
        "low": promise["gain_low"],
        "margin": GAIN.margin,
        "advice": "200 are enough for most models." if n < 200 else "More labels would decide.",
    }
    made = []
    if promise["off_by"] is not None:
        made.append(
            OFF_BY.claim(
                "shown", facts, subject=subject, estimate={"value": promise["off_by"]}, n=n
            )
        )
    outcome = _OUTCOME[entry["verdict"]]
    made.append(
        GAIN.claim(
            outcome,  # type: ignore[arg-type]
            facts,
            subject=subject,
            estimate={"value": promise["gain"], "low": promise["gain_low"]},
            margin=GAIN.margin,
            n=n,
        )
    )
    return made
