"""What `judge` may say: lenient or harsh, how far it agrees, what it favours, which model leads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from msgspec.structs import asdict
from scipy.special import ndtri

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.claims import (
    About,
    Claim,
    Outcome,
    count,
    labels_text,
    percent,
    points,
    points_range,
    rule,
)
from calibrant.findings.claims.margins import more_labels
from calibrant.findings.documents.labels import JudgeBias, JudgeEntry, ScoreMeaning
from calibrant.metrics.stats.multiplicity import holm

# Levels at which simulations keep every sentence false in at most 5 %.
FAVOUR_LEVEL, MODEL_LEVEL, LEVEL = 0.03, 0.04, 0.05
# Of a lenient judge the level is 4 %: this normal quantile.
_Z_LENIENT = 2.054
# A judge that agrees less than people by no more than this is called as good as a person.
AGREE_MARGIN = 0.1
# Normal quantile of the power (80 %) that labels would have which an undecided sentence asks for.
_POWER = 0.84
_MOST_FAVOURS = 3
# More labels than so many times those at hand decide nothing that anybody would wait for.
_FAR = 20

_WHAT = {
    "ratings": "people's mean",
    "yes/no": "people's share of yes",
    "pairs": "the first side's share of wins, by people,",
}
SIDES = {1.0: "A", 0.0: "B", 0.5: "tie"}
_PUTS = ("the judge puts the better of two answers first",
         "the judge picks the side that a person prefers")  # fmt: skip

PEOPLE_MEAN = rule("judge.people_mean")
LENIENT = rule("judge.lenient", opposite="judge.harsh")
HARSH = rule("judge.harsh", opposite="judge.lenient")
_BY, _ORDERS = itemgetter("by"), itemgetter("orders")
AGREES_LESS = rule(
    "judge.agrees_less", margin=AGREE_MARGIN, shown=_BY, equivalent=_BY, undecided=_BY
)
MEANING = rule("judge.meaning")
FAVOURS = rule("judge.favours", undecided=itemgetter("people"))
LENGTH = rule("judge.length", shown=itemgetter("kind"))
POSITION = rule("judge.position", shown=_ORDERS, undecided=_ORDERS)
MODEL_BETTER = rule("judge.model_better")


def joined_claims(entries: Sequence[JudgeEntry], *, margin: float) -> list[Claim]:
    """Return the claims of all judges of a table, the most important of each first.

    Differences of means below the share `margin` of the scale do not matter.
    """
    result: list[Claim] = []
    for entry in entries:
        about = About({"judge": entry.judge}, {"name": entry.judge, "named": len(entries) > 1})
        best = [_best(entry, about)] if entry.pairs else []
        mean, agreement = _mean(entry, about, margin), _agreement(entry, about)
        if entry.scale.kind == "pairs":
            leans = [_pair_lean(about, lean) for lean in entry.bias]
            result += [agreement, *leans, *best, mean]
            continue
        meaning = MEANING.claim("shown", about, {"meanings": _meanings(entry)}, n=entry.labels)
        # Before favours, of which there may be several: the first sentences are read.
        result += [mean, agreement, meaning, *best, *_leans(entry, about)]
    return result


def in_units(entry: JudgeEntry, value: float) -> str:
    """Return a rating as people write it, or a share in percent."""
    low, high = entry.scale.people
    if entry.scale.kind != "ratings":
        return percent(value)
    digits = max(0, 2 - math.floor(math.log10(high - low)) + (high - low >= 10))
    return f"{value:.{min(digits, 3)}f}"


def mean_words(entry: JudgeEntry, mean: EstimateEntry | ScoreMeaning) -> str:
    """Return a mean by people with its interval, which it has unless all rows are rated."""
    value, *ends = (in_units(entry, end or 0.0) for end in (mean.value, mean.low, mean.high))
    if mean.low == mean.high:
        return f"{value}, all of them rated"
    return f"{value} ({' to '.join(end.removesuffix(' %') for end in ends)})"


def _mean(entry: JudgeEntry, about: About, margin: float) -> Claim:
    mean, scale = entry.people_mean, entry.scale
    worth = f"worth {count(mean.labels_saved, 'label')}."
    facts: dict[str, Any] = {
        "what": _WHAT[scale.kind],
        "mean": mean_words(entry, mean.combined),
        "worth": f" W{worth[1:]}" if entry.labels < entry.n else f" On new rows it is {worth}",
    }
    if mean.judge_only is None or scale.kind == "pairs":
        return PEOPLE_MEAN.claim("shown", about, facts, estimate=mean.combined)
    enough = margin * (scale.people[1] - scale.people[0])
    gap, _, high = mean.lenience.ends
    facts |= {
        "says": in_units(entry, mean.judge_only),
        "near": size_words(entry, enough),
        "more": _more(entry.labels, mean.lenience),
    }
    if abs(gap) > _Z_LENIENT / 1.96 * (high - gap):
        return (LENIENT if gap > 0 else HARSH).claim("shown", about, facts, estimate=mean.lenience)
    # Two one-sided tests at 5 %: the 90 % interval lies within the margin.
    near = abs(gap) + 1.645 / 1.96 * (high - gap) < enough
    outcome: Outcome = "equivalent" if near else "undecided"
    return LENIENT.claim(outcome, about, facts, estimate=mean.lenience, margin=margin)


def size_words(entry: JudgeEntry, size: float) -> str:
    """Return a difference of ratings in people's units."""
    return f"{size:.2g}" if entry.scale.kind == "ratings" else f"{100 * size:g} points"


