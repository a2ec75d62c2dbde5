"""Every write fails once, in the manner of SQLite's own tests: nothing acknowledged is lost."""

import json
import shutil
import sys

import pytest

from apps.faulty_files import built, run_with

if sys.platform != "linux" or shutil.which("cc") is None:
    pytest.skip("the writes of a process are counted on Linux, by a small C library",
                allow_module_level=True)  # fmt: skip


# Of a few files every write, of all files some; all of all where there is time.
@pytest.mark.parametrize(
    ("step", "file", "least"),
    [("1", "served.jsonl", 4), ("1", "served.state.json", 3), ("31", "", 200), ("1", "", 200)],
)
def test_a_write_that_fails_loses_nothing_and_the_promise_never_says_more(
    tmp_path, step, file, least
):
    """A full disk, a broken one, an interrupted call and half a write, at every place."""
    done = run_with(built(tmp_path), "-m", "apps.serve_sweep", step, file)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["lost"] == []
    assert found["writes"] >= least
    assert found["swept"] == 4 * len(range(1, found["writes"] + 1, int(step)))
