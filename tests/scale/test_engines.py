"""Engines keep the order, hold few results, and pass errors on."""

import subprocess
import sys
import threading
import time

import pytest

from calibrant.core.errors import InputError
from calibrant.data.sources.engines import LocalEngine, engine_named


def test_results_come_in_order_whatever_finishes_first():
    def slow_first(item):
        time.sleep(0.05 if item == 0 else 0.0)
        return item

    assert list(LocalEngine(threads=3).map(slow_first, range(10))) == list(range(10))


def test_few_parts_are_taken_ahead_of_the_reader():
    taken = []

    def items():
        for number in range(50):
            taken.append(number)
            yield number

    results = LocalEngine(threads=2).map(lambda item: item, items())
    next(results)
    assert len(taken) <= 5
    results.close()


def test_an_error_of_an_early_part_is_raised_before_that_of_a_later_one():
    started = threading.Event()

    def fails(item):
        if item == 0:
            started.wait(5)
            raise InputError("first")
        started.set()
        raise InputError("second")

    with pytest.raises(InputError, match="first"):
        list(LocalEngine(threads=2).map(fails, range(4)))


def test_unknown_engines_are_refused():
    with pytest.raises(InputError, match="engine is local, ray"):
        engine_named("dask")


def test_nothing_imports_ray_before_it_is_asked_for():
    code = (
        "import sys, calibrant.verbs.audit, calibrant.data.sources.engines as e;"
        "e.engine_named('ray'); sys.exit('ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
