"""All rules of all verbs, for pages and tests that list them."""

import importlib
import pkgutil

import calibrant.findings.claims

# Rules that live with what they are about.
_ELSEWHERE = ("calibrant.bench.evaluation_claims", "calibrant.bench.question_claims")


def load() -> None:
    """Load every file that declares rules, so that `declared` lists all rules.

    Examples
    --------
    >>> from calibrant.findings.claims import catalogue, declared
    >>> catalogue.load()
    >>> "audit.miscalibrated" in [rule.id for rule in declared()]
    True
    """
    for module in pkgutil.iter_modules(calibrant.findings.claims.__path__):
        importlib.import_module(f"calibrant.findings.claims.{module.name}")
    for name in _ELSEWHERE:
        importlib.import_module(name)
