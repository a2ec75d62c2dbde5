"""What `judge` may say: lenient or harsh, how far it agrees, what it favours, which model leads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from scipy.special import ndtri

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.claims import (
    About,
    Claim,
    Outcome,
    joined,
    labels_text,
    percent,
    points,
    points_range,
    rule,
)
from calibrant.findings.documents.labels import JudgeBias, JudgeEntry, ScoreMeaning
from calibrant.metrics.stats.multiplicity import holm

# Levels at which simulations keep every sentence false in at most 5 %.
FAVOUR_LEVEL, MODEL_LEVEL, POSITION_LEVEL, LEVEL = 0.03, 0.04, 0.045, 0.05
# Of a lenient judge the level is 4 %, of an equal mean 5 % on either side: these normal quantiles.
_Z_LENIENT, _Z_EQUAL, _Z = 2.054, 1.645, 1.96
# A judge that agrees less than people by no more than this is called as good as a person.
AGREE_MARGIN = 0.1
# An order that is read as below one half.
_BELOW = 0.495
# Normal quantile of the power (80 %) that labels would have which an undecided sentence asks for.
_POWER = 0.84
_MOST_TOLD = 3
# More labels than so many times those at hand decide nothing that anybody would wait for.
_FAR = 20
_SHARE = [0.0, 1.0]
# Rows for two people, in all and for each model, from which on favour may be seen.
_TWICE, _TWICE_A_MODEL = 100, 25

SIDES = {1.0: "A", 0.0: "B", 0.5: "tie"}

_BY, _KIND, _ROWS, _CHANCE = map(itemgetter, ("by", "kind", "rows", "chance"))
PEOPLE_MEAN = rule("judge.people_mean", shown=_KIND, worth=_ROWS)
LENIENT = rule("judge.lenient", opposite="judge.harsh", says=_ROWS, worth=_ROWS)
HARSH = rule("judge.harsh", opposite="judge.lenient", says=_ROWS, worth=_ROWS)
AGREES_LESS = rule(
    "judge.agrees_less", margin=AGREE_MARGIN, undecided=_BY, kappas=_BY, within=_BY,
    judge=_CHANCE, turned=_CHANCE, puts=_KIND, ask=_KIND,
)  # fmt: skip
MEANING = rule("judge.meaning")
FAVOURS = rule("judge.favours", undecided=_BY)
LENGTH = rule("judge.length", shown=_KIND)
POSITION = rule("judge.position", shown=_BY, undecided=_BY)
MODEL_BETTER = rule("judge.model_better")


def joined_claims(entries: Sequence[JudgeEntry], *, margin: float) -> list[Claim]:
    """Return the claims of all judges of a table, the most important of each first.

    Differences of means below the share `margin` of the scale do not matter.
    """
    result: list[Claim] = []
    # The order of models is people's: told once, beside the judge that narrows it most.
    with_pairs = [entry for entry in entries if entry.pairs]
    closest = min(with_pairs, key=lambda entry: entry.people_mean.width_ratio, default=None)
    for entry in entries:
        facts = {"name": entry.judge, "named": len(entries) > 1, "entry": entry}
        about = About({"judge": entry.judge}, {**facts, "kind": entry.scale.kind})
        best = [_best(entry)] if entry is closest else []
        mean, agreement = _mean(entry, about, margin), _agreement(entry, about, entries[0])
        if entry.scale.kind == "pairs":
            tested = [n for n in entry.bias if n.kind == "position" or n.people_share is not None]
            claims_of_entry = [
                agreement,
                *(_pair_lean(about, lean) for lean in tested),
                *best,
                mean,
            ]
            result += sorted(
                claims_of_entry, key=lambda c: (c.id, c.outcome) != (POSITION.id, "shown")
            )
            continue
        meaning = MEANING.claim("shown", about, {"meanings": _meanings(entry)}, n=entry.labels)
        by_chance = entry.order.ends[1] <= 0.5 and len(entry.map) > 1
        whole = [agreement, mean] if by_chance else [mean, agreement]
        # Before favours, of which there may be several: the first sentences are read.
        result += [*whole, meaning, *best, *_leans(entry, about)]
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
        return f"{value} (all rated)"
    return f"{value} ({' to '.join(end.removesuffix(' %') for end in ends)})"


def _scale(entry: JudgeEntry) -> str:
    """Return what numbers of people's ratings are measured on."""
    scale, (low, high) = entry.scale, entry.scale.people
    words = scale.people_words or (scale.words if scale.same else [])
    if scale.kind != "ratings":
        return f"share of {words[-1] if words else 'yes'!r}"
    return f"{low:g} = {words[0]}, {high:g} = {words[-1]}" if words else f"of {low:g}-{high:g}"


