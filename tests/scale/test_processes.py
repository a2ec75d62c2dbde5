"""Another process: what it gives comes back, nothing is lost with it, and none stays behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from calibrant.data.sources.engines import Helper, NotDoneError

WHO = "__import__('os').getpid()"


@pytest.fixture
def helper():
    other = Helper(eval)
    yield other
    other.end()


def test_parts_run_elsewhere_one_after_the_other(helper):
    answers = [helper.ask(f"({number}, {WHO})") for number in range(8)]
    assert [number for number, _ in answers] == list(range(8))
    assert {process for _, process in answers}.isdisjoint({os.getpid()})


def test_an_error_of_a_part_leaves_the_process_for_the_next_one(helper):
    with pytest.raises(NotDoneError):
        helper.ask("1 / 0")
    with pytest.raises(NotDoneError):
        Helper(eval).ask(lambda: "cannot be sent")


def test_a_process_that_dies_or_cannot_start_is_not_done(helper, monkeypatch):
    with pytest.raises(NotDoneError):
        helper.ask("__import__('os')._exit(9)")
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(NotDoneError):
        Helper(eval).ask("1")


def test_what_a_library_prints_does_not_get_between(helper, capfd):
    assert helper.ask("print('noise') or 3") == 3
    assert capfd.readouterr().out == ""


def test_a_file_beside_the_data_is_not_taken_for_a_module(tmp_path):
    (tmp_path / "json.py").write_text("open('taken', 'w')")
    (tmp_path / "calibrant.py").write_text("open('taken', 'w')")
    code = (
        "from calibrant.data.sources.engines import Helper\n"
        f"print(int(Helper(eval).ask({WHO!r}) != {WHO}))\n"
    )
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) >= 1
    assert not (tmp_path / "taken").exists()


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks processes up in /proc")
@pytest.mark.parametrize("end", ["kill", "interrupt"])
def test_none_stays_behind_when_the_caller_is_ended(tmp_path, end):
    script, part = tmp_path / "script.py", f"(__import__('time').sleep(0.5), {WHO})[1]"
    script.write_text(
        "from calibrant.data.sources.engines import Helper\n"
        "helper = Helper(eval)\n"
        "for _ in range(200):\n"
        f"    print(helper.ask({part!r}), flush=True)\n"
    )
    caller = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    numbers = {int(caller.stdout.readline()) for _ in range(6)}
    caller.send_signal(signal.SIGKILL if end == "kill" else signal.SIGINT)
    caller.communicate(timeout=300)
    limit = time.monotonic() + 120
    while (left := [n for n in numbers if _alive(n)]) and time.monotonic() < limit:
        time.sleep(0.1)
    assert not left


def _alive(number):
    try:
        state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A process that has ended and was not yet taken note of is no process.
    return state != "Z"
