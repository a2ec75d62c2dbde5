"""Filters on triples: popularity, validity, rules of the domain. Every drop has a reason.

A fact that is dropped from a subject leaves its list of answers incomplete, and questions
about it would call right answers wrong. So one unusable fact drops its whole subject.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from calibrant.bench.questions.facts import Fact, FactSet
from calibrant.bench.questions.question import WORDINGS, normalised
from calibrant.bench.questions.triples import DOMAIN_RELATION, Triple
from calibrant.core.arrays import named_stream
from calibrant.core.errors import InputError
from calibrant.data import read_table

_BARE_ID = re.compile(r"[QLP]\d+")
_FIRST_YEAR, _LAST_YEAR = 1800, 2023
_MOST_COUNTRIES = 6
# Who holds it, and the fewest years that count: one holder per year is asked for.
_YEARLY = {"award": ("laureates", 3, "three"), "office": ("holders", 10, "ten")}
_Groups = dict[str, list[Triple]]
_Reason = Callable[[str, Sequence[Triple]], str | None]


class Popularity(Struct, frozen=True):
    """Page views by domain and entity; the most viewed `top` from `minimum` on are kept.

    `listed` and `popular` count entities before names that several of them share are joined.
    """

    views: Mapping[str, Mapping[str, float]]
    minimum: float = 1_000
    top: int = 5_000
    listed: Mapping[str, int] = {}
    popular: Mapping[str, int] = {}

    def kept(self, domain: str) -> frozenset[str]:
        """Return the names that pass."""
        views = self.views.get(domain, {})
        passing = [name for name, count in views.items() if count >= self.minimum]
        passing.sort(key=lambda name: (-views[name], name))
        return frozenset(passing[: self.top])

    def summary(self) -> list[dict[str, object]]:
        """Return per domain how many entities are listed and how many pass."""
        return [
            {"domain": domain, "listed": self.listed[domain], "popular": self.popular[domain]}
            for domain in sorted(self.listed)
        ]


def read_popularity(source: Any, *, minimum: float = 1_000, top: int = 5_000) -> Popularity:
    """Read page views: columns ``label``, ``views_12m`` or ``views``, and ``domain``.

    Where several entities share a label, the most viewed one stands for it.
    """
    frame = read_table(source)
    column = next((name for name in ("views_12m", "views") if name in frame.columns), None)
    if column is None or not {"domain", "label"} <= set(frame.columns):
        raise InputError(
            f"page views have columns domain, label and views, got {', '.join(frame.columns)}",
            source=str(source),
        )
    views: dict[str, dict[str, float]] = defaultdict(dict)
    listed: Counter[str] = Counter()
    popular: Counter[str] = Counter()
    rows = frame.drop_nulls(["label", column]).select("domain", "label", column)
    for name, label, count in rows.iter_rows():
        domain = "region" if name == "country" else name
        listed[domain] += 1
        popular[domain] += count >= minimum
        key = normalised(label)
        views[domain][key] = max(views[domain].get(key, 0), count)
    capped = {domain: min(top, popular[domain]) for domain in listed}
    return Popularity(views, minimum, top, listed, capped)


def fact_sets(
    triples: Iterable[Triple],
    *,
    source: str,
    popularity: Popularity | None = None,
    rules: bool = True,
    single_cap: int | None = None,
    seed: int = 0,
) -> dict[str, list[FactSet]]:
    """Return the facts by domain that pass every filter, with the drops counted by reason.

    Parameters
    ----------
    triples
        As read.
    source
        Where they come from, in words.
    popularity
        Page views; without them the popularity filter is left out.
    rules
        Apply the rules of the domain, for example one laureate per year.
    single_cap
        Most subjects with one answer that River and Language keep, drawn at random (600 in
        Appendix B.3 of the paper); None keeps all.
    seed
        Seed of that draw.
    """
    by_domain: dict[str, list[Triple]] = defaultdict(list)
    for triple in triples:
        by_domain[triple.domain].append(triple)
    return {
        domain: [_sampled(_fact_set(domain, group, source, popularity, rules), single_cap, seed)]
        for domain, group in by_domain.items()
    }


def raw_facts(triples: Iterable[Triple], *, source: str) -> dict[str, list[FactSet]]:
    """Return all facts by domain, unfiltered: what a check compares questions with.

    A triple without a subject, object or needed value says nothing that could be compared.
    """
    usable = [
        triple
        for triple in triples
        if triple.subject is not None
        and triple.obj is not None
        and (triple.low is not None or WORDINGS[DOMAIN_RELATION[triple.domain]].unit is None)
    ]
    sets = {}
    for domain in dict.fromkeys(triple.domain for triple in usable):
        groups = _grouped([t for t in usable if t.domain == domain], defaultdict(Counter))
        facts = {subject: _facts(domain, group) for subject, group in groups.items()}
        sets[domain] = [FactSet(domain, DOMAIN_RELATION[domain], source, facts)]
    return sets


def _fact_set(
    domain: str, triples: Sequence[Triple], source: str, popularity: Popularity | None, rules: bool
) -> FactSet:
    dropped: dict[str, Counter[str]] = defaultdict(Counter)
    groups = _grouped(triples, dropped)
    stages = {"raw": len(groups)}
    if popularity is not None or any(triple.views is not None for triple in triples):
        obscure = _obscurity(domain, groups, popularity or Popularity({}))
        groups = _without(groups, obscure, dropped["popularity"])
        stages["popularity"] = len(groups)
    groups = _without(groups, _defect, dropped["validity"])
    stages["validity"] = len(groups)
    if rules:
        if domain in _YEARLY:
            groups = {
                name: [
                    t for t in group if (t.low is not None and _FIRST_YEAR <= t.low <= _LAST_YEAR)
                ]
                for name, group in groups.items()
            }
        groups = _without(groups, _broken_rule, dropped["domain rule"])
        stages["domain rule"] = len(groups)
    return FactSet(
        domain=domain,
        relation=DOMAIN_RELATION[domain],
        source=source,
        facts={subject: _facts(domain, groups[subject]) for subject in sorted(groups)},
        dropped={stage: dict(reasons) for stage, reasons in dropped.items() if reasons},
        stages=stages,
    )


def _sampled(facts: FactSet, cap: int | None, seed: int) -> FactSet:
    """Keep at most `cap` of the subjects with one answer; each other one keeps all its answers."""
    if cap is None or facts.wording.bounded:
        return facts
    single = [subject for subject in facts.facts if len(facts.answers(subject)) == 1]
    remaining = facts.facts
    dropped = {stage: dict(reasons) for stage, reasons in facts.dropped.items()}
    if len(single) > cap:
        order = named_stream(seed, "single answers", facts.domain).permutation(len(single))
        gone = {single[index] for index in order[cap:]}
        remaining = {
            subject: group for subject, group in facts.facts.items() if subject not in gone
        }
        dropped["sample"] = {f"beyond {cap:,} subjects with one answer": len(gone)}
    stages = {**facts.stages, "sample": len(remaining)}
    return structs.replace(facts, facts=remaining, dropped=dropped, stages=stages)


def _grouped(triples: Sequence[Triple], dropped: dict[str, Counter[str]]) -> _Groups:
    groups: _Groups = defaultdict(list)
    for triple in dict.fromkeys(triples):
        if triple.subject is None:
            dropped["validity"]["subject label missing"] += 1
        else:
            groups[triple.subject].append(triple)
    if repeated := len(triples) - len(dict.fromkeys(triples)):
        dropped["validity"]["repetition of a triple"] += repeated
    return dict(groups)


def _without(groups: _Groups, reason: _Reason, reasons: Counter[str]) -> _Groups:
    """Return the subjects that no reason speaks against; the others are counted by it."""
    against = {subject: reason(subject, triples) for subject, triples in groups.items()}
    reasons.update(why for why in against.values() if why is not None)
    return {subject: triples for subject, triples in groups.items() if against[subject] is None}


def _obscurity(domain: str, groups: _Groups, popularity: Popularity) -> _Reason:
    """Return what says why a subject is not popular; views in the triples come first."""
    in_triples = {
        normalised(subject): max(views)
        for subject, triples in groups.items()
        if (views := [triple.views for triple in triples if triple.views is not None])
    }
    counts = {**popularity.views.get(domain, {}), **in_triples}
    selection = structs.replace(popularity, views={domain: counts}).kept(domain)

    def reason(subject: str, _: Sequence[Triple]) -> str | None:
        name = normalised(subject)
        if name in selection:
            return None
        if name not in counts:
            return "no page views known"
        if counts[name] < popularity.minimum:
            return f"fewer than {popularity.minimum:,.0f} views"
        return f"beyond the {popularity.top:,} most viewed"

    return reason


def _defect(subject: str, triples: Sequence[Triple]) -> str | None:
    if _BARE_ID.fullmatch(subject):
        return "subject is a bare Q-id"
    for triple in triples:
        if triple.obj is None:
            return "label of an object missing"
        if _BARE_ID.fullmatch(triple.obj):
            return "an object is a bare Q-id"
        needs_value = WORDINGS[DOMAIN_RELATION[triple.domain]].unit is not None
        if needs_value and (triple.low is None or triple.high is None):
            return "year or area of an object missing"
    return None


def _broken_rule(_: str, triples: Sequence[Triple]) -> str | None:
    """Return which rule of its domain a subject breaks."""
    if not triples:
        return "no record between 1800 and 2023"
    domain, objects = triples[0].domain, len({triple.obj for triple in triples})
    if domain == "region":
        return "fewer than three divisions" if objects < 3 else None
    if domain not in _YEARLY:
        return "more than six countries" if objects > _MOST_COUNTRIES else None
    years = [triple.low for triple in triples if triple.low is not None]
    holders, least, words = _YEARLY[domain]
    if len(set(years)) < len(years):
        return f"several {holders} in one year"
    if domain == "award" and max(years) - min(years) + 1 != len(years):
        return "years without a record"
    return f"fewer than {words} recorded years" if len(years) < least else None


# The generic word of a division's name: 'Maekel Region' is also called 'Maekel'.
_KIND = (
    r"(?:administrative )?(?:region|province|governorate|district|department|state|county"
    r"|prefecture|municipality|division|parish|oblast|canton|voivodeship|territory|krai)"
)
_GENERIC = re.compile(rf"\s+{_KIND}$|^{_KIND}\s+(?:of )?", flags=re.IGNORECASE)


def _facts(domain: str, triples: Sequence[Triple]) -> tuple[Fact, ...]:
    names = Counter(_GENERIC.sub("", str(triple.obj)) for triple in triples)
    return tuple(
        Fact(
            subject=str(triple.subject),
            obj=str(triple.obj),
            low=triple.low,
            high=triple.high,
            aliases=(*triple.aliases, *_short_name(domain, str(triple.obj), names)),
        )
        for triple in triples
    )


def _short_name(domain: str, name: str, names: Counter[str]) -> tuple[str, ...]:
    short = _GENERIC.sub("", name)
    unique = short != name and names[short] == 1
    return (short,) if domain == "region" and unique else ()
