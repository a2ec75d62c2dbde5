"""Other processes: parts in order, nothing lost with one of them, and none that stays behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from calibrant.data.streams.engines import ProcessEngine

WHO = "__import__('os').getpid()"


def found(*parts):
    """What two processes find when each part is an expression."""
    return list(ProcessEngine(processes=2).map(eval, parts))


def test_parts_run_elsewhere_and_come_in_order():
    slow = f"(__import__('time').sleep(0.3), 0, {WHO})[1:]"
    came = found(slow, *(f"({number}, {WHO})" for number in range(1, 8)))
    assert [number for number, _ in came] == list(range(8))
    assert os.getpid() not in {process for _, process in came}


def test_an_error_is_the_one_of_its_part_and_stops_there():
    results = ProcessEngine(processes=2).map(eval, ["1", "2", "1 / 0", "4"])
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_what_cannot_be_sent_is_worked_on_here():
    here = list(ProcessEngine(processes=2).map(lambda item: (item, os.getpid()), range(4)))
    assert here == [(item, os.getpid()) for item in range(4)]


def test_where_none_can_be_started_all_is_worked_on_here(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert found(WHO, WHO) == [os.getpid()] * 2


def test_a_process_that_dies_takes_no_part_with_it():
    dies = f"__import__('os')._exit(9) if {WHO} != {os.getpid()} else 'kept'"
    assert found("0", dies, "2", "3", "4") == [0, "kept", 2, 3, 4]


def test_what_a_library_prints_does_not_get_between(capfd):
    assert found("print('noise') or 3", "4") == [3, 4]
    assert capfd.readouterr().out == ""


def test_a_file_beside_the_data_is_not_taken_for_a_module(tmp_path):
    (tmp_path / "json.py").write_text("open('taken', 'w')")
    (tmp_path / "calibrant.py").write_text("open('taken', 'w')")
    code = (
        "from calibrant.data.streams.engines import ProcessEngine\n"
        f"print(len(set(ProcessEngine(processes=2).map(eval, [{WHO!r}] * 9)) - {{{WHO}}}))\n"
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
        "from calibrant.data.streams.engines import ProcessEngine\n"
        f"for number in ProcessEngine(processes=2).map(eval, [{part!r}] * 200):\n"
        "    print(number, flush=True)\n"
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
