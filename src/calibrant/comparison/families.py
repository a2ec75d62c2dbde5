"""All pairs of a document together: which verdicts stand the number of pairs, and their order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from calibrant.comparison.decision import ALPHA, PairVerdict, adjusted, decide_pairs
from calibrant.comparison.evidence import PairEvidence
from calibrant.comparison.league import place_models
from calibrant.core.document import plain
from calibrant.findings.claims.compare import comparison_claims, pair_claim
from calibrant.findings.claims.grades import carry_to_pair

CONTROL = "holm"
Family: TypeAlias = list[tuple[dict[str, Any], PairEvidence]]
# What a reader looks for first.
VERDICTS = (
    "better",
    "reversal",
    "only more accurate",
    "more accurate, alike",
    "depends",
    "undecided",
    "equivalent",
)


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
    families: dict[str, Family] = {"whole": [], "groups": []}
    for part in parts:
        name = "groups" if part["keys"]["group"] else "whole"
        families[name] += list(zip(part["pairs"], part.pop("evidence"), strict=True))
    for family in families.values():
        _decide(family, margin)
        _paper_views([pair for pair, _ in family], level)
    several = len({part["keys"]["method"] for part in parts}) > 1
    for part in parts:
        part["pairs"].sort(key=_importance)
        part["told"] = [plain({**part["keys"], **pair}) for pair in part["pairs"]]
        part["sentences"] = [pair_claim(row, margin=margin, named=several) for row in part["told"]]
        for pair, row, claim in zip(part["pairs"], part["told"], part["sentences"], strict=True):
            pair["text"] = row["text"] = claim.text
        part["league"] |= place_models(part["league"].pop("rows"), part["pairs"])
        summary, verdicts = part["summary"], Counter(pair["verdict"] for pair in part["pairs"])
        summary["verdicts"] = {name: verdicts[name] for name in VERDICTS}
        if summary["cases"]:
            summary["resolved_reversals"] = {
                view: sum(pair["reversal_resolved"][view] for pair in part["pairs"])
                for view in summary["resolved_reversals"]
            }
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


def _importance(pair: Mapping[str, Any]) -> tuple[int, float]:
    size = abs(pair["evidence"]["footings"]["raw"]["gap"].value)
    return VERDICTS.index(pair["verdict"]), -size if math.isfinite(size) else 0.0


def _decide(family: Family, margin: float) -> None:
    # 'Right more often' is a sentence of its own, at the level of the document.
    decided = decide_pairs([evidence for _, evidence in family], margin=margin)
    for (pair, evidence), decision in zip(family, decided, strict=True):
        pair |= _verdict(pair, evidence, decision)
        carry_to_pair(pair, margin)
        pair["margin"] = margin
        pair["pairs"] = len(family)


def _verdict(
    pair: Mapping[str, Any], evidence: PairEvidence, decision: PairVerdict
) -> dict[str, Any]:
    return {
        "verdict": decision.word,
        "winner": {-1: pair["a"], 1: pair["b"]}.get(decision.winner),
        "depends_on": decision.depends_on,
        "rests_on": decision.by,
        "tie": decision.word != "better",
        "not_shown_on": list(decision.missing),
        "shown_if_alone": decision.alone,
        "p_verdict": evidence.p_value,
        "p_verdict_adjusted": decision.p_adjusted,
        "p_accuracy_adjusted": decision.p_accuracy_adjusted,
    }


def _paper_views(pairs: Sequence[dict[str, Any]], level: float) -> None:
    """Say, for each view of the literature alone, which model it prefers beyond chance."""
    alpha = round(1 - level, 12)
    verdicts = [pair["judges"] for pair in pairs if "judges" in pair]
    for judges, p in zip(verdicts, adjusted([part["p_value"] for part in verdicts]), strict=True):
        judges["p_adjusted"] = p
        judges["shown"] = bool(judges["side"]) and p <= 1 - level
    for pair in pairs:
        pair["p_adjusted"] = dict.fromkeys(pair["p_value"])
    for view in dict.fromkeys(view for pair in pairs for view in pair["p_value"]):
        observed = [pair for pair in pairs if view in pair["p_value"]]
        for pair, p in zip(
            observed, adjusted([pair["p_value"][view] for pair in observed]), strict=True
        ):
            pair["p_adjusted"][view] = p
    for pair in pairs:
        pair["better"] = {view: _preferred(pair, view, alpha) for view in pair["p_value"]}
        pair["reversal_resolved"] = {
            view: None not in (winners := (pair["better"]["raw"], pair["better"][view]))
            and winners[0] != winners[1]
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
