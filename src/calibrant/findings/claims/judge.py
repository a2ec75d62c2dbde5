"""What `judge` may say: lenient or harsh, how far it agrees, what it favours, which model leads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from scipy.special import ndtri

from calibrant.core.estimate import EstimateEntry
from calibrant.findings.claims.claim import (
    About,
    Claim,
    labels_text,
    percent,
    points,
    points_range,
    rule,
)
from calibrant.findings.documents.labels import JudgeBias, JudgedPair, JudgeEntry
from calibrant.metrics.stats.multiplicity import holm

# Levels at which simulations keep every sentence false in at most 5 %.
LENIENT_LEVEL, FAVOUR_LEVEL, MODEL_LEVEL, LEVEL = 0.04, 0.03, 0.04, 0.05
_Z_LENIENT = 2.054
# A judge that agrees less than people by no more than this is called as good as a person.
AGREE_MARGIN = 0.1
# Normal quantile of the power (80 %) that labels would have which an undecided sentence asks for.
_POWER = 0.84
_MOST_FAVOURS = 3
# More labels than so many times those at hand decide nothing that anybody would wait for.
_FAR = 20

PEOPLE_MEAN = rule("judge.people_mean")
LENIENT = rule("judge.lenient", opposite="judge.harsh")
HARSH = rule("judge.harsh", opposite="judge.lenient")
AGREES_LESS = rule(
    "judge.agrees_less",
    margin=AGREE_MARGIN,
    shown=lambda facts: facts["by"],
    equivalent=lambda facts: facts["by"],
    undecided=lambda facts: facts["by"],
)
MEANING = rule("judge.meaning")
FAVOURS = rule(
    "judge.favours",
    shown=lambda facts: "for" if facts["value"] > 0 else "against",
    undecided=lambda facts: facts["people"],
)
LENGTH = rule("judge.length", shown=lambda facts: facts["kind"])
POSITION = rule(
    "judge.position",
    shown=lambda facts: facts["orders"],
    undecided=lambda facts: facts["orders"],
)
MODEL_BETTER = rule("judge.model_better")


def judge_claims(entry: JudgeEntry, *, margin: float, named: bool) -> Iterator[Claim]:
    """Yield the claims of one judge, the most important first.

    Parameters
    ----------
    entry
        Entry of a judge document.
    margin
        Differences of means below this share of the scale do not matter.
    named
        Whether the sentences name the judge: there are several.
    """
    about = About({"judge": entry.judge}, {"name": entry.judge, "named": named})
    pairs = entry.scale.kind == "pairs"
    if not pairs:
        yield _mean(entry, about, margin)
    yield _agreement(entry, about)
    if entry.map and not pairs:
        yield MEANING.claim("shown", about, {"meanings": _meanings(entry)}, n=entry.labels)
    best = [_best(entry, about)] if entry.pairs else []
    if pairs:
        yield from (*_leans(entry, about), *best, _mean(entry, about, margin))
        return
    # Before favours, of which there may be several: the first sentences are those that are read.
    yield from (*best, *_leans(entry, about))


def in_units(entry: JudgeEntry, value: float, *, people: bool = True) -> str:
    """Return a rating as people write it, or a share in percent.

    Parameters
    ----------
    entry
        Entry of a judge document.
    value
        A rating by people, or a score of the judge.
    people
        Whether it is on people's scale.
    """
    low, high = entry.scale.people if people else entry.scale.judge
    if entry.scale.kind != "ratings":
        return percent(value)
    digits = max(0, 2 - math.floor(math.log10(high - low)) + (high - low >= 10))
    return f"{value:.{min(digits, 3)}f}"


def _range(entry: JudgeEntry, estimate: EstimateEntry) -> str:
    _, low, high = estimate.ends
    if high - low <= 0:
        return ", all of them rated"
    ends = (in_units(entry, end).removesuffix(" %") for end in (low, high))
    return f" ({' to '.join(ends)})"


def _mean(entry: JudgeEntry, about: About, margin: float) -> Claim:
    mean, scale = entry.people_mean, entry.scale
    span = scale.people[1] - scale.people[0]
    what = {
        "ratings": "people's mean",
        "yes/no": "people's share of yes",
        "pairs": "the first side's share of wins, by people,",
    }[scale.kind]
    saved = mean.labels_saved
    worth = f"worth {saved:,} label{'' if saved == 1 else 's'}."
    facts: dict[str, Any] = {
        "what": what if about.facts["named"] else what[0].upper() + what[1:],
        "mean": in_units(entry, mean.combined.number),
        "range": _range(entry, mean.combined),
        "worth": f" W{worth[1:]}" if entry.labels < entry.n else f" On new rows it is {worth}",
    }
    if mean.judge_only is None or scale.kind == "pairs":
        return PEOPLE_MEAN.claim("shown", about, facts, estimate=mean.combined)
    gap, _, high = mean.lenience.ends
    facts |= {"says": in_units(entry, mean.judge_only), "near": size_words(entry, margin * span)}
    if abs(gap) > _Z_LENIENT / 1.96 * (high - gap):
        return (LENIENT if gap > 0 else HARSH).claim("shown", about, facts, estimate=mean.lenience)
    # Two one-sided tests at 5 %: the 90 % interval lies within the margin.
    if abs(gap) + 1.645 / 1.96 * (high - gap) < margin * span:
        outcome: Any = "equivalent"
    else:
        outcome = "undecided"
    facts["more"] = _more(entry.labels, mean.lenience)
    return LENIENT.claim(
        outcome, about, facts, estimate=mean.lenience, margin=margin if outcome != "shown" else None
    )


def size_words(entry: JudgeEntry, size: float) -> str:
    """Return a difference of ratings in people's units."""
    return f"{size:.2g}" if entry.scale.kind == "ratings" else f"{100 * size:g} points"


