"""One door: how far what a verb was given travels before it is opened."""

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.inputs.opened.door import open_input
from support import ROOT

SOURCE = ROOT / "src" / "calibrant"
# Declares the verb and checks its options: every call passes through it.
DECLARATION = "core/"


def table(n=60):
    rng = np.random.default_rng(3)
    said = rng.uniform(0.4, 1, n)
    right = (rng.random(n) < said).astype(int)
    return pl.DataFrame(
        {"question_id": [f"q{i}" for i in range(n)], "confidence": said, "correct": right}
    )


def files_that_receive(data, call):
    """Return the files of calibrant with a function that is called with `data` itself."""
    entered = []

    def look(frame, event, _):
        if event != "call":
            return
        code = frame.f_code
        if not code.co_filename.startswith(str(SOURCE)):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(frame.f_locals.get(name) is data for name in names):
            place = Path(code.co_filename).relative_to(SOURCE).as_posix()
            if place not in entered and not place.startswith(DECLARATION):
                entered.append(place)

    sys.setprofile(look)
    try:
        call(data)
    finally:
        sys.setprofile(None)
    return entered


def inputs(folder):
    frame = table()
    frame.write_csv(folder / "scores.csv")
    frame.write_parquet(folder / "scores.parquet")
    logs = ROOT / "src" / "calibrant" / "workflows" / "examples" / "logs" / "lm_eval"
    yield str(folder / "scores.csv")
    yield str(folder / "scores.parquet")
    yield frame
    yield frame.to_dicts()
    yield str(next(iter(sorted(logs.glob("*choice*.jsonl")))))


@pytest.mark.parametrize("kind", range(5), ids=["csv", "parquet", "frame", "rows", "log"])
def test_what_audit_was_given_enters_few_files(tmp_path, kind):
    data = list(inputs(tmp_path))[kind]
    entered = files_that_receive(data, lambda given: cal.audit(given, resamples=20))
    assert entered[0] == "verbs/audit.py"
    assert len(entered) <= 12, entered
    below = [place for place in entered if place.split("/")[0] in ("metrics", "claims", "report")]
    assert not below, "what was given is opened above, and travels no further"


def test_a_study_is_told_from_a_table_at_the_door_alone():
    asks = [
        path.relative_to(SOURCE).as_posix()
        for folder in ("metrics", "claims", "report", "comparison", "epistemic", "planning")
        for path in (SOURCE / folder).rglob("*.py")
        if "is_study(" in path.read_text()
    ]
    assert asks == []


def test_kinds_are_told_apart(tmp_path):
    kinds = [type(open_input(data)).__name__ for data in inputs(tmp_path)]
    assert kinds == ["OpenTables", "OpenTables", "OpenTables", "OpenTables", "OpenLog"]
    assert type(open_input([0.5, 1.0], [0, 1])).__name__ == "OpenArrays"
    with pytest.raises(InputError, match="needs an array of outcomes"):
        open_input(np.array([0.5, 1.0]))