def _more(labels: int, estimate: EstimateEntry, tests: int = 1) -> float | None:
    """Return how many more labels would show a value of this size among so many tests."""
    return more_labels({**asdict(estimate), "n": labels}, 0.0, shown=LEVEL / tests)


def _agreement(entry: JudgeEntry, about: About) -> Claim:
    order, people = entry.order, entry.people
    value, low, high = order.ends
    puts, ends = _PUTS[entry.scale.kind == "pairs"], f"{100 * low:.0f} to {100 * high:.0f}"
    facts: dict[str, Any] = {"puts": puts, "order": value, "order_ends": ends, "by": "one"}
    if people is None:
        return AGREES_LESS.claim("undecided", about, facts, estimate=order)
    difference = people.kappa_difference or people.order_difference
    facts |= {
        "by": "kappa" if people.kappa_difference else "order",
        "kappa": entry.kappa,
        "people": people,
        "more": labels_text(_more(entry.labels, difference)),
    }
    _, low, high = difference.ends
    outcome: Outcome = "shown" if high < 0 else "equivalent" if low > -AGREE_MARGIN else "undecided"
    return AGREES_LESS.claim(outcome, about, facts, estimate=difference)


def _meanings(entry: JudgeEntry) -> str:
    """Return what the highest score means, one in the middle and the lowest with labels."""
    rated = [row for row in entry.map if row.labels] or entry.map
    places = dict.fromkeys((len(rated) - 1, (len(rated) - 1) // 2, 0))
    return ", ".join(
        f"its {judge_score(entry, rated[place].score)} means {mean_words(entry, rated[place])}"
        for place in places
    )


def judge_score(entry: JudgeEntry, score: float) -> str:
    """Return a score as the judge wrote it: a word where its scale has words, a side of a pair."""
    if entry.scale.kind == "pairs":
        return SIDES.get(score, f"{score:.2g}")
    if entry.scale.words and score == int(score):
        return repr(entry.scale.words[int(score - entry.scale.judge[0])])
    return f"{score:.2g}" if score != int(score) else f"{score:g}"


def _leans(entry: JudgeEntry, about: About) -> Iterator[Claim]:
    """Yield what is said of leans: each that is shown, else the largest of those tested."""
    tested = [lean for lean in entry.bias if lean.method == "two people"]
    adjusted = holm([lean.p or 0.0 for lean in tested]) * LEVEL / FAVOUR_LEVEL
    by_p = sorted(zip(adjusted.tolist(), tested, strict=True), key=itemgetter(0))
    visible = [(p, lean) for p, lean in by_p if p <= LEVEL]
    for p, lean in visible[:_MOST_FAVOURS]:
        subject = {**about.subject, "model" if lean.kind == "model" else "rule": lean.name}
        notes = LENGTH if lean.kind == "length" else FAVOURS
        owner, facts = About(subject, about.facts), _lean_facts(entry, lean)
        yield notes.claim("shown", owner, facts, estimate=_estimate(lean), p_adjusted=p)
    alone = [lean for lean in entry.bias if lean.method == "one person"]
    if not visible and (tested or alone):
        largest = max(tested or alone, key=lambda lean: abs(lean.value or 0.0))
        yield _open_favour(entry, about, largest, len(tested))


def _estimate(lean: JudgeBias) -> EstimateEntry:
    return EstimateEntry(value=lean.value, low=lean.low, high=lean.high, n=lean.labels)


def _lean_facts(entry: JudgeEntry, lean: JudgeBias) -> dict[str, Any]:
    """Return whom a judge leans to, and how far without its sign; a bare number is a model."""
    name, estimate = lean.name or "", _estimate(lean)
    size, *ends = (estimate if estimate.number >= 0 else estimate.turned()).ends
    ratings = entry.scale.kind == "ratings"
    return {
        "kind": "rating",
        "people": "one",
        "group": f"model {name}" if lean.kind == "model" and name[:1].isdigit() else name,
        "size": _scale_points(entry, size),
        "ends": "{:.2f} to {:.2f}".format(*ends) if ratings else points_range(*ends),
    }


def _scale_points(entry: JudgeEntry, size: float) -> str:
    return f"{size:.2f} points of its scale" if entry.scale.kind == "ratings" else points(size)


def _open_favour(entry: JudgeEntry, about: About, lean: JudgeBias, tested: int) -> Claim:
    """Return what is said of the largest lean that is not shown; of one person none is tested."""
    facts, estimate = _lean_facts(entry, lean), _estimate(lean)
    if tested:
        more = _more(lean.labels, estimate, tested)
        _, low, high = estimate.ends
        least = (_POWER - float(ndtri(LEVEL / 2 / tested))) * (high - low) / 2 / 1.96
        soon = more is not None and more <= _FAR * lean.labels
        facts |= {"people": "open" if soon else "small", "tested": tested, "more": more,
                  "least": _scale_points(entry, least)}  # fmt: skip
    return FAVOURS.claim("undecided", about, facts, estimate=estimate)


def _pair_lean(about: About, lean: JudgeBias) -> Claim:
    outcome: Outcome = "shown" if (lean.p or 0.0) <= LEVEL else "undecided"
    # A lean that is not shown is told by the side that is named first.
    share, by_people = (
        value if value is None or (lean.value or 0.0) > 0 or outcome != "shown" else 1 - value
        for value in (lean.judge_share, lean.people_share)
    )
    facts = {"share": share, "by_people": by_people, "kind": "pair", "flips": lean.flips or 0,
             "orders": "flips" if lean.method == "both orders" else "one"}  # fmt: skip
    notes = POSITION if lean.kind == "position" else LENGTH
    return notes.claim(outcome, about, facts, estimate=_estimate(lean), p_adjusted=lean.p)


def _best(entry: JudgeEntry, about: About) -> Claim:
    """Return whom the best model beats, Holm over all pairs."""
    worth = {model.name: (model.strength or model.combined).numbers[0] for model in entry.models}
    best = max(worth, key=lambda name: np.nan_to_num(worth[name], nan=-math.inf))
    leads = [pair for pair in entry.pairs if pair.a == best]
    leads += [pair.turned() for pair in entry.pairs if pair.b == best]
    p = {pair.b: min((pair.p_adjusted or 0.0) * LEVEL / MODEL_LEVEL, 1.0) for pair in leads}
    beaten = {pair.b: pair.difference for pair in leads
              if pair.difference.number > 0 and p[pair.b] <= LEVEL}  # fmt: skip
    if beaten:
        losers = sorted(beaten, key=lambda name: -worth[name])
        lead = min(beaten.values(), key=lambda lead: lead.number)
        single = len(beaten) == 1 and entry.scale.kind == "ratings"
        size = f" by {lead.number:.2f} points" if single else ""
        facts: dict[str, Any] = {"a": best, "losers": losers, "by": size}
        owner = About({**about.subject, "a": best, "b": losers}, about.facts)
        most = max(p[name] for name in beaten)
        return MODEL_BETTER.claim("shown", owner, facts, estimate=lead, p_adjusted=most)
    near = min(leads, key=lambda pair: pair.p_adjusted or 0.0)
    lead, tested = near.difference, len(entry.models) * (len(entry.models) - 1) // 2
    facts = {"tested": tested, "a": best, "b": near.b, "more": _more(entry.labels, lead, tested)}
    return MODEL_BETTER.claim("undecided", about, facts, estimate=lead, p_adjusted=p[near.b])
