"""What tests of all folders share: where things are, and how a command is called."""

import importlib.util
import os
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
CALIBRANT = Path(sys.executable).parent / "calibrant"
# Columns of draws that tell about the call, not about the answer: they differ from run to run.
MEASURED = ("latency_s", "request_id", "served_by")


def shared_data_folder() -> Path:
    """Where the real data is, or would be: tests take the fixture `shared_data` instead."""
    return Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))


def real_data() -> Path:
    """Return the folder of real data; skip the test, loudly, where it is absent."""
    import pytest

    folder = shared_data_folder()
    if not folder.is_dir():
        pytest.skip(f"REAL DATA ABSENT: {folder} (set CALIBRANT_DATA to the folder that holds it)")
    return folder


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def call(*words: object) -> Done:
    """Call a command in this process, as a shell would see it: for what needs no process."""
    from calibrant.cli.main import app
    from calibrant.core.errors import CalibrantError

    done = CliRunner().invoke(app, [str(word) for word in words])
    error = done.exception
    if isinstance(error, CalibrantError):
        return Done(error.exit_code, done.stdout, f"{done.stderr}calibrant: {error}\n")
    if error is not None and not isinstance(error, SystemExit):
        raise error
    return Done(done.exit_code, done.stdout, done.stderr)


def schema_errors(document: dict[str, Any]) -> list[str]:
    """Return where a document breaks the JSON Schema of its kind."""
    from jsonschema import Draft202012Validator

    from calibrant.core.document import kind_of
    from calibrant.findings.documents import document_schema

    schema = document_schema(kind_of(document))
    return [
        f"{'.'.join(map(str, error.path))}: {error.message[:200]}"
        for error in Draft202012Validator(schema).iter_errors(document)
    ]


def break_page(path: Path, table: str = "draws_by_request") -> slice:
    """Overwrite the root page of a table or an index of a SQLite file, and return its place."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    raw = bytearray(path.read_bytes())
    place = slice((page - 1) * size, page * size)
    raw[place] = b"\xaa" * size
    path.write_bytes(raw)
    return place


def two_models(questions: int, seed: int = 0) -> pl.DataFrame:
    """Return scores of two models on the same questions, both calibrated."""
    rng = np.random.default_rng(seed)
    said = rng.uniform(0.4, 1, 2 * questions)
    return pl.DataFrame(
        {
            "question_id": [f"q{i}" for i in range(questions)] * 2,
            "model": ["small"] * questions + ["large"] * questions,
            "method": "consistency",
            "confidence": said,
            "correct": (rng.random(2 * questions) < said).astype(int),
            "topic": ["law", "sport"] * questions,
            "domain": "math",
            "k": [1, 2] * questions,
        }
    )


def model_scores(
    models: Sequence[str] = ("small", "large"),
    methods: Sequence[str] = ("verb",),
    n: int = 150,
) -> pl.DataFrame:
    """Scores of models on the same questions: the second is more accurate, all over-confident."""
    rng = np.random.default_rng(7)
    hard = rng.random(n)
    parts = []
    for place, model in enumerate(models):
        right = rng.random(n) > hard * (1 - 0.3 * place)
        for method in methods:
            said = np.clip(1 - 0.6 * hard * (1 - 0.3 * place) + rng.normal(0, 0.05, n), 0, 1)
            parts.append(
                pl.DataFrame(
                    {
                        "question_id": [f"q{i:03}" for i in range(n)],
                        "model": model,
                        "method": method,
                        "confidence": said.round(3),
                        "correct": right.astype(int),
                        "topic": np.where(np.arange(n) % 3 == 0, "law", "sport"),
                        "hard": hard.round(3),
                    }
                )
            )
    return pl.concat(parts)


def need_small_model(name: str) -> None:
    """Skip where the embedded model or its runtime is not there."""
    import pytest

    from calibrant.core.errors import InputError
    from calibrant.models.inference.weights import weights_path

    # Looked for, not imported: the client must set the waiting policy before the import.
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("EXTRA ABSENT: pip install 'calibrant[local]'")
    try:
        weights_path(name)
    except InputError:
        pytest.skip("WEIGHTS ABSENT: calibrant models fetch")