def _more(labels: int, estimate: EstimateEntry, tests: int = 1) -> float | None:
    """Return how many more labels would show a value of this size among so many tests."""
    value, low, high = estimate.ends
    if value == 0:
        return None
    reach = _POWER - float(ndtri(LEVEL / 2 / tests))
    return max((reach * (high - low) / 2 / 1.96 / value) ** 2 - 1, 0.1) * labels


def _agreement(entry: JudgeEntry, about: About) -> Claim:
    order, people = entry.order, entry.people
    value, low, high = order.ends
    pairs = entry.scale.kind == "pairs"
    facts: dict[str, Any] = {
        "puts": "the judge picks the side that a person prefers" if pairs
        else "the judge puts the better of two answers first",
        "order": value,
        "order_ends": f"{100 * low:.0f} to {100 * high:.0f}",
        "by": "one",
    }  # fmt: skip
    if people is None:
        return AGREES_LESS.claim("undecided", about, facts, estimate=order)
    kappa = entry.kappa is not None and people.kappa_difference is not None
    difference = people.kappa_difference if kappa else people.order_difference
    assert difference is not None
    facts |= {
        "by": "kappa" if kappa else "order",
        "others": people.order.number,
        "kappa": _kappa(entry.kappa),
        "kin": _kappa(people.kappa),
    }
    _, low, high = difference.ends
    facts["more"] = labels_text(_more(entry.labels, difference))
    outcome: Any = "shown" if high < 0 else "equivalent" if low > -AGREE_MARGIN else "undecided"
    return AGREES_LESS.claim(outcome, about, facts, estimate=difference)


