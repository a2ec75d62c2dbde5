"""The chart of groups: what is special about each."""

from collections.abc import Iterator

from calibrant.core.names import method_words
from calibrant.findings.claims.claim import count
from calibrant.findings.documents.fields import GroupsFields
from calibrant.findings.documents.groups import GroupEntry, GroupsEntry
from calibrant.report.charts.chart import Axis, Chart, Dot, Item, Names, between, bounds
from calibrant.report.charts.scales import percent, points

_MOST = 16


def charts(document: GroupsFields) -> Iterator[Chart]:
    """Yield the groups by what is special about them, largest first."""
    entries = [entry for entry in document.results if entry.groups]
    if not entries:
        return
    # What the entries differ in: two confidences of one model are two rows.
    parts = [n for n in ("model", "method") if len({getattr(entry, n) for entry in entries}) > 1]
    items = [
        _group(group, entry, ", ".join(_words(getattr(entry, name)) for name in parts))
        for entry in entries
        for group in entry.groups
        # The same rows under another name are no group of their own.
        if not group.echo_of
    ]
    ranking = sorted(items, key=lambda item: -abs((item.bar or (0, 0))[1]))
    visible = ranking[:_MOST]
    more = f" {len(ranking) - _MOST:,} more are in the table." if len(ranking) > _MOST else ""
    yield Chart(
        "answer",
        "How much more each group says than answers of equal confidence, in points",
        f"Each group beyond those found before it. Lines: intervals. Grey: undecided.{more}",
        Axis(words=points, sides=("says too little", "says too much")),
        Names([item.row for item in visible]),
        visible,
    )


def _words(name: str) -> str:
    return method_words(name) or str(name)


def _group(group: GroupEntry, entry: GroupsEntry, owner: str) -> Item:
    beyond = group.beyond
    tone = group.direction.replace("-", "_") if group.flagged else "undecided"
    name = f"{owner}: {group.rule}" if owner else group.rule
    confidence, right = percent(group.mean_confidence), percent(group.rate)
    value = group.gap_recalibrated
    return Item(
        name,
        tone,
        (0, value),
        dots=[Dot(value, 0, *bounds(beyond), "ink", "none")],
        words=points(value),
        tip=f"{name}: {points(value)}{between(beyond, points)}. {count(group.n, 'row')}, "
        f"says {confidence}, right {right}",
        key=f"{entry.model}␟{entry.method}␟{group.rule}",
    )
