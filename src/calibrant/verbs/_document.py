"""What the documents of verbs on scores share: how rows were read, and a way back to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import convert

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.sources.objects import STDIN
from calibrant.findings.claims.claim import Claim
from calibrant.findings.claims.data import kept_shares, with_rows_kept
from calibrant.findings.documents.audits import Coverage
from calibrant.findings.documents.entries import Part
from calibrant.report.result import Result

if TYPE_CHECKING:
    from calibrant.data import Scores

R = TypeVar("R", bound=Result)


def with_rows(
    result: R,
    data: Any,
    table: Mapping[str, Any],
    wrong: int = 0,
    *,
    models: Any = None,
    methods: Any = None,
) -> R:
    """Return the result with a way to its rows, and those that are most confidently wrong.

    Parameters
    ----------
    result
        What a verb found.
    data, table
        What it was given, and how that was read.
    wrong
        How many of them to list in the document; none by default.
    models, methods
        Those of the table that were looked at; None stands for all.
    """
    if str(data) == STDIN:
        if wrong:
            rule = "standard input is read once, and rows are looked up afterwards"
            raise InputError(rule, hint=Hint("name a file, or leave out {wrong}"))
        return result
    result.rows_opener = partial(_opened, data, dict(table))
    if wrong:
        # Loaded here: most results are made without a look at single rows.
        from calibrant.data.sources.rows import RowQuery

        rows = result.rows_opener()
        names, modes = tuple(models or ()), tuple(methods or ())
        most = wrong * max(1, len(rows.methods))
        worst = rows.page(RowQuery(names, modes, grade="wrong", size=most)).rows
        # Each answer once, with the highest of its confidences.
        first = {(row["question_id"], row["model"]): row for row in reversed(worst)}
        listed = [row for row in worst if first[row["question_id"], row["model"]] is row][:wrong]
        result.to_dict()["wrong"] = [{n: row[n] for n in row if n != "place"} for row in listed]
    return result


def _opened(data: Any, table: Mapping[str, Any], *, whole: bool = True) -> Any:
    """Return the rows; None where they are too many for a page and not all are asked for."""
    from calibrant.verbs.opening.choose_source import is_large
    from calibrant.verbs.opening.open_rows import open_rows

    return open_rows(data, table) if whole or not is_large(data) else None


def scores_document(
    head: Mapping[str, Any],
    scores: Scores,
    results: Sequence[Part | Mapping[str, Any]],
    claims: Iterable[Claim],
) -> dict[str, Any]:
    """Return a document about scores: how they were read, what they cover, what is found and said.

    Of the claims about a model the first says on what share of its rows it rests.
    """
    # Loaded here: a streamed audit needs this file, and no library of tables.
    from calibrant.data.sources.coverage import row_coverage

    covered = row_coverage(scores)
    with_shares = with_rows_kept(claims, kept_shares(convert(covered["models"], list[Coverage])))
    return {
        **head,
        "reading": scores.reading.to_dict(),
        "dropped": dict(scores.dropped),
        "data": covered,
        "results": results,
        "claims": [claim.to_dict() for claim in with_shares],
    }