def _kappa(estimate: EstimateEntry | None) -> str:
    if estimate is None:
        return ""
    value, low, high = estimate.ends
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def _meanings(entry: JudgeEntry) -> str:
    """Return what the highest score means, one in the middle and the lowest with labels."""
    rated = [row for row in entry.map if row.labels] or entry.map
    choice = list(dict.fromkeys((len(rated) - 1, (len(rated) - 1) // 2, 0)))
    words = []
    for row in (rated[place] for place in choice):
        score = judge_score(entry, row.score)
        low, high = (in_units(entry, end).removesuffix(" %") for end in (row.low, row.high))
        words.append(f"{score} means {in_units(entry, row.value)} ({low} to {high})")
    return "its " + ", its ".join(words)


def judge_score(entry: JudgeEntry, score: float) -> str:
    """Return a score as the judge wrote it: a word where its scale has words, a side of a pair."""
    if entry.scale.kind == "pairs":
        return {1.0: "A", 0.0: "B", 0.5: "tie"}.get(score, f"{score:.2g}")
    if entry.scale.words and score == int(score):
        return repr(entry.scale.words[int(score - entry.scale.judge[0])])
    return f"{score:.2g}" if score != int(score) else f"{score:g}"


def _leans(entry: JudgeEntry, about: About) -> Iterator[Claim]:
    """Yield what is said of leans: each that is shown, else the largest of those tested."""
    kinds = ("model", "feature", "length")
    tested = [lean for lean in entry.bias if lean.method == "two people" and lean.p is not None]
    adjusted = holm([lean.p or 0.0 for lean in tested]) * LEVEL / FAVOUR_LEVEL
    visible = [(lean, min(float(p), 1.0)) for lean, p in zip(tested, adjusted, strict=True)]
    matches = sorted((pair for pair in visible if pair[1] <= LEVEL), key=lambda pair: pair[1])
    for lean, p in matches[:_MOST_FAVOURS]:
        yield _favour(entry, about, lean, p)
    if tested and not matches:
        largest = max(tested, key=lambda lean: abs(lean.value or 0.0))
        yield _open_favour(entry, about, largest, len(tested))
    alone = [lean for lean in entry.bias if lean.method == "one person" and lean.kind in kinds]
    if alone and not tested:
        largest = max(alone, key=lambda lean: abs(lean.value or 0.0))
        where = "ahead" if (largest.value or 0.0) > 0 else "behind"
        facts = {
            "people": "one",
            "group": _lean_name(largest),
            "where": where,
            **_sizes(entry, largest),
        }
        yield FAVOURS.claim("undecided", about, facts, estimate=_estimate(largest))
    for lean in entry.bias:
        if lean.method in ("both orders", "beside people"):
            yield _pair_lean(about, lean)


def _estimate(lean: JudgeBias) -> EstimateEntry:
    return EstimateEntry(value=lean.value, low=lean.low, high=lean.high, n=lean.labels)


def _lean_name(lean: JudgeBias) -> str:
    """Return whom a judge leans to; a bare number is called a model."""
    name = lean.name or ""
    return f"model {name}" if lean.kind == "model" and name[:1].isdigit() else name


def _sizes(entry: JudgeEntry, lean: JudgeBias) -> dict[str, str]:
    """Return a lean without its sign, in words, with the ends of its interval."""
    value, *ends = _estimate(lean).ends
    if value < 0:
        ends = [-end for end in reversed(ends)]
    ratings = entry.scale.kind == "ratings"
    words = "{:.2f} to {:.2f}".format(*ends) if ratings else points_range(*ends)
    return {"size": _size_words(entry, abs(value)), "ends": words}


def _size_words(entry: JudgeEntry, size: float) -> str:
    return f"{size:.2f} points of its scale" if entry.scale.kind == "ratings" else points(size)


def _favour(entry: JudgeEntry, about: About, lean: JudgeBias, p: float) -> Claim:
    value = _estimate(lean).number
    facts = {
        "group": _lean_name(lean),
        "value": value,
        **_sizes(entry, lean),
        "kind": "rating",
        "which": "longer" if value > 0 else "shorter",
    }
    subject = {**about.subject, "model" if lean.kind == "model" else "rule": lean.name}
    owner = About(subject, about.facts)
    notes = LENGTH if lean.kind == "length" else FAVOURS
    return notes.claim("shown", owner, facts, estimate=_estimate(lean), p_adjusted=p)


def _open_favour(entry: JudgeEntry, about: About, lean: JudgeBias, tested: int) -> Claim:
    estimate = _estimate(lean)
    more = _more(lean.labels, estimate, tested)
    _, low, high = estimate.ends
    shown = (_POWER - float(ndtri(LEVEL / 2 / tested))) * (high - low) / 2 / 1.96
    facts = {
        "people": "open" if more is not None and more <= _FAR * lean.labels else "small",
        "group": _lean_name(lean), "tested": tested, "more": more,
        "size": _size_words(entry, abs(estimate.number)), "least": _size_words(entry, shown),
    }  # fmt: skip
    return FAVOURS.claim("undecided", about, facts, estimate=_estimate(lean))


def _pair_lean(about: About, lean: JudgeBias) -> Claim:
    outcome: Any = "shown" if (lean.p or 0.0) <= LEVEL else "undecided"
    up = (lean.value or 0.0) > 0
    share = lean.judge_share or 0.0
    kind = ("first" if up else "second") if lean.kind == "position" else (
        "longer" if up else "shorter")  # fmt: skip
    facts = {
        "which": kind,
        "share": share if up or outcome != "shown" else 1 - share,
        "by_people": lean.people_share if up or outcome != "shown" or lean.people_share is None
        else 1 - lean.people_share,
        "kind": "pair",
        "orders": "flips" if lean.method == "both orders" else "one",
        "flips": lean.flips or 0,
    }  # fmt: skip
    notes = POSITION if lean.kind == "position" else LENGTH
    return notes.claim(outcome, about, facts, estimate=_estimate(lean), p_adjusted=lean.p)


def _best(entry: JudgeEntry, about: About) -> Claim:
    """Return whom the best model beats, Holm over all pairs."""
    worth = {model.name: _place(model) for model in entry.models}
    best = max(worth, key=lambda name: worth[name])
    mine = [pair for pair in entry.pairs if best in (pair.a, pair.b)]
    beaten = [pair for pair in mine if _ahead(pair, best) and _model_p(pair) <= LEVEL]
    if beaten:
        losers = sorted((_other(pair, best) for pair in beaten), key=lambda name: worth[name])[::-1]
        closest = min(beaten, key=lambda pair: abs(pair.difference.value or 0.0))
        p = max(map(_model_p, beaten))
        facts: dict[str, Any] = {"a": best, "losers": losers, "by": ""}
        if len(beaten) == 1 and entry.scale.kind == "ratings":
            facts["by"] = f" by {abs(closest.difference.number):.2f} points"
        owner = About({**about.subject, "a": best, "b": losers}, about.facts)
        ends = closest.difference if closest.a == best else closest.difference.turned()
        return MODEL_BETTER.claim("shown", owner, facts, estimate=ends, p_adjusted=p)
    near = min(mine, key=lambda pair: pair.p_adjusted or 0.0)
    tested = len(entry.models) * (len(entry.models) - 1) // 2
    more = _more(entry.labels, near.difference, tested)
    facts = {"tested": tested, "a": best,
             "b": _other(near, best), "more": more}  # fmt: skip
    return MODEL_BETTER.claim("undecided", about, facts, estimate=near.difference,
                              p_adjusted=_model_p(near))  # fmt: skip


def _model_p(pair: JudgedPair) -> float:
    return min((pair.p_adjusted or 0.0) * LEVEL / MODEL_LEVEL, 1.0)


def _place(model: Any) -> float:
    value = model.strength.value if model.strength is not None else model.combined.value
    return -math.inf if value is None else float(value)


def _ahead(pair: JudgedPair, best: str) -> bool:
    return (pair.difference.value or 0.0) * (1 if pair.a == best else -1) > 0


def _other(pair: JudgedPair, best: str) -> str:
    return pair.b if pair.a == best else pair.a


def joined_claims(entries: Sequence[JudgeEntry], *, margin: float) -> list[Claim]:
    """Return the claims of all judges of a table."""
    several = len(entries) > 1
    return [
        claim for entry in entries for claim in judge_claims(entry, margin=margin, named=several)
    ]