def _mean(entry: JudgeEntry, about: About, margin: float) -> Claim:
    mean, scale, labels = entry.people_mean, entry.scale, entry.labels
    facts: dict[str, Any] = {
        "mean": mean_words(entry, mean.combined),
        "scale": _scale(entry),
        "rows": "some" if labels < entry.n else "every",
    }
    if mean.judge_only is None or scale.kind == "pairs":
        return PEOPLE_MEAN.claim("shown", about, facts, estimate=mean.combined)
    enough = margin * (scale.people[1] - scale.people[0])
    gap, reach = mean.lenience.number, _reach(mean.lenience)
    says, people_say = (in_units(entry, value) for value in (mean.judge_only, mean.combined.number))
    # Of ratings the difference of both numbers as they are read.
    ratings = scale.kind == "ratings"
    size = in_units(entry, abs(float(says) - float(people_say))) if ratings else points(gap)
    facts |= {"judge_says": says, "by": size, "near": size_words(entry, enough)}
    if abs(gap) > _Z_LENIENT / _Z * reach:
        return (LENIENT if gap > 0 else HARSH).claim("shown", about, facts, estimate=mean.lenience)
    # Two one-sided tests at 5 %: the 90 % interval lies within the margin.
    near = abs(gap) + _Z_EQUAL / _Z * reach < enough
    # Ratings narrow people's mean, and not what the judge would say of other rows.
    people = _reach(mean.combined) ** 2 / max(1 - labels / entry.n, 1e-9)
    paths = [(_Z_LENIENT, abs(gap)), (_Z_EQUAL, enough - abs(gap))]
    facts["more"] = _forecast(entry, reach, paths, fixed=max(reach**2 - people, 0.0))
    outcome: Outcome = "equivalent" if near else "undecided"
    return LENIENT.claim(outcome, about, facts, estimate=mean.lenience, margin=margin)


def _reach(estimate: EstimateEntry) -> float:
    """Return half an interval, the larger half where the scale cuts it."""
    value, low, high = estimate.ends
    return max(value - low, high - value)


def size_words(entry: JudgeEntry, size: float) -> str:
    """Return a difference of ratings in people's units."""
    return f"{size:.2g}" if entry.scale.kind == "ratings" else f"{100 * size:g} points"


def _forecast(
    entry: JudgeEntry, reach: float, paths: Sequence[tuple[float, float]], what: str = "decide it",
    *, twice: int = 0, fixed: float = 0.0,
) -> str:  # fmt: skip
    """Return in words how many more labels decide four tables in five, if a value is as it seems.

    Of each of `paths` the normal quantile of its test is given, and how far the value is from what
    is to be excluded; labels leave the part `fixed` of the squared `reach` as it is. Where rows
    that people rated `twice` are counted, more of these are meant.
    """
    labels, unit = (twice, "rows rated by two people") if twice else (entry.labels, "ratings")
    room = max((_Z * max(far, 0.0) / (z + _POWER)) ** 2 for z, far in paths) - fixed
    more = labels * ((reach**2 - fixed) / room - 1) if room > 0 else math.inf
    if more > entry.n - labels:
        return f"{'two ' if twice else ''}ratings of all rows may not {what}"
    if more > _FAR * labels:
        return f"over {_FAR} times as many {unit} may not {what}"
    return f"{labels_text(more, unit)} would {what}"


