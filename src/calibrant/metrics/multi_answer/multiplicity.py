"""Many methods against one reference, on many mixes: p-values corrected for their number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from calibrant.stats.multiplicity import holm

# A little below 5 %: the spread comes from draws, and what is said must be false in 5 % at most.
ALPHA = 0.04
_FAMILIES = (("p_student", "p_adjusted"), ("pooled_p_student", "pooled_p_adjusted"))


def correct_comparisons(tests: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Give every test its adjusted p-values, in place, and say what was done.

    All models, methods and mixes of a document are one family, because a reader looks for the
    smallest p among all of them; the tests on one pool of questions are another one. An
    undefined test claims nothing, and does not count.

    Examples
    --------
    >>> tests = [{"p_student": p, "pooled_p_student": p} for p in (0.01, 0.04, math.nan)]
    >>> correct_comparisons(tests)
    {'control': 'holm', 'alpha': 0.04, 'tests': 2}
    >>> [test["p_adjusted"] for test in tests]
    [0.02, 0.04, nan]
    """
    every = list(tests)
    for raw, adjusted in _FAMILIES:
        defined = [test for test in every if not math.isnan(test[raw])]
        for test in every:
            test[adjusted] = math.nan
        for test, value in zip(defined, holm([test[raw] for test in defined]), strict=True):
            test[adjusted] = float(value)
    number = sum(not math.isnan(test["p_student"]) for test in every)
    return {"control": "holm", "alpha": ALPHA, "tests": number}
