"""`init`: a folder to begin with: a commented study.toml and five questions, or other examples."""

from __future__ import annotations

import shutil
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

from calibrant.core.errors import InputError
from calibrant.core.hints import Call
from calibrant.core.places import writing
from calibrant.core.verb import OUTPUT, Option, verb
from calibrant.inputs.provenance import document_head
from calibrant.report.typed import InitResult

_EXAMPLES = "calibrant.workflows.examples"


@verb(example="calibrant init my-study", outputs=("json",))
def init(
    folder: Annotated[
        str | Path, Option(metavar="FOLDER", group=OUTPUT, argument=True, place="folder")
    ],
    *,
    logs: Annotated[bool, Option()] = False,
    domain: Annotated[bool, Option()] = False,
) -> InitResult:
    """Write a commented ``study.toml`` and five example questions, to change and run.

    A file that is there is never written over.

    Parameters
    ----------
    folder
        Folder to fill; it is made where it is missing.
    logs
        Write example logs of other tools instead: Inspect, lm-eval, uqlm and more.
    domain
        Write a domain of facts instead, to build a benchmark from and ask it.

        A table of 60 facts, the file that says what they mean, and the study that
        asks them: see :func:`calibrant.bench_mace`.

    Returns
    -------
    InitResult
        Document ``calibrant.init/1``: the files, and what to type next.
    """
    if logs and domain:
        raise InputError("example logs and an example domain go into two folders")
    target = Path(folder)
    examples = resources.files(_EXAMPLES)
    chosen = examples / ("logs" if logs else "domain" if domain else "study")
    names = sorted(entry.name for entry in chosen.iterdir() if not entry.name.startswith("_"))
    for name in names:
        if (target / name).exists():
            raise InputError(
                f"there is a {name} already, and it is not written over",
                source=str(target),
                hint="name another folder",
            )
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            _copy(chosen / name, target / name)
    following = Call("audit", target / "inspect.eval") if logs else Call("run", target)
    if domain:
        facts, questions = target / "borders.toml", target / "questions.jsonl"
        following = Call("bench mace", domain_files=[facts], k=[2, 4, 6], per_k=8, out=questions)
    return InitResult(
        {
            **document_head("init", None),
            "folder": str(target),
            "files": [str(target / name) for name in names],
            "next": [following.text()],
        }
    )


def _copy(source: Traversable, target: Path) -> None:
    """Copy a file or a folder of the package, wherever the package lies."""
    if source.is_dir():
        target.mkdir()
        for entry in source.iterdir():
            _copy(entry, target / entry.name)
        return
    with source.open("rb") as read, target.open("wb") as write:
        shutil.copyfileobj(read, write)
