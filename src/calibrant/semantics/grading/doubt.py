"""How sure a grade is: the chance that people share it, by the rule that gave it.

The shares were counted on answers that people judged (see `docs/studies/semantics.md`); rules that
met too few of them have a share set by hand below the limit, which makes them doubtful.
"""

from __future__ import annotations

from calibrant.stats.graded.checks import DOUBT

# Chance that a verdict of the rule is right; rules that are not listed have SURE.
SURE = 0.99
RULES: dict[str, float] = {
    "number": 0.975,
    "name": 0.975,
    "date": 0.8,
    "year": 0.9,
    "figures": 0.85,
    "clash": 0.75,
    "look-alike": 0.75,
    "negation": 0.85,
    "list": 0.8,
    "missing unit": 0.75,
    "range": 0.9,
    "embedding": 0.9,
    "middle name": 0.75,
    "leftover word": 0.75,
    "younger or older": 0.75,
    "denied": 0.85,
}
# What types leave open although they can read both sides: words decide, and doubt stays.
OPEN = frozenset(
    (
        "code", "range", "formula", "complexity", "nearly equal", "negation", "part of a list",
        "era", "look-alike",
    )
)  # fmt: skip
_LEAST_OPEN = 0.9


def rule_probability(correct: bool, rule: str) -> float:
    """Return the chance that an answer is right, given the verdict of a rule.

    Examples
    --------
    >>> rule_probability(True, "exact"), round(rule_probability(False, "date"), 2)
    (0.99, 0.2)
    """
    sure = RULES.get(rule, SURE)
    return sure if correct else 1.0 - sure


def kept_open(probability: float) -> float:
    """Return a probability that is at most so sure, where something speaks against the words."""
    return min(max(probability, 1.0 - _LEAST_OPEN), _LEAST_OPEN)


def is_doubtful(correct: bool | None, probability: float | None) -> bool:
    """Return whether people may well see it otherwise.

    Examples
    --------
    >>> is_doubtful(True, 0.99), is_doubtful(True, 0.9), is_doubtful(False, 0.2)
    (False, True, True)
    """
    if correct is None or probability is None:
        return False
    return (1.0 - probability if correct else probability) > DOUBT
