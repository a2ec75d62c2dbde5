"""What `bench evaluate` may say: the best method, whether k misleads, and which rows were lost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from msgspec import Struct
from scipy import special

from calibrant.bench.significance import ALPHA
from calibrant.findings.claims import (
    About,
    Claim,
    Facts,
    Outcome,
    joined,
    labels_text,
    points,
    rule,
)
from calibrant.findings.claims.margins import COMPARISON_MARGIN
from calibrant.findings.documents.fields import Entries, MultiAnswerFields
from calibrant.metrics.stats.multiplicity import holm

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
    for (model, method, broken), number in by_rule.items():
        rules.setdefault((model, method), {})[broken] = number
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
    several, most = len({loss.model for loss in losses}) > 1, f"{100 * MOST_LOST:.0f} %"
    pairs = [(_name(loss, several=several), loss) for loss in losses]
    texts = [
        f"{name} lost {_share(loss)}, more than {most}: what is left is another set of questions, "
        f"so {name} is compared with nothing and heads nothing."
        for name, loss in pairs
        if not loss.compared
    ]
    if few := [f"{name} {_share(loss)}" for name, loss in pairs if loss.compared]:
        texts.append(f"Rows left out, at most {most} of a method: {joined(few)}.")
    return [{"id": "rows_lost", "text": text} for text in texts]


def _share(loss: MethodLoss) -> str:
    rules = ", ".join(f"{number:,} {rule}" for rule, number in loss.rules.items())
    return f"{loss.left_out:,} of {loss.rows:,} rows ({rules})"


def _name(loss: MethodLoss, *, several: bool) -> str:
    return f"{loss.model}, {loss.method}" if several else loss.method


# The power of a forecast: 80 %.
_POWER = 0.8416212335729143


def _questions(facts: Facts) -> str:
    numbers = [str(k) for k in facts["mix"]]
    counts = joined(numbers, most=len(numbers))
    return f"questions with {counts} right answer{'' if numbers == ['1'] else 's'}"


def _would_decide(facts: Facts) -> str:
    return f"{labels_text(facts['more'], 'questions').capitalize()} would decide."


def _moved(change: float) -> str:
    if abs(change) < 5e-4:
        return "does not change"
    return f"{'rises' if change >= 0 else 'falls'} by {points(abs(change))}"


BEST = rule("bench.best_method", would_decide=_would_decide)
AGAINST = rule(
    "bench.against_reference",
    margin=COMPARISON_MARGIN,
    questions=_questions,
    would_decide=_would_decide,
    signed=lambda facts: points(facts["value"], sign=True),
    own_signed=lambda facts: points(facts["own"], sign=True),
)
MISLED = rule(
    "bench.misled_by_k",
    margin=COMPARISON_MARGIN,
    would_decide=_would_decide,
    accuracy_moved=lambda facts: _moved(facts["accuracy"]),
    confidence_moved=lambda facts: _moved(facts["confidence"]),
)


def evaluation_claims(document: MultiAnswerFields, margin: float) -> list[Claim]:
    """Return the claims of an evaluation with several right answers.

    Parameters
    ----------
    document
        Document ``calibrant.multi_answer/1`` as plain data.
    margin
        Differences below it do not matter.
    """
    several = len({entry["model"] for entry in document.results}) > 1
    return [
        *_best(document, named=several),
        *_misled(document.results, margin, named=several),
        *_against(document, margin, named=several),
    ]


def within_margin(value: float, error: float, freedom: float, margin: float) -> float:
    """Return the p-value of 'the difference is within the margin': the larger of two tests.

    Without any spread, methods agreed on every question that they were compared on; then it is
    the chance to meet none of the questions on which they differ.

    Examples
    --------
    >>> round(within_margin(0.0, 0.01, 200, 0.05), 6)
    1e-06
    >>> within_margin(0.06, 0.01, 200, 0.05) > 0.5
    True
    """
    if error == 0:
        return (1 - min(margin, 1.0) / 2) ** freedom if value == 0 else float(abs(value) >= margin)
    return float(special.stdtr(freedom, -(margin - abs(value)) / error))


def _more(n: int, value: float, error: float, alpha: float, margin: float | None) -> float | None:
    """Return how many more questions would decide with a power of 80 %.

    The smaller of two numbers: those that show a difference as large as it looks, and, where a
    margin is given, those that show it to be within the margin.
    """
    targets = [(alpha / 2, abs(value))] if value != 0 else []
    if margin is not None and abs(value) < margin:
        targets.append((alpha, margin - abs(value)))
    if not targets or error == 0:
        return None
    need = min((float(special.ndtri(1 - tail)) + _POWER) * error / gap for tail, gap in targets)
    return max(n * (need**2 - 1), 10.0)


def _interval(value: float, error: float, freedom: float) -> dict[str, float]:
    reach = float(special.stdtrit(freedom, 0.975)) * error
    return {"value": value, "low": max(value - reach, -1.0), "high": min(value + reach, 1.0)}


def _best(document: MultiAnswerFields, *, named: bool) -> Iterator[Claim]:
    tested = [entry for entry in document.get("leading", []) if entry["p_value"] is not None]
    areas = {
        (entry["model"], entry["method"]): entry["mixes"][-1]["auroc"]["value"]
        for entry in document.results
    }
    for entry, p_adjusted in zip(tested, holm([e["p_value"] for e in tested]), strict=True):
        against = entry["against"]
        closest = max(against, key=lambda test: test["p_student"])
        alpha = ALPHA / len(against)
        open_ones = [test for test in against if test["p_student"] > alpha / len(tested)]
        value, error = closest["difference"]["value"], closest["error"]
        sized = _interval(value, error, closest["freedom"])
        facts = {
            "methods": entry["methods"],
            "auroc": areas[entry["model"], entry["method"]],
            "next": closest["method"],
            "close": joined([test["method"] for test in open_ones]),
            "more": _more(closest["n"], max(value, 0.0), error, alpha, None),
        }
        about, n, display = _about(entry, named=named), closest["n"], p_adjusted <= ALPHA
        yield BEST.claim(display, about, facts, estimate=sized, p_adjusted=p_adjusted, n=n)


def _about(entry: Mapping[str, Any], *, named: bool, **more: str) -> About:
    subject = {"model": entry["model"], "method": entry["method"], **more}
    return About(subject, {**subject, "name": entry["model"], "named": named})


def _misled(results: Entries, margin: float, *, named: bool) -> Iterator[Claim]:
    tested = [entry for entry in results if entry["compared"] and entry["change"].get("gap")]
    gaps = [entry["change"]["gap"] for entry in tested]
    changes = holm([gap["p_value"] for gap in gaps])
    alike = holm([_within(gap["value"], gap, margin) for gap in gaps])
    for entry, gap, p_change, p_alike in zip(tested, gaps, changes, alike, strict=True):
        outcome, sized = _three_ways(p_change, p_alike), gap["value"]
        facts = {
            **{name: entry["change"][name] for name in ("from", "to")},
            **{name: gap[name] for name in ("accuracy", "confidence")},
            "sizes": sorted((abs(sized["low"]), abs(sized["high"]))),
            "more": _more(sized["n"], sized["value"], gap["error"], ALPHA, margin),
        }
        p_adjusted = p_alike if outcome == "equivalent" else p_change
        yield MISLED.claim(
            outcome,
            _about(entry, named=named),
            facts,
            estimate=sized,
            p_adjusted=p_adjusted,
            margin=margin,
        )


def _within(estimate: Mapping[str, float], test: Mapping[str, Any], margin: float) -> float:
    return within_margin(estimate["value"], test["error"], test["freedom"], margin)


def _three_ways(p_change: float, p_alike: float) -> Outcome:
    if p_alike <= ALPHA:
        return "equivalent"
    return "shown" if p_change <= ALPHA else "undecided"


def _against(document: MultiAnswerFields, margin: float, *, named: bool) -> Iterator[Claim]:
    tested = [
        (entry, entry["significance"][-1])
        for entry in document.results
        if entry["significance"] and entry["significance"][-1].get("p_adjusted") is not None
    ]
    alike = holm([_within(test["difference"], test, margin) for _, test in tested])
    for (entry, test), p_alike in zip(tested, alike, strict=True):
        value, own_value = test["difference"]["value"], test["own_difference"]["value"]
        outcome = _three_ways(test["p_adjusted"], p_alike)
        if test["outcomes_differ"] and outcome != "undecided" and own_value is not None:
            # It stands only where the answers of the other method do not speak against it.
            agrees = abs(own_value) < margin if outcome == "equivalent" else own_value * value > 0
            outcome = outcome if agrees else "depends"
        sized = _interval(value, test["error"], test["freedom"])
        low, high = sized["low"], sized["high"]
        facts = {
            "own": own_value,
            "sizes": (low, high) if value >= 0 else (-high, -low),
            "mix": test["mix"],
            "more": _more(test["n"], value, test["error"], ALPHA, margin),
        }
        p_adjusted = p_alike if outcome == "equivalent" else test["p_adjusted"]
        yield AGAINST.claim(
            outcome,
            _about(entry, named=named, reference=document["reference"]),
            facts,
            estimate=sized,
            p_adjusted=p_adjusted,
            margin=margin,
            n=test["n"],
        )
