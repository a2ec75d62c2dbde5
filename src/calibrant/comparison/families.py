"""All pairs of a document together: which claims stand the number of pairs, and their order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims.compare import comparison_claims, pair_claim
from calibrant.comparison.decision import decide_pairs
from calibrant.comparison.evidence import PairEvidence
from calibrant.comparison.league import win_matrix
from calibrant.core.document import plain
from calibrant.stats.multiplicity import holm

CONTROL = "holm"
# What a reader looks for first.
_IMPORTANCE = {"shown": 0, "depends": 1, "undecided": 2, "equivalent": 3}
_OUTCOMES = {"better": "shown"}


def decide_document(
    parts: Sequence[dict[str, Any]], *, level: float, margin: float
) -> dict[str, Any]:
    """Decide every pair once all pairs count, in place; return the rule and the claims.

    Whole methods and groups of questions are families of their own. Pairs are put in order of
    importance: shown differences first, the largest of them at the top.

    Parameters
    ----------
    parts
        Per method and group: ``keys``, ``pairs`` with ``evidence``, ``summary``, ``league``,
        ``missing``.
    level
        Claims are held to an error of 1 - level.
    margin
        Differences below it do not matter.
    """
    alpha = round(1 - level, 12)
    families: dict[str, list[tuple[dict[str, Any], PairEvidence]]] = {"whole": [], "groups": []}
    for part in parts:
        name = "groups" if part["keys"]["group"] else "whole"
        families[name] += list(zip(part["pairs"], part.pop("evidence"), strict=True))
    for family in families.values():
        _decide(family, level=level, margin=margin)
        _paper_views([pair for pair, _ in family], alpha)
    named = len({part["keys"]["method"] for part in parts}) > 1
    for part in parts:
        for pair in part["pairs"]:
            told = plain({**part["keys"], **pair})
            pair["verdict"] = pair_claim(told, margin=margin, named=named, level=level).text
        part["pairs"].sort(key=_importance)
        part["league"]["win_matrix"] = {
            "models": (models := [row["model"] for row in part["league"]["entries"]]),
            "table": win_matrix(models, part["pairs"]),
        }
        if part["summary"].get("cases"):
            part["summary"]["resolved_reversals"] = {
                view: int(sum(pair["reversal_resolved"][view] for pair in part["pairs"]))
                for view in part["summary"]["resolved_reversals"]
            }
            part["summary"]["outcomes"] = {
                name: sum(pair["outcome"] == name for pair in part["pairs"]) for name in _IMPORTANCE
            }
    counts = {name: {"pairs": len(family)} for name, family in families.items()}
    return {"control": CONTROL, "alpha": alpha, **counts}


def document_claims(
    parts: Sequence[Mapping[str, Any]], *, margin: float, level: float
) -> list[dict[str, Any]]:
    """Return the claims of all parts, as the document holds them."""
    pairs = [plain({**part["keys"], **pair}) for part in parts for pair in part["pairs"]]
    leagues = [plain({**part["keys"], **part["league"]}) for part in parts]
    missing = [plain({**part["keys"], **row}) for part in parts for row in part["missing"]]
    claims = comparison_claims(pairs, leagues, missing, margin=margin, level=level)
    return [claim.to_dict() for claim in claims]


def _importance(pair: Mapping[str, Any]) -> tuple[int, float]:
    size = abs(pair["evidence"]["raw"]["gap"].value)
    return _IMPORTANCE[pair["outcome"]], -size if math.isfinite(size) else 0.0


def _decide(
    family: Sequence[tuple[dict[str, Any], PairEvidence]], *, level: float, margin: float
) -> None:
    decided = decide_pairs([found for _, found in family], level=level, margin=margin)
    accuracy = _adjusted([pair["p_accuracy"] for pair, _ in family])
    for (pair, found), decision, p_accuracy in zip(family, decided, accuracy, strict=True):
        winner = {-1: pair["a"], 1: pair["b"]}.get(decision.winner)
        pair["outcome"] = _OUTCOMES.get(decision.outcome, decision.outcome)
        pair["winner"] = winner
        pair["tie"] = winner is None
        pair["margin"] = margin
        pair["equivalence_bound"] = found.bound
        pair["alike"] = found.alike
        pair["p_verdict"] = found.p_value
        pair["p_verdict_adjusted"] = decision.p_adjusted
        pair["p_accuracy_adjusted"] = p_accuracy
        pair["pairs"] = len(family)
    judged = [pair for pair, _ in family if "ca" in pair["evidence"]]
    for pair, p in zip(judged, _adjusted([_larger(pair) for pair in judged]), strict=True):
        pair["p_candidates_adjusted"] = p


def _larger(pair: Mapping[str, Any]) -> float:
    """Return the larger p-value of the two tests on shared candidates; both must agree."""
    found = pair["evidence"]["ca"]
    both = (found["p_gap"], found["p_square"])
    return math.nan if any(map(math.isnan, both)) else max(both)


def _adjusted(found: Sequence[float]) -> list[float | None]:
    """Return p-values corrected by Holm's rule; None where there is none."""
    tested = [place for place, p in enumerate(found) if not math.isnan(p)]
    adjusted: list[float | None] = [None] * len(found)
    for place, p in zip(tested, holm([found[place] for place in tested]), strict=True):
        adjusted[place] = float(p)
    return adjusted


def _paper_views(pairs: Sequence[dict[str, Any]], alpha: float) -> None:
    """Say, for each view of the literature alone, which model it prefers beyond chance."""
    for pair in pairs:
        pair["p_adjusted"] = dict.fromkeys(pair["p_value"], math.nan)
    for view in dict.fromkeys(view for pair in pairs for view in pair["p_value"]):
        tested = [pair for pair in pairs if not math.isnan(pair["p_value"].get(view, math.nan))]
        adjusted = holm([pair["p_value"][view] for pair in tested])
        for pair, value in zip(tested, adjusted, strict=True):
            pair["p_adjusted"][view] = float(value)
    for pair in pairs:
        pair["better"] = {view: _preferred(pair, view, alpha) for view in pair["p_value"]}
        pair["reversal_resolved"] = {
            view: None not in (found := (pair["better"]["raw"], pair["better"][view]))
            and found[0] != found[1]
            for view in pair["reversal"]
        }


def _preferred(pair: Mapping[str, Any], view: str, alpha: float) -> str | None:
    """Return the model that a view prefers, by its interval and by the corrected p-value."""
    if pair["ties"][view]["ece"]:
        return None
    if pair["pairs"] > 1 and not pair["p_adjusted"][view] <= alpha:
        return None
    return str(pair["a"] if pair["gaps"][view]["ece"].value < 0 else pair["b"])
