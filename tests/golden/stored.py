"""The stored documents, and how they are made."""

import gzip
import json
from pathlib import Path

from golden.cases import CASES

FOLDER = Path(__file__).parent / "documents"


def produced(name):
    """Return the document of a case as JSON data; call it in an empty folder."""
    return json.loads(json.dumps(CASES[name]().to_dict()))


def stored_path(name):
    return FOLDER / f"{name}.json.gz"


def stored(name):
    return json.loads(gzip.decompress(stored_path(name).read_bytes()))


def store(name):
    text = json.dumps(produced(name), indent=1)
    stored_path(name).write_bytes(gzip.compress(text.encode(), mtime=0))
