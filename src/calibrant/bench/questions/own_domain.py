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

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.bench.questions.facts import Fact, FactSet
from calibrant.bench.questions.question import normalised
from calibrant.bench.questions.wording import WORDINGS, Unit, Wording
from calibrant.core.document import load_toml
from calibrant.core.errors import InputError
from calibrant.core.registry import require_known
from calibrant.records import read_table

_KEYS = ("name", "relation", "triples", "question", "or", "source", "date", "complete",
         "completeness", "right", "window", "article", "symmetric", "second", "inverse",
         "second_source")  # fmt: skip
_NEEDED = ("name", "relation", "triples", "question", "source", "date", "complete")


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
    settings = _settings(place)
    wording = _wording(settings, place)
    facts: dict[str, list[Fact]] = defaultdict(list)
    table = _existing(place.parent / settings["triples"])
    for row, record in enumerate(read_table(table).iter_rows(named=True), start=1):
        fact = _fact(record, settings, str(table), row)
        facts[fact.subject].append(fact)
    return FactSet(
        domain=settings["name"],
        relation=settings["relation"],
        source=settings["source"],
        facts={subject: tuple(facts[subject]) for subject in sorted(facts)},
        stages={"raw": len(facts)},
        date=str(settings["date"]),
        complete=settings["complete"],
        completeness=settings.get("completeness", "as the domain file declares"),
        own_wording=wording,
        symmetric=settings.get("symmetric") is True,
        second=_second_list(settings, place),
        second_source=str(settings.get("second_source", "")),
    )


def _second_list(settings: Mapping[str, Any], place: Path) -> dict[str, frozenset[str]]:
    """Return what another list says: the objects of every subject, in the form that is compared."""
    pairs: set[tuple[str, str]] = set()
    for key, names in (("second", ("subject", "object")), ("inverse", ("object", "subject"))):
        if key not in settings:
            continue
        if not settings.get("second_source"):
            raise InputError(
                f"say where the {key} list comes from",
                source=str(place),
                hint="set second_source to another source than that of the facts",
            )
        table = _existing(place.parent / settings[key])
        for row, record in enumerate(read_table(table).iter_rows(named=True), start=1):
            fact = _fact(record, {}, str(table), row)
            both = {"subject": fact.subject, "object": fact.obj}
            pairs.add((normalised(both[names[0]]), normalised(both[names[1]])))
    found: dict[str, set[str]] = defaultdict(set)
    for subject, obj in pairs:
        found[subject].add(obj)
    return {subject: frozenset(objects) for subject, objects in found.items()}


def _existing(table: Path) -> Path:
    if not table.is_file():
        raise InputError("the table of triples does not exist", source=str(table))
    return table


def own_domains(paths: Sequence[str | Path]) -> dict[str, list[FactSet]]:
    """Return the facts of several domain files by domain."""
    found: dict[str, list[FactSet]] = defaultdict(list)
    for path in paths:
        facts = read_domain(path)
        found[facts.domain].append(facts)
    return dict(found)


def _settings(place: Path) -> Mapping[str, Any]:
    if not place.is_file():
        raise InputError("the domain file does not exist", source=str(place))
    settings = load_toml(place.read_bytes(), source=str(place))
    require_known(settings, _KEYS, "a domain file has no key {}", source=str(place))
    missing = [key for key in _NEEDED if key not in settings]
    if missing:
        raise InputError(
            f"a domain file needs {', '.join(missing)}",
            source=str(place),
            hint="complete says whether every right answer of every subject is listed",
        )
    if not isinstance(settings["complete"], bool):
        raise InputError("complete is true or false", source=str(place))
    return settings


def _wording(settings: Mapping[str, Any], place: Path) -> Wording:
    frame, window = str(settings["question"]), settings.get("window")
    wanted = {"subjects", "bounds"} if window else {"subjects"}
    if set(re.findall(r"\{(\w+)\}", frame)) != wanted:
        fields = " and ".join(f"{{{name}}}" for name in sorted(wanted))
        raise InputError(f"the question needs {fields}, got {frame!r}", source=str(place))
    if settings["relation"] in WORDINGS:
        raise InputError(
            f"the relation {settings['relation']!r} is one of calibrant's own",
            source=str(place),
            hint="give it another name",
        )
    return Wording(
        relation=settings["relation"],
        domain=settings["name"],
        frame=frame,
        unit=str(window["column"]) if window else None,
        article=settings.get("article", ""),
        joiner=settings.get("or", " or "),
        own_unit=Unit(str(window["text"]), str(window.get("one", ""))) if window else None,
    )


def _fact(record: Mapping[str, Any], settings: Mapping[str, Any], source: str, row: int) -> Fact:
    subject, obj = (str(record.get(key) or "").strip() for key in ("subject", "object"))
    if not subject or not obj:
        raise InputError("a triple has a subject and an object", source=source, row=row)
    value = None
    if settings.get("window"):
        column = settings["window"]["column"]
        try:
            value = float(record[column])
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"the column {column!r} holds a number, got {record.get(column)!r}",
                source=source,
                row=row,
            ) from None
    aliases = [text.strip() for text in str(record.get("aliases") or "").split("|")]
    return Fact(subject, obj, value, value, tuple(text for text in aliases if text))
