"""Facts: subject, object and a value, also of a domain of one's own.

A domain of one's own is a table of triples, and a small TOML file that says what they mean.

.. code-block:: toml

    name = "drug"                       # the domain
    relation = "approved_for"
    triples = "drugs.csv"               # columns subject, object and, if any, aliases (a|b|c)
    question = "Name one drug that is approved for {subjects}."
    or = " or "                         # what stands before the last of several subjects
    source = "list of the health authority"
    date = "2025-01"
    complete = true                     # every right answer of every subject is listed
    completeness = "the authority publishes the whole list"
    right = "the substance, not the brand"    # what makes an answer right, for judges
    second = "register.csv"             # another list of the same facts, from another source
    second_source = "public register, 2025-01"
    inverse = "uses.csv"                # or: a list of the other direction, by another source
    symmetric = true                    # where A has B, B has A (borders): checked in the list

With a ``[window]`` table, questions ask about one subject within bounds: ``column`` names the
number, ``text`` words the bounds with ``{low}`` and ``{high}``, and ``{bounds}`` stands in the
question; ``one`` words bounds that are one number ('in {low}').
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from calibrant.bench.questions.question import (
    WORDINGS,
    BenchQuestion,
    Bounds,
    Unit,
    Wording,
    normalised,
)
from calibrant.core.document import load_toml
from calibrant.core.errors import InputError, error_source
from calibrant.data import read_table
from calibrant.models.study.settings import Settings


class Fact(Struct, frozen=True):
    """One triple: `subject` has `obj`, where known with a value.

    A value known only within bounds (an area rounded to a class, a name with several
    spellings) has `low` < `high`; a question then never cuts through it.
    """

    subject: str
    obj: str
    low: float | None = None
    high: float | None = None
    aliases: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The object's name in the form that decides identity."""
        return normalised(self.obj)

    @property
    def span(self) -> Bounds:
        """The ends of the value."""
        if self.low is None or self.high is None:
            raise AssertionError(f"a window needs facts with values, got {self}")
        return self.low, self.high


class FactSet(Struct, frozen=True):
    """All facts of one relation, with what reading and filtering them dropped.

    Parameters
    ----------
    domain, relation
        For example ``language`` and ``official_in``; the relation decides the wording.
    source
        Where the facts come from, in words.
    facts
        Facts of every subject.
    dropped
        Stage, then reason, then number of subjects dropped.
    stages
        Stage, then number of subjects left after it.
    date
        When the facts were written down.
    complete, completeness
        Whether every right answer of every subject is listed, and why that is so. Only complete
        relations are asked for 'exactly k'.
    own_wording
        The frame of the questions; None: the one registered for the relation.
    symmetric
        Whether A has B exactly where B has A, as for borders.
    second, second_source
        What another source says: the objects of every subject, all in their normal form.
    """

    domain: str
    relation: str
    source: str
    facts: Mapping[str, tuple[Fact, ...]]
    dropped: Mapping[str, Mapping[str, int]] = {}
    stages: Mapping[str, int] = {}
    date: str = ""
    complete: bool = True
    completeness: str = "complete as given: whoever gives the facts vouches for them"
    own_wording: Wording | None = None
    symmetric: bool = False
    second: Mapping[str, frozenset[str]] = {}
    second_source: str = ""

    @property
    def wording(self) -> Wording:
        """The frame of the questions."""
        return self.own_wording or WORDINGS[self.relation]

    def require_complete(self) -> None:
        """Refuse a relation whose lists of answers may have gaps: 'exactly k' would be false."""
        if not self.complete:
            raise InputError(
                f"the relation {self.relation!r} is declared incomplete ({self.completeness}), "
                "so 'exactly k right answers' would be false",
                source=self.source,
                hint="set complete = true once every right answer of every subject is listed",
            )

    def answers(self, subject: str) -> dict[str, tuple[str, ...]]:
        """Return the subject's objects by key, each with all its names."""
        return names_of(self.facts[subject])

    def inside(self, subject: str, bounds: Bounds) -> set[str] | None:
        """Return the keys of the subject's objects within bounds; None where one is partly inside.

        An uncertain value that shares an end with the window counts as partly inside. For areas,
        which are rounded, sharing an end is no overlap.

        Examples
        --------
        >>> areas = (Fact("X", "A", 10.0, 20.0), Fact("X", "B", 20.0, 30.0))
        >>> regions = FactSet("region", "division_of", "a list", {"X": areas})
        >>> regions.inside("X", (10.0, 20.0))
        {'a'}
        >>> regions.inside("X", (10.0, 25.0)) is None
        True
        """
        (lower, upper), touching = bounds, self.wording.unit != "area"
        keys = set()
        for fact in self.facts[subject]:
            low, high = fact.span
            if lower <= low and high <= upper:
                keys.add(fact.key)
            elif low == high or touching:
                if low <= upper and high >= lower:
                    return None
            elif low < upper and high > lower:
                return None
        return keys

    def question(
        self, text: str, references: Iterable[tuple[str, ...]], meta: Mapping[str, Any]
    ) -> BenchQuestion:
        """Return a question about these facts."""
        return BenchQuestion(
            text=text,
            references=tuple(sorted(references)),
            domain=self.domain,
            subtype=self.relation,
            source=self.source,
            date=self.date,
            meta=meta,
        )

    def entities(self) -> Counter[str]:
        """Return how many subjects have each object."""
        return Counter(
            key for subject in self.facts for key in {fact.key for fact in self.facts[subject]}
        )


