"""calibrant inside other programs: processes, threads, pickles, and errors that say what to do."""

import multiprocessing
import pickle
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
        there = queue.get(timeout=90)
    finally:
        child.join(5)
        if child.is_alive():
            child.terminate()
    assert there == here


def test_threads_give_the_same_numbers():
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: audited(), range(8)))
    assert all(one == found[0] for one in found)


def test_an_audit_can_be_pickled():
    result = cal.audit(CONFIDENCE, CORRECT, resamples=20)
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own bytes
    assert type(again) is type(result)
    assert again.to_dict() == result.to_dict()


@pytest.mark.parametrize(
    "call",
    [
        lambda path: cal.audit(path),
        lambda path: cal.audit(CONFIDENCE, CORRECT[:-1]),
        lambda path: cal.audit({"confidence": [0.5, 0.6], "correct": [1]}),
        lambda path: cal.audit(CONFIDENCE, CORRECT, seed=-1),
        lambda path: cal.audit(CONFIDENCE, CORRECT, level="0.9"),
        lambda path: cal.metrics.brier([0.5, 0.6], [1]),
    ],
    ids=["cut parquet", "unequal arrays", "unequal columns", "seed", "level", "metric"],
)
def test_wrong_calls_are_input_errors(tmp_path, call):
    path = tmp_path / "cut.parquet"
    path.write_bytes(b"PAR1" + b"\x00" * 40)
    with pytest.raises(cal.InputError):
        call(path)
