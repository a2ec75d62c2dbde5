"""`demo`: a finding from recorded answers within a minute, then a small real model that answers."""

import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated, Any

import polars as pl

from calibrant.core.hints import Call
from calibrant.core.places import writing
from calibrant.core.shared_options import Seed
from calibrant.core.verb import OUTPUT, Option, Supplied, verb
from calibrant.data import Study
from calibrant.data.sources.provenance import document_head
from calibrant.models.study.runner import ProgressWatch
from calibrant.report.answers import claims_of, headline
from calibrant.report.page.screen import findings
from calibrant.report.typed import DemoResult
from calibrant.verbs.models import fetch_model
from calibrant.verbs.run import run
from calibrant.verbs.study.analysis import analyse
from calibrant.verbs.study.recorded_study import recorded_questions, recorded_study
from calibrant.verbs.study.study_page import study_document

_STUDIES = resources.files("calibrant.verbs.study.examples") / "recorded_and_live"
# Questions per domain: what two cores answer in two minutes, and in the whole live run.
_SHORT = {"arithmetic": 4, "web questions": 2, "rivers": 2}
_FULL = {"arithmetic": 6, "web questions": 5, "rivers": 5, "languages": 4}
_SHORT_METHODS = '["consistency", "sca", "perplexity", "sequence_probability", "verb"]'


@verb(example="calibrant demo --recorded --out demo", outputs=("json",))
def demo(
    out: Annotated[str | Path, Option(metavar="FOLDER", group=OUTPUT, place="folder")] = "demo",
    *,
    recorded: Annotated[bool, Option()] = False,
    live: Annotated[bool, Option()] = False,
    seed: Seed = 0,
    watch: Annotated[ProgressWatch | None, Supplied("progress")] = None,
) -> DemoResult:
    """Analyse recorded answers of two open models, then let a small model answer here.

    A second call asks nothing again: what the ledger holds is used.

    Parameters
    ----------
    out
        Folder for the pages.

        ``report.html`` of the recorded study, ``live/report.html`` of the
        live run.
    recorded
        Only the recorded study; no model is needed.
    live
        Only the live run, with every method.
    seed
        Seed of questions and draws.
    watch
        Is told about progress.

    Returns
    -------
    DemoResult
        Document ``calibrant.demo/1``: what was found, where the pages are, what to try next.
    """
    started = time.perf_counter()
    parts: dict[str, dict[str, Any]] = {}
    if recorded or not live:
        parts["recorded"] = _recorded(Study(out), seed)
    if live or not recorded:
        parts["live"] = _live(Study(Path(out) / "live"), seed, watch, whole=live)
    main = parts.get("recorded") or parts["live"]
    return DemoResult(
        {
            **document_head("demo", Study(main["study"]), seed=seed),
            "study": main["study"],
            "report": main["report"],
            "findings": main["findings"],
            "parts": parts,
            "seconds": time.perf_counter() - started,
            "counts": parts.get("live", {}).get("counts", []),
            "done": main["done"],
            "left_out": main["left_out"],
            "next": [
                Call("audit", main["study"], by=["domain"]).text(),
                Call("decide", main["study"], only_method="p_true_prob", max_error=0.3).text(),
                Call("view", main["study"]).text(),
            ],
        }
    )


def _recorded(study: Study, seed: int) -> dict[str, Any]:
    """Grade, score and analyse the recorded answers; a second time only the page is looked up."""
    started = time.perf_counter()
    _, new = recorded_study(study.path, seed=seed)
    _write_config(study, ("recorded.toml",), seed=seed)
    if new or not study.report_path.is_file():
        study.write_result("study", study_document(study))
        analyse(study.path, seed=seed)
    return _part(study, started)


def _live(study: Study, seed: int, watch: ProgressWatch | None, *, whole: bool) -> dict[str, Any]:
    started = time.perf_counter()
    study.path.mkdir(parents=True, exist_ok=True)
    fetch_model()
    questions = live_questions(_FULL if whole else _SHORT)
    with writing(study.path):
        questions.write_ndjson(study.path / "questions.jsonl")
    _write_config(
        study,
        ("live.toml", "second_model.toml") if whole else ("live.toml",),
        seed=seed,
        questions=questions.height,
        models="two configurations" if whole else "one configuration",
        methods='"all"' if whole else _SHORT_METHODS,
        pool="true" if whole else "false",
        draws=8 if whole else 6,
    )
    collected = run(study.path, watch=watch)
    study.write_result("study", study_document(study))
    analyse(study.path, seed=seed)
    return {**_part(study, started), "counts": collected["counts"]}


def _write_config(study: Study, parts: Sequence[str], **values: Any) -> None:
    text = "".join((_STUDIES / name).read_text(encoding="utf-8") for name in parts)
    with writing(study.config_path):
        study.config_path.write_text(Template(text).substitute(values), encoding="utf-8")


def live_questions(wanted: Mapping[str, int]) -> pl.DataFrame:
    """Return so many of the shipped questions of each domain."""
    shipped = recorded_questions()
    return pl.concat(shipped.filter(domain=name).head(n) for name, n in wanted.items())


def _part(study: Study, started: float) -> dict[str, Any]:
    results = study.results()
    first = headline(claims_of(results["audit"]), 1) if "audit" in results else []
    peers = [f"{finding.question}: {finding.text}" for finding in findings(list(results.values()))]
    return {
        "study": str(study.path),
        "report": str(study.report_path),
        "findings": [*first, *peers],
        "done": results["analysis"]["done"],
        "left_out": results["analysis"]["left_out"],
        "seconds": time.perf_counter() - started,
    }
