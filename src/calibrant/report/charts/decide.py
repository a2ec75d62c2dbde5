"""Charts of decisions: a threshold, what a stated confidence means, who answers, and groups."""

import math
from collections.abc import Iterator, Mapping

from calibrant.core.names import method_words
from calibrant.findings.claims import count
from calibrant.findings.documents import decisions, fields
from calibrant.findings.documents.groups import GroupEntry, GroupsEntry
from calibrant.report.cells import entry_name
from calibrant.report.charts import chart
from calibrant.report.charts.svg import percent, points
from calibrant.report.tables.decide import ThresholdWords


def charts(document: fields.DecideFields) -> Iterator[chart.Chart]:
    """Yield the curve of the block that is promised most, with the chosen threshold."""
    curves = [entry for entry in document.results if entry.curve]
    if not curves:
        return
    entry = max(curves, key=lambda e: (e.certified, e.answered.value or 0.0))
    measurements = [(p.share, p.error.value, p) for p in entry.curve if p.error.value is not None]
    curve = sorted(measurements, key=lambda point: point[:2])
    words = ThresholdWords.of_entry(entry)
    owner = f", {entry_name(entry)}" if len(curves) > 1 else ""
    tips = [
        f"{words.threshold} {words.cell(point.threshold)}: {words.share} {percent(share)}, "
        f"{words.error} {percent(error)}{chart.between(point.error, percent)}"
        for share, error, point in curve
    ]
    marks: list[chart.Mark] = [chart.Line([(share, error) for share, error, _ in curve], tips=tips)]
    limit = entry.max_error
    if limit is not None:
        marks.append(chart.ReferenceLine(limit, words=f"limit {percent(limit)}"))
    note = "No threshold keeps the limit." if limit is not None else ""
    if entry.answered.value is not None and entry.error.value is not None:
        note = "Ring: the chosen threshold."
        choice = entry.answered.value, entry.error.value
        marks.append(chart.Dot(*choice, tone="second", shape="ring", label="chosen"))
    most = max([*(error for _, error, _ in curve), limit or 0.0])
    yield chart.Chart(
        "answer",
        f"{words.error.capitalize()} against {words.share}{owner}",
        note,
        chart.Axis(f"share: {words.share}", low=0),
        # Room above: a limit may be drawn there.
        chart.Axis(words.error, low=0, high=min(1.0, max(1.25 * most, 0.05))),
        marks,
    )


def mend_charts(document: fields.MendFields) -> Iterator[chart.Chart]:
    """Yield what a stated confidence of each entry means."""
    for n, entry in enumerate(document.results, 1):
        yield _meaning(entry, "answer" if n == 1 else f"mend-{n}")


def _meaning(entry: decisions.MendEntry, name: str) -> chart.Chart:
    rows = entry.table
    most = max((row.n for row in rows), default=1) or 1
    owner = f", {entry_name(entry)}" if entry.model else ""
    return chart.Chart(
        name,
        f"What a stated confidence means{owner}",
        "Line: the probability behind a stated value, with its interval. Dots: share right among "
        "the labels nearest to that value. Dashed: says what it means.",
        chart.Axis("says", low=0, high=1),
        chart.Axis("means", low=0, high=1),
        [
            chart.Line([(0, 0), (1, 1)], "plain", look="dashed"),
            chart.Band(_reach(entry), "first"),
            chart.Line([(row.says, row.means) for row in rows], tips=[_means(row) for row in rows]),
            *(
                chart.Dot(row.says, row.right, tone="second", size=row.n / most,
                    tip=_means(row), key=f"says:{row.says:g}")
                for row in rows
            ),
        ],
    )  # fmt: skip


def _reach(entry: decisions.MendEntry) -> list[tuple[float, float, float]]:
    """Return the interval at every stated value: between the rows of the table it is wider."""
    if entry.columns:
        return [(row.says, row.low, row.high) for row in entry.table]
    ends = zip(entry.map.knots, entry.map.low, entry.map.high, strict=True)
    return [(says, _share(low), _share(high)) for says, low, high in ends]


def _share(log_odds: float) -> float:
    return 0.5 + 0.5 * math.tanh(log_odds / 2)


def _means(row: decisions.MendMeaning) -> str:
    means = f"means {percent(row.means)} ({percent(row.low)} to {percent(row.high)})"
    return f"says {percent(row.says)}: {means}, right {percent(row.right)}, {count(row.n, 'label')}"


