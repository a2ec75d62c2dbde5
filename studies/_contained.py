"""Would it help to join a name with a longer one that begins or ends with it? Measured, not used.

Two answers to one question that people grade differently do not mean the same, unless they slip.
So of the pairs that a rule joins, the share with differing grades tells how often it errs, and no
label of sameness is needed.
"""

from __future__ import annotations

import gzip
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from calibrant.answers.semantics import Grader, SemanticsOptions, extract_answer
from calibrant.answers.semantics.cluster import candidate_pairs, distinct_forms, relate
from calibrant.answers.semantics.forms import Form, FormReader, read_cues
from calibrant.answers.semantics.hybrid import hybrid_steps, run_steps
from calibrant.answers.semantics.settle import Group, Settler
from calibrant.answers.semantics.typed.quantities import Relation

MOST_WORDS = 6
ZLIN7 = Path("draws") / "zlin7_triviaqa_500q_20samples.jsonl.gz"


class Graded(Protocol):
    """An answer that people or a judge have graded."""

    @property
    def question(self) -> str: ...
    @property
    def answer(self) -> str: ...
    @property
    def right(self) -> bool: ...


@dataclass(frozen=True)
class Joined:
    """Pairs in one class, by the grades of the two answers."""

    both_right: int = 0
    differ: int = 0
    both_wrong: int = 0

    @property
    def pairs(self) -> int:
        return self.both_right + self.differ + self.both_wrong

    def beyond(self, other: Joined) -> Joined:
        return Joined(
            self.both_right - other.both_right,
            self.differ - other.differ,
            self.both_wrong - other.both_wrong,
        )


def is_part(short: Form, long: Form) -> bool:
    """Return whether a named answer begins or ends a longer one without figures or lists."""
    size = len(short.content)
    if not 0 < size < len(long.content) <= MOST_WORDS or not short.named:
        return False
    if short.listing or long.listing or short.acronym or long.acronym:
        return False
    if short.numbers != long.numbers or short.date or long.date:
        return False
    return short.content in (long.content[:size], long.content[-size:])


def by_rules(answers: Sequence[str], question: str, reader: FormReader) -> list[int]:
    """Return the classes of the rules."""
    group = Group(list(answers), [1] * len(answers), question)
    steps = hybrid_steps(group, SemanticsOptions(), reader=reader, scope=None)
    return run_steps([steps], None)[0].ids


def with_parts(answers: Sequence[str], question: str, reader: FormReader) -> list[int]:
    """Return the classes of the rules, parts of names joined where they point to one class."""
    ids = by_rules(answers, question, reader)
    cues = read_cues(question)
    # Where one of many is asked for, a longer name is another member.
    if cues.asked:
        return ids
    forms, _, which = distinct_forms(answers, reader)
    class_of = {place: ids[answer] for answer, place in enumerate(which)}
    longs: dict[int, set[int]] = defaultdict(set)
    shorts: dict[int, set[int]] = defaultdict(set)
    for pair in candidate_pairs(forms):
        a, b = sorted(pair, key=lambda place: len(forms[place].content))
        relation, why = relate(forms[a], forms[b], cues)
        undecided = relation is Relation.UNSURE and why != "clash"
        if undecided and is_part(forms[a], forms[b]) and class_of[a] != class_of[b]:
            longs[class_of[a]].add(class_of[b])
            shorts[class_of[b]].add(class_of[a])
    # 'Suzuki' and 'Maruti' are both part of 'Maruti Suzuki': such a name joins neither.
    moved = {
        short: next(iter(found))
        for short, found in longs.items()
        if len(found) == 1 and len(shorts[next(iter(found))]) == 1
    }
    return [_last(moved, found) for found in ids]


def _last(moved: Mapping[int, int], found: int) -> int:
    for _ in range(len(moved)):
        found = moved.get(found, found)
    return found


def count_joined(rows: Sequence[Graded], reader: FormReader, *, parts: bool) -> Joined:
    """Count the pairs of answers to one question that share a class."""
    by_question: dict[str, dict[str, bool]] = defaultdict(dict)
    for row in rows:
        answer = (extract_answer(row.answer).answer or "").strip()
        if answer:
            by_question[row.question].setdefault(answer, row.right)
    found: Counter[int] = Counter()
    for question, grades in by_question.items():
        answers = list(grades)
        ids = (
            with_parts(answers, question, reader) if parts else by_rules(answers, question, reader)
        )
        for i, j in itertools.combinations(range(len(answers)), 2):
            if ids[i] == ids[j]:
                found[grades[answers[i]] + grades[answers[j]]] += 1
    return Joined(found[2], found[1], found[0])


def several_right(folder: Path) -> tuple[int, int, int]:
    """Return questions, and those whose right answers are in several classes: rules, with parts."""
    with gzip.open(folder / ZLIN7, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    groups = []
    for row in rows:
        counts = Counter(text.strip() for text in row["samples"] if text.strip())
        groups.append(Group(list(counts), list(counts.values()), row["question"], [row["answer"]]))
    reader = FormReader()
    apart = [0, 0]
    for group, settled in zip(groups, Settler(SemanticsOptions()).settle(groups), strict=True):
        right = [bool(grade.correct) for grade in settled.grades]
        joined = with_parts(group.answers, group.question, reader)
        for place, ids in enumerate((settled.clusters.ids, joined)):
            classes = {found for found, good in zip(ids, right, strict=True) if good}
            apart[place] += len(classes) > 1
    return len(groups), apart[0], apart[1]


def part_rows(sets: Mapping[str, Sequence[Graded]]) -> list[list[object]]:
    """Return a table: what the rules join, and what parts of names would add."""
    reader = Grader().reader
    table: list[list[object]] = []
    for name, rows in sets.items():
        now = count_joined(rows, reader, parts=False)
        more = count_joined(rows, reader, parts=True).beyond(now)
        for what, found in (("rules", now), ("parts would add", more)):
            share = f"{found.differ / found.pairs:.1%}" if found.pairs else ""
            table.append([name, what, found.pairs, found.differ, share])
    return table


def part_lines(sets: Mapping[str, Sequence[Graded]], folder: Path) -> list[str]:
    """Return the section of the page."""
    questions, apart, left = several_right(folder)
    rows = [["grades by", "joined by", "pairs", "differing grades", "share"], ["---"] * 5]
    table = ["| " + " | ".join(map(str, row)) + " |" for row in (*rows, *part_rows(sets))]
    return [
        "## Parts of a name",
        "",
        "'Vivaldi' and 'Antonio Vivaldi' are two classes where a question does not ask who. In"
        f" {apart} of {questions} TriviaQA questions with 20 draws the right answers lie in several"
        " classes. A rule could join a name with the only longer answer that begins or ends with"
        " it. Two answers that are graded differently do not mean the same, unless the grader"
        " slips. So the share of joined pairs with differing grades tells how often a rule errs.",
        "",
        *table,
        "",
        f"With the rule {left} of {questions} questions would be left. By people's grades it errs"
        " no more often than the rules, by an LLM judge's more often: mostly slips of the judge,"
        " but 'Jazz' and 'Free jazz' are among them. So the rule is not used; a judge model can put"
        " such answers together.",
        "",
        "To join only what is graded right would raise the confidence of right answers alone."
        " Audits of samples say how far it would move the error (`right_joined_shift`).",
        "",
    ]
