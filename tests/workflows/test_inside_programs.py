"""calibrant inside other programs: processes, threads, pickles, and errors that say what to do."""

import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import calibrant as cal

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.random(60)
CORRECT = (RNG.random(60) < CONFIDENCE).astype(int)


def audited(seed=0):
    return cal.audit(CONFIDENCE, CORRECT, resamples=20, seed=seed).to_dict()["results"]


def _in_child(queue):
    queue.put(audited())


def test_a_process_spawned_after_an_audit_can_audit_too():
    here = audited()
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    try:
        there = queue.get(timeout=300)
    finally:
        child.join(5)
        if child.is_alive():
            child.terminate()
    assert there == here


def ran(script):
    """Run a script in a new interpreter, where nothing has been loaded yet; return what it says."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


DATA = """
import multiprocessing, threading
import numpy as np
import calibrant as cal
rng = np.random.default_rng(0)
confidence = rng.random(60)
correct = (rng.random(60) < confidence).astype(int)
"""


def test_a_process_forked_after_an_audit_is_told_instead_of_hanging():
    said = ran(
        DATA
        + """
def child(queue):
    try:
        cal.audit(confidence, correct, resamples=20)
    except cal.InputError as error:
        queue.put(str(error))
cal.audit(confidence, correct, resamples=20)
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
print(queue.get(timeout=300))
process.join(10)
"""
    )
    assert "forked" in said
    assert 'get_context("spawn")' in said


def test_a_process_forked_before_the_first_call_works():
    said = ran(
        DATA
        + """
def child(queue):
    queue.put(cal.audit(confidence, correct, resamples=20).to_dict()["results"][0]["n"])
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
print(queue.get(timeout=300))
process.join(10)
"""
    )
    assert said.strip() == "60"


def test_cold_threads_write_the_same_page():
    """Four threads at once in a new process: whoever loads what first changes no digit."""
    said = ran(
        DATA
        + """
pages, gate = [], threading.Barrier(4)
def work():
    gate.wait()
    pages.append(cal.audit(confidence, correct, resamples=20).to_html())
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(pages), len(set(pages)), len(pages[0]) > 1000)
"""
    )
    assert said.split() == ["4", "1", "True"]


def test_threads_give_the_same_numbers():
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: audited(), range(8)))
    assert all(one == found[0] for one in found)


def test_an_audit_can_be_pickled():
    result = cal.audit(CONFIDENCE, CORRECT, resamples=20)
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own bytes
    assert type(again) is type(result)
    assert again.to_dict() == result.to_dict()


def twice_named():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame([[0.1, 0.2, 1]] * 5, columns=["confidence", "confidence", "correct"])


@pytest.mark.parametrize(
    "call",
    [
        lambda path: cal.audit(path),
        lambda path: cal.audit(CONFIDENCE, CORRECT[:-1]),
        lambda path: cal.audit({"confidence": [0.5, 0.6], "correct": [1]}),
        lambda path: cal.audit(CONFIDENCE, CORRECT, seed=-1),
        lambda path: cal.audit(CONFIDENCE, CORRECT, level="0.9"),
        lambda path: cal.metrics.brier([0.5, 0.6], [1]),
        lambda path: cal.audit(twice_named()),
        lambda path: cal.audit({0.1, 0.7, 0.9}, [0, 1, 1]),
        lambda path: cal.audit([0.1, 0.7, 0.9], {0, 1}),
        lambda path: cal.audit(CONFIDENCE, CORRECT, weights=np.ones(60)),
        lambda path: cal.audit({"confidence": CONFIDENCE, "correct": CORRECT}, confidence=3),
        lambda path: cal.audit(CONFIDENCE, CORRECT, model=b"x"),
        lambda path: cal.audit(CONFIDENCE, CORRECT, scale=np.ones(3)),
    ],
    ids=[
        "cut parquet",
        "unequal arrays",
        "unequal columns",
        "seed",
        "level",
        "metric",
        "two columns of one name",
        "a set has no order",
        "a set of outcomes",
        "values for the name of a column",
        "a number for the name of a column",
        "bytes for the name of a column",
        "values for a choice",
    ],
)
def test_wrong_calls_are_input_errors(tmp_path, call):
    path = tmp_path / "cut.parquet"
    path.write_bytes(b"PAR1" + b"\x00" * 40)
    with pytest.raises(cal.InputError):
        call(path)
