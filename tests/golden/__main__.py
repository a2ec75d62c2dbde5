"""Write the golden documents: all, or those whose name holds the word given."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from golden.cases import CASES
from golden.stored import store

word = sys.argv[1] if len(sys.argv) > 1 else ""
for case in CASES:
    if word in case:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            store(case)
            sys.stdout.write(f"{case}\n")
