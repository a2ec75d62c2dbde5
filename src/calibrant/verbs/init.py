"""`init`: a folder to begin with: a commented study.toml and five questions, or other examples."""

import json
import os
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Annotated

from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import Call
from calibrant.core.places import writing
from calibrant.core.shared_options import column, source, written
from calibrant.core.verb import Option, verb
from calibrant.data.sources.input import document_head
from calibrant.data.tables import read_table
from calibrant.report.result import InitResult

_EXAMPLES = resources.files("calibrant.verbs.study") / "examples"


@verb(example="calibrant init my-study", outputs=("json",))
def init(
    folder: Annotated[str | Path, written(metavar="FOLDER", argument=True, place="folder")],
    *,
    logs: Annotated[bool, Option()] = False,
    domain: Annotated[bool, Option()] = False,
    table: Annotated[str | Path | None, source()] = None,
    target: Annotated[str | None, column()] = None,
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
    table
        Write a study instead that asks a yes/no question about each row of this table.

        All models then predict one outcome, as in a census. Change the sentences as you like.
    target
        The column of `table` that holds the outcome, of two values.

    Returns
    -------
    InitResult
        Document ``calibrant.init/1``: the files, and what to type next.
    """
    if sum((logs, domain, table is not None)) > 1:
        raise InputError("example logs, an example domain and a table go into folders of their own")
    place = Path(folder)
    texts = {"study.toml": _of_rows(table, target, place)} if table is not None else {}
    choice = _EXAMPLES / ("logs" if logs else "domain" if domain else "study")
    examples = (entry.name for entry in choice.iterdir() if not entry.name.startswith("_"))
    names = list(texts) or sorted(examples)
    for name in names:
        if (place / name).exists():
            raise InputError(
                f"there is a {name} already, and it is not written over",
                source=str(place),
                hint="name another folder",
            )
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name in texts:
                (place / name).write_text(texts[name], encoding="utf-8")
            else:
                _copy(choice / name, place / name)
    following = Call("audit", place / "inspect.eval") if logs else Call("run", place)
    if domain:
        facts, questions = place / "borders.toml", place / "questions.jsonl"
        following = Call("bench mace", domain_files=[facts], k=[2, 4, 6], per_k=8, out=questions)
    return InitResult(
        {
            **document_head("init", None),
            "folder": str(place),
            "files": [str(place / name) for name in names],
            "next": [following.text()],
        }
    )


def _of_rows(table: str | Path, target: str | None, folder: Path) -> str:
    """Return a study.toml that asks about each row of a table, with a sentence per column."""
    frame = read_table(table)
    if target is None:
        raise InputError("which column of the table is the outcome?", hint="name it as target")
    require_known([target], frame.columns, "there is no column {}", source=str(table))
    values = frame[target].drop_nulls().unique().sort().to_list()
    if len(values) != 2:
        listed = ", ".join(map(repr, values[:5]))
        raise InputError(
            f"the outcome {target!r} has two values, got {len(values)}: {listed}", source=str(table)
        )
    positive = values[1] if isinstance(values[1], bool | int | float) else str(values[1])
    sentences = [
        f"{json.dumps(name)} = {json.dumps(f'The {name} is {{value}}.', ensure_ascii=False)}"
        for name in frame.columns
        if name != target
    ]
    given_values = {
        "path": os.path.relpath(table, folder),
        "target": target,
        "positive": positive,
        "question": f"Is {target} equal to {positive}?",
    }
    text = {name: json.dumps(value, ensure_ascii=False) for name, value in given_values.items()}
    rows = Template((_EXAMPLES / "rows.toml").read_text(encoding="utf-8"))
    models = (_EXAMPLES / "study" / "study.toml").read_text(encoding="utf-8")
    request = rows.substitute(text, columns="\n".join(sentences))
    return request + models[models.index("[prompts]") :]


def _copy(source: Traversable, target: Path) -> None:
    """Copy a file or a folder of the package, wherever the package lies."""
    if source.is_dir():
        target.mkdir()
        for entry in source.iterdir():
            _copy(entry, target / entry.name)
    else:
        target.write_bytes(source.read_bytes())
