"""A leaderboard as text: ranks with what the data leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table, estimate_cell

__all__ = ["blocks"]


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the blocks of a ``calibrant.leaderboard/1`` document."""
    metric, unstable = document["metric"], document["instability"]
    ties = sum(pair["tie"] for pair in document["pairs"])
    rows = tuple(
        (
            entry["model"],
            str(entry["rank"]),
            _ranks(entry),
            str(entry["group"]),
            estimate_cell(entry[metric]),
            f"{unstable['models'][entry['model']]:.0%}",
        )
        for entry in document["results"]
    )
    share = f"{unstable['share']:.0%}"
    return [
        Paragraph(
            f"{len(document['groups'])} groups among {len(rows)} models; {ties} of "
            f"{len(document['pairs'])} pairs are ties.",
            strong=True,
        ),
        Table(
            ("model", "rank", "rank interval", "group", metric, f"rank moves at {share}"),
            rows,
            title=f"Leaderboard by {metric}, {document['questions']:,} questions",
            note=(
                f"Rank intervals hold all at once ({document['level']:.0%}). In resamples of "
                f"{share} of the questions the best model changes in "
                f"{unstable['best_changes']:.0%}, the order of all in "
                f"{unstable['any_change']:.0%}; {unstable['pairs_flipped']:.1%} of pairs flip."
            ),
        ),
    ]


def _ranks(entry: Mapping[str, Any]) -> str:
    low, high = entry["rank_low"], entry["rank_high"]
    return str(low) if low == high else f"{low} to {high}"
