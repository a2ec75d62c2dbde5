"""The claims of `groups` in worlds whose truth is known: kinds of error, and true differences."""

from __future__ import annotations

from simulations._groups_worlds import People

ALL = ("groups.stands_out", "groups.grouping_loss", "groups.recalibration", "groups.decision_risk")
BOTH = ("groups.difference", "groups.named")


def worlds():
    """Yield all worlds."""
    for people in (
        People("calibrated"),
        People("over-confident by 10 points", overall=0.1),
        People("under-confident by 10 points", overall=-0.1),
        People("wavy", wavy=True),
        People("rare errors, 3 %", said="rare"),
        People("women 5.5 points off", n=2000, overall=0.05, sex=0.055),
        People("women 15 points off", n=2000, overall=0.05, sex=0.15, power=BOTH),
        People("25 points planted under 10", n=3000, overall=0.1, planted=0.25, power=ALL),
    ):
        yield people.world()
