"""`calibrant bench`: questions with exactly k right answers."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.emit import emit
from calibrant.cli.options import (
    HtmlPath,
    JsonPath,
    OnInvalid,
    Seed,
    file_with_folders,
    input_to_read,
    inputs_to_read,
    name_list,
)
from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Write questions with exactly k right answers, check them, and evaluate on them.",
)

_MOST_ANSWERS = 1_000
_MASSES = ("frequency", "probability")
Triples = Annotated[
    list[str] | None,
    typer.Option(
        "--triples",
        metavar="PATH",
        help="File or folder of facts; may be given several times.",
        callback=inputs_to_read,
    ),
]


@app.callback()
def _root() -> None:
    """Write questions with exactly k right answers, check them, and evaluate on them."""


@app.command()
def mace(
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="FILE.jsonl", help="Where to write.", callback=file_with_folders
        ),
    ],
    domain: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="award, office, region, math, river, language. [default: math]"
        ),
    ] = None,
    k: Annotated[
        str, typer.Option("--k", metavar="1,2,..", help="Numbers of right answers.")
    ] = "1,2,4,6",
    per_k: Annotated[
        int, typer.Option("--per-k", min=1, max=10**7, help="Questions per domain and k.")
    ] = 500,
    seed: Seed = 0,
    triples: Triples = None,
    popularity: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Page views; drops obscure subjects.", callback=input_to_read
        ),
    ] = None,
    min_views: Annotated[
        int, typer.Option(min=0, max=10**12, help="Fewest page views of a subject.")
    ] = 1_000,
    top_views: Annotated[
        int, typer.Option(min=1, max=10**9, help="Most viewed subjects per domain.")
    ] = 5_000,
    rules: Annotated[
        bool, typer.Option(help="Apply the domain rules that make answers complete.")
    ] = True,
    kinds: Annotated[
        str, typer.Option(metavar="A,B", help="Math: kinds of numbers.")
    ] = "prime,square,cube,fibonacci,triangular",
    limit: Annotated[
        int, typer.Option(min=1, max=10**9, help="Math: the largest number.")
    ] = 1_000_000,
    cap: Annotated[
        int, typer.Option(min=1, max=10**8, help="Most candidates per domain.")
    ] = 10_000,
    strata: Annotated[
        str,
        typer.Option(
            metavar="ngrams|sentence|random",
            help="Choose by k-means over n-grams or sentence embeddings, or at random.",
        ),
    ] = "ngrams",
    split_entities: Annotated[
        bool, typer.Option(help="Give every answer entity to one domain.")
    ] = True,
    json: JsonPath = None,
) -> None:
    """Write a benchmark with exactly k right answers per question."""
    from calibrant.verbs.bench import bench_mace

    result = bench_mace(
        out,
        domains=name_list("--domain", domain) or None,
        k=_numbers(k),
        per_k=per_k,
        seed=seed,
        triples=triples or (),
        popularity=popularity,
        min_views=min_views,
        top_views=top_views,
        rules=rules,
        kinds=name_list("--kinds", kinds),
        limit=limit,
        cap=cap,
        strata=strata,
        split_entities=split_entities,
    )
    emit(result, json=json)


@app.command()
def check(
    questions: Annotated[
        str,
        typer.Argument(metavar="QUESTIONS", help="Table of questions.", callback=input_to_read),
    ],
    triples: Triples = None,
    json: JsonPath = None,
) -> None:
    """Derive every answer set again; exit 1 when a question or the whole breaks a rule."""
    from calibrant.verbs.bench import bench_check

    result = bench_check(questions, triples=triples or ())
    emit(result, json=json)
    if not result["ok"]:
        raise typer.Exit(1)


@app.command()
def evaluate(
    scores: Annotated[
        str,
        typer.Argument(
            metavar="SCORES",
            help="Scores with k and domain, or a study folder.",
            callback=input_to_read,
        ),
    ],
    questions: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Questions, where scores lack k and domain.",
            callback=input_to_read,
        ),
    ] = None,
    draws: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Draws with class_id, for coverage and tau.",
            callback=input_to_read,
        ),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Method that others are tested against. [default: sca]")
    ] = None,
    tune: Annotated[
        str, typer.Option(metavar="A,B", help="Methods whose threshold is tuned; '' for none.")
    ] = "sca,snca,sfca",
    coverage_mass: Annotated[
        str, typer.Option(metavar="frequency|probability", help="Mass of a known answer.")
    ] = "frequency",
    resamples: Annotated[
        int, typer.Option(min=2, max=1_000_000, help="Draws of the test.")
    ] = 1_000,
    items: Annotated[
        int, typer.Option(min=2, max=1_000_000, help="Questions in each draw of the test.")
    ] = 1_000,
    on_invalid: OnInvalid = "error",
    seed: Seed = 0,
    json: JsonPath = None,
    html: HtmlPath = None,
) -> None:
    """Accuracy and confidence by k, AUROC on mixes, tests against the reference."""
    from calibrant.confidence import methods
    from calibrant.verbs.bench_evaluate import bench_evaluate

    if coverage_mass not in _MASSES:
        raise InputError(f"--coverage-mass is one of {', '.join(_MASSES)}, got {coverage_mass!r}")
    tuned = name_list("--tune", tune) if tune else []
    known = [entry["name"] for entry in methods()]
    for name in tuned:
        if name not in known:
            raise InputError(
                f"--tune names confidence methods, got {name!r}", hint=did_you_mean(name, known)
            )
    result = bench_evaluate(
        scores,
        questions=questions,
        draws=draws,
        reference=reference or "sca",
        tune=tuned,
        coverage_mass=coverage_mass,
        resamples=resamples,
        items=items,
        on_invalid=on_invalid,
        seed=seed,
    )
    present = sorted({entry["method"] for entry in result["results"]})
    if reference is not None and reference not in present:
        raise InputError(
            f"--reference is a method of the table, got {reference!r}",
            hint=did_you_mean(reference, present),
        )
    emit(result, json=json, html=html)


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(1 <= number <= _MOST_ANSWERS for number in numbers):
        raise InputError(
            f"--k is a comma list of whole numbers from 1 to {_MOST_ANSWERS:,}, got {text!r}"
        )
    return numbers