def by_subject(facts: Iterable[Fact]) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of every subject, in the order of their names."""
    groups: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[fact.subject].append(fact)
    return {subject: tuple(groups[subject]) for subject in sorted(groups)}


def names_of(facts: Iterable[Fact]) -> dict[str, tuple[str, ...]]:
    """Return all names of every object by its key."""
    names: dict[str, tuple[str, ...]] = {}
    for fact in facts:
        earlier = names.get(fact.key, ())
        names[fact.key] = tuple(dict.fromkeys((*earlier, fact.obj, *fact.aliases)))
    return names


def foreign_entities(sets: Mapping[str, Sequence[FactSet]]) -> dict[str, frozenset[str]]:
    """Return for every domain the entities that belong to another one.

    An entity that is an answer in several domains goes to the one that would lose the largest
    share of its subjects without it; subjects with this answer alone weigh most, because only
    they make questions with one right answer.
    """
    weights = {domain: _weights(parts) for domain, parts in sets.items()}
    foreign: dict[str, set[str]] = {domain: set() for domain in sets}
    for entity in sorted(set().union(*weights.values())):
        holders = [domain for domain in sets if entity in weights[domain]]
        owner = max(holders, key=lambda domain: (weights[domain][entity], domain))
        for domain in holders:
            if domain != owner:
                foreign[domain].add(entity)
    return {domain: frozenset(entities) for domain, entities in foreign.items()}


def _weights(parts: Sequence[FactSet]) -> dict[str, float]:
    """Return the share of a domain's subjects that stands or falls with each entity."""
    alone: Counter[str] = Counter()
    among: Counter[str] = Counter()
    for facts in parts:
        for subject in facts.facts:
            keys = {fact.key for fact in facts.facts[subject]}
            (alone if len(keys) == 1 else among).update(keys)
    return {
        entity: (alone[entity] + 0.1 * among[entity]) / max(1, alone.total() + 0.1 * among.total())
        for entity in alone | among
    }


class _Window(Struct, frozen=True):
    """The number that bounds are about, and how they are worded."""

    column: str
    text: str
    one: str = ""


class _Domain(Struct, frozen=True):
    """What a domain file says; `joiner` is its ``or``."""

    name: str
    relation: str
    triples: str
    question: str
    source: str
    complete: bool
    date: str
    joiner: str
    window: _Window | None
    completeness: str = "as the domain file declares"
    right: str = ""
    article: str = ""
    symmetric: bool = False
    second: str = ""
    inverse: str = ""
    second_source: str = ""


