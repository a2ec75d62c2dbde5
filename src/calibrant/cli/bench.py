"""`calibrant bench`: questions with exactly k right answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.emit import emit
from calibrant.cli.options import JsonPath, Seed
from calibrant.core.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Write questions with exactly k right answers, check them, and evaluate on them.",
)


@app.callback()
def _root() -> None:
    """Write questions with exactly k right answers, check them, and evaluate on them."""


@app.command()
def mace(
    out: Annotated[Path, typer.Option("--out", metavar="FILE.jsonl", help="Where to write.")],
    domain: Annotated[
        str, typer.Option(help="Comma list of award, office, region, math, river, language.")
    ] = "math",
    k: Annotated[str, typer.Option("--k", help="Comma list of numbers of right answers.")] = (
        "1,2,4,6"
    ),
    per_k: Annotated[int, typer.Option("--per-k", help="Questions per domain and k.")] = 500,
    seed: Seed = 0,
    kinds: Annotated[str, typer.Option(help="Math: comma list of kinds of numbers.")] = (
        "prime,square,cube,fibonacci,triangular"
    ),
    limit: Annotated[int, typer.Option(help="Math: the largest number.")] = 1_000_000,
    strata: Annotated[
        str,
        typer.Option(
            metavar="ngrams|sentence|random",
            help="Choose by k-means over n-grams or sentence embeddings, or at random.",
        ),
    ] = "ngrams",
    json: JsonPath = None,
) -> None:
    """Write a benchmark with exactly k right answers per question."""
    from calibrant.api.bench import bench_mace

    result = bench_mace(
        out,
        domains=_names(domain),
        k=_numbers(k),
        per_k=per_k,
        seed=seed,
        kinds=_names(kinds),
        limit=limit,
        strata=strata,
    )
    emit(result, json=json)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in _names(text)]
    except ValueError:
        raise InputError(f"--k is a comma list of whole numbers, got {text!r}") from None
