"""Engines keep the order, hold few results, and pass errors on."""

import os
import subprocess
import sys
import threading
import time

import pytest

from calibrant.core.errors import InputError
from calibrant.inputs.streams.engines import LocalEngine, ProcessEngine, engine_named


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
        "import sys, calibrant.verbs.audit, calibrant.inputs.streams.engines as e;"
        "e.engine_named('ray'); sys.exit('ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_other_processes_give_results_in_order():
    here = os.getpid()
    found = list(ProcessEngine(processes=2).map(lambda item: (item, os.getpid()), range(6)))
    assert [item for item, _ in found] == list(range(6))
    assert here not in {process for _, process in found}


def test_an_error_in_another_process_is_the_one_of_the_part():
    def fails(item):
        if item == 2:
            raise InputError("part 2 is broken", row=7)
        return item

    results = ProcessEngine(processes=2).map(fails, range(5))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(InputError, match="part 2 is broken"):
        next(results)


def test_what_cannot_be_sent_is_worked_on_here():
    lock = threading.Lock()

    def held(item):
        with lock:
            return item, os.getpid()

    found = list(ProcessEngine(processes=2).map(held, range(4)))
    assert found == [(item, os.getpid()) for item in range(4)]


def test_a_process_that_dies_takes_no_part_with_it():
    here = os.getpid()

    def dies(item):
        if item == 1 and os.getpid() != here:
            os._exit(9)
        return item

    assert list(ProcessEngine(processes=2).map(dies, range(4))) == list(range(4))
