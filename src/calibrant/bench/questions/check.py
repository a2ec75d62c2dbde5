"""Derive the answers of every question again, from the text and the facts alone."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from calibrant.bench.questions.candidates import inside, repetitions
from calibrant.bench.questions.facts import FactSet
from calibrant.bench.questions.math_rule import KINDS, NUMBER_NAMES, members
from calibrant.bench.questions.question import Question, normalised
from calibrant.bench.questions.second_look import second_look
from calibrant.bench.questions.shipped_facts import SHIPPED
from calibrant.bench.questions.triples import DOMAIN_RELATION
from calibrant.bench.questions.wording import Bounds, read_math, read_published

_LISTED = 200
_Answers = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Finding:
    question: Question
    problem: str
    detail: str = ""
    by_alias: bool = False
    overlapping: bool = False


@dataclass(frozen=True, slots=True)
class _Derived:
    """The answers, or the problem that kept them from being derived.

    `overlapping` says that united subjects share an answer: k is exact, the rule is broken.
    """

    answers: _Answers | None
    problem: str = ""
    overlapping: bool = False


def check_questions(
    questions: Sequence[Question], facts: Mapping[str, Sequence[FactSet]] | None = None
) -> dict[str, Any]:
    """Return the document of a check: what holds, and every question for which it does not.

    Checked are, from the text that a model sees: that it can be read; that exactly the
    references answer it; that no question comes twice, word for word or nearly; and that no
    answer entity belongs to two domains. A second look does not use the facts: other sources
    and rules of plausibility must not contradict a question.

    Parameters
    ----------
    questions
        Questions to check.
    facts
        Facts by domain, unfiltered; domains without facts are checked against what ships
        with the package, Math by rule.
    """
    known = _Facts(facts or {})
    findings: list[_Finding] = []
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        row = rows[question.domain]
        row["questions"] += 1
        found = _check(question, known)
        row["exact"] += not found.problem
        row["by_alias"] += found.by_alias
        row["overlapping"] += found.overlapping
        if found.problem:
            row[found.problem] += 1
            findings.append(found)
    duplicates = [(question, kind) for question, kind in repetitions(questions) if kind]
    second = second_look(questions, known.own)
    shared = _shared(questions)
    return {
        "schema": "calibrant.bench_check/1",
        "ok": not findings and not duplicates and not shared and not second["findings"],
        "questions": len(questions),
        "results": [_row(domain, counts) for domain, counts in rows.items()],
        "duplicates": {
            "number": len(duplicates),
            "listed": [{"text": question.text, "kind": kind}
                       for question, kind in duplicates[:_LISTED]],
        },
        "shared_entities": shared,
        "second_look": {**second, "findings": second["findings"][:_LISTED],
                        "number": len(second["findings"])},
        "findings": {
            "number": len(findings),
            "listed": [
                {
                    "question_id": item.question.question_id,
                    "domain": item.question.domain,
                    "k": item.question.k,
                    "text": item.question.text,
                    "problem": item.problem,
                    "detail": item.detail,
                }
                for item in findings[:_LISTED]
            ],
        },
    }  # fmt: skip


_PROBLEMS = (
    "text not understood",
    "subject not in the facts",
    "value across a bound",
    "reference is not an answer",
    "answer is missing from the references",
    "both wrong and missing references",
)


def _row(domain: str, counts: Counter[str]) -> dict[str, Any]:
    return {
        "domain": domain,
        "questions": counts["questions"],
        "exact": counts["exact"],
        "by_alias": counts["by_alias"],
        "overlapping": counts["overlapping"],
        "problems": {name: counts[name] for name in _PROBLEMS if counts[name]},
    }


class _Facts:
    """Facts by relation, the shipped ones read only when a question needs them."""

    def __init__(self, given: Mapping[str, Sequence[FactSet]]) -> None:
        self._sets = {facts.relation: facts for sets in given.values() for facts in sets}
        self._loaded: set[str] = set()
        self.own = dict(self._sets)

    def get(self, domain: str, relation: str) -> FactSet | None:
        if relation not in self._sets and domain in SHIPPED and domain not in self._loaded:
            self._loaded.add(domain)
            for facts in SHIPPED[domain]():
                self._sets.setdefault(facts.relation, facts)
        return self._sets.get(relation)


def _check(question: Question, known: _Facts) -> _Finding:
    derived = _derive_math(question) if question.domain == "math" else _derive(question, known)
    if derived.answers is None:
        return _Finding(question, derived.problem)
    return _compare(question, derived.answers, overlapping=derived.overlapping)


def _derive_math(question: Question) -> _Derived:
    parsed = read_math(question.text) or read_published(question.text, "math", ())
    names = {name: kind for kind, name in NUMBER_NAMES.items()}
    kind = names.get(parsed.subjects[0], parsed.subjects[0].lower()) if parsed else ""
    if parsed is None or parsed.bounds is None or kind not in KINDS:
        return _Derived(None, "text not understood")
    lower, upper = parsed.bounds
    return _Derived({str(n): (str(n),) for n in members(kind, int(lower), int(upper))})


def _derive(question: Question, known: _Facts) -> _Derived:
    relation = question.subtype or DOMAIN_RELATION.get(question.domain, "")
    facts = known.get(question.domain, relation)
    if facts is None:
        return _Derived(None, "subject not in the facts")
    parsed = facts.wording.read(question.text, facts.facts)
    parsed = parsed or read_published(question.text, facts.relation, facts.facts)
    if parsed is None:
        return _Derived(None, "text not understood")
    if any(subject not in facts.facts for subject in parsed.subjects):
        return _Derived(None, "subject not in the facts")
    if parsed.bounds is not None:
        return _window(facts, parsed.subjects[0], parsed.bounds)
    sets = [facts.answers(subject) for subject in dict.fromkeys(parsed.subjects)]
    return _Derived(
        {key: names for answers in sets for key, names in answers.items()},
        overlapping=any(a.keys() & b.keys() for a, b in combinations(sets, 2)),
    )


def _window(facts: FactSet, subject: str, bounds: Bounds) -> _Derived:
    touching = facts.wording.unit != "area"
    keys = inside(facts.facts[subject], bounds, touching=touching)
    if keys is None:
        return _Derived(None, "value across a bound")
    answers = facts.answers(subject)
    return _Derived({key: names for key, names in answers.items() if key in keys})


def _compare(question: Question, derived: _Answers, *, overlapping: bool) -> _Finding:
    """Match every reference with one derived answer: by main name first, then by any name."""
    left = dict(derived)
    unmatched = []
    for names in question.references:
        key = normalised(names[0])
        if left.pop(key, None) is None:
            unmatched.append({normalised(name) for name in names})
    alias = bool(unmatched)
    wrong = []
    for forms in unmatched:
        match = next((k for k, n in left.items() if forms & {normalised(x) for x in n}), None)
        if match is None:
            wrong.append(" / ".join(sorted(forms)))
        else:
            del left[match]
    if not wrong and not left:
        return _Finding(question, "", by_alias=alias, overlapping=overlapping)
    missing = [names[0] for names in left.values()]
    parts = [f"not an answer: {', '.join(wrong)}" if wrong else "",
             f"missing: {', '.join(missing)}" if missing else ""]  # fmt: skip
    problem = _PROBLEMS[5] if wrong and missing else _PROBLEMS[3] if wrong else _PROBLEMS[4]
    detail = "; ".join(part for part in parts if part)
    return _Finding(question, problem, detail, overlapping=overlapping)


def _shared(questions: Iterable[Question]) -> list[dict[str, Any]]:
    """Return for each pair of domains the answer entities that both have."""
    entities: dict[str, dict[str, str]] = defaultdict(dict)
    for question in questions:
        for names in question.references:
            entities[question.domain].setdefault(normalised(names[0]), names[0])
    found = []
    for a, b in combinations(sorted(entities), 2):
        both = sorted(entities[a][key] for key in entities[a].keys() & entities[b].keys())
        if both:
            found.append({"domains": [a, b], "number": len(both), "entities": both[:_LISTED]})
    return found
