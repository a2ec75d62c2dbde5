"""`methods`: which confidence methods there are, and which a study can use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from calibrant.confidence import NEEDS, availability, compact_table
from calibrant.confidence import methods as declared_methods
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.core.verb import INPUT, Option, verb
from calibrant.inputs.provenance import document_head
from calibrant.records import Study
from calibrant.report.typed import MethodsResult

__all__ = ["methods"]


@verb(example="calibrant methods study")
def methods(
    study: Annotated[
        str | Path | None,
        Option(
            "Say which methods this study can use, and why it cannot use the others.",
            metavar="[STUDY]",
            group=INPUT,
            argument=True,
            place="read",
        ),
    ] = None,
) -> MethodsResult:
    """List the confidence methods, and say which are available for a study.

    Parameters
    ----------
    study
        Study folder; None lists the methods alone.

    Returns
    -------
    MethodsResult
        Document ``calibrant.methods/1``: ``methods`` (name, summary, needs, about, probability,
        low, high, direction, reference), ``needs`` (what each input is), and for a study
        ``results``: one entry per model and method with available, questions, missing, reason.

    Examples
    --------
    >>> entry = methods()["methods"][0]
    >>> entry["name"], entry["probability"]
    ('consistency', True)
    """
    document: dict[str, Any] = {
        **document_head("methods", study),
        "study": None if study is None else str(study),
        "methods": declared_methods(),
        "needs": {name: need.meaning for name, need in NEEDS.items()},
        "results": [],
    }
    if study is not None:
        document["results"] = _availability(Path(study))
    return MethodsResult(document)


def _availability(path: Path) -> list[dict[str, Any]]:
    if not Study.is_study(path):
        raise InputError(
            "not a study folder (one that holds study.toml or tables/)",
            source=str(path),
            hint=Hint(
                "run `{call}` first, or leave the folder away to list all methods",
                call=Call("run", "STUDY"),
            ),
        )
    study = Study(path)
    if not study.has("draws"):
        raise InputError(
            "the study has no draws yet, so no method can be used",
            source=str(path),
            hint=Hint("collect them with `{call}`", call=Call("run", path)),
        )
    table = compact_table(
        study.read("draws"),
        study.read("semantics") if study.has("semantics") else None,
        study.read("questions") if study.has("questions") else None,
    )
    return availability(table)
