"""Run all parts, or the named ones: `python -m simulations [part ...]`."""

import sys

from benchmarks.runner import run_parts

if __name__ == "__main__":
    sys.exit(run_parts("simulations", sys.argv[1:]))
