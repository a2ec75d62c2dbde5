"""What is said of rows that are right and wrong together, and of a search that found none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from calibrant.findings.claims.claim import ALPHA
from calibrant.findings.claims.data import warning
from calibrant.findings.claims.words import count, percent
from calibrant.findings.documents.audits import (
    AuditBlock,
    DependenceEntry,
    DependentGroupsEntry,
)
from calibrant.findings.documents.entries import DataWarning
from calibrant.metrics.stats.clusters import FEWEST
from calibrant.metrics.stats.dependence import FEW_GROUPS, LARGE_SHARE, Dependence

_ONE = "1 question or topic"
# Up to so many groups may be meant themselves, and not others like them.
MOST_MEANT = 30
_KINDS = {
    "column": "column",
    "part": "id prefix",
    "text": "pattern of texts",
    "day": "column of days",
    "order": "order",
}


def dependence_entry(dependence: Dependence) -> DependenceEntry:
    """Return what a document holds of a search."""
    groups = [
        DependentGroupsEntry(
            kind=each.grouping.kind,
            column=each.grouping.column,
            words=each.grouping.words,
            groups=each.count,
            largest=each.largest,
            inflation=each.inflation,
            p_value=each.p_value,
        )
        for each in dependence.groups
    ]
    return DependenceEntry(searched=dict(Counter(dependence.tested)), groups=groups)


def searched_sentence(entry: DependenceEntry) -> str:
    """Say what was searched where nothing was found; nothing where nothing was searched.

    Examples
    --------
    >>> searched_sentence(DependenceEntry(searched={"column": 7, "part": 3, "order": 1}))
    'Rows look independent: 7 columns, 3 id prefixes, order.'
    """
    parts = [
        "order" if kind == "order" and number == 1 else count(number, _KINDS[kind])
        for kind, number in entry.searched.items()
    ]
    return f"Rows look independent: {', '.join(parts)}." if parts else ""


def few_groups(entry: DependenceEntry) -> bool:
    """Return whether the groups are too few, or too uneven, to tell of others like them."""
    return any(each.groups < FEW_GROUPS or each.largest > LARGE_SHARE for each in entry.groups)


def groups_words(groups: DependentGroupsEntry) -> str:
    """Return how the groups are called, as in 'true of these 14 categories'.

    Examples
    --------
    >>> shared = {"groups": 14, "largest": 0.1, "inflation": 2.0, "p_value": 0.0}
    >>> groups_words(DependentGroupsEntry(kind="column", column="topic", words="topic", **shared))
    '14 values of topic'
    """
    if groups.kind == "order":
        return "rows"
    if groups.kind == "day":
        return f"{groups.groups:,} days"
    name = groups.column if groups.kind == "column" else groups.words
    return f"{groups.groups:,} {'values' if groups.kind == 'column' else 'groups'} of {name}"


def of_these_words(entry: AuditBlock, test: str) -> str | None:
    """Return the groups that a claim is shown of, where it is not of others like them.

    A direction needs the calibration error shown too, as for any rows.
    """
    search = entry.dependence
    if search is None or not search.of_these:
        return None
    shown = (search.of_these.get(name, 1.0) <= ALPHA for name in {test, "calibration"})
    words = " and ".join(groups_words(each) for each in search.groups)
    return f"these {words}" if all(shown) else None


def clusters_words(entry: AuditBlock) -> str:
    """Return what rows come from, where these are too few to tell of others like them.

    Examples
    --------
    >>> clusters_words(AuditBlock(model="a", method="p", n=90, questions=3, metrics={}))
    '3 questions or topics'
    """
    search = entry.dependence
    if search is None or not search.groups:
        return count(entry.questions, "question") + " or topics" if entry.questions != 1 else _ONE
    return groups_words(min(search.groups, key=lambda each: each.groups))


def _together(groups: DependentGroupsEntry) -> str:
    words = {
        "column": f"Rows of one {groups.column}",
        "part": f"Rows whose {groups.column} begins alike",
        "text": f"Rows with {groups.words}",
        "day": f"Rows of one day ({groups.column})",
        "order": f"Rows near each other{f' in {groups.column}' if groups.column else ''}",
    }[groups.kind]
    if groups.kind == "text" and not groups.words.startswith("nearly"):
        words = f"Rows with the same {groups.words}"
    return f"{words} are right and wrong together"


def groups_sentence(groups: DependentGroupsEntry) -> str:
    """Say which rows hang together, what that does to intervals, and what to do.

    Examples
    --------
    >>> shared = {"groups": 51, "largest": 0.1, "inflation": 2.0, "p_value": 0.0}
    >>> user = DependentGroupsEntry(kind="column", column="user", words="user", **shared)
    >>> groups_sentence(user).partition(": ")[0]
    'Rows of one user are right and wrong together'
    """
    wider = f"{groups.inflation:.1f} times as wide"
    if groups.kind == "order":
        return (
            f"{_together(groups)}: accuracy drifts, and intervals are {wider}. What is said may "
            "not hold for later rows: 'calibrated' and promises are withheld."
        )
    if groups.groups < FEWEST:
        return (
            f"{_together(groups)}: what is said is true of these {groups_words(groups)}, mixed as "
            f"here. For others like them intervals would be {wider}."
        )
    named = f"Name {groups.column} as the cluster, or keep" if groups.kind == "column" else "Keep"
    text = f"{_together(groups)}: intervals are between these ({wider}). {named} one row of each."
    if groups.largest > LARGE_SHARE:
        text += f" One has {percent(groups.largest)} of the rows"
    elif groups.groups < FEW_GROUPS:
        text += f" There are only {groups.groups}"
    else:
        return text
    return f"{text}: 'calibrated' and promises are withheld."


def dependence_warnings(searches: Iterable[tuple[str, DependenceEntry]]) -> list[DataWarning]:
    """Warn of rows that hang together, each grouping once with the models it was found in.

    Parameters
    ----------
    searches
        Model, and what was searched for it.
    """
    found: dict[tuple[str, str | None], list[tuple[DependentGroupsEntry, str]]] = {}
    for model, entry in searches:
        for groups in entry.groups:
            found.setdefault((groups.words, groups.column), []).append((groups, model))
    warnings = []
    for pairs in found.values():
        widest, _ = max(pairs, key=lambda pair: pair[0].inflation)
        columns = {"cluster": widest.column} if widest.kind == "column" else {}
        models = list(dict.fromkeys(model for _, model in pairs))
        text = groups_sentence(widest)
        warnings.append(warning("dependent", text, columns=columns, models=models))
    return warnings


def dependence_notes(entries: Sequence[AuditBlock], *, streamed: bool) -> list[str]:
    """Say quietly what was searched without a find, or that nothing was searched."""
    if streamed:
        return ["Rows were read in parts: whether they hang together was not searched."]
    searches = [each.dependence for each in entries if each.dependence is not None]
    if any(search.groups for search in searches):
        return []
    return [text for search in searches[:1] if (text := searched_sentence(search))]