def cascade_charts(document: fields.CascadeFields) -> Iterator[chart.Chart]:
    """Yield accuracy against cost, with the chosen setting, of each block."""
    for n, entry in enumerate(document.results, 1):
        yield _curves(entry, "answer" if n == 1 else f"cascade-{n}")


def _curves(entry: decisions.CascadeEntry, name: str) -> chart.Chart:
    toned = list(zip(entry.strategies, chart.TONES, strict=False))
    models = [
        chart.Dot(
            *_place(model), tone="plain", shape="diamond", size=0.3, label=model.model,
            tip=f"{model.model} alone: right {percent(_place(model)[1])}", key=model.model,
        )
        for model in entry.models
    ]  # fmt: skip
    return chart.Chart(
        name,
        "Accuracy against cost of each way to decide who answers",
        "Up and left is better. Diamonds: each model alone. Ring: the chosen setting. Point at a "
        "curve to read its settings.",
        chart.Axis("cost, largest model alone = 100 %", low=0),
        chart.Axis("share right"),
        [
            *(_strategy(part, tone) for part, tone in toned),
            *models,
            *_chosen(entry.policy, {part.name: tone for part, tone in toned}),
        ],
    )


def _place(
    point: decisions.CascadeModel | decisions.CurvePoint | decisions.CascadePromise,
) -> tuple[float, float]:
    return point.relative_cost.numbers[0], point.accuracy.numbers[0]


def _strategy(part: decisions.Strategy, tone: str) -> chart.Line:
    curve = sorted(part.curve, key=lambda point: _place(point)[0])
    tips = [
        f"{part.words}, setting {point.dial:.3g}: cost {percent(_place(point)[0])}, "
        f"right {percent(_place(point)[1])}{chart.between(point.accuracy, percent)}"
        for point in curve
    ]
    return chart.Line(list(map(_place, curve)), tone, part.words, tips=tips, key=part.name)


def _chosen(policy: decisions.CascadePolicy, tones: Mapping[str, str]) -> list[chart.Dot]:
    tone = tones.get(policy.rule or "")
    if tone is None or policy.promise is None:
        return []
    return [
        chart.Dot(*_place(policy.promise), tone=tone, shape="ring", label="chosen", side="beside")
    ]


_GROUPS_SHOWN = 16


def groups_charts(document: fields.GroupsFields) -> Iterator[chart.Chart]:
    """Yield the groups by what is special about them, largest first."""
    entries = [entry for entry in document.results if entry.groups]
    if not entries:
        return
    # What the entries differ in: two confidences of one model are two rows.
    parts = [n for n in ("model", "method") if len({getattr(entry, n) for entry in entries}) > 1]
    items = [
        _group_item(group, entry, ", ".join(_method_name(getattr(entry, name)) for name in parts))
        for entry in entries
        for group in entry.groups
        # The same rows under another name are no group of their own.
        if not group.echo_of
    ]
    ranking = sorted(items, key=lambda item: -abs((item.bar or (0, 0))[1]))
    visible, hidden = ranking[:_GROUPS_SHOWN], len(ranking) - _GROUPS_SHOWN
    more = f" {hidden:,} more are in the table." if hidden > 0 else ""
    yield chart.Chart(
        "answer",
        "How much more each group says than answers of equal confidence, in points",
        f"Each group beyond those found before it. Lines: intervals. Grey: undecided.{more}",
        chart.Axis(words=points, sides=("says too little", "says too much")),
        chart.Names([item.row for item in visible]),
        visible,
    )


def _method_name(name: str) -> str:
    return method_words(name) or str(name)


def _group_item(group: GroupEntry, entry: GroupsEntry, owner: str) -> chart.Item:
    beyond = group.beyond
    tone = group.direction.replace("-", "_") if group.flagged else "undecided"
    name = f"{owner}: {group.rule}" if owner else group.rule
    confidence, right = percent(group.mean_confidence), percent(group.rate)
    value = group.gap_recalibrated
    return chart.Item(
        name,
        tone,
        (0, value),
        dots=[chart.Dot(value, 0, *chart.bounds(beyond), "ink", "none")],
        words=points(value),
        tip=f"{name}: {points(value)}{chart.between(beyond, points)}. {count(group.n, 'row')}, "
        f"says {confidence}, right {right}",
        key=f"{entry.model}␟{entry.method}␟{group.rule}",
    )
