"""Check every question: answers are derived again, and people tick a sample."""

import html
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import combinations
from math import isnan
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct

from calibrant.answers.semantics.verdict import cohen_kappa
from calibrant.bench.questions.candidates import repetitions
from calibrant.bench.questions.facts import FactSet
from calibrant.bench.questions.math_rule import KINDS, NUMBER_NAMES, members
from calibrant.bench.questions.question import BenchQuestion, normalised, read_math, read_published
from calibrant.bench.questions.second_look import second_look
from calibrant.bench.questions.shipped_facts import SHIPPED
from calibrant.bench.questions.triples import DOMAIN_RELATION
from calibrant.core.arrays import named_stream
from calibrant.core.errors import InputError
from calibrant.data import read_table
from calibrant.data.tables import neutral_cells

_LISTED = 200
_Answers = dict[str, tuple[str, ...]]


class _Finding(Struct, frozen=True):
    question: BenchQuestion
    problem: str
    detail: str = ""
    by_alias: bool = False
    overlapping: bool = False


def check_questions(
    questions: Sequence[BenchQuestion], facts: Mapping[str, Sequence[FactSet]] | None = None
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
    fact_sets = _Facts(facts or {})
    findings: list[_Finding] = []
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        row = rows[question.domain]
        row["questions"] += 1
        finding = _check(question, fact_sets)
        row["exact"] += not finding.problem
        row["by_alias"] += finding.by_alias
        row["overlapping"] += finding.overlapping
        if finding.problem:
            row[finding.problem] += 1
            findings.append(finding)
    duplicates = [(question, kind) for question, kind in repetitions(questions) if kind]
    second = second_look(questions, fact_sets.own)
    shared = _shared(questions)
    return {
        "schema": "calibrant.bench_check/1",
        "ok": not findings and not duplicates and not shared and not second["findings"],
        "questions": len(questions),
        "results": [
            {
                "domain": domain,
                **{name: counts[name] for name in _COUNTS},
                "problems": {name: counts[name] for name in _PROBLEMS if counts[name]},
            }
            for domain, counts in rows.items()
        ],
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
                {**{name: getattr(item.question, name) for name in _ABOUT},
                 "problem": item.problem, "detail": item.detail}
                for item in findings[:_LISTED]
            ],
        },
    }  # fmt: skip


_COUNTS = ("questions", "exact", "by_alias", "overlapping")
_ABOUT = ("question_id", "domain", "k", "text")
_PROBLEMS = (
    "text not understood",
    "subject not in the facts",
    "value across a bound",
    "reference is not an answer",
    "answer is missing from the references",
    "both wrong and missing references",
)


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


def _check(question: BenchQuestion, fact_sets: _Facts) -> _Finding:
    """Match every reference with one derived answer: by main name first, then by any name."""
    sets = _derive_math(question) if question.domain == "math" else _derive(question, fact_sets)
    if isinstance(sets, str):
        return _Finding(question, sets)
    # United subjects that share an answer: k is exact, the rule is broken.
    overlapping = any(a.keys() & b.keys() for a, b in combinations(sets, 2))
    remaining = {key: names for answers in sets for key, names in answers.items()}
    unmatched = [
        {normalised(name) for name in names}
        for names in question.references
        if remaining.pop(normalised(names[0]), None) is None
    ]
    wrong = []
    for forms in unmatched:
        match = next((k for k, n in remaining.items() if forms & {normalised(x) for x in n}), None)
        if match is None:
            wrong.append(" / ".join(sorted(forms)))
        else:
            del remaining[match]
    if not wrong and not remaining:
        return _Finding(question, "", by_alias=bool(unmatched), overlapping=overlapping)
    missing = [names[0] for names in remaining.values()]
    parts = [f"not an answer: {', '.join(wrong)}" if wrong else "",
             f"missing: {', '.join(missing)}" if missing else ""]  # fmt: skip
    problem = _PROBLEMS[5] if wrong and missing else _PROBLEMS[3] if wrong else _PROBLEMS[4]
    detail = "; ".join(part for part in parts if part)
    return _Finding(question, problem, detail, overlapping=overlapping)


def _derive_math(question: BenchQuestion) -> list[_Answers] | str:
    parsed = read_math(question.text) or read_published(question.text, "math", ())
    names = {name: kind for kind, name in NUMBER_NAMES.items()}
    kind = names.get(parsed.subjects[0], parsed.subjects[0].lower()) if parsed else ""
    if parsed is None or parsed.bounds is None or kind not in KINDS:
        return "text not understood"
    lower, upper = parsed.bounds
    return [{str(n): (str(n),) for n in members(kind, int(lower), int(upper))}]


def _derive(question: BenchQuestion, fact_sets: _Facts) -> list[_Answers] | str:
    """Return the answers of each subject asked about, or why they cannot be derived."""
    relation = question.subtype or DOMAIN_RELATION.get(question.domain, "")
    facts = fact_sets.get(question.domain, relation)
    if facts is None:
        return "subject not in the facts"
    parsed = facts.wording.read(question.text, facts.facts)
    parsed = parsed or read_published(question.text, facts.relation, facts.facts)
    if parsed is None:
        return "text not understood"
    if any(subject not in facts.facts for subject in parsed.subjects):
        return "subject not in the facts"
    sets = [facts.answers(subject) for subject in dict.fromkeys(parsed.subjects)]
    if parsed.bounds is None:
        return sets
    keys = facts.inside(parsed.subjects[0], parsed.bounds)
    if keys is None:
        return "value across a bound"
    return [{key: names for key, names in sets[0].items() if key in keys}]


