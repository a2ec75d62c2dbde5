"""Names of one kind that look alike and mean different things, from the facts of MACE."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.answers.semantics import Grader, SemanticsOptions
from calibrant.answers.semantics.settle import Group, Settler
from calibrant.metrics.stats.intervals import wilson_interval

# Pairs that once were taken for the same.
KNOWN = (
    ("West Virginia", "Virginia"),
    ("George H. W. Bush", "George W. Bush"),
    ("Rio Grande do Sul", "Rio Grande do Norte"),
    ("Gomel Region", "Mogilev Region"),
    ("Gomel region", "Mogilev Region"),
    ("Mato Grosso do Sul", "Mato Grosso"),
)
# Listed apart in the data although they are one thing, or one name written twice.
ONE_THING = frozenset(
    frozenset(pair)
    for pair in (
        ("Bull Run", "Bull Run River"),
        ("Sofia", "Sofia City"),
        ("Karelian", "Karelian Proper"),
        ("Iranian Persian", "Persian"),
        ("Josef Wilhelm Rinck von Baldenstein ", "Wilhelm Rinck von Balderstein"),
        ("Wilhelm Jakob Rink von Baldenstein", "Wilhelm Rinck von Balderstein"),
    )
)
QUESTIONS = {
    "region": "Name one first-level administrative division of {}.",
    "river": "Name one river.",
    "language": "Name one language.",
    "office": "Name one person who has held the position of {}.",
    "award": "Name one recipient of {}.",
}
QUOTA = {"region": 80, "river": 40, "language": 40, "office": 25, "award": 15}
MOST_OF_ONE_LIST = 6


@dataclass(frozen=True)
class Siblings:
    """Two names from one list, and the question that the list answers."""

    kind: str
    a: str
    b: str
    question: str
    alike: float
    others: tuple[str, ...]


def lists(folder: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Kind, what it belongs to, and the names."""

    def read(name: str) -> dict[str, dict]:
        path = folder / "mace" / "triples" / f"{name}_structured_facts.json"
        loaded: dict[str, dict] = json.loads(path.read_text(encoding="utf-8"))
        return loaded

    for country, regions in read("country").items():
        yield "region", country, tuple(sorted(regions))
    for kind in ("award", "office"):
        for title, years in read(kind).items():
            people = (x if isinstance(x, list) else [x] for x in years.values())
            yield kind, title, tuple(sorted({name for group in people for name in group}))
    for kind in ("language", "river"):
        yield kind, "", tuple(sorted(read(kind)))


def alike_pairs(folder: Path, *, least: float = 0.6) -> list[Siblings]:
    """All pairs of one list whose names are alike, the most alike first."""
    found = []
    for kind, owner, names in lists(folder):
        question = QUESTIONS[kind].format(owner)
        for a, b, alike in _alike(names, least):
            if frozenset((a, b)) not in ONE_THING:
                found.append(Siblings(kind, a, b, question, alike, names))
    return sorted(found, key=lambda pair: (-pair.alike, pair.kind, pair.a, pair.b))


def _alike(names: Sequence[str], least: float) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs of a list that are more alike than `least`."""
    lower = [name.lower() for name in names]
    words = [set(name.split()) for name in lower]
    matcher = difflib.SequenceMatcher(None)
    for place, b in enumerate(names):
        # The matcher reads its second text once, and keeps it for all first ones.
        matcher.set_seq2(lower[place])
        for before in range(place):
            if words[before] < words[place] or words[place] < words[before]:
                alike = 0.99
            else:
                matcher.set_seq1(lower[before])
                upper = matcher.real_quick_ratio() > least and matcher.quick_ratio() > least
                alike = matcher.ratio() if upper else 0.0
            if alike > least:
                yield names[before], b, alike


def chosen(pairs: list[Siblings]) -> list[Siblings]:
    """The 200 most alike, so many of each kind and few of one list."""
    left = dict(QUOTA)
    used: dict[str, int] = {}
    picked = []
    for pair in pairs:
        whole_list = pair.kind in ("language", "river")
        if left[pair.kind] and (whole_list or used.get(pair.question, 0) < MOST_OF_ONE_LIST):
            left[pair.kind] -= 1
            used[pair.question] = used.get(pair.question, 0) + 1
            picked.append(pair)
    return picked


def joined(pair: Siblings, grader: Grader, settler: Settler, *, told: bool) -> bool:
    """Whether clusterer or grader, in either direction, takes one name for the other."""
    known = pair.others if told else ()
    group = Group([pair.a, pair.b], [1, 1], pair.question, siblings=known)
    first, second = settler.settle([group])[0].clusters.ids
    return first == second or any(
        bool(
            grader.grade(
                x, [y], question=pair.question, siblings=[name for name in known if name != y]
            ).correct
        )
        for x, y in ((pair.a, pair.b), (pair.b, pair.a))
    )


def cldr_pairs(most: int = 400) -> list[Siblings]:
    """The most alike names of CLDR's countries and languages, in English."""
    from babel import Locale

    english, found = Locale("en"), []
    for kind, names in (
        ("country", {n for code, n in english.territories.items() if len(code) == 2}),
        ("language", set(english.languages.values())),
    ):
        for a, b, alike in _alike(sorted(names), 0.6):
            found.append(Siblings(kind, a, b, f"Name one {kind}.", alike, ()))
    return sorted(found, key=lambda pair: (-pair.alike, pair.kind, pair.a, pair.b))[:most]


def alike_table(folder: Path, *, others: int = 2000) -> tuple[list[list[object]], list[Siblings]]:
    """How many pairs are taken for one thing, and those of the 200 that names alone join."""
    pairs = alike_pairs(folder)
    most = chosen(pairs)
    left = sorted(set(range(len(pairs))) - {pairs.index(pair) for pair in most})
    rest = [pairs[k] for k in np.random.default_rng(1).choice(left, others, replace=False)]
    grader, settler = Grader(judge=None), Settler(SemanticsOptions())
    wrong: list[Siblings] = []
    table: list[list[object]] = []
    for name, group, told in (
        ("the most alike", most, False),
        ("the most alike, with the list that they are from", most, True),
        ("others, drawn at random", rest, False),
        ("countries and languages of CLDR, the most alike", cldr_pairs(), False),
    ):
        found = [pair for pair in group if joined(pair, grader, settler, told=told)]
        wrong = wrong or found
        low, high = wilson_interval(len(found) / len(group), len(group))
        share = f"{len(found) / len(group):.1%} [{float(low):.1%}, {float(high):.1%}]"
        table.append([name, len(group), len(found), share])
    return table, wrong
