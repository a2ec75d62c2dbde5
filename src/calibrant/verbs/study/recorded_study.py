"""The recorded study of the package: real answers, so that a first look needs no model.

Answers, log-probabilities and stated confidences are recorded. Meaning classes and grades are
shipped beside them, as `annotate` makes them (a test makes them again); scores and everything that
follows are computed here, as for any study.
"""

import hashlib
from importlib.resources import files
from pathlib import Path

import orjson
import polars as pl

from calibrant.answers.confidence import score_table
from calibrant.core.places import writing
from calibrant.data import Study

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