def _agreement(entry: JudgeEntry, about: About, first: JudgeEntry) -> Claim:
    people, constant, (_, low, high) = entry.people, len(entry.map) == 1, entry.order.ends
    chance = "above" if low > 0.5 else "below" if high < _BELOW else "open"
    facts: dict[str, Any] = {
        "by": "constant" if constant else "one",
        "chance": chance,
        "score": judge_score(entry, entry.map[0].score),
    }
    if people is None or constant:
        return AGREES_LESS.claim("undecided", about, facts, estimate=entry.order)
    difference = people.kappa_difference or people.order_difference
    value, low, high = difference.ends
    paths = [(_Z, -value), (_Z, AGREE_MARGIN + value)]
    facts |= {
        "by": "kappa" if people.kappa_difference else "order",
        "explained": "; 0 is chance, 1 always the same" if entry is first else "",
        "more": _forecast(entry, _reach(difference), paths, twice=people.items),
    }
    outcome: Outcome = "shown" if high < 0 else "equivalent" if low > -AGREE_MARGIN else "undecided"
    return AGREES_LESS.claim(outcome, about, facts, estimate=difference)


def _meanings(entry: JudgeEntry) -> str:
    """Return what the scores with the most labels mean, the best first."""
    usual = sorted(entry.map, key=lambda row: -row.labels)[:_MOST_TOLD]
    rated = sorted([row for row in usual if row.labels], key=lambda row: -row.score)
    scores = [judge_score(entry, row.score) for row in rated]
    means = [f"{mean_words(entry, row)[:-1]}; {row.labels:,} rated)" for row in rated]
    return ", ".join(f"its {score} means {mean}" for score, mean in zip(scores, means, strict=True))


def judge_score(entry: JudgeEntry, score: float) -> str:
    """Return a score as the judge wrote it: a word where its scale has words, a side of a pair."""
    if entry.scale.kind == "pairs":
        return SIDES.get(score, f"{score:.2g}")
    if entry.scale.words and score == int(score):
        return repr(entry.scale.words[int(score - entry.scale.judge[0])])
    return f"{score:.2g}" if score != int(score) else f"{score:g}"


def _leans(entry: JudgeEntry, about: About) -> Iterator[Claim]:
    """Yield what is said of leans: each that is shown, else the largest of those tested.

    By one person a lead may be shown to be larger than people's: that is no favour yet.
    """
    tested = [lean for lean in entry.bias if lean.method in ("two people", "one person")]
    adjusted = holm([1.0 if lean.p is None else lean.p for lean in tested]) * LEVEL / FAVOUR_LEVEL
    by_p = sorted(zip(adjusted.tolist(), tested, strict=True), key=itemgetter(0))
    visible = [(p, lean) for p, lean in by_p if p <= LEVEL]
    if tested and (not visible or tested[0].method == "one person"):
        yield _open_favour(entry, about, tested, [lean for _, lean in visible])
        return
    for p, lean in visible[:_MOST_TOLD]:
        subject = {**about.subject, "model" if lean.kind == "model" else "rule": lean.name}
        notes = LENGTH if lean.kind == "length" else FAVOURS
        owner, facts = About(subject, about.facts), _lean_facts(entry, lean)
        yield notes.claim("shown", owner, facts, estimate=_estimate(lean), p_adjusted=p)


def _estimate(lean: JudgeBias) -> EstimateEntry:
    return EstimateEntry(value=lean.value, low=lean.low, high=lean.high, n=lean.labels)


def _lean_facts(entry: JudgeEntry, lean: JudgeBias) -> dict[str, Any]:
    """Return whom a judge leans to, and how far without its sign; a bare number is a model."""
    name, estimate = lean.name or "", _estimate(lean)
    size, *ends = (estimate if estimate.number >= 0 else estimate.turned()).ends
    model, shares = f"model {name}" if name[:1].isdigit() else name, entry.scale.judge == _SHARE
    return {
        "group": model if lean.kind == "model" else f"answers with {name}",
        "size": _judged(entry, size),
        "ends": points_range(*ends) if shares else "{:.2f} to {:.2f}".format(*ends),
    }


