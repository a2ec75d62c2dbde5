"""Find and run the parts of a package of scripts: every module with a `main()`."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
import traceback

from benchmarks.long_tables import shorten_pages

# Tools that live beside the parts and are no parts themselves.
TOOLS = frozenset({"harness", "long_tables", "runner"})


def part_names(package: str) -> list[str]:
    """Return the modules of `package` that are parts, by file name."""
    path = importlib.import_module(package).__path__
    names = (module.name for module in pkgutil.iter_modules(path))
    return sorted(name for name in names if not name.startswith("_") and name not in TOOLS)


def run_parts(package: str, wanted: list[str]) -> int:
    """Run the wanted parts (all, where none is named); return the exit code.

    A part that fails does not stop the others: its trace is printed and the code is 1.
    """
    known = part_names(package)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"no such part: {', '.join(unknown)}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    failed = []
    for name in wanted or known:
        print(f"== {package}.{name}", flush=True)
        started = time.perf_counter()
        try:
            importlib.import_module(f"{package}.{name}").main()
        except Exception:  # noqa: BLE001 - one broken part must not hide the others
            traceback.print_exc()
            failed.append(name)
        print(f"   {time.perf_counter() - started:.1f} s", flush=True)
    shorten_pages()
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0
