"""The claims of `groups` in worlds whose truth is known: awkward tables without any true group."""

from __future__ import annotations

from simulations._groups_worlds import People


def worlds():
    """Yield all worlds."""
    for people in (
        People("few rows, over-confident by 10 points", n=200, overall=0.1),
        People("six values of confidence", overall=0.08, said="ties"),
        People("four rows per question", n=1600, overall=0.1, per_question=4),
        People("200 noise categories", overall=0.1, extra="noise"),
        People("copies of the confidence, wavy", wavy=True, extra="copy"),
        People("groups of texts", overall=0.05, extra="texts"),
    ):
        yield people.world()
