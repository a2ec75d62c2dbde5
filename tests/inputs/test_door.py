"""One door: how far what a verb was given travels before it is opened."""

import sys
import threading
import tomllib
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
DECLARED = ("core/verb.py", "verbs/audit.py")


def table(n=60):
    rng = np.random.default_rng(3)
    said = rng.uniform(0.4, 1, n)
    right = (rng.random(n) < said).astype(int)
    return pl.DataFrame(
        {"question_id": [f"q{i}" for i in range(n)], "confidence": said, "correct": right}
    )


def place_of(frame):
    """Return the file of calibrant in which a function stands, or None; loading is no call."""
    code = frame.f_code
    if not code.co_filename.startswith(str(SOURCE)) or code.co_name == "<module>":
        return None
    return Path(code.co_filename).relative_to(SOURCE).as_posix()


def calls_of(call):
    """Return every call into calibrant as (frame's file, caller's file, arguments) of a run."""
    found = []

    def look(frame, event, _):
        here = place_of(frame) if event == "call" else None
        if here is None:
            return
        caller = frame.f_back
        while caller is not None and place_of(caller) is None:
            caller = caller.f_back
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = [frame.f_locals.get(name) for name in names]
        found.append((here, None if caller is None else place_of(caller), given))

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def calls_with(data, calls):
    """Return the calls that were given `data` itself, without the declaration of the verb."""
    return [
        (here, caller)
        for here, caller, given in calls
        if not here.startswith(DECLARATION) and any(value is data for value in given)
    ]


def layers():
    """Return the number of each package's layer, 0 on top, as the import contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = next(one for one in contracts["contracts"] if one["type"] == "layers")
    return {
        name.strip(): number
        for number, line in enumerate(contract["layers"])
        for name in line.split("|")
    }


def climbs(calls):
    """Return the calls from a lower layer into a higher one, as (caller's file, file)."""
    layer = layers()
    return {
        (caller, here)
        for here, caller, *_ in calls
        if caller is not None and layer[here.split("/")[0]] < layer[caller.split("/")[0]]
    }


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


@pytest.fixture(params=range(5), ids=["csv", "parquet", "frame", "rows", "log"])
def followed(request, tmp_path):
    data = list(inputs(tmp_path))[request.param]
    return data, calls_of(lambda: cal.audit(data, resamples=20))


def test_what_audit_was_given_enters_few_files(followed):
    data, calls = followed
    # From the door on a document names its input: the name of a file is the path that was given.
    opening = [here for here, _, _ in calls].index("verbs/audit_document.py")
    entered = list(dict.fromkeys(here for here, _ in calls_with(data, calls[:opening])))
    assert entered[0] == "verbs/audit.py"
    assert len(entered) <= 12, entered
    below = [place for place in entered if place.split("/")[0] in ("metrics", "claims", "report")]
    assert not below, "what was given is opened above, and travels no further"


def test_what_audit_was_given_is_never_handed_back_up(followed):
    data, calls = followed
    assert climbs(calls_with(data, calls)) == {DECLARED}


def test_no_call_of_an_audit_climbs_but_to_a_function_that_was_asked_about(followed):
    climbed = climbs(followed[1])
    assert DECLARED in climbed, "the run was not seen"
    others = climbed - {DECLARED}
    # Searches for a zero and sums over bins take the function that they are about.
    assert {(a.split("/")[0], b.split("/")[0]) for a, b in others} <= {("stats", "metrics")}, others


def test_a_streamed_audit_climbs_no_more(tmp_path):
    source = list(inputs(tmp_path))[1]
    calls = calls_of(lambda: cal.audit(source, resamples=20, engine="local"))
    assert any(here == "inputs/streams/cell_source.py" for here, _, _ in calls)
    others = climbs(calls) - {DECLARED}
    assert {(a.split("/")[0], b.split("/")[0]) for a, b in others} <= {("stats", "metrics")}, others


def test_a_path_travels_no_further_than_the_door(tmp_path):
    table().write_csv(tmp_path / "scores.csv")
    # A path object, unlike its text, is the input and never the name that documents show.
    path = tmp_path / "scores.csv"
    entered = {here for here, _ in calls_with(path, calls_of(lambda: cal.audit(path)))}
    assert entered
    assert {place.split("/")[0] for place in entered} <= {"verbs", "inputs", "records"}


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


def test_a_climb_is_seen():
    up, down = ("inputs/objects.py", "records/tables.py"), ("records/tables.py", "inputs/logs.py")
    assert climbs([up, down]) == {("records/tables.py", "inputs/objects.py")}
