"""`bench`: write questions with exactly k right answers, and check them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.api.result import Result
from calibrant.sources.mace.build import build_benchmark
from calibrant.sources.mace.math_rule import NUMBER_NAMES
from calibrant.sources.mace.question import write_questions

__all__ = ["bench_mace"]


def bench_mace(
    out: str | Path | None = None,
    *,
    domains: Sequence[str] = ("math",),
    k: Sequence[int] = (1, 2, 4, 6),
    per_k: int = 500,
    seed: int = 0,
    kinds: Sequence[str] = tuple(NUMBER_NAMES),
    limit: int = 1_000_000,
    cap: int = 10_000,
    strata: str = "ngrams",
    split_entities: bool = True,
) -> Result:
    """Write a benchmark of questions with exactly k right answers.

    Parameters
    ----------
    out
        File of JSON lines to write; None writes nothing.
    domains
        Some of award, office, region, math, river, language.
    k
        Numbers of right answers.
    per_k
        Questions per domain and k; the result says where the facts give fewer.
    seed
        The same input and seed give the same bytes.
    kinds, limit
        Of Math: kinds of numbers, and the largest number.
    cap
        Largest number of candidates per domain.
    strata
        How questions are chosen among the candidates: ``ngrams``, ``sentence`` or ``random``.
    split_entities
        Give every answer entity to one domain.

    Examples
    --------
    >>> result = bench_mace(domains=["math"], k=[1, 2], per_k=5)
    >>> result["questions"]
    10
    """
    benchmark = build_benchmark(
        domains,
        k,
        per_k,
        seed=seed,
        kinds=kinds,
        limit=limit,
        cap=cap,
        strata=strata,
        split_entities=split_entities,
    )
    if out is not None:
        write_questions(benchmark.questions, out)
    return Result(
        {
            "schema": "calibrant.bench/1",
            "seed": seed,
            "strata": strata,
            "split_entities": split_entities,
            "questions": len(benchmark.questions),
            "results": list(benchmark.statistics),
            "dropped": dict(benchmark.dropped),
        }
    )
