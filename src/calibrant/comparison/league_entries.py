"""The league of a comparison as the document tells it: scores, tiers, ranks, who beats whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.comparison.intervals import interval
from calibrant.comparison.league import EVEN, corp_parts, is_uninformative, standings
from calibrant.comparison.partner_views import PartnerViews, effective_size
from calibrant.comparison.survey import Survey


def league_entry(
    models: Sequence[str],
    views: Sequence[PartnerViews],
    survey: Survey,
    z_scores: Mapping[tuple[int, int], float],
    *,
    level: float,
) -> dict[str, Any]:
    """Return the league: the models in the order of their tiers and scores.

    Parameters
    ----------
    views
        Every model on all its questions.
    z_scores
        By pair: difference of scores on the questions that both have, in standard errors.
    """
    places = standings(len(models), z_scores, alpha=1 - level)
    rows: list[dict[str, Any]] = []
    for number, (name, own, place) in enumerate(zip(models, views, places, strict=True)):
        outcomes = survey.cells[number].sum(axis=1)
        parts = corp_parts(survey, number, even=True)
        rows.append(
            {
                "model": name,
                "n": own.n,
                "tier": place.tier,
                "rank": {"low": place.rank_low, "high": place.rank_high},
                "score": interval(own.score, own.n, level=level),
                "mcb": parts["mcb"],
                "dsc": parts["dsc"],
                "accuracy": float(own.accuracy[0]),
                "effective_size": effective_size(outcomes, EVEN),
                "uninformative": is_uninformative(own.by_outcome[1], own.by_outcome[0]),
                "beats": [models[other] for other in place.beats],
                "beaten_by": [models[other] for other in place.beaten_by],
            }
        )
    rows.sort(key=lambda row: (row["tier"], -np.nan_to_num(row["score"].value, nan=-9.0)))
    first = [row["model"] for row in rows if row["tier"] == 1]
    return {
        "target": EVEN,
        "questions": survey.questions,
        "questions_shared_by_all": survey.complete,
        "winner": first[0] if len(first) == 1 and len(models) > 1 else None,
        "tiers": max((row["tier"] for row in rows), default=0),
        "entries": rows,
    }
