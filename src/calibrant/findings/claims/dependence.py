"""What is said of rows that are right and wrong together, and of a search that found none."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from calibrant.core.hints import Hint
from calibrant.findings.claims import ALPHA, count, percent
from calibrant.findings.claims.data import warning
from calibrant.findings.documents.audits import (
    AuditBlock,
    DependenceEntry,
    DependentGroupsEntry,
)
from calibrant.findings.documents.entries import DataWarning
from calibrant.metrics.stats.clusters import FEWEST
from calibrant.metrics.stats.dependence import (
    FEW_GROUPS,
    LARGE_SHARE,
    Dependence,
    DependentGroups,
)

_ONE = "1 question or topic"
_WITHHELD = "'calibrated' and promises are withheld."
NOT_SEARCHED = "Rows were read in parts: whether they hang together was not searched."
# From so many times on a decimal says nothing.
_WHOLE_TIMES = 9.95
# Up to so many groups may be meant themselves, and not others like them.
MOST_MEANT = 30
_COLUMNS = ("column", "unit")
_KINDS = {
    "column": ("column", "columns"),
    "unit": ("unit", "units"),
    "part": ("prefix", "prefixes"),
    "text": ("pattern of texts", "patterns of texts"),
    "day": ("column of days", "columns of days"),
    "order": ("order", "orders"),
}


def dependence_entry(dependence: Dependence, wider: Sequence[float] = ()) -> DependenceEntry:
    """Return what a document holds of a search.

    Parameters
    ----------
    dependence
        What was found.
    wider
        By how much each grouping widens the interval of the mean gap, where that is known.
    """
    pairs = zip_longest(dependence.groups, wider)
    largest = dependence.dominant
    return DependenceEntry(
        searched=dict(Counter(dependence.tested)),
        groups=[_groups_entry(each, ratio) for each, ratio in pairs],
        looked_at=dependence.looked_at,
        dominant=None if largest is None else _groups_entry(largest),
    )


def _groups_entry(groups: DependentGroups, wider: float | None = None) -> DependentGroupsEntry:
    return DependentGroupsEntry(
        kind=groups.grouping.kind,
        column=groups.grouping.column,
        words=groups.grouping.words,
        groups=groups.count,
        largest=groups.largest,
        inflation=groups.inflation,
        p_value=groups.p_value,
        wider=wider,
    )


def searched_sentence(entry: DependenceEntry) -> str:
    """Say what was searched where nothing was found; nothing where nothing was searched.

    Examples
    --------
    >>> searched_sentence(DependenceEntry(searched={"column": 7, "part": 3, "order": 1}))
    'Rows look independent; looked at: 7 columns, 3 prefixes, order.'
    """
    parts = [
        "order" if (kind, number) == ("order", 1) else f"{number:,} {_KINDS[kind][number != 1]}"
        for kind in _KINDS
        if (number := entry.searched.get(kind))
    ]
    among = "" if entry.looked_at is None else f", by {entry.looked_at:,} in stretches"
    return f"Rows look independent{among}; looked at: {', '.join(parts)}." if parts else ""


def few(groups: DependentGroupsEntry) -> bool:
    """Return whether groups are too few, or too uneven, to tell of others like them."""
    return groups.groups < FEW_GROUPS or groups.largest > LARGE_SHARE


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
        return count(groups.groups, "day")
    name = groups.column if groups.kind in _COLUMNS else groups.words
    return f"{count(groups.groups, 'value' if groups.kind in _COLUMNS else 'group')} of {name}"


def of_these_words(entry: AuditBlock, test: str) -> str | None:
    """Return the groups that a claim is shown of, where it is not of others like them.

    A direction needs the calibration error shown too, as for any rows.
    """
    search = entry.dependence
    if search is None or not search.of_these:
        return None
    display = (search.of_these.get(name, 1.0) <= ALPHA for name in {test, "calibration"})
    words = " and ".join(groups_words(each) for each in search.groups)
    return _these(words) if all(display) else None


def _these(words: str) -> str:
    return f"this {words}" if words.startswith("1 ") else f"these {words}"


def unit_words(entry: AuditBlock) -> str:
    """Return what more of would decide: labels, or what they come from."""
    search = entry.dependence
    if search is not None and search.groups and search.groups[0].kind in _COLUMNS:
        return _others(str(search.groups[0].column))
    return "labels" if entry.questions == entry.n else "questions or topics"


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
    if groups.kind == "unit":
        return f"All rows {_of_one(str(groups.column))} have the same outcome"
    words = {
        "column": f"Rows {_of_one(str(groups.column))}",
        "part": f"Rows whose {groups.column} begins alike",
        "text": f"Rows with {groups.words}",
        "day": f"Rows of one day ({groups.column})",
        "order": f"Rows near each other{f' in {groups.column}' if groups.column else ''}",
    }[groups.kind]
    if groups.kind == "text" and not groups.words.startswith("nearly"):
        words = f"Rows with the same {groups.words}"
    return f"{words} are right and wrong together"


def _others(name: str) -> str:
    """Return the groups of a column as one says them.

    Examples
    --------
    >>> _others("customer"), _others("category"), _others("graded_by")
    ('customers', 'categories', 'values of graded_by')
    """
    if not name.isalpha() or name.endswith("s"):
        return f"values of {name}"
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in "aeou" else f"{name}s"


def groups_sentence(groups: DependentGroupsEntry) -> Hint:
    """Say which rows hang together, what that does to intervals, and what to do.

    Examples
    --------
    >>> shared = {"groups": 51, "largest": 0.1, "inflation": 2.0, "p_value": 0.0}
    >>> user = DependentGroupsEntry(kind="column", column="user", words="user", **shared)
    >>> groups_sentence(user).shell()[:75]
    'Rows of one user are right and wrong together: intervals are between users '
    >>> groups_sentence(user).shell()[75:]
    '(2.0 x wider). Name it with --cluster user, or keep one row of each.'
    """
    wider = _times_wider(groups.wider or groups.inflation)
    if groups.kind == "order":
        return Hint(
            f"{_together(groups)}: accuracy drifts, and intervals are {wider}. What is said may "
            "not hold for later rows: 'calibrated' and promises are withheld."
        )
    if groups.groups < FEWEST:
        return Hint(
            "{0}: what is said is true of {1}, mixed as here. For others like them "
            "intervals would be {2} at least.",
            _together(groups),
            _these(groups_words(groups)),
            wider,
        )
    column = groups.kind in _COLUMNS and groups.column is not None
    between = _others(str(groups.column)) if column else "these"
    start = Hint("{0}: intervals are between {1} ({2}).", _together(groups), between, wider)
    names = " Keep one row of each."
    if groups.kind == "unit":
        names = Hint(" Name it with {unit}.", unit=groups.column)
    elif column:
        names = Hint(" Name it with {cluster}, or keep one row of each.", cluster=groups.column)
    text = start + names
    if groups.largest > LARGE_SHARE:
        return text + f" {_ends(groups)} has {percent(groups.largest)} of the rows: {_WITHHELD}"
    return text + f" There are only {groups.groups}: {_WITHHELD}" if few(groups) else text


def _dominant_sentence(groups: DependentGroupsEntry) -> Hint:
    """Say that one value has most rows, where nobody can see yet what that does.

    Examples
    --------
    >>> shared = {"groups": 51, "largest": 0.52, "inflation": 1.0, "p_value": 1.0}
    >>> user = DependentGroupsEntry(kind="column", column="user", words="user", **shared)
    >>> _dominant_sentence(user).shell()
    'One user has 52 % of the rows: others may differ. Intervals between users: --cluster user.'
    """
    name = str(groups.column)
    return Hint(
        "{0} has {1} of the rows: others may differ. Intervals between {2}: {cluster}.",
        _ends(groups),
        percent(groups.largest),
        _others(name),
        cluster=name,
    )


def _of_one(name: str) -> str:
    return f"of one {name}" if name.isalpha() and not name.endswith("s") else f"with one {name}"


def withheld_sentence(groups: DependentGroupsEntry, *, mixed: bool = False) -> str | None:
    """Say why nothing is promised where rows hang together so; None where something may be.

    Parameters
    ----------
    groups
        What was found.
    mixed
        Whether the promise is for the mix of other rows, which takes rows as independent.

    Examples
    --------
    >>> shared = {"groups": 4, "largest": 0.3, "inflation": 2.0, "p_value": 0.0}
    >>> region = DependentGroupsEntry(kind="column", column="region", words="region", **shared)
    >>> withheld_sentence(region)
    'Rows come from 4 values of region: a promise for others like them needs 8.'
    """
    if groups.kind == "order":
        return "Accuracy drifts along the rows: what held for these may not hold for later ones."
    if groups.largest > LARGE_SHARE:
        return f"{_ends(groups)} has {percent(groups.largest)} of the rows: others may differ."
    if few(groups):
        words = groups_words(groups)
        return f"Rows come from {words}: a promise for others like them needs {FEW_GROUPS}."
    return (
        f"{_together(groups)}: a promise for another mix needs one row of each." if mixed else None
    )


def pool_sentence(groups: DependentGroupsEntry) -> str:
    """Say of labels that were drawn at random from a table what holds beyond it.

    Examples
    --------
    >>> shared = {"groups": 51, "largest": 0.1, "inflation": 2.0, "p_value": 0.0}
    >>> user = DependentGroupsEntry(kind="column", column="user", words="user", **shared)
    >>> pool_sentence(user)[47:]
    'These numbers are of this table: for other users intervals would be 2.0 x wider.'
    """
    outside = "later rows"
    if groups.kind != "order":
        outside = "rows of other groups"
    if groups.kind in _COLUMNS:
        outside = f"other {_others(str(groups.column))}"
    return (
        f"{_together(groups)}. These numbers are of this table: for {outside} intervals would be "
        f"{_times_wider(groups.inflation)}."
    )


def _times_wider(ratio: float) -> str:
    return f"{ratio:.{0 if ratio >= _WHOLE_TIMES else 1}f} x wider"


def _ends(groups: DependentGroupsEntry) -> str:
    name = str(groups.column)
    return f"One {name}" if groups.kind in _COLUMNS and name.isalpha() else "One of them"


def dependence_warnings(
    searches: Iterable[tuple[str, DependenceEntry]], *, typed: bool = False
) -> list[DataWarning]:
    """Warn of rows that hang together, each grouping once with the models it was found in.

    Parameters
    ----------
    searches
        Model, and what was searched for it.
    typed
        Whether options are those of a command line.
    """
    matches: dict[tuple[str, str | None], list[tuple[DependentGroupsEntry, str]]] = {}
    for model, entry in searches:
        for groups in (*entry.groups, *([entry.dominant] if entry.dominant else ())):
            matches.setdefault((groups.words, groups.column), []).append((groups, model))
    warnings = []
    for pairs in matches.values():
        widest, _ = max(pairs, key=lambda pair: pair[0].inflation)
        columns = {"cluster": widest.column} if widest.kind in _COLUMNS else {}
        models = list(dict.fromkeys(model for _, model in pairs))
        is_shown = widest.inflation > 1
        sentences = groups_sentence(widest) if is_shown else _dominant_sentence(widest)
        text = sentences.shell() if typed else str(sentences)
        warnings.append(warning("dependent", text, columns=columns, models=models))
    return warnings


def dependence_notes(searches: Iterable[DependenceEntry]) -> list[str]:
    """Say quietly what was searched without a find."""
    entries = list(searches)
    if any(entry.groups for entry in entries):
        return []
    return [text for entry in entries[:1] if (text := searched_sentence(entry))]
