"""Claims that a pipeline can check: ``ece>0.05``, ``auroc.low<0.7``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean

__all__ = ["Claim", "failed_claims", "parse_claim"]

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_PATTERN = re.compile(
    r"\s*(?P<metric>\w+)(?:\.(?P<part>value|low|high))?\s*(?P<op><=|>=|<|>)\s*(?P<limit>\S+)\s*"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """Fail where `part` of `metric` stands in relation `relation` to `limit`."""

    text: str
    metric: str
    part: str
    relation: str
    limit: float


def parse_claim(text: str) -> Claim:
    """Read a claim.

    Examples
    --------
    >>> parse_claim("ece.high > 0.05")
    Claim(text='ece.high > 0.05', metric='ece', part='high', relation='>', limit=0.05)
    """
    match = _PATTERN.fullmatch(text)
    try:
        limit = float(match["limit"]) if match else float("nan")
    except ValueError:
        match = None
    if match is None or limit != limit:
        raise InputError(
            f"a condition reads METRIC[.low|.high] <, <=, > or >= NUMBER, got {text!r}",
            hint="for example --fail-if 'ece>0.05' or --fail-if 'auroc.low<0.7'",
        )
    return Claim(text, match["metric"], match["part"] or "value", match["op"], limit)


def failed_claims(results: Sequence[Mapping[str, Any]], claims: Sequence[Claim]) -> list[str]:
    """Return a line per block and claim that fails; what is undefined cannot pass."""
    failures = []
    for entry in results:
        place = " / ".join([entry["model"], entry["method"], *(entry.get("group") or {}).values()])
        for claim in claims:
            metrics = entry["metrics"]
            if claim.metric not in metrics:
                raise InputError(
                    f"the audit of {place} has no metric {claim.metric!r}",
                    hint=did_you_mean(claim.metric, list(metrics)),
                )
            value = metrics[claim.metric][claim.part]
            if value is None:
                failures.append(f"{place}: {claim.metric}.{claim.part} is undefined")
            elif _OPERATORS[claim.relation](value, claim.limit):
                failures.append(f"{place}: {claim.text} ({claim.part} = {value:.4f})")
    return failures
