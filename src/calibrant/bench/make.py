"""`bench`: write questions with exactly k right answers, and check them."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from calibrant.bench.question_report import question_claims
from calibrant.bench.questions.build import build_benchmark
from calibrant.bench.questions.candidates import STRATA
from calibrant.bench.questions.check import check_questions, read_ticks, write_spot_check
from calibrant.bench.questions.check import spot_check as judged
from calibrant.bench.questions.facts import own_domains
from calibrant.bench.questions.filters import fact_sets, raw_facts, read_popularity
from calibrant.bench.questions.math_rule import NUMBER_NAMES
from calibrant.bench.questions.question import read_questions, write_questions
from calibrant.bench.questions.triples import Triple, read_triples
from calibrant.core import shared_options as opt
from calibrant.core.document import plain
from calibrant.core.errors import InputError
from calibrant.core.hints import Call
from calibrant.core.verb import ADVANCED, Check, Option, verb
from calibrant.data import Study
from calibrant.data.sources.input import document_head, recorded
from calibrant.findings.documents.fields import typed
from calibrant.models.endpoints.embedded import open_embedder
from calibrant.report.result import BenchCheckResult, BenchResult


@verb(
    example="calibrant bench mace --domain math --k 1,2,4,6 --per-k 100 --out questions.jsonl",
    outputs=("json",),
)
def bench_mace(
    out: Annotated[
        str | Path | None,
        opt.written(metavar="FILE.jsonl", place="write with folders", required=True),
    ] = None,
    *,
    domains: Annotated[Sequence[str] | None, opt.names(cli="domain")] = None,
    k: Annotated[
        Sequence[int], Option(metavar="1,2,..", kind="whole numbers", min=1, max=1_000)
    ] = (1, 2, 4, 6),
    per_k: Annotated[int, Option(metavar="N", min=1, max=10**7)] = 500,
    seed: opt.Seed = 0,
    triples: opt.Triples = (),
    domain_files: opt.DomainFiles = (),
    popularity: Annotated[Any, opt.source(metavar="PATH")] = None,
    min_views: Annotated[float, opt.advanced(metavar="N", min=0, max=10**12)] = 1_000,
    top_views: Annotated[int, opt.advanced(metavar="N", min=1, max=10**9)] = 5_000,
    rules: Annotated[bool, opt.advanced()] = True,
    single_cap: Annotated[int | None, opt.advanced(metavar="N", min=1, max=10**9)] = None,
    kinds: Annotated[Sequence[str], opt.names(group=ADVANCED)] = tuple(NUMBER_NAMES),
    limit: Annotated[int, Option(metavar="N", min=1, max=10**9)] = 1_000_000,
    cap: Annotated[int, opt.advanced(metavar="N", min=1, max=10**8)] = 10_000,
    strata: Annotated[str, opt.advanced(choices=STRATA)] = "ngrams",
    split_entities: Annotated[bool, opt.advanced()] = True,
) -> BenchResult:
    """Write a benchmark of questions with exactly k right answers.

    Parameters
    ----------
    out
        Where to write.

        None writes nothing.
    domains
        Domains: award, office, region, math, river, language; math by default.

        The domains of `triples` where there are some.
    k
        Numbers of right answers.
    per_k
        Questions per domain and k.

        The result says where the facts give fewer.
    seed
        The same input and seed give the same file.
    triples
        Files or folders of facts. Math needs none; Language and Region have shipped facts.
    domain_files
        TOML files of domains of one's own: relation, triples, wording, source, completeness.
    popularity
        Page views; drops obscure subjects.
    min_views
        Fewest page views of a subject.
    top_views
        Most viewed subjects per domain.
    rules
        Apply the domain rules that make answers complete.

        For example one laureate per year.
    single_cap
        River, Language: most subjects with one answer (the paper has 600).

        Drawn at random, as in Appendix B.3 of the paper. None keeps all.
    kinds
        Math: kinds of numbers.
    limit
        Math: the largest number.
    cap
        Most candidates per domain.
    strata
        Choose by k-means over n-grams or sentence embeddings, or at random.
    split_entities
        Give every answer entity to one domain.

    Examples
    --------
    >>> result = bench_mace(domains=["math"], k=[1, 2], per_k=5)
    >>> result["questions"]
    10
    """
    views = None
    if popularity is not None:
        views = read_popularity(popularity, minimum=min_views, top=top_views)
    facts = fact_sets(_read(triples), source=_source(triples), popularity=views, rules=rules,
                      single_cap=single_cap, seed=seed)  # fmt: skip
    facts |= own_domains(domain_files)
    names = list(domains) if domains is not None else list(facts) or ["math"]
    benchmark = build_benchmark(
        names,
        k,
        per_k,
        facts=facts,
        seed=seed,
        kinds=kinds,
        limit=limit,
        cap=cap,
        strata=strata,
        embed=open_embedder().embed if strata == "sentence" else None,
        split_entities=split_entities,
    )
    if out is not None:
        write_questions(benchmark.questions, out)
    call = Call("bench check", out, triples=list(triples), domain_files=list(domain_files))
    check = {"why": "Check every question again, with a second source", "command": call.text()}
    settings = {"k": list(k), **recorded(locals(), "per_k rules limit cap single_cap")}
    return BenchResult(
        {
            **document_head("bench", [*triples, *domain_files], seed=seed, settings=settings),
            "strata": strata,
            "split_entities": split_entities,
            "questions": len(benchmark.questions),
            "results": list(benchmark.statistics),
            "filters": list(benchmark.filters),
            "page_views": views.summary() if views is not None else [],
            "next": check if out is not None else None,
        }
    )


def _broken(document: Mapping[str, Any]) -> str | None:
    return None if document["ok"] else "the questions break a rule"


@verb(
    example="calibrant bench check questions.jsonl",
    outputs=("json",),
    checks=(Check("", "", _broken),),
)
def bench_check(
    questions: Annotated[Any, opt.source(metavar="QUESTIONS", argument=True)],
    *,
    triples: opt.Triples = (),
    domain_files: opt.DomainFiles = (),
    spot_check: Annotated[
        str | Path | None, opt.written(metavar="FILE", place="write with folders")
    ] = None,
    spot_questions: Annotated[int, Option(metavar="N", min=1, max=10_000)] = 30,
    ticks: Annotated[Sequence[str | Path], opt.source(metavar="PATH", kind="several")] = (),
    seed: opt.Seed = 0,
) -> BenchCheckResult:
    """Derive the answers of every question again and compare.

    Parameters
    ----------
    questions
        Table of questions.

        One that `bench_mace` wrote, or any with text (or question),
        references, domain and, where known, k and subtype.
    triples
        Files or folders of the facts behind them. Math is checked by rule; Language and
        Region without triples against the facts that ship with the package.
    domain_files
        TOML files of the domains of one's own behind them.
    spot_check
        Write sampled questions for a person to tick: .csv to fill in, or .html.
    spot_questions
        Questions in the spot check.
    ticks
        Filled-in spot checks, of one person or of two.

        The share found wrong gets an interval, two people their kappa.
    seed
        Seed of the sample.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"text": ["Name one perfect square from 5 to 20, both included."],
    ...                       "references": [["9", "16"]], "domain": ["math"]})
    >>> bench_check(table)["ok"]
    True
    """
    facts = raw_facts(_read(triples), source=_source(triples)) | own_domains(domain_files)
    head = document_head("bench_check", [questions, *triples, *domain_files])
    question_list = read_questions(questions)
    document = {**head, **check_questions(question_list, facts), "spot_check": None}
    if spot_check is not None:
        write_spot_check(question_list, spot_check, number=spot_questions, seed=seed)
    if ticks:
        people = judged(*(read_ticks(path) for path in ticks[:2]))
        document |= {"spot_check": people, "ok": document["ok"] and not people["found_wrong"]}
    document["claims"] = [claim.to_dict() for claim in question_claims(typed(plain(document)))]
    document["next"] = _ask_step(questions, ok=bool(document["ok"]))
    return BenchCheckResult(document)


def _ask_step(questions: Any, *, ok: bool) -> dict[str, str] | None:
    """Return how questions that hold are asked, or where to see all that do not."""
    if not isinstance(questions, str | Path):
        return None
    file, folder = shlex.quote(str(questions)), Path(questions).parent
    if not ok:
        call = Call("bench check", questions, json="problems.json")
        return {"why": "List every problem", "command": call.text()}
    if Study(folder).config_path.is_file():
        return {"why": "Ask a model these questions", "command": Call("run", folder).text()}
    copied = f" && cp {file} study/questions.jsonl" if file.endswith(".jsonl") else ""
    command = f"calibrant init study{copied}"
    return {"why": "Put the questions into a study, to ask a model", "command": command}


def _read(paths: Sequence[str | Path]) -> list[Triple]:
    if isinstance(paths, str | Path):
        raise InputError("triples is a list of paths", hint=f"write triples=[{str(paths)!r}]")
    return [triple for path in paths for triple in read_triples(path)]


def _source(paths: Sequence[str | Path]) -> str:
    """Return the facts' names without the folders above: output must not differ by machine."""
    return "facts in " + ", ".join(Path(path).name for path in paths)
