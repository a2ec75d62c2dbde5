"""Fixtures that all tests share, and which tests run side by side."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from support import ROOT, real_data

# Grades must not depend on weights that this machine may have; tests of the judge ask for it.
os.environ.setdefault("CALIBRANT_JUDGE", "none")
# No test asserts a time: a first call loads modules, and a machine may be busy.
settings.register_profile("calibrant", deadline=None)
settings.load_profile("calibrant")

# What shares a cluster, a browser, a model or a killed process runs in one worker, one by one.
TOGETHER = {
    "browser": (
        "tests/report/test_access.py",
        "tests/report/test_app_in_browser.py",
        "tests/report/test_browser.py",
        "tests/report/test_large_page.py",
        "tests/report/test_live_view.py",
        "tests/verbs/test_label_loop.py",
    ),
    "kill": (
        "tests/clients/dispatch/test_kill.py",
        "tests/clients/dispatch/test_processes.py",
        "tests/collect/test_kill.py",
    ),
    "local": (
        "tests/apps/test_serve_reader.py",
        "tests/clients/endpoints/test_embedded.py",
        "tests/collect/test_llama_server.py",
        "tests/semantics/test_cluster.py",
        "tests/semantics/test_judge.py",
        "tests/semantics/test_reading.py",
    ),
}
GROUP = {place: name for name, places in TOGETHER.items() for place in places}
# What `make test` leaves to `make test-all`: files, functions, or (`*`) all cases but the first.
LONG = [
    line
    for line in (ROOT / "tests" / "long.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
# Whole files that `make quick` leaves out, and their seconds: see tests/slow.py.
SLOW = {
    name: int(seconds)
    for seconds, name in map(str.split, (ROOT / "tests" / "slow.txt").read_text().splitlines())
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send a file, or the files of a group, to one worker: what its tests share is made once.

    Marks of groups (`--dist loadgroup`) are not looked at in pytest 9.2, and nothing says so.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            place = nodeid.partition("::")[0]
            return GROUP.get(place, place)

    return Scheduler(config, log) if config.getvalue("dist") == "loadfile" else None


def mark_long(items: list[pytest.Item]) -> None:
    """Mark what only `make test-all` runs: the lines of tests/long.txt, and the local model."""
    whole = {line for line in LONG if not line.endswith("*")}
    seen = dict.fromkeys((line[:-1] for line in LONG if line.endswith("*")), False)
    for item in items:
        function = item.nodeid.partition("[")[0]
        listed = {function, function.partition("::")[0]} & whole or seen.get(function)
        if listed or item.get_closest_marker("local"):
            item.add_marker(pytest.mark.long)
        elif function in seen:
            seen[function] = True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and begin with the longest: it would keep one worker busy alone."""
    mark_long(items)
    taken: dict[str, int] = {}
    for place, seconds in SLOW.items():
        group = GROUP.get(place, place)
        taken[group] = taken.get(group, 0) + seconds

    def first(item: pytest.Item) -> int:
        place = item.nodeid.partition("::")[0]
        return -taken.get(GROUP.get(place, place), 0)

    for item in items:
        place = item.nodeid.partition("::")[0]
        if place in SLOW:
            item.add_marker(pytest.mark.slow)
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.data)
        for marker in ("browser", "local"):
            if item.get_closest_marker(marker) and GROUP.get(place) != marker:
                raise pytest.UsageError(f"{place}: add it to TOGETHER[{marker!r}] in conftest.py")
    items.sort(key=first)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped and why, in a line per reason."""
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"skipped {count}: {reason.removeprefix('Skipped: ')}")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that read it are skipped, loudly, where it is absent."""
    return real_data()
