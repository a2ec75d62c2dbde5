"""More accurate, better calibrated, alike: three claims in one order, and who leads a league."""

import pytest

from calibrant.comparison.decision import decide
from calibrant.comparison.ece_interval import Gap
from calibrant.comparison.evidence import SIX, SQUARED, PairEvidence
from calibrant.findings.claims.compare import comparison_claims


def evidence(sides, *, laws=0.2, bound=0.2, lead=0.2):
    """Return a pair; a side of -1 says that the first model's error is lower on that footing."""
    shown = dict(zip((*SIX, "sos"), (*sides, sides[0]), strict=True))
    return PairEvidence(
        gaps={name: Gap(0.03 * side, 0.001, 0.0) for name, side in shown.items()},
        squares=dict.fromkeys(SQUARED, 0.0),
        rms=dict.fromkeys(SQUARED, 0.0),
        bound=bound,
        laws_high=(laws, laws),
        clip=0.0,
        lead=lead,
        lead_sd=0.01,
        unstated=(0.0, 0.0),
    )


def verdict(pair):
    found = decide(pair, margin=0.05, stands=True, leads=True)
    return found.word, found.winner, found.by


@pytest.mark.parametrize("alike", [{"laws": 0.01}, {"bound": 0.01}])
def test_a_model_that_all_six_footings_show_ahead_is_better_whatever_else_is_shown(alike):
    """It was called 'only more accurate' where its errors or laws were alike too."""
    rests_on = "laws" if "laws" in alike else "errors"
    assert verdict(evidence([-1] * 6, **alike)) == ("better", -1, rests_on)
    # The less accurate one is better as well.
    assert verdict(evidence([1] * 6, **alike)) == ("better", 1, rests_on)


def test_only_is_said_where_a_footing_shows_the_other_way():
    assert verdict(evidence([0] * 6, laws=0.01)) == ("more accurate, alike", -1, "laws")
    assert verdict(evidence([-1, -1, 0, 0, 0, 0], laws=0.01))[0] == "more accurate, alike"
    assert verdict(evidence([-1, 0, 0, 0, 0, 1], laws=0.01)) == ("only more accurate", -1, "laws")
    assert verdict(evidence([1, 0, 0, 0, 0, 0], lead=-0.2, laws=0.01))[0] == "more accurate, alike"


def test_a_better_one_is_called_so_before_equivalent():
    assert verdict(evidence([1] * 6, bound=0.01, lead=0.0))[0] == "better"
    assert verdict(evidence([0] * 6, bound=0.01, lead=0.0))[0] == "equivalent"


def league(scores, tiers, winner=None):
    entries = [
        {"model": name, "tier": tier, "n": 100, "score": {"value": high - 0.1, "high": high}}
        for name, high, tier in zip("abcd", scores, tiers, strict=False)
    ]
    verdicts = dict.fromkeys(
        ("better", "reversal", "only more accurate", "more accurate, alike"), 0
    )
    return {
        "entries": entries,
        "winner": winner,
        "method": "verb",
        "group": {},
        "verdicts": {**verdicts, "undecided": 3},
        "worse_than_constant": sum(high < 0 for high in scores),
    }


def said(*arguments, **more):
    (claim,) = comparison_claims([], [], [league(*arguments, **more)], [])
    return claim.text


def test_a_model_that_is_worse_than_a_constant_leads_nobody():
    assert "no model is shown to beat a or b" in said([0.3, 0.2, 0.1], [1, 1, 2])
    text = said([-0.1, 0.2, 0.1], [1, 1, 2])
    assert "no model is shown to beat b" in text
    assert "share the lead" not in text
    text = said([-0.1, -0.2, 0.1], [1, 1, 2])
    assert "each of these does worse than always stating one number" in text
    text = said([-0.1, -0.2, -0.3], [1, 2, 2], winner="a")
    assert "leads" in text
    assert "It does worse than always stating one number" in text
