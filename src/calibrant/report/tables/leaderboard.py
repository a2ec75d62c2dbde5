"""A leaderboard as text: ranks with what the data leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import (
    Number,
    estimate_cell,
    number_cell,
    percent_cell,
    rank_cell,
    share_cell,
)


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the blocks of a ``calibrant.leaderboard/1`` document."""
    metric, unstable = document["metric"], document["instability"]
    ties = sum(pair["tie"] for pair in document["pairs"])
    rows = tuple(
        (
            entry["model"],
            number_cell(entry["rank"]),
            rank_cell(entry["rank_low"], entry["rank_high"]),
            number_cell(entry["group"]),
            _measured(entry[metric], metric),
            share_cell(unstable["models"][entry["model"]]),
        )
        for entry in document["results"]
    )
    share = share_cell(unstable["share"])
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
                f"Rank intervals hold all at once ({share_cell(document['level'])}). In "
                f"resamples of {share} of the questions the best model changes in "
                f"{share_cell(unstable['best_changes'])}, the order of all in "
                f"{share_cell(unstable['any_change'])}; "
                f"{share_cell(unstable['pairs_flipped'], digits=1)} of pairs flip."
            ),
            main=True,
        ),
    ]


def _measured(estimate: Mapping[str, Any], metric: str) -> Number:
    return percent_cell(estimate) if metric == "accuracy" else estimate_cell(estimate)
