"""Worlds for the claims of `groups`: people, their confidences, and the true chance of each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import polars as pl

from calibrant.findings.claims.groups import GROUP_MARGIN, groups_claims
from calibrant.trust.audit import GroupOptions, groups_entry
from calibrant.trust.decision_risk import CostMatrix, pointwise_risk
from calibrant.trust.group_rules import parse_rule, text_groups, word_vectors
from calibrant.trust.near_confidence import ConfidenceBasis, project, projector
from simulations.claims.harness import Said, World

COSTS = {"c10": 3.0, "c01": 1.0}
NAMED = ("women: sex=f", "men: sex=m")
# A group that differs by less than this from rows of equal confidence is said to differ falsely.
NOTHING = 0.01
TOPICS = {
    "law": ["court", "contract", "judge", "statute", "appeal", "plaintiff", "clause", "liability"],
    "maths": ["integral", "theorem", "matrix", "proof", "vector", "prime", "algebra", "limit"],
    "health": ["patient", "dose", "symptom", "clinic", "therapy", "diagnosis", "vaccine", "nurse"],
    "trade": ["price", "market", "export", "tariff", "supply", "demand", "invoice", "margin"],
    "rocks": ["granite", "basalt", "sediment", "fault", "crystal", "erosion", "magma", "quartz"],
}


@dataclass(frozen=True)
class People:
    """A world of people: who they are, what is said of them, and how often that is right.

    `overall` is the over-confidence of all, `planted` that of the young of one department, `sex`
    that of women against men; `said` the kind of confidence, `extra` a further feature.
    """

    name: str
    n: int = 1000
    overall: float = 0.0
    planted: float = 0.0
    sex: float = 0.0
    wavy: bool = False
    said: str = "smooth"
    extra: str = ""
    per_question: int = 1
    power: tuple[str, ...] = field(default=())

    def draw(self, rng):
        """Return features, confidence, true chance, outcome, and units or None."""
        n = self.n
        table = pl.DataFrame(
            {
                "dept": rng.choice([f"d{i}" for i in range(8)], n),
                "sex": rng.choice(["f", "m"], n),
                "age": rng.integers(18, 80, n),
            }
        )
        f = self._said(rng)
        base = 0.25 + 0.5 * np.sin(3 * f) ** 2 if self.wavy else f - self.overall
        young = ((table["dept"] == "d3") & (table["age"] <= 40)).to_numpy()
        women = (table["sex"] == "f").to_numpy()
        shift = self.planted * young + self.sex * (women - 0.5)
        # The edge of the shares is the same for all, so that groups differ by nothing else.
        p = np.clip(base, 0.02, 0.98) - shift if self.said == "rare" else base - shift
        p = np.clip(p, 0.01, 0.99)
        return self._with_extra(table, f, rng), f, p, *self._outcomes(p, rng)

    def _said(self, rng):
        if self.said == "rare":
            return np.clip(rng.beta(60, 1.8, self.n), 0.8, 0.995)
        if self.said == "ties":
            return rng.choice(
                [0.5, 0.7, 0.8, 0.9, 0.95, 1.0], self.n, p=[0.1, 0.1, 0.2, 0.3, 0.2, 0.1]
            )
        return np.clip(rng.beta(5, 2, self.n), 0.02, 0.98)

    def _outcomes(self, p, rng):
        if self.per_question == 1:
            return (rng.random(len(p)) < p).astype(float), None
        # Rows of one question share their luck in half of the cases.
        units = np.arange(len(p)) // self.per_question
        luck = np.where(
            rng.random(len(p)) < 0.7, rng.random(units.max() + 1)[units], rng.random(len(p))
        )
        return (luck < p).astype(float), units

    def _with_extra(self, table, f, rng):
        n = self.n
        if self.extra == "noise":
            return table.with_columns(noise=pl.Series(rng.integers(0, 200, n).astype(str)))
        if self.extra == "copy":
            near = f + 0.02 * rng.normal(size=n)
            return table.with_columns(copy=pl.Series(f), near=pl.Series(near))
        if self.extra == "texts":
            labels = _text_labels()
            return table.with_columns(about=pl.Series(labels[rng.integers(0, len(labels), n)]))
        return table

    def world(self):
        """Return the world, to be run."""
        return World(f"{self.name}, {self.n:,} rows", self.run, self.power)

    def run(self, rng):
        """Say what `groups` says of one data set, and whether it is false."""
        table, f, p, y, units = self.draw(rng)
        options = GroupOptions(group=NAMED, costs=COSTS, seed=int(rng.integers(2**31)))
        entry, _ = groups_entry(
            {"model": "m", "method": "confidence"}, table, f, y, options=options, units=units
        )
        truth = _Truth(self, table, f, p)
        for claim in groups_claims(entry, named=False, costs=True):
            asserts = claim.outcome in ("shown", "equivalent")
            yield Said(claim.id, asserts, asserts and truth.denies(claim))


@cache
def _text_labels():
    """Return the groups of made texts, as `groups --embed` finds them; no outcome enters."""
    rng = np.random.default_rng(0)
    words = list(TOPICS.values())
    about = rng.integers(0, len(words), 3000)
    texts = [" ".join(rng.choice(words[at], 5)) + " what" for at in about]
    return np.array(text_groups(word_vectors(texts), texts, count=8).label)


class _Truth:
    """What is true of one data set, from the true chance of each row."""

    def __init__(self, world, table, f, p):
        self.world, self.table, self.p, self.f = world, table, p, f
        self.basis = projector(ConfidenceBasis().fit(f).transform(f))

    def denies(self, claim):
        """Return whether a claim that is made is false."""
        world, low = self.world, claim.low or 0
        if claim.id == "groups.recalibration":
            return not (world.wavy or world.overall)
        if claim.id == "groups.grouping_loss":
            young = 0.125 * 23 / 62
            return low > world.planted**2 * young * (1 - young) + world.sex**2 / 4
        if claim.id == "groups.decision_risk":
            return low > pointwise_risk(self.p, self.f, CostMatrix(**COSTS)).mean()
        if claim.id == "groups.difference":
            return self._off(claim, world.sex if claim.subject["a"] == "women" else -world.sex)
        if claim.id == "groups.named":
            return self._off(claim, world.sex if claim.subject["rule"] == "women" else -world.sex)
        return self._off(claim, self._beyond(str(claim.subject["rule"])))

    def _off(self, claim, gap):
        if claim.outcome == "equivalent":
            return abs(gap) > GROUP_MARGIN
        return abs(gap) < NOTHING or gap * claim.value < 0

    def _beyond(self, text):
        """Return the true gap of a group that was found, beyond those found before it."""
        if not (self.world.planted or self.world.sex):
            return 0.0
        group = parse_rule(text, self.table).mask(self.table).astype(float)
        own = group - project(self.basis, group)
        gap = -float(own @ self.p) / float(own @ own)
        self.basis = np.column_stack([self.basis, own / np.linalg.norm(own)])
        return gap
