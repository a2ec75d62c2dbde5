"""How many cores there are to use."""

import os

import pytest

from calibrant.core import machine


@pytest.mark.parametrize(
    ("told", "cores"),
    [("max 100000\n", 8), ("250000 100000\n", 3), ("50000 100000\n", 1), ("odd", 8), (None, 8)],
)
def test_a_container_uses_no_more_than_its_share(monkeypatch, tmp_path, told, cores):
    place = tmp_path / "cpu.max"
    if told is not None:
        place.write_text(told)
    monkeypatch.setattr(machine, "_QUOTA", place)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert machine.usable_cores() == cores
