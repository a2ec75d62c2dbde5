"""Ends that come quietly: a reader that has left, an output without room."""

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest


def table(n=400):
    rng = np.random.default_rng(0)
    confidence = rng.random(n)
    return pl.DataFrame(
        {"confidence": confidence, "correct": (rng.random(n) < confidence).astype(int)}
    )


def test_a_reader_that_has_left_is_no_error(tmp_path):
    path = tmp_path / "scores.csv"
    table().write_csv(path)
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "calibrant", "audit", str(path), "--json", "-"],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=240,
            check=False,
        )
    finally:
        os.close(write)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
@pytest.mark.parametrize("options", [(), ("--json", "/dev/full")])
def test_an_output_without_room_is_one_message(tmp_path, options):
    path = tmp_path / "scores.csv"
    table().write_csv(path)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "calibrant", "audit", str(path), *options],
            stdout=full if not options else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=240,
            check=False,
        )
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr
    assert done.returncode == 2