def _shared(questions: Iterable[BenchQuestion]) -> list[dict[str, Any]]:
    """Return for each pair of domains the answer entities that both have."""
    entities: dict[str, dict[str, str]] = defaultdict(dict)
    for question in questions:
        for names in question.references:
            entities[question.domain].setdefault(normalised(names[0]), names[0])
    pairs = []
    for a, b in combinations(sorted(entities), 2):
        overlap = sorted(entities[a][key] for key in entities[a].keys() & entities[b].keys())
        if overlap:
            pairs.append({"domains": [a, b], "number": len(overlap), "entities": overlap[:_LISTED]})
    return pairs


_COLUMNS = ("question_id", "text", "right_answers", "verdict")
_RIGHT = frozenset({"right", "r", "ok", "yes", "1", "true"})
_WRONG = frozenset({"wrong", "w", "no", "0", "false", "x"})


def spot_questions(
    questions: Sequence[BenchQuestion], number: int, *, seed: int = 0
) -> list[BenchQuestion]:
    """Return a simple random sample without replacement, in the order of the benchmark."""
    rng = named_stream(seed, "spot check")
    size = min(number, len(questions))
    choice = rng.choice(len(questions), size=size, replace=False)
    return [questions[index] for index in sorted(choice)]


def write_spot_check(
    questions: Sequence[BenchQuestion], path: str | Path, *, number: int = 30, seed: int = 0
) -> int:
    """Write a sample for a person to judge: a table (.csv) to fill in, or a page (.html).

    Returns the number of questions written.
    """
    sample = spot_questions(questions, number, seed=seed)
    target = Path(path)
    text = spot_page(sample) if target.suffix == ".html" else _spot_table(sample)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return len(sample)


def _spot_table(sample: Sequence[BenchQuestion]) -> str:
    rows = [
        (q.question_id, q.text, "; ".join(names[0] for names in q.references), "") for q in sample
    ]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")
    # The ids are read back.
    return neutral_cells(frame, keep=("question_id",)).write_csv()


def read_ticks(source: Any) -> dict[str, bool]:
    """Read a filled-in table: question_id, and a verdict that says right or wrong."""
    frame = read_table(source)
    if not {"question_id", "verdict"} <= set(frame.columns):
        raise InputError(
            f"a spot check has columns question_id and verdict, got {', '.join(frame.columns)}",
            source=str(source),
        )
    verdicts = {}
    for row, record in enumerate(frame.iter_rows(named=True), start=1):
        # A column of 0 and 1 is read as numbers, and 0 is a verdict.
        word = "" if record["verdict"] is None else str(record["verdict"]).strip().lower()
        if not word:
            continue
        if word not in _RIGHT | _WRONG:
            raise InputError(
                f"a verdict is right or wrong, got {record['verdict']!r}",
                source=str(source),
                row=row,
            )
        verdicts[str(record["question_id"])] = word in _RIGHT
    return verdicts


def spot_check(
    first: Mapping[str, bool], second: Mapping[str, bool] | None = None
) -> dict[str, Any]:
    """Return the share found wrong with its interval, and the agreement of two people.

    Parameters
    ----------
    first, second
        Verdicts of one person, and of another on the same questions. The interval is the exact
        one (Clopper-Pearson) of 95 %.

    Examples
    --------
    >>> verdicts = {f"q{i}": i > 0 for i in range(30)}
    >>> found = spot_check(verdicts)
    >>> found["wrong"]["n"], round(found["wrong"]["value"], 3), round(found["wrong"]["high"], 3)
    (30, 0.033, 0.172)
    """
    if not first:
        raise InputError("no question has a verdict yet", hint="write right or wrong in each row")
    wrong = sum(not verdict for verdict in first.values())
    # Loaded here: it takes a second.
    from scipy.stats import binomtest

    interval = binomtest(wrong, len(first)).proportion_ci(0.95, method="exact")
    document: dict[str, Any] = {
        "wrong": {
            "value": wrong / len(first),
            "low": float(interval.low),
            "high": float(interval.high),
            "n": len(first),
        },
        "found_wrong": sorted(name for name, verdict in first.items() if not verdict),
    }
    if second is not None:
        document["agreement"] = _agreement(first, second)
    return document


def _agreement(first: Mapping[str, bool], second: Mapping[str, bool]) -> dict[str, Any]:
    """Return the share of equal verdicts and Cohen's kappa; no kappa where nobody varies."""
    pairs = Counter((first[i], second[i]) for i in first.keys() & second.keys())
    if not pairs:
        raise InputError("the two people judged no question in common")
    table = [[pairs[x, y] for y in (True, False)] for x in (True, False)]
    kappa = cohen_kappa(table)
    equal = (table[0][0] + table[1][1]) / pairs.total()
    return {"questions": pairs.total(), "equal": equal, "kappa": None if isnan(kappa) else kappa}


def spot_page(sample: Sequence[BenchQuestion]) -> str:
    """Return a page on which a person ticks right or wrong, and saves the table."""
    rows = "".join(
        f'<li data-id="{html.escape(question.question_id)}"><p>{html.escape(question.text)}</p>'
        f"<ul>{''.join(f'<li>{html.escape(names[0])}</li>' for names in question.references)}</ul>"
        f"<p class=s>{html.escape(question.source)} {html.escape(question.date)}</p>"
        f'<label><input type=radio name="{place}" value=right> right: exactly these</label> '
        f'<label><input type=radio name="{place}" value=wrong> wrong: one is false or missing'
        "</label></li>"
        for place, question in enumerate(sample)
    )
    page = (resources.files(__package__ or "") / "data" / "spot.html").read_text(encoding="utf-8")
    return page.replace("ROWS", rows).replace("NUMBER", str(len(sample)))
