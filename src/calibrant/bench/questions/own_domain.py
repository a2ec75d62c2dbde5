"""A domain of one's own: a table of triples, and a small TOML file that says what they mean.

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
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from calibrant.bench.questions.facts import Fact, FactSet, by_subject
from calibrant.bench.questions.question import normalised
from calibrant.bench.questions.wording import WORDINGS, Unit, Wording
from calibrant.core.document import load_toml
from calibrant.core.errors import InputError, error_source
from calibrant.data import read_table
from calibrant.models.study.settings import Settings


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
        domain = _domain(place)
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


def _domain(place: Path) -> _Domain:
    if not place.is_file():
        raise InputError("the domain file does not exist")
    table = Settings(load_toml(place.read_bytes(), source=str(place)), source=str(place))
    window = table.table("window").fill(_Window) if table.has("window") else None
    # A day may be written as TOML's own date.
    return table.fill(
        _Domain, date=str(table.raw("date")), joiner=table.text("or", " or "), window=window
    )


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
