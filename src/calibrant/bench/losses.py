"""Rows that a method lost: how many, why, and whether the rest still speaks for it."""

from collections.abc import Mapping, Sequence

import polars as pl
from msgspec import Struct

from calibrant.findings.claims.words import joined

MOST_LOST = 0.05
"""Share of its rows that a method may lose and still be compared with others."""
_KEY = ["model", "method"]


class MethodLoss(Struct, frozen=True):
    """Rows of a model and method, those left out by rule, and whether it is compared."""

    model: str
    method: str
    rows: int
    left_out: int
    rules: dict[str, int]

    @property
    def compared(self) -> bool:
        """Whether few enough are left out."""
        return self.left_out <= MOST_LOST * self.rows


def method_losses(kept: pl.DataFrame, left_out: pl.DataFrame) -> list[MethodLoss]:
    """Count, per model and method, the rows that are left out; one that lost none is not listed.

    Parameters
    ----------
    kept, left_out
        Rows with model and method; those left out with the ``rule`` that they break.

    Examples
    --------
    >>> kept = pl.DataFrame({"model": ["m"] * 9, "method": ["a"] * 9})
    >>> lost = pl.DataFrame({"model": ["m"], "method": ["a"], "rule": ["confidence_nan"]})
    >>> [(loss.rows, loss.left_out, loss.compared) for loss in method_losses(kept, lost)]
    [(10, 1, False)]
    """
    if not left_out.height:
        return []
    sizes = _counts(kept, _KEY)
    by_rule = _counts(left_out, [*_KEY, "rule"])
    rules: dict[tuple[str, str], dict[str, int]] = {}
    for (model, method, rule), number in by_rule.items():
        rules.setdefault((model, method), {})[rule] = number
    return [
        MethodLoss(*key, sizes.get(key, 0) + sum(broken.values()), sum(broken.values()), broken)
        for key, broken in rules.items()
    ]


def _counts(rows: pl.DataFrame, columns: list[str]) -> dict[tuple[str, ...], int]:
    counts = rows.group_by(columns, maintain_order=True).len()
    return {tuple(map(str, row[:-1])): int(row[-1]) for row in counts.iter_rows()}


def loss_warnings(losses: Sequence[MethodLoss]) -> list[dict[str, str]]:
    """Say which methods lost rows, and which of them are therefore compared with nothing.

    Examples
    --------
    >>> print(loss_warnings([MethodLoss("m", "a", 100, 52, {"confidence_above_1": 52})])[0]["text"])
    a lost 52 of 100 rows (52 confidence_above_1), more than 5 %: what is left is another set of \
questions, so a is compared with nothing and heads nothing.
    """
    several = len({loss.model for loss in losses}) > 1
    far = [loss for loss in losses if not loss.compared]
    few = [loss for loss in losses if loss.compared]
    texts = [_far_text(loss, several=several) for loss in far]
    if few:
        parts = joined([_counted(loss, several=several) for loss in few])
        texts.append(f"Rows left out, at most {100 * MOST_LOST:.0f} % of a method: {parts}.")
    return [{"id": "rows_lost", "text": text} for text in texts]


def _far_text(loss: MethodLoss, *, several: bool) -> str:
    name = _name(loss, several=several)
    return (
        f"{name} lost {_share(loss)}, more than {100 * MOST_LOST:.0f} %: what is left is another "
        f"set of questions, so {name} is compared with nothing and heads nothing."
    )


def _counted(loss: MethodLoss, *, several: bool) -> str:
    return f"{_name(loss, several=several)} {_share(loss)}"


def _share(loss: MethodLoss) -> str:
    return f"{loss.left_out:,} of {loss.rows:,} rows ({_rules(loss.rules)})"


def _rules(rules: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {rule}" for rule, number in rules.items())


def _name(loss: MethodLoss, *, several: bool) -> str:
    return f"{loss.model}, {loss.method}" if several else loss.method
