"""All rules of all verbs, and conditions of a pipeline: ``ece>0.05``, ``claim:ID=shown``."""

import importlib
import operator
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

import calibrant.findings.claims
from calibrant.core.errors import InputError, require_known
from calibrant.core.names import registered
from calibrant.findings.claims import OUTCOMES, ClaimRule, declared


def load() -> None:
    """Load every file that declares rules, so that `declared` lists all rules.

    Examples
    --------
    >>> from calibrant.findings.claims import checks, declared
    >>> checks.load()
    >>> "audit.miscalibrated" in [rule.id for rule in declared()]
    True
    """
    files = pkgutil.iter_modules(calibrant.findings.claims.__path__, f"{__package__}.")
    # Some rules live with what they are about.
    for module in (*(file.name for file in files), *registered("claims").values()):
        importlib.import_module(module)


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
# Outcomes that leave a question open.
_OPEN = ("undecided", "depends")
# Name, metrics and claims of what conditions are checked on.
Block: TypeAlias = tuple[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]
_SEMANTIC = {"sem1_ece": "sem1", "sem2_ece": "sem2"}


class Assertion(Struct, frozen=True):
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


def parse_check(text: str) -> Assertion:
    """Read a condition.

    Examples
    --------
    >>> parse_check("ece.high > 0.05")
    Assertion(text='ece.high > 0.05', metric='ece', part='high', relation='>', limit=0.05)
    >>> parse_check("claim:audit.over_confident=shown").relation
    'shown'
    """
    if text.strip().startswith("claim:"):
        match = _CLAIM.fullmatch(text)
        if match is None or match["outcome"] not in OUTCOMES:
            raise InputError(
                f"a condition on a claim reads claim:ID=OUTCOME, got {text!r}",
                hint=f"the outcomes are {', '.join(OUTCOMES)}",
            )
        return Assertion(text, match["id"], "claim", match["outcome"], 0.0)
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
    return Assertion(text, match["metric"], match["part"] or "value", match["op"], limit)


def checked_blocks(document: Mapping[str, Any]) -> Iterator[Block]:
    """Yield every block that conditions are checked on: its name, its metrics, its claims.

    Blocks are the results, the blocks over meanings (``sem1_ece``, ``sem2_ece``), and, once, the
    claims that are about several of them.
    """
    claims, yielded = list(document.get("claims") or []), set[int]()
    entries = [(entry, entry.get("metrics") or {}) for entry in document.get("results") or []]
    for entry in document.get("sem_ece") or []:
        metrics = {name: entry[key] for name, key in _SEMANTIC.items() if key in entry}
        entries.append(({**entry, "method": "meanings"}, metrics))
    for entry, metrics in entries:
        keys = {name: entry.get(name) for name in ("model", "method", "group")}
        about = [claim for claim in claims if _is_about(claim["subject"], keys)]
        yielded.update(map(id, about))
        yield _place(keys), metrics, about
    if remainder := [claim for claim in claims if id(claim) not in yielded]:
        yield "all", {}, remainder


def _is_about(subject: Mapping[str, Any], keys: Mapping[str, Any]) -> bool:
    return all(name in subject and subject[name] == value for name, value in keys.items())


def _place(keys: Mapping[str, Any]) -> str:
    names = [keys["model"], keys["method"], *(keys.get("group") or {}).values()]
    return " / ".join(str(name) for name in names if name is not None)


def failed_checks(
    document: Mapping[str, Any], checks: Sequence[Assertion], *, allow_undecided: bool = False
) -> list[str]:
    """Return a line per block and condition that fails; what is undefined cannot pass.

    A metric that no block has, and a claim that no verb makes, is an error, not a pass. A claim
    that was not made fails, and so does one that is not decided, unless that is allowed.
    """
    blocks = list(checked_blocks(document))
    failures = []
    for check in checks:
        if check.of_claims:
            load()
            rules = {rule.id: rule for rule in declared()}
            require_known([check.metric], rules, "there is no claim {}")
            failures += list(_failed_claims(blocks, check, rules[check.metric], allow_undecided))
            continue
        names = {name for _, metrics, _ in blocks for name in metrics}
        require_known([check.metric], names, "there is no metric {} in this result")
        failures += list(_failed_metric(blocks, check))
    return failures


def _failed_claims(
    blocks: Sequence[Block], check: Assertion, rule: ClaimRule, allow_undecided: bool
) -> Iterator[str]:
    ids = {rule.id, rule.opposite}
    alike = {
        _kind(place, metrics)
        for place, metrics, claims in blocks
        if any(claim["id"] in ids for claim in claims)
    }
    for place, metrics, claims in blocks:
        about = [claim for claim in claims if claim["id"] in ids]
        for claim in about:
            flipped = claim["id"] != rule.id and claim["outcome"] in ("shown", "depends")
            if claim["outcome"] == check.relation and not flipped:
                yield f"{place}: {claim['text']}"
            elif claim["outcome"] in _OPEN and not allow_undecided:
                yield f"{place}: not decided. {claim['text']}"
        if not about and _kind(place, metrics) in alike and "error" in metrics:
            yield f"{place}: {rule.id} was not tested here"
    # A claim that is made only where it holds does not hold where it is not made.
    silent = rule.sentences.keys() == {"shown"} and any(claims for _, _, claims in blocks)
    if not alike and not silent:
        tested = any("error" in metrics for _, metrics, _ in blocks)
        why = "Nothing here tests it." if tested else "No score here is a probability."
        yield f"{check.text}: this claim was not made. {why}"


def _kind(place: str, metrics: Mapping[str, Any]) -> str:
    """Return what kind of block it is: results, meanings, or claims about several models."""
    return "all" if place == "all" else "meanings" if "sem1_ece" in metrics else "results"


def _failed_metric(blocks: Sequence[Block], check: Assertion) -> Iterator[str]:
    for place, metrics, _ in blocks:
        if check.metric not in metrics:
            continue
        value = metrics[check.metric][check.part]
        if value is None:
            yield f"{place}: {check.metric}.{check.part} is undefined"
        elif _OPERATORS[check.relation](value, check.limit):
            yield f"{place}: {check.text} ({check.part} = {value:.4f})"
