"""Build a benchmark: candidates, duplicates out, entities to one domain each, choice."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from calibrant.bench.questions.candidates import (
    Embed,
    SiblingNames,
    choose,
    union_candidates,
    window_candidates,
    without_duplicates,
)
from calibrant.bench.questions.facts import FactSet, foreign_entities
from calibrant.bench.questions.math_rule import MATH_SOURCE, NUMBER_NAMES, math_questions
from calibrant.bench.questions.question import BenchQuestion, named_answer
from calibrant.bench.questions.shipped_facts import SHIPPED
from calibrant.core.arrays import named_stream
from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import Hint

NAMED = "names its answer"
_DECLARED = ("relation", "source", "date", "complete", "completeness")
DOMAINS = ("award", "office", "region", "math", "river", "language")


class Benchmark(Struct, frozen=True):
    """Questions, and the table that says what they are made of."""

    questions: tuple[BenchQuestion, ...]
    statistics: tuple[Mapping[str, Any], ...]
    filters: tuple[Mapping[str, Any], ...] = ()


def build_benchmark(
    domains: Sequence[str],
    ks: Sequence[int] = (1, 2, 4, 6),
    per_k: int = 500,
    *,
    facts: Mapping[str, Sequence[FactSet]] | None = None,
    seed: int = 0,
    kinds: Sequence[str] = tuple(NUMBER_NAMES),
    limit: int = 1_000_000,
    cap: int = 10_000,
    strata: str = "ngrams",
    embed: Embed | None = None,
    split_entities: bool = True,
) -> Benchmark:
    """Return `per_k` questions for every domain and k, or as many as the facts give.

    Parameters
    ----------
    domains
        Some of award, office, region, math, river, language.
    ks
        Numbers of right answers.
    per_k
        Questions per domain and k.
    facts
        Facts by domain; a domain without facts is built from what ships with the package.
    seed
        The same input and seed give the same questions.
    kinds, limit
        Of Math: the kinds of numbers and the largest number.
    cap
        Largest number of candidates per domain.
    strata, embed
        How the questions are chosen among the candidates.
    split_entities
        Give every entity to one domain, so that no answer is right in two of them.
    """
    _check(domains, ks, per_k, own_names=[name for name in facts or {} if name not in DOMAINS])
    by_domain = {name: _facts_of(name, facts or {}) for name in domains if name != "math"}
    foreign = foreign_entities(by_domain) if split_entities and len(by_domain) > 1 else {}
    request: list[BenchQuestion] = []
    statistics: list[dict[str, Any]] = []
    for name in domains:
        repeated: dict[str, int] = {}
        by_k: dict[int, list[BenchQuestion]] = {}
        if name == "math":
            by_k = {k: math_questions(k, per_k, kinds=kinds, limit=limit, seed=seed) for k in ks}
            candidates = {k: len(questions) for k, questions in by_k.items()}
        else:
            pools, repeated = _pools(by_domain[name], ks, cap, foreign.get(name, frozenset()), seed)
            candidates = {k: len(pool) for k, pool in pools.items()}
            # The answers that are known to be wrong.
            siblings = {facts.relation: SiblingNames(facts) for facts in by_domain[name]}
            for k, pool in pools.items():
                rng = named_stream(seed, "choose", name, k)
                choice = choose(pool, per_k, strata, embed, rng=rng)
                by_k[k] = [siblings[q.subtype].with_siblings(q) for q in choice]
        request.extend(question for k in ks for question in by_k[k])
        statistics.append(_statistics(name, by_domain.get(name, ()), by_k, candidates, per_k))
        statistics[-1]["names_its_answer"] = repeated.pop(NAMED, 0)
        statistics[-1]["duplicates"] = repeated
    filters = [_filters(facts) for sets in by_domain.values() for facts in sets]
    return Benchmark(tuple(request), tuple(statistics), tuple(filters))


def _filters(facts: FactSet) -> dict[str, Any]:
    return {
        "domain": facts.domain,
        "relation": facts.relation,
        "subjects": dict(facts.stages),
        "dropped": [
            {"stage": stage, "reason": reason, "number": number}
            for stage, reasons in facts.dropped.items()
            for reason, number in reasons.items()
            if number
        ],
    }


def _check(
    domains: Sequence[str], ks: Sequence[int], per_k: int, *, own_names: Sequence[str] = ()
) -> None:
    names = [*DOMAINS, *own_names]
    require_known(domains, names, "there is no domain {}")
    if len(set(domains)) < len(domains) or not domains:
        raise InputError(f"name every domain once, got {', '.join(domains) or 'none'}")
    if not ks or min(ks) < 1 or len(set(ks)) < len(ks):
        raise InputError(f"k is a list of different numbers from 1 on, got {list(ks)}")
    if per_k < 1:
        raise InputError(f"the number of questions per k is at least 1, got {per_k}")


def _facts_of(name: str, facts: Mapping[str, Sequence[FactSet]]) -> Sequence[FactSet]:
    if name in facts:
        return facts[name]
    if name in SHIPPED:
        return SHIPPED[name]()
    raise InputError(
        f"no facts for the domain {name!r} ship with the package",
        hint=Hint(
            "give a file or folder of facts with {triples} (csv, jsonl, parquet, SPARQL JSON)"
        ),
    )


def _pools(
    sets: Sequence[FactSet], ks: Sequence[int], cap: int, foreign: frozenset[str], seed: int
) -> tuple[dict[int, list[BenchQuestion]], dict[str, int]]:
    """Return the candidates by k, and how many were dropped for what."""
    dropped: Counter[str] = Counter()
    pools: dict[int, list[BenchQuestion]] = {}
    share = max(1, cap // len(ks) // len(sets))
    for k in ks:
        pool: list[BenchQuestion] = []
        for facts in sets:
            facts.require_complete()
            builder = window_candidates if facts.wording.bounded else union_candidates
            rng = named_stream(seed, "candidates", facts.domain, facts.relation, k)
            pool.extend(builder(facts, k, share, foreign=foreign, rng=rng))
        question_list = [question for question in pool if named_answer(question) is None]
        pools[k], repeated = without_duplicates(question_list)
        dropped.update(repeated)
        dropped[NAMED] += len(pool) - len(question_list)
    return pools, dict(dropped)


def _statistics(
    name: str,
    sets: Sequence[FactSet],
    by_k: Mapping[int, Sequence[BenchQuestion]],
    candidates: Mapping[int, int],
    per_k: int,
) -> dict[str, Any]:
    questions = [question for choice in by_k.values() for question in choice]
    subjects = {
        (question.subtype, subject)
        for question in questions
        for subject in question.meta["subjects"]
    }
    available: dict[str, int] = defaultdict(int)
    for facts in sets:
        available["subjects"] += len(facts.facts)
        available["objects"] += len(facts.entities())
    return {
        "domain": name,
        "source": "; ".join(dict.fromkeys(f.source for f in sets)) or MATH_SOURCE,
        "relations": [
            {**{name: getattr(facts, name) for name in _DECLARED}, "subjects": len(facts.facts)}
            for facts in sets
        ],
        "available": dict(available),
        "subjects": len(subjects),
        "objects": len({answer for question in questions for answer in question.answers}),
        "answer_sets": len({(q.subtype, q.answers) for q in questions}),
        "candidates": sum(candidates.values()),
        "questions": len(questions),
        "by_k": [
            {
                "k": k,
                "candidates": candidates[k],
                "questions": len(choice),
                "short_by": max(0, per_k - len(choice)),
            }
            for k, choice in by_k.items()
        ],
    }
