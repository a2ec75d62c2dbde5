"""Run all parts, or the named ones: `python -m benchmarks [part ...]`."""

import sys

from benchmarks.runner import run_parts

if __name__ == "__main__":
    sys.exit(run_parts("benchmarks", sys.argv[1:]))
