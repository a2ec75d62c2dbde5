"""Every size limit can be set, is stated, and is refused by name where it is no number."""

import pickle
from pathlib import Path

import pytest

from calibrant.core.errors import InputError
from calibrant.data.formats import LIMITS, limit, variable
from calibrant.data.logs.polygraph import read_plain_data
from calibrant.models.endpoints.provider import ProviderClient
from calibrant.models.replies import bounded_text, loose_json

SECURITY = Path(__file__).parents[2] / "docs" / "security.md"


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_set_by_its_variable(name, monkeypatch):
    monkeypatch.setenv(variable(name), "1_234")
    assert limit(name) == 1234


@pytest.mark.parametrize("value", ["", "0", "-1", "1e9", "much", "\u00b2", "9" * 400])
def test_a_limit_that_is_no_number_is_refused_by_name(value, monkeypatch):
    monkeypatch.setenv("CALIBRANT_MOST_JSON_LEVELS", value)
    with pytest.raises(InputError, match="CALIBRANT_MOST_JSON_LEVELS"):
        limit("json_levels")


def test_limits_reach_what_they_bound(monkeypatch):
    monkeypatch.setenv("CALIBRANT_MOST_DRAW_CHARACTERS", "5")
    assert bounded_text("Montevideo") == "Monte"
    monkeypatch.setenv("CALIBRANT_MOST_JSON_LEVELS", "2")
    assert loose_json(b'{"a": {"b": {"c": 1}}}') == {"a": {"b": None}}
    monkeypatch.setenv("CALIBRANT_MOST_ANSWER_BYTES", "1000")
    assert ProviderClient(preset="vllm", base_url="http://127.0.0.1:9")._most_bytes == 1000
    monkeypatch.setenv("CALIBRANT_MOST_PLAIN_ITEMS", "10")
    with pytest.raises(ValueError, match="CALIBRANT_MOST_PLAIN_ITEMS"):
        read_plain_data(pickle.dumps(list(range(50))))


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_stated(name):
    assert variable(name) in SECURITY.read_text()
