"""How often each sentence is false: `python -m simulations claims`; writes docs/claims.md.

`CALIBRANT_CLAIMS=audit` runs the worlds of one part alone and writes the page from all results that
are stored; a part is a module of this package with a function `worlds`.
A world goes on from its stored runs until its claims are known to be false in less than 5 % of
runs, or has 1,000; `CALIBRANT_AFRESH=1` begins all of them again.
"""

import importlib
import os
import pkgutil
import warnings

from calibrant.core.errors import UndefinedMetricWarning

_TOOLS = frozenset({"audit_worlds", "harness", "page"})


def main() -> None:
    """Run the worlds of every part, or of the one named by CALIBRANT_CLAIMS; write the page."""
    # Imported here: the page loads every claim, the package alone must not.
    from simulations.claims import harness, page

    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _TOOLS)
    wanted = os.environ.get("CALIBRANT_CLAIMS", ",".join(names)).split(",")
    for name in filter(None, wanted):
        part = importlib.import_module(f"simulations.claims.{name}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            harness.store(name, harness.measured(part.worlds(), harness.stored(name)))
    page.PAGE.write_text(page.written())
