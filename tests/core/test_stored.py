"""What a dataclass holds is saved by its annotations, and comes back as it was."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from calibrant.core.arrays import Floats, Ints
from calibrant.core.document import NOT_STORED, Stored, read_by


@dataclass
class Part(Stored):
    stored_as = "part"
    place: Ints
    ends: tuple[float, float] | None = None


def other(stored: dict[str, Any]) -> Part:
    return Part(np.array([9]), None if stored["ends"] is None else (1.0, 2.0))


@dataclass
class Whole(Stored):
    parts: tuple[Part, ...]
    by_name: Mapping[str, Floats]
    days: list[tuple[str, int, float]]
    any_part: Any = field(metadata=read_by(other))
    note: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    cache: Any = field(default=None, metadata=NOT_STORED)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.parts)


WHOLE = Whole(
    (Part(np.array([1, 2]), (0.1 + 0.2, 1.0)), Part(np.array([3]))),
    {"a": np.array([0.1, np.pi])},
    [("monday", 3, 0.5)],
    Part(np.array([7]), (3.0, 4.0)),
    about={"list": [1, {"deep": None}]},
    cache=object(),
)


def test_what_is_saved_comes_back_bit_for_bit():
    text = json.dumps(WHOLE.to_dict())
    found = Whole.from_dict(json.loads(text))
    assert json.dumps(found.to_dict()["parts"]) == json.dumps(WHOLE.to_dict()["parts"])
    assert [part.place.dtype for part in found.parts] == [np.int64, np.int64]
    assert found.parts[0].ends == (0.1 + 0.2, 1.0)
    assert found.parts[1].ends is None
    np.testing.assert_array_equal(found.by_name["a"], WHOLE.by_name["a"])
    assert found.by_name["a"].dtype == np.float64
    assert found.days == [("monday", 3, 0.5)]
    assert (found.note, found.about, found.size) == (None, {"list": [1, {"deep": None}]}, 2)


def test_a_field_may_be_read_by_a_function_and_one_is_left_out():
    saved = WHOLE.to_dict()
    assert "cache" not in saved
    assert "size" not in saved
    assert saved["parts"][0]["kind"] == "part"
    found = Whole.from_dict(saved)
    assert (found.any_part.place.tolist(), found.any_part.ends) == ([9], (1.0, 2.0))
    assert found.cache is None


@pytest.mark.parametrize("name", ["parts", "by_name", "note", "about"])
def test_nothing_that_is_missing_is_replaced(name):
    saved = replace(WHOLE).to_dict()
    del saved[name]
    with pytest.raises(KeyError, match=name):
        Whole.from_dict(saved)
