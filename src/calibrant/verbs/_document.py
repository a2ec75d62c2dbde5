"""The document of a verb on scores."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import convert

from calibrant.claims.claim import Claim
from calibrant.claims.data import kept_shares, with_rows_kept
from calibrant.documents.audits import Coverage
from calibrant.documents.entries import Part
from calibrant.inputs.coverage import row_coverage
from calibrant.records import Scores


def scores_document(
    head: Mapping[str, Any],
    scores: Scores,
    results: Sequence[Part | Mapping[str, Any]],
    claims: Iterable[Claim],
) -> dict[str, Any]:
    """Return a document about scores: how they were read, what they cover, what is found and said.

    Of the claims about a model the first says on what share of its rows it rests.
    """
    covered = row_coverage(scores)
    told = with_rows_kept(claims, kept_shares(convert(covered["models"], list[Coverage])))
    return {
        **head,
        "reading": scores.reading.to_dict(),
        "dropped": dict(scores.dropped),
        "data": covered,
        "results": results,
        "claims": [claim.to_dict() for claim in told],
    }
