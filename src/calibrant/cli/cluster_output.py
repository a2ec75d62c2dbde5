"""Keep what a cluster says about itself out of standard output, where the result goes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def cluster_speaks_on_stderr() -> Iterator[None]:
    """Send what is printed meanwhile to standard error, and leave the cluster at the end.

    A Ray driver has a thread that prints on standard output that a node was lost, whatever its
    logging options say, also after the last part came back: ``--json -`` would not be JSON.
    """
    with contextlib.redirect_stdout(sys.stderr):
        try:
            yield
        finally:
            ray = sys.modules.get("ray")
            if ray is not None and ray.is_initialized():
                ray.shutdown()