def read_domain(path: str | Path) -> FactSet:
    """Read a domain file and its triples.

    Parameters
    ----------
    path
        The TOML file; the path of the triples is relative to it.

    Returns
    -------
    FactSet
        Facts that carry their own wording, source, date and completeness.
    """
    place = Path(path)
    with error_source(str(place)):
        if not place.is_file():
            raise InputError("the domain file does not exist")
        table = Settings(load_toml(place.read_bytes(), source=str(place)), source=str(place))
        window = table.table("window").fill(_Window) if table.has("window") else None
        # A day may be written as TOML's own date.
        domain = table.fill(
            _Domain, date=str(table.raw("date")), joiner=table.text("or", " or "), window=window
        )
        wording, second = _wording(domain), _second_list(domain, place.parent)
    facts = by_subject(_facts(place.parent / domain.triples, domain.window))
    return FactSet(
        domain=domain.name,
        relation=domain.relation,
        source=domain.source,
        facts=facts,
        stages={"raw": len(facts)},
        date=domain.date,
        complete=domain.complete,
        completeness=domain.completeness,
        own_wording=wording,
        symmetric=domain.symmetric,
        second=second,
        second_source=domain.second_source,
    )


def own_domains(paths: Sequence[str | Path]) -> dict[str, list[FactSet]]:
    """Return the facts of several domain files by domain."""
    by_domain: dict[str, list[FactSet]] = defaultdict(list)
    for path in paths:
        facts = read_domain(path)
        by_domain[facts.domain].append(facts)
    return dict(by_domain)


def _wording(domain: _Domain) -> Wording:
    window = domain.window
    targets = {"subjects", "bounds"} if window else {"subjects"}
    if set(re.findall(r"\{(\w+)\}", domain.question)) != targets:
        fields = " and ".join(f"{{{name}}}" for name in sorted(targets))
        raise InputError(f"the question needs {fields}, got {domain.question!r}")
    if domain.relation in WORDINGS:
        raise InputError(
            f"the relation {domain.relation!r} is one of calibrant's own",
            hint="give it another name",
        )
    return Wording(
        relation=domain.relation,
        domain=domain.name,
        frame=domain.question,
        unit=window.column if window else None,
        article=domain.article,
        joiner=domain.joiner,
        own_unit=Unit(window.text, window.one) if window else None,
    )


def _second_list(domain: _Domain, folder: Path) -> dict[str, frozenset[str]]:
    """Return what another list says: the objects of every subject, in the form that is compared."""
    listed: dict[str, set[str]] = defaultdict(set)
    for key, file in (("second", domain.second), ("inverse", domain.inverse)):
        if not file:
            continue
        if not domain.second_source:
            raise InputError(
                f"say where the {key} list comes from",
                hint="set second_source to another source than that of the facts",
            )
        for fact in _facts(folder / file):
            subject, obj = normalised(fact.subject), normalised(fact.obj)
            if key == "inverse":
                subject, obj = obj, subject
            listed[subject].add(obj)
    return {subject: frozenset(objects) for subject, objects in listed.items()}


def _facts(table: Path, window: _Window | None = None) -> Iterator[Fact]:
    if not table.is_file():
        raise InputError("the table of triples does not exist", source=str(table))
    for row, record in enumerate(read_table(table).iter_rows(named=True), start=1):
        subject, obj = (str(record.get(key) or "").strip() for key in ("subject", "object"))
        if not subject or not obj:
            raise InputError("a triple has a subject and an object", source=str(table), row=row)
        value = None if window is None else _number(record.get(window.column))
        if window is not None and value is None:
            raise InputError(
                f"the column {window.column!r} holds a number, got {record.get(window.column)!r}",
                source=str(table),
                row=row,
            )
        aliases = [text.strip() for text in str(record.get("aliases") or "").split("|")]
        yield Fact(subject, obj, value, value, tuple(text for text in aliases if text))


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
