"""Whole documents, verb by kind of input: a change of structure must not change one of them.

`python tests/golden` writes them anew; do that only when a document changes on purpose, and
read the difference.
"""

import math

import pytest

from golden.cases import CASES
from golden.stored import produced, stored

# How many bytes a Parquet file takes is up to the library that writes it.
IGNORED = {"version", "bytes", "sha256"}


def differences(mine, other, place=""):
    """Yield where two documents differ: keys and order, texts, numbers beyond the last digits."""
    if isinstance(mine, dict) and isinstance(other, dict):
        if list(mine) != list(other):
            yield f"{place}: keys {list(mine)} against {list(other)}"
        for key in mine.keys() & other.keys() - IGNORED:
            yield from differences(mine[key], other[key], f"{place}.{key}")
    elif isinstance(mine, list) and isinstance(other, list):
        if len(mine) != len(other):
            yield f"{place}: {len(mine)} against {len(other)} items"
        for number, (a, b) in enumerate(zip(mine, other, strict=False)):
            yield from differences(a, b, f"{place}[{number}]")
    elif isinstance(mine, float) and isinstance(other, float):
        if not math.isclose(mine, other, rel_tol=1e-7, abs_tol=1e-9):
            yield f"{place}: {mine!r} against {other!r}"
    elif mine != other:
        yield f"{place}: {mine!r} against {other!r}"


@pytest.mark.parametrize("name", CASES)
def test_document_is_the_stored_one(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(differences(produced(name), stored(name)))
    assert not found, "\n".join(found[:20])
