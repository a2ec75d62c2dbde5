"""Every write fails once, in the manner of SQLite's own tests: nothing acknowledged is lost."""

import json
import shutil
import sys

import pytest

from apps.faulty_files import built, run_with

if sys.platform != "linux" or shutil.which("cc") is None:
    pytest.skip("the writes of a process are counted on Linux, by a small C library",
                allow_module_level=True)  # fmt: skip


# Every write of rows and of the state; of all files where there is time.
@pytest.mark.parametrize(
    ("files", "least"), [(("served.jsonl", "served.state.json"), 4), (("",), 200)]
)
def test_a_write_that_fails_loses_nothing_and_the_promise_never_says_more(tmp_path, files, least):
    """A full disk, a broken one, an interrupted call and half a write, at every place."""
    library = built(tmp_path)
    for file in files:
        done = run_with(library, "-m", "apps.serve_sweep", file)
        assert done.returncode == 0, done.stderr[-2000:]
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["lost"] == []
        assert found["swept"] == 4 * found["writes"] >= 4 * least
