"""All pairs of a document together: which verdicts stand the number of pairs, and their order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims.compare import comparison_claims, pair_claim
from calibrant.claims.grades import carry_to_pair
from calibrant.comparison.decision import ALPHA, Decision, adjusted, decide_pairs
from calibrant.comparison.evidence import PairEvidence
from calibrant.comparison.league import place_models
from calibrant.core.document import plain

CONTROL = "holm"
# What a reader looks for first.
VERDICTS = ("better", "reversal", "only more accurate", "depends", "undecided", "equivalent")


def decide_document(
    parts: Sequence[dict[str, Any]], *, level: float, margin: float
) -> dict[str, Any]:
    """Decide every pair once all pairs count, in place; return the rule and the claims.

    Whole methods and groups of questions are families of their own. Pairs are put in order of
    importance, the largest gaps of each verdict first.

    Parameters
    ----------
    parts
        Per method and group: ``keys``, ``pairs`` with ``evidence``, ``summary``, ``league``,
        ``missing``. They get ``told``, the pairs as the document holds them, and ``sentences``.
    level
        Views of the literature are held to an error of 1 - level.
    margin
        Differences below it do not matter.
    """
    families: dict[str, list[tuple[dict[str, Any], PairEvidence]]] = {"whole": [], "groups": []}
    for part in parts:
        name = "groups" if part["keys"]["group"] else "whole"
        families[name] += list(zip(part["pairs"], part.pop("evidence"), strict=True))
    for family in families.values():
        _decide(family, level=level, margin=margin)
        _paper_views([pair for pair, _ in family], round(1 - level, 12))
    named = len({part["keys"]["method"] for part in parts}) > 1
    for part in parts:
        part["pairs"].sort(key=_importance)
        part["told"] = [plain({**part["keys"], **pair}) for pair in part["pairs"]]
        part["sentences"] = [pair_claim(told, margin=margin, named=named) for told in part["told"]]
        for pair, told, claim in zip(part["pairs"], part["told"], part["sentences"], strict=True):
            pair["text"] = told["text"] = claim.text
        part["league"] |= place_models(part["league"].pop("rows"), part["pairs"])
        _count(part)
    counts = {name: {"pairs": len(family)} for name, family in families.items()}
    return {"control": CONTROL, "alpha": ALPHA, **counts}


def document_claims(parts: Sequence[Mapping[str, Any]], *, level: float) -> list[dict[str, Any]]:
    """Return the claims of all decided parts, as the document holds them."""
    pairs = [pair for part in parts for pair in part["told"]]
    sentences = [claim for part in parts for claim in part["sentences"]]
    leagues = [
        plain({**part["keys"], **part["league"], "verdicts": part["summary"]["verdicts"]})
        for part in parts
    ]
    missing = [part["keys"] | plain(row) for part in parts for row in part["missing"]]
    claims = comparison_claims(pairs, sentences, leagues, missing, level=level)
    return [claim.to_dict() for claim in claims]


def _count(part: dict[str, Any]) -> None:
    """Say how often each verdict was given, and how many turns of the literature are resolved."""
    pairs, summary = part["pairs"], part["summary"]
    found = Counter(pair["verdict"] for pair in pairs)
    summary["verdicts"] = {name: found[name] for name in VERDICTS}
    if summary.get("cases"):
        summary["resolved_reversals"] = {
            view: int(sum(pair["reversal_resolved"][view] for pair in pairs))
            for view in summary["resolved_reversals"]
        }


def _importance(pair: Mapping[str, Any]) -> tuple[int, float]:
    size = abs(pair["evidence"]["footings"]["raw"]["gap"].value)
    return VERDICTS.index(pair["verdict"]), -size if math.isfinite(size) else 0.0


def _decide(
    family: Sequence[tuple[dict[str, Any], PairEvidence]], *, level: float, margin: float
) -> None:
    decided = decide_pairs([found for _, found in family], margin=margin)
    # 'Right more often' is a sentence of its own, at the level of the document.
    for (pair, found), decision in zip(family, decided, strict=True):
        pair |= _told(pair, found, decision)
        carry_to_pair(pair, margin)
        pair["margin"] = margin
        pair["pairs"] = len(family)
    judged = [pair["judges"] for pair, _ in family if "judges" in pair]
    for judges, p in zip(judged, adjusted([found["p_value"] for found in judged]), strict=True):
        judges["p_adjusted"] = p
        judges["shown"] = bool(judges["side"]) and p <= 1 - level


def _told(pair: Mapping[str, Any], found: PairEvidence, decision: Decision) -> dict[str, Any]:
    return {
        "verdict": decision.word,
        "winner": {-1: pair["a"], 1: pair["b"]}.get(decision.winner),
        "depends_on": decision.depends_on,
        "rests_on": decision.by,
        "tie": decision.word != "better",
        "not_shown_on": list(decision.missing),
        "shown_if_alone": decision.alone,
        "p_verdict": found.p_value,
        "p_verdict_adjusted": decision.p_adjusted,
        "p_accuracy_adjusted": decision.p_accuracy_adjusted,
    }


def _paper_views(pairs: Sequence[dict[str, Any]], alpha: float) -> None:
    """Say, for each view of the literature alone, which model it prefers beyond chance."""
    for pair in pairs:
        pair["p_adjusted"] = dict.fromkeys(pair["p_value"], math.nan)
    for view in dict.fromkeys(view for pair in pairs for view in pair["p_value"]):
        tested = [pair for pair in pairs if not math.isnan(pair["p_value"].get(view, math.nan))]
        for pair, p in zip(
            tested, adjusted([pair["p_value"][view] for pair in tested]), strict=True
        ):
            pair["p_adjusted"][view] = p
    for pair in pairs:
        pair["better"] = {view: _preferred(pair, view, alpha) for view in pair["p_value"]}
        pair["reversal_resolved"] = {
            view: None not in (found := (pair["better"]["raw"], pair["better"][view]))
            and found[0] != found[1]
            for view in pair["p_value"]
            if view != "raw"
        }


def _preferred(pair: Mapping[str, Any], view: str, alpha: float) -> str | None:
    """Return the model that a view prefers, by its interval and by the corrected p-value."""
    if pair["ties"][view]["ece"]:
        return None
    if pair["pairs"] > 1 and not pair["p_adjusted"][view] <= alpha:
        return None
    return str(pair["a"] if pair["gaps"][view]["ece"].value < 0 else pair["b"])
