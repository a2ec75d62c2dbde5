"""Every write fails once, in the manner of SQLite's own tests: nothing acknowledged is lost."""

import json
import shutil
import sys

import pytest

from apps.faulty_files import built, run_with

if sys.platform != "linux" or shutil.which("cc") is None:
    pytest.skip("the writes of a process are counted on Linux, by a small C library",
                allow_module_level=True)  # fmt: skip


@pytest.mark.parametrize("step", ["31", "1"])
def test_a_write_that_fails_loses_nothing_and_the_promise_never_says_more(tmp_path, step):
    """A full disk, a broken one, an interrupted call and half a write, at every place."""
    done = run_with(built(tmp_path), "-m", "apps.serve_sweep", step)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["lost"] == []
    assert found["writes"] > 200
    assert found["swept"] == 4 * len(range(1, found["writes"] + 1, int(step)))
