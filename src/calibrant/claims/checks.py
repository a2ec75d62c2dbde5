"""Conditions that a pipeline checks: ``ece>0.05``, ``sem2_ece.high>0.1``, ``claim:ID=shown``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.claims.claim import OUTCOMES
from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_PATTERN = re.compile(
    r"\s*(?P<metric>\w+)(?:\.(?P<part>value|low|high))?\s*(?P<op><=|>=|<|>)\s*(?P<limit>\S+)\s*"
)
_CLAIM = re.compile(r"\s*claim:(?P<id>[\w.]+)\s*=\s*(?P<outcome>\w+)\s*")
_SEMANTIC = {"sem1_ece": "sem1", "sem2_ece": "sem2"}


@dataclass(frozen=True, slots=True)
class Check:
    """Fail where `part` of `metric` stands in relation `relation` to `limit`.

    A check of claims has the id as its metric, ``claim`` as its part and the outcome as relation.
    """

    text: str
    metric: str
    part: str
    relation: str
    limit: float

    @property
    def of_claims(self) -> bool:
        """Whether it is about a claim, not about a metric."""
        return self.part == "claim"


def parse_check(text: str) -> Check:
    """Read a condition.

    Examples
    --------
    >>> parse_check("ece.high > 0.05")
    Check(text='ece.high > 0.05', metric='ece', part='high', relation='>', limit=0.05)
    >>> parse_check("claim:audit.over_confident=shown").relation
    'shown'
    """
    if text.strip().startswith("claim:"):
        return _claim_check(text)
    match = _PATTERN.fullmatch(text)
    try:
        limit = float(match["limit"]) if match else float("nan")
    except ValueError:
        match = None
    if match is None or limit != limit:
        raise InputError(
            f"a condition reads METRIC[.low|.high] <, <=, > or >= NUMBER, or claim:ID=OUTCOME, "
            f"got {text!r}",
            hint="for example 'ece>0.05', 'auroc.low<0.7' or 'claim:audit.over_confident=shown'",
        )
    return Check(text, match["metric"], match["part"] or "value", match["op"], limit)


def _claim_check(text: str) -> Check:
    match = _CLAIM.fullmatch(text)
    if match is None or match["outcome"] not in OUTCOMES:
        raise InputError(
            f"a condition on a claim reads claim:ID=OUTCOME, got {text!r}",
            hint=f"the outcomes are {', '.join(OUTCOMES)}",
        )
    return Check(text, match["id"], "claim", match["outcome"], 0.0)


def checked_blocks(
    document: Mapping[str, Any],
) -> Iterator[tuple[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]]:
    """Yield every block that conditions are checked on: its name, its metrics, its claims.

    Blocks are the results, the blocks over meanings (``sem1_ece``, ``sem2_ece``), and, once, the
    claims that are about several of them.
    """
    claims = list(document.get("claims") or [])
    taken: list[int] = []
    for entry in document.get("results") or []:
        keys = {name: entry.get(name) for name in ("model", "method", "group")}
        own = [n for n, claim in enumerate(claims) if _is_about(claim["subject"], keys)]
        taken += own
        yield _place(keys), entry.get("metrics") or {}, [claims[number] for number in own]
    for entry in document.get("sem_ece") or []:
        found = {name: entry[key] for name, key in _SEMANTIC.items() if key in entry}
        keys = {"model": entry["model"], "method": "meanings", "group": entry.get("group")}
        own = [n for n, claim in enumerate(claims) if _is_about(claim["subject"], keys)]
        taken += own
        yield _place(keys), found, [claims[number] for number in own]
    rest = [claim for number, claim in enumerate(claims) if number not in taken]
    if rest:
        yield "all", {}, rest


def _is_about(subject: Mapping[str, Any], keys: Mapping[str, Any]) -> bool:
    return all(name in subject and subject[name] == value for name, value in keys.items())


def _place(keys: Mapping[str, Any]) -> str:
    names = [keys["model"], keys["method"], *(keys.get("group") or {}).values()]
    return " / ".join(str(name) for name in names if name is not None)


def failed_checks(document: Mapping[str, Any], checks: Sequence[Check]) -> list[str]:
    """Return a line per block and condition that fails; what is undefined cannot pass.

    A metric that no block has, and a claim that no verb makes, is an error, not a pass.
    """
    blocks = list(checked_blocks(document))
    failures = []
    for check in checks:
        if check.of_claims:
            _require_claim(check)
            failures += list(_failed_claims(blocks, check))
            continue
        known = {name for _, metrics, _ in blocks for name in metrics}
        if check.metric not in known:
            raise InputError(
                f"there is no metric {check.metric!r} in this result",
                hint=did_you_mean(check.metric, sorted(known)),
            )
        failures += list(_failed_metric(blocks, check))
    return failures


def _require_claim(check: Check) -> None:
    from calibrant.claims import catalogue, declared

    catalogue.load()
    known = [rule.id for rule in declared()]
    if check.metric not in known:
        raise InputError(
            f"there is no claim {check.metric!r}", hint=did_you_mean(check.metric, known)
        )


def _failed_claims(blocks: Sequence[tuple[str, Any, Any]], check: Check) -> Iterator[str]:
    for place, _, claims in blocks:
        for claim in claims:
            if (claim["id"], claim["outcome"]) == (check.metric, check.relation):
                yield f"{place}: {claim['text']}"


def _failed_metric(blocks: Sequence[tuple[str, Any, Any]], check: Check) -> Iterator[str]:
    for place, metrics, _ in blocks:
        if check.metric not in metrics:
            continue
        value = metrics[check.metric][check.part]
        if value is None:
            yield f"{place}: {check.metric}.{check.part} is undefined"
        elif _OPERATORS[check.relation](value, check.limit):
            yield f"{place}: {check.text} ({check.part} = {value:.4f})"
