"""Write the golden documents: all, or those whose name holds the word given; 'new' adds only."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# As in tests: what a judge would read depends on what was fetched.
os.environ.setdefault("CALIBRANT_JUDGE", "none")

from golden.cases import CASES
from golden.stored import store, stored_path

word = sys.argv[1] if len(sys.argv) > 1 else ""
for case in CASES:
    if (word == "new" and not stored_path(case).exists()) or word in case:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            store(case)
            sys.stdout.write(f"{case}\n")
