"""What tests of all folders share: where things are, and how a command is called."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
CALIBRANT = Path(sys.executable).parent / "calibrant"


def shared_data_folder() -> Path:
    """Where the real data is."""
    return Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))


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
    from calibrant.documents import document_schema

    schema = document_schema(kind_of(document))
    return [
        f"{'.'.join(map(str, error.path))}: {error.message[:200]}"
        for error in Draft202012Validator(schema).iter_errors(document)
    ]
