"""The public surface is small and on purpose."""

import importlib

import pytest

import calibrant

FUNCTIONS = {"audit", "cascade", "compare", "groups", "import_logs", "monitor", "plan", "run"}
MODULES = {
    "clients",
    "collect",
    "comparison",
    "confidence",
    "epistemic",
    "metrics",
    "planning",
    "records",
    "report",
    "semantics",
    "sources",
    "stats",
}


def test_top_level_names():
    assert set(calibrant.__all__) == {"__version__", *FUNCTIONS, *MODULES}
    for name in FUNCTIONS:
        assert callable(getattr(calibrant, name))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_public_name_exists(name):
    module = importlib.import_module(f"calibrant.{name}")
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public), public


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = calibrant.nonsense
