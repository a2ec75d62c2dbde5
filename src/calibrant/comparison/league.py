"""All pairs together: who beats whom, an order, and which verdicts stand their number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from calibrant.comparison.decision import ALPHA, VERDICTS, PairVerdict, adjusted, decide_pairs
from calibrant.comparison.evidence import FEW_MISSING, PairEvidence, interval
from calibrant.comparison.footings import SharedViews, effective_size
from calibrant.comparison.statements import CLIP, log_odds
from calibrant.comparison.survey import AnswerCounts, cell_index
from calibrant.core.arrays import Floats
from calibrant.core.document import plain
from calibrant.findings.claims.compare import comparison_claims, pair_claim
from calibrant.findings.claims.grades import carry_to_pair
from calibrant.metrics.corp import corp_from_sums
from calibrant.metrics.stats.ranking import DistinctSums

EVEN = 0.5
# Resamples are summed in single precision.
_NO_SEPARATION = 1e-6
# More statements than this beyond 99.5 % or below 0.5 % leave nothing to tell them apart by.
_SATURATED = 0.5
# A model with more answers without confidence than this has no place.
_UNPLACED = 0.2


def is_uninformative(right: Floats, wrong: Floats) -> bool:
    """Return whether confidences, of data and resamples, are not higher on right answers."""
    draws = (right - wrong)[1:]
    draws = draws[np.isfinite(draws)]
    return bool(draws.size < 2 or np.quantile(draws, 0.025) <= _NO_SEPARATION)


def league_row(
    number: int, name: str, footings: SharedViews, survey: AnswerCounts, level: float
) -> dict[str, Any]:
    """Return what the league says of a model by itself, on all its questions."""
    parts = corp_parts(survey, number, even=True)
    empty = is_uninformative(footings.by_outcome[1], footings.by_outcome[0])
    graded, right = survey.own_accuracy(number)
    statements = survey.cells[number].sum(axis=0)
    low, high = cell_index(np.array([CLIP, 1 - CLIP]))
    beyond = statements[:low].sum() + statements[high + 1 :].sum()
    share, related = survey.missing(number, number)
    return {
        "model": name,
        "n": footings.n,
        "score": interval(footings.score, footings.n, level=level),
        "mcb": parts["mcb"],
        "dsc": parts["dsc"],
        "accuracy": right,
        "graded": graded,
        "effective_size": effective_size(survey.cells[number].sum(axis=1), EVEN),
        "uninformative": empty,
        "saturated": bool(beyond / max(statements.sum(), 1.0) > _SATURATED),
        "placed": not (empty or share > _UNPLACED or (related and share > FEW_MISSING)),
    }


def place_models(
    rows: Sequence[dict[str, Any]], pairs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the league: tiers, ranks and the matrix, all from the verdicts on the pairs.

    Tier 1 is beaten by nobody. Ranks run over what the verdicts leave open. A model has no place
    whose confidence does not separate right from wrong, or lacks for too many answers.
    """
    placed = {row["model"] for row in rows if row["placed"]}
    beats: dict[str, set[str]] = {row["model"]: set() for row in rows}
    beaten: dict[str, set[str]] = {row["model"]: set() for row in rows}
    for pair in pairs:
        if pair["verdict"] == "better":
            winner = pair["winner"]
            loser = pair["b"] if winner == pair["a"] else pair["a"]
            beats[winner].add(loser)
            beaten[loser].add(winner)
    tier = tiers({name: beaten[name] & placed for name in placed})
    entries = []
    for row in rows:
        above, below = beaten[row["model"]], beats[row["model"]]
        open_ranks = {"low": 1 + len(above & placed), "high": len(placed) - len(below & placed)}
        place = {"tier": tier.get(row["model"]), "rank": open_ranks if row["placed"] else None}
        entries.append({**row, **place, "beats": sorted(below), "beaten_by": sorted(above)})
    entries.sort(key=_order)
    first = [row["model"] for row in entries if row["tier"] == 1]
    names = [row["model"] for row in entries]
    return {
        "target": EVEN,
        "winner": first[0] if len(first) == 1 and len(rows) > 1 else None,
        "tiers": max(tier.values(), default=0),
        "worse_than_constant": sum(row["score"].high < 0 for row in rows),
        "entries": entries,
        "win_matrix": {"models": names, "table": win_matrix(names, pairs)},
    }


def _order(row: Mapping[str, Any]) -> tuple[float, float]:
    score = row["score"].value
    return row["tier"] or math.inf, -score if math.isfinite(score) else math.inf


def tiers(beaten: Mapping[str, set[str]]) -> dict[str, int]:
    """Return tiers: those that no remaining model beats form the next one.

    Examples
    --------
    >>> tiers({"a": set(), "b": {"a"}, "c": {"a", "b"}})
    {'a': 1, 'b': 2, 'c': 3}
    """
    left, tier_of, tier = set(beaten), dict.fromkeys(beaten, 0), 1
    while left:
        free = {name for name in left if not beaten[name] & left}
        # Each pair has questions of its own, so three models may beat each other in a circle.
        for name in free or left:
            tier_of[name] = tier
        left -= free or set(left)
        tier += 1
    return tier_of


def corp_parts(survey: AnswerCounts, model: int, *, even: bool) -> dict[str, float]:
    """Return miscalibration, discrimination and uncertainty of the Brier score by isotonic fit.

    Parameters
    ----------
    even
        At accuracy 0.5, confidences shifted along; otherwise as stated.
    """
    cells = survey.cells[model]
    used = cells.sum(axis=0) > 0
    wrong, right = cells[:, used]
    confidence = survey.stated[model, used] / (wrong + right)
    accuracy = float(right.sum() / (right.sum() + wrong.sum()))
    if even:
        if not 0 < accuracy < 1:
            return dict.fromkeys(("mcb", "dsc", "unc"), math.nan)
        odds = log_odds(np.clip(confidence, CLIP, 1 - CLIP)) - log_odds(accuracy)
        confidence = np.asarray(special.expit(odds))
        right, wrong = right * EVEN / accuracy, wrong * (1 - EVEN) / (1 - accuracy)
    parts = corp_from_sums(DistinctSums(confidence, right + wrong, right), float(right.sum()))
    return {"mcb": parts.mcb, "dsc": parts.dsc, "unc": parts.unc}


def win_matrix(models: Sequence[str], pairs: Sequence[Mapping[str, Any]]) -> list[list[str | None]]:
    """Return what each model (row) is against each other (column), by the verdict on the pair.

    Examples
    --------
    >>> pair = {"a": "x", "b": "y", "verdict": "better", "winner": "y"}
    >>> win_matrix(["x", "y"], [pair])
    [[None, 'worse'], ['better', None]]
    """
    peer = {
        "better": "worse",
        "only more accurate": "only less accurate",
        "more accurate, alike": "less accurate, alike",
    }
    place = {name: number for number, name in enumerate(models)}
    table: list[list[str | None]] = [[None] * len(models) for _ in models]
    for pair in pairs:
        a, b = place[pair["a"]], place[pair["b"]]
        one, two = (a, b) if pair["winner"] != pair["b"] else (b, a)
        table[one][two] = pair["verdict"]
        table[two][one] = peer.get(pair["verdict"], pair["verdict"])
    return table


CONTROL = "holm"
Family: TypeAlias = list[tuple[dict[str, Any], PairEvidence]]


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