def _judged(entry: JudgeEntry, size: float) -> str:
    scale = entry.scale.judge
    return points(size) if scale == _SHARE else "{:.2f} (of {:g}-{:g})".format(size, *scale)


def _open_favour(
    entry: JudgeEntry, about: About, tested: Sequence[JudgeBias], leads_beyond: Sequence[JudgeBias]
) -> Claim:
    """Return what is said where no favour is shown; one person may show a lead `ahead`."""
    lean = next(iter(leads_beyond), max(tested, key=lambda lean: abs(lean.value or 0.0)))
    estimate, tests, groups = _estimate(lean), len(tested), len(entry.bias)
    z, reach = -float(ndtri(FAVOUR_LEVEL / 2 / tests)), _reach(estimate)
    paths = [(z, abs(estimate.number))]
    more = _forecast(entry, reach, paths, "show one of that size", twice=lean.labels)
    noun = "model" if all(each.kind == "model" for each in entry.bias) else "group"
    few = f"{tests} of {groups} {noun}s; too few ratings for {groups - tests}"
    facts = _lean_facts(entry, lean) | {
        "by": "open" if more.startswith("about") else "small",
        "those": few if tests < groups else f"any {noun}",
        "more": more.capitalize(),
        "least": _judged(entry, (z + _POWER) * reach / _Z),
        "twice": min(entry.n, max(_TWICE, _TWICE_A_MODEL * groups)),
    }
    if lean.method == "one person":
        facts["by"] = "ahead" if leads_beyond else "one"
    return FAVOURS.claim("undecided", about, facts, estimate=estimate)


def _pair_lean(about: About, lean: JudgeBias) -> Claim:
    level = POSITION_LEVEL if lean.kind == "position" else LEVEL
    outcome: Outcome = "shown" if lean.p is not None and lean.p <= level else "undecided"
    value, people, share = lean.value or 0.0, lean.people_share or 0.0, lean.judge_share or 0.0
    # Beside people's share that of the same pairs; what is not shown is told by the first side.
    shares = (people + value if lean.kind == "length" else share, people)
    share, people = shares if value > 0 or outcome != "shown" else (1 - part for part in shares)
    unit = {"both orders": "flips", "own picks": "own"}.get(lean.method, "one")
    facts = {"by": unit, "lean": lean, "share": share, "by_people": people,
             "flipped": (lean.flips or 0) / max(lean.labels, 1)}  # fmt: skip
    notes = POSITION if lean.kind == "position" else LENGTH
    return notes.claim(outcome, about, facts, estimate=_estimate(lean), p_adjusted=lean.p)


def _best(entry: JudgeEntry) -> Claim:
    """Return whom the best model beats, Holm over all pairs."""
    about = About({"judge": entry.judge}, {"named": False})
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
        size = f" by {in_units(entry, lead.number)} ({_scale(entry)})" if single else ""
        # 'And 1 more' would be as long as its name.
        names = joined(losers, most=3 + (len(losers) == 4))
        facts: dict[str, Any] = {"a": best, "losers": names, "by": size}
        owner = About({**about.subject, "a": best, "b": losers}, about.facts)
        most = max(p[name] for name in beaten)
        return MODEL_BETTER.claim("shown", owner, facts, estimate=lead, p_adjusted=most)
    near = min(leads, key=lambda pair: pair.p_adjusted or 0.0)
    lead, tested = near.difference, len(entry.models) * (len(entry.models) - 1) // 2
    paths = [(-float(ndtri(MODEL_LEVEL / 2 / tested)), abs(lead.number))]
    more = _forecast(entry, _reach(lead), paths, "show it in four of five tables")
    facts = {"tested": tested, "a": best, "b": near.b, "more": more}
    return MODEL_BETTER.claim("undecided", about, facts, estimate=lead, p_adjusted=p[near.b])
