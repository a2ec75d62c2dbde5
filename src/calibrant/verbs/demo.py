"""`demo`: a finding from recorded answers within a minute, then a small model that answers."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Any

import orjson
import polars as pl

from calibrant.answers.confidence import score_table
from calibrant.core.hints import Call
from calibrant.core.places import writing
from calibrant.core.shared_options import Seed
from calibrant.core.verb import OUTPUT, Option, Supplied, verb
from calibrant.data import Study
from calibrant.data.sources.input import document_head
from calibrant.models.study.runner import ProgressWatch
from calibrant.report.answers import claims_of, headline
from calibrant.report.page import findings
from calibrant.report.result import DemoResult
from calibrant.verbs.models import fetch_model
from calibrant.verbs.run import run
from calibrant.verbs.study.analysis import analyse, study_document

_FOLDER = files("calibrant.verbs.study") / "recorded"
_TABLES = ("questions", "draws", "answers", "semantics", "candidates")
_MARK = "recorded.sha256"
# One method of each kind: samples, stated, probabilities of the answer, asked about the answer.
METHODS = ("consistency", "sca", "verb", "perplexity", "sequence_probability", "p_true_prob")


def recorded_study(out: str | Path, *, seed: int = 0) -> tuple[Study, bool]:
    """Write the recorded study with its grades and scores, unless it is there already.

    Returns
    -------
    tuple
        The study, and whether its tables were made now.
    """
    study = Study(out)
    study.path.mkdir(parents=True, exist_ok=True)
    mark, digest = study.path / _MARK, _digest(seed)
    recorded = mark.read_text(encoding="utf-8").strip() if mark.is_file() else ""
    if recorded == digest and study.has("scores"):
        return study, False
    with writing(study.path):
        notes = (_FOLDER / "SOURCES.md").read_text(encoding="utf-8")
        (study.path / "SOURCES.md").write_text(notes, encoding="utf-8")
    tables = {name: _read(name) for name in _TABLES}
    tables["draws"] = tables["draws"].hstack(tables.pop("answers"))
    parts = (tables["draws"], tables["semantics"], tables["questions"])
    tables["scores"] = score_table(*parts, methods=list(METHODS), seed=seed).scores
    for name, frame in tables.items():
        study.write(name, frame)
    study.write_result("semantics", orjson.loads((_FOLDER / "semantics.json").read_bytes()))
    mark.write_text(digest + "\n", encoding="utf-8")
    return study, True


def recorded_questions() -> pl.DataFrame:
    """Return the questions that ship with the package, with their right answers.

    Examples
    --------
    >>> recorded_questions().select("question_id", "kind", "k").head(1).row(0)
    ('q0002', 'open', 1)
    """
    return _read("questions")


def recorded_draws() -> pl.DataFrame:
    """Return the draws that ship with the package, as they were recorded: not yet read."""
    return _read("draws")


def _read(name: str) -> pl.DataFrame:
    frame = pl.read_parquet((_FOLDER / f"{name}.parquet").read_bytes())
    if name != "draws":
        return frame
    # Stored in single precision; the tables of a study have double.
    tokens = pl.col("token_logprobs").cast(pl.List(pl.Float64))
    return frame.with_columns(
        tokens,
        pl.col("temperature").cast(pl.Float64),
        completion_tokens=tokens.list.len().cast(pl.Int64),
        prompt_tokens=pl.lit(0, dtype=pl.Int64),
    )


def _digest(seed: int) -> str:
    """Return what names the recorded tables, the methods and the seed."""
    digest = hashlib.sha256(f"{seed} {METHODS}".encode())
    for name in _TABLES:
        digest.update((_FOLDER / f"{name}.parquet").read_bytes())
    return digest.hexdigest()


_STUDIES = files("calibrant.verbs.study") / "examples" / "recorded_and_live"
# Questions per domain: what two cores answer in two minutes, and in the whole live run.
_SHORT = {"arithmetic": 4, "web questions": 2, "rivers": 2}
_FULL = {"arithmetic": 6, "web questions": 5, "rivers": 5, "languages": 4}
_SHORT_METHODS = '["consistency", "sca", "perplexity", "sequence_probability", "verb"]'
_PROMISE = {"cluster": "question_id", "only_method": "consistency", "max_error": 0.3}


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
                # Its questions stand for themselves: left to a search, rows of a domain hang
                # together, and no threshold is certified.
                Call("audit", main["study"], cluster="question_id", by=["domain"]).text(),
                Call("decide", main["study"], **_PROMISE).text(),
                Call("view", main["study"], cluster="question_id").text(),
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
