"""`demo`: the whole chain on a small real model, and nothing else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from calibrant.collect import Watch
from calibrant.core.verb import OUTPUT, Option, Supplied, verb
from calibrant.inputs.provenance import document_head
from calibrant.records import Study
from calibrant.report.typed import DemoResult
from calibrant.verbs._options import Seed
from calibrant.verbs.bench import bench_mace
from calibrant.verbs.models import fetch_model
from calibrant.workflows.analysis import analyse
from calibrant.workflows.run import run
from calibrant.workflows.study_page import write_study_page

__all__ = ["demo"]

_STUDY = """\
# Written by `calibrant demo`: one small model in two configurations, on generated questions.
name = "A small model on questions with one and several right answers"
seed = {seed}
questions = "questions.jsonl"
methods = "all"
candidate_pool = true

[sampling]
draws = 8
votes = 1
restatements = 1
candidates = 2
max_tokens = {{ answer = 10 }}

[prompts]
style = "short"

[semantics]
embeddings = true

[[models]]
name = "few-shot"
client = "embedded"

[[models]]
name = "plain"
client = "embedded"

[models.prompts]
style = "short"
answer = "short_plain"
"""


@verb(example="calibrant demo --out demo", outputs=("json",))
def demo(
    out: Annotated[
        str | Path,
        Option("Folder of the study.", metavar="FOLDER", group=OUTPUT, place="folder"),
    ] = "demo",
    *,
    seed: Seed = 0,
    watch: Annotated[Watch | None, Supplied("progress")] = None,
) -> DemoResult:
    """Ask the embedded model 20 generated questions and write a study with its report.

    A second call asks nothing again: what the ledger holds is used.

    Parameters
    ----------
    out
        Folder of the study.
    seed
        Seed of questions and draws.
    watch
        Is told about progress.

    Returns
    -------
    DemoResult
        Document ``calibrant.demo/1``: where the report is, and what to try next.
    """
    started = time.perf_counter()
    study = Study(out)
    study.path.mkdir(parents=True, exist_ok=True)
    fetch_model()
    _write_questions(study.path / "questions.jsonl", seed)
    study.config_path.write_text(_STUDY.format(seed=seed), encoding="utf-8")
    collected = run(study.path, watch=watch)
    parts = analyse(study.path, seed=seed)
    write_study_page(study)
    return DemoResult(
        {
            **document_head("demo", study, seed=seed),
            "study": str(study.path),
            "report": str(study.report_path),
            "seconds": time.perf_counter() - started,
            "counts": collected["counts"],
            "done": parts["done"],
            "left_out": parts["left_out"],
            "next": [
                f"calibrant audit {study.path} --by domain",
                f"calibrant report {study.path} --markdown {study.path}/report.md",
                f"calibrant methods {study.path}",
            ],
        }
    )


def _write_questions(path: Path, seed: int) -> None:
    """Write 8 questions of Math and 12 of Language: what two cores answer in a few minutes."""
    lines = []
    for domain, per_k in (("math", 2), ("language", 3)):
        bench_mace(path, domains=[domain], per_k=per_k, seed=seed, limit=100)
        lines.append(path.read_text(encoding="utf-8"))
    path.write_text("".join(lines), encoding="utf-8")
