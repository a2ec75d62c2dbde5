"""Fixtures that all tests share, and which tests run side by side."""

from pathlib import Path

import pytest

from support import ROOT, shared_data_folder

# What shares a cluster, a browser, a model or a killed process runs in one worker, one by one.
TOGETHER = {
    "ray": ("tests/scale/test_ray.py",),
    "kill": (
        "tests/clients/dispatch/test_kill.py",
        "tests/clients/dispatch/test_processes.py",
        "tests/collect/test_kill.py",
    ),
}
# Whole files that `make quick` leaves out, see tests/slow.py.
SLOW = frozenset((ROOT / "tests" / "slow.txt").read_text().split())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test the worker that it belongs to: a file stays together."""
    for item in items:
        place = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
        group = next((name for name, files in TOGETHER.items() if place in files), place)
        for marker in ("browser", "local"):
            group = marker if item.get_closest_marker(marker) else group
        item.add_marker(pytest.mark.xdist_group(group))
        if place in SLOW:
            item.add_marker(pytest.mark.slow)


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
    folder = shared_data_folder()
    if not folder.is_dir():
        pytest.skip(f"REAL DATA ABSENT: {folder} (set CALIBRANT_DATA to the folder that holds it)")
    return folder
