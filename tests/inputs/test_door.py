"""One door: how far what a verb was given travels before it is opened."""

import numpy as np
import pytest
from studies._journey import (
    DECLARED,
    SOURCE,
    Call,
    audited,
    calls_with,
    climbs,
    entered,
    inputs,
    table,
)

from calibrant.core.errors import InputError
from calibrant.verbs.opening.open_input import open_input

# A log is an input that answers what tables answer: its methods lie above.
ASKED_ABOUT = {("data", "answers")}


@pytest.fixture(params=["csv", "parquet", "frame", "rows", "log"])
def followed(request, tmp_path):
    data = dict(inputs(tmp_path))[request.param]
    return data, audited(data)


def packages(pairs):
    return {(caller.split("/")[0], here.split("/")[0]) for caller, here in pairs}


def test_what_audit_was_given_enters_few_files(followed):
    places = entered(*followed)
    assert places[0] == "verbs/audit.py"
    assert len(places) <= 10, places
    below = [place for place in places if place.split("/")[0] in ("metrics", "findings", "report")]
    assert not below, "what was given is opened above, and travels no further"


def test_what_audit_was_given_is_never_handed_back_up(followed):
    data, calls = followed
    assert climbs(calls_with(data, calls)) == {DECLARED}


def test_no_call_of_an_audit_climbs_but_to_a_function_that_was_asked_about(followed):
    climbed = climbs(followed[1])
    assert DECLARED in climbed, "the run was not seen"
    assert packages(climbed - {DECLARED}) <= ASKED_ABOUT, climbed


def test_a_streamed_audit_climbs_no_more(tmp_path):
    calls = audited(dict(inputs(tmp_path))["parquet"], engine="local")
    assert any(call.here == "data/sources/cell_source.py" for call in calls)
    assert packages(climbs(calls) - {DECLARED}) <= ASKED_ABOUT, climbs(calls)


def test_a_path_travels_no_further_than_the_door(tmp_path):
    path = tmp_path / "scores.csv"
    table().write_csv(path)
    places = {call.here for call in calls_with(path, audited(path))}
    assert places
    assert {place.split("/")[0] for place in places} <= {"verbs", "data"}


def test_a_climb_is_seen():
    up = Call("answers/logs.py", "data/tables.py")
    down = Call("data/tables.py", "answers/logs.py")
    assert climbs([up, down]) == {("data/tables.py", "answers/logs.py")}


def test_a_study_is_told_from_a_table_at_the_door_alone():
    asks = [
        path.relative_to(SOURCE).as_posix()
        for folder in ("metrics", "findings", "report", "comparison", "trust", "labels")
        for path in (SOURCE / folder).rglob("*.py")
        if "is_study(" in path.read_text()
    ]
    assert asks == []


def test_kinds_are_told_apart(tmp_path):
    kinds = [type(open_input(data)).__name__ for _, data in inputs(tmp_path)]
    assert kinds == ["OpenTables", "OpenTables", "OpenTables", "OpenTables", "OpenLog"]
    assert type(open_input([0.5, 1.0], [0, 1])).__name__ == "OpenArrays"
    with pytest.raises(InputError, match="needs an array of outcomes"):
        open_input(np.array([0.5, 1.0]))
