"""The command line: words of a shell become a call of a verb, and its result text or JSON.

Start with `VERBS`, where the function of each verb is, and `command.VerbCommand`.
"""

import importlib
import json
import os
from collections.abc import Callable
from importlib import resources
from typing import Any, NamedTuple

# Before numpy is loaded: waiting for its second thread costs each command a tenth of a second,
# and sums over several threads would end in other last digits on another machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class CatalogEntry(NamedTuple):
    """A verb in the list of verbs."""

    place: str
    summary: str


_CATALOG = resources.files(__package__).joinpath("catalog.json").read_text(encoding="utf-8")
VERBS: dict[str, CatalogEntry] = {
    words: CatalogEntry(*entry) for words, entry in json.loads(_CATALOG).items()
}
"""In the order of a user's journey; nothing is loaded by naming them, so help is there at once."""


GROUPS: dict[str, str] = {
    "label": "Choose which answers to label next, and when to stop.",
    "bench": "Write questions with exactly k right answers, check them, and evaluate on them.",
    "models": "Fetch or list the weights of the embedded model.",
}
"""What verbs of several parts are for."""


def verb_function(words: str) -> Callable[..., Any]:
    """Return the function of a verb.

    Examples
    --------
    >>> verb_function("audit").__name__
    'audit'
    """
    module, _, name = VERBS[words].place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""What every command has in common: the names of its help, and how wide that is."""
