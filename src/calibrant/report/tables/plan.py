"""A plan and a leaderboard as text: what labels cost, step by step, and what they can show."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from calibrant.core.hints import Hint
from calibrant.findings.claims import count, percent, points
from calibrant.findings.documents import plans as entries
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.fields import LeaderboardFields, PlanFields, typed
from calibrant.report import cells
from calibrant.report.answers import warnings_of
from calibrant.report.cells import Block, Columns, Paragraph, Table, entry_name, table_of
from calibrant.report.tables.meanings import model_difference, questions_by_draws

_ALPHA = 0.05


def blocks(document: PlanFields) -> Iterator[Block]:
    """Yield the blocks of a ``calibrant.plan/1`` document."""
    plans, theory = document.plans or [], document.theory
    for warning in warnings_of(document):
        yield Paragraph(warning)
    if any(plan.needed for plan in plans):
        yield _labels_for_claim(plans, document.results[0])
    elif any(plan.shows for plan in plans):
        yield _shown_by_labels(plans)
    tables = theory_tables(theory) if theory else []
    # Whoever asks for more than labels and precision is answered first.
    first = theory is not None and is_asked(theory)
    answers = [] if theory is None else list(_theory_answers(theory))
    yield from (Paragraph(answer, strong=True) for answer in answers)
    yield from tables if first else ()
    yield from _worst_case(document, strong=not plans and not answers)
    yield from () if first else tables
    if document.measured:
        yield _measured(document.measured)
    if document.leaderboard:
        yield from leaderboard_blocks(typed(document.leaderboard))
    for note in (*document.results[0].notes, document.caveat):
        yield Paragraph(note)


def _worst_case(document: PlanFields, *, strong: bool) -> Iterator[Block]:
    """Yield labels and precision by formula, step by step."""
    entry = document.results[0]
    yield Paragraph(_headline(entry), strong=strong)
    steepness = "infinite" if entry.lipschitz is None else f"{entry.lipschitz:.3g}"
    if document.assumed_lipschitz:
        steepness += " (assumed, not measured)"
    yield Paragraph(f"error rate {entry.error_rate:.3g}, Lipschitz constant {steepness}")
    if entry.precision is not None:
        yield _steps(document.rows, f"Labels for a precision of {entry.precision:g}", _LABELS)
    if entry.labels is not None:
        yield _steps(document.rows, f"Precision of {entry.labels:,} labels", _PRECISION)
    if entry.preset:
        title = entry.preset.title
        text = f"{title}: about {entry.preset.available:,} labels are thought to exist"
        if entry.preset.gap is not None:
            text += f", {entry.preset.gap:.1f} times fewer than needed passively"
            if entry.preset.gap <= 1:
                text = f"{title}: the {entry.preset.available:,} labels that exist are enough"
        yield Paragraph(text + ".")
    if entry.expiry:
        yield Paragraph(_expiry(entry.expiry))


def _labels_for_claim(plans: list[entries.ClaimPlanEntry], entry: entries.PlanEntry) -> Table:
    """Return the labels that show the claim; what the worst case asks for is a remark."""
    request = [(plan, plan.needed) for plan in plans if plan.needed]
    labels_needed, worst = request[0][1], entry.passive_labels
    note = "By the test that label and audit use."
    if worst is not None and entry.precision is not None:
        note += (
            f" In the worst case {worst:,} random labels tell the error within "
            f"{points(entry.precision)}."
        )
    return table_of(
        [(plan, truth) for plan, needs in request for truth in (needs.calibrated, needs.half)],
        {
            "model": lambda row: _named(row[0], [plan for plan, _ in request]),
            "if its error is": lambda row: cells.said_cell(
                row[1].true_error, points(row[1].true_error) if row[1].true_error else "calibrated"
            ),
            "one look": lambda row: _labels(row[1].one_look),
            "looking all the time": lambda row: _labels(row[1].all_looks),
            "then used, on average": lambda row: _labels(row[1].mean_used),
        },
        f"Labels that show an error below {points(labels_needed.threshold)} with a chance of "
        f"{percent(labels_needed.power)}",
        note=note,
    )


def _shown_by_labels(plans: list[entries.ClaimPlanEntry]) -> Table:
    """Return the smallest errors that a number of labels can show."""
    visible = [plan for plan in plans if plan.shows]
    shows = visible[0].shows
    assert shows is not None
    columns: Columns = {
        "model": lambda plan: _named(plan, visible),
        "if it is calibrated": lambda plan: _below(plan.shows.calibrated),
        "if its error is half of that": lambda plan: _below(plan.shows.half),
    }
    note = (
        "The smallest limit that the error can be shown to be below, with a chance of "
        f"{percent(shows.power)}, by the test that label and audit use."
    )
    return table_of(visible, columns, f"What {count(shows.labels, 'label')} can show", note=note)


def _below(value: float | None) -> cells.Number:
    return cells.said_cell(value, "nothing" if value is None else f"below {points(value)}")


def _named(plan: entries.ClaimPlanEntry, plans: list[entries.ClaimPlanEntry]) -> str:
    several = len({peer.method for peer in plans}) > 1
    names = (plan.model, plan.method if several else None, plan.group)
    return " / ".join(str(name) for name in names if name is not None)


def _labels(value: int | None) -> cells.Number:
    return cells.number_cell(value, missing="more than there are")


def _headline(entry: entries.PlanEntry) -> str:
    sentences = []
    if entry.precision is not None:
        passive = entry.passive_labels
        request = "no number of" if passive is None else f"{passive:,}"
        sentences.append(
            f"Knowing the calibration error within {points(entry.precision)} takes {request} "
            f"random labels in the worst case, or {entry.active_labels:,} chosen ones."
        )
    if entry.labels is not None and entry.active_precision is not None:
        reached = entry.passive_precision
        within = "not at all" if reached is None else f"within {points(reached)}"
        sentences.append(
            f"{count(entry.labels, 'random label')} show the calibration error {within} in the "
            f"worst case; chosen ones within {points(entry.active_precision)}."
        )
    return " ".join(sentences)


_LABELS = {
    "random labels": "passive_labels",
    "chosen labels": "active_labels",
    "to detect any error": "detection_labels",
}
_PRECISION = {
    "ECE, random labels": "passive_precision",
    "ECE, chosen labels": "active_precision",
    "accuracy": "accuracy_floor",
}


def _steps(rows: list[entries.PlanStep], title: str, fields: Mapping[str, str]) -> Table:
    def rate(name: str) -> Callable[[entries.PlanStep], cells.Cell]:
        return lambda row: cells.number_cell(getattr(row, name), digits=4, missing="impossible")

    note = Hint(
        "Rates of the worst case. What these answers need: {claim}.", claim="ece<0.05"
    ).shell()
    rates = {words: rate(name) for words, name in fields.items()}
    return table_of(rows, {"what is checked": "step", **rates}, title, note=note)


def _expiry(expiry: entries.PlanExpiry) -> str:
    until = f", on {expiry.date}" if expiry.date else ""
    text = (
        f"With a drift of {expiry.drift:g} per {expiry.per} the verification expires after "
        f"{expiry.half_life:.3g} {expiry.per}s ({expiry.days:,.1f} days){until}"
    )
    if expiry.labels_per_unit is not None:
        text += f"; to stay verified takes {expiry.labels_per_unit:,.0f} labels per {expiry.per}"
    return text + "."


def _measured(blocks: list[entries.MeasuredEntry]) -> Table:
    several = len({block.method for block in blocks}) > 1
    tests = max(block.significance.tests for block in blocks)
    labels = {block.verification.labels for block in blocks}
    size = f"{min(labels):,}" if len(labels) == 1 else f"{min(labels):,} to {max(labels):,}"

    def checked(name: str, digits: int) -> Callable[[entries.MeasuredEntry], cells.Cell]:
        return lambda e: cells.estimate_cell(getattr(e.verification, name), digits=digits)

    return table_of(
        blocks,
        {
            "model": entry_name if several else "model",
            "error rate": checked("error_rate", 2),
            "Lipschitz": checked("lipschitz", 1),
            "passive floor": checked("passive_floor", 2),
            "ECE +/-": lambda e: cells.Number(e.verification.resolution.half_width),
            "shown to be miscalibrated": _yes_or_no,
        },
        f"Measured on the table, {size} labels per model",
        note="'ECE +/-': half the 95 % interval of the ECE on this very data, 15 bins. 'yes': as "
        "in an audit of this table, by two tests of each model (perfect calibration, mean gap), "
        f"corrected by Holm's rule for {tests:,} tests.",
    )


def _yes_or_no(block: entries.MeasuredEntry) -> str:
    """Answer as the audit of the same table does."""
    tests = (block.significance.calibration, block.significance.gap)
    adjusted = [test["p_adjusted"] for test in tests if test is not None]
    return "yes" if any(p is not None and p <= _ALPHA for p in adjusted) else "no"


# -- what else was asked ----------------------------------------------------------------------

Row = tuple[cells.Cell, ...]


def is_asked(theory: entries.TheoryEntry) -> bool:
    """Return whether an option asked for any of this, not the table alone."""
    return replace(theory, temperature=None, self_evaluation=None) != entries.TheoryEntry()


def theory_tables(theory: entries.TheoryEntry) -> list[Table]:
    """Return what is a rate, for random and for chosen labels, and what was computed."""
    columns = ("asked", "random labels", "chosen labels")
    note = "Rates of the worst case, with constant 1."
    rates = Table(columns, tuple(_rates(theory)), "What else was asked", note)
    title = "What the numbers themselves say"
    note = "Correlations are between ranks of bins of confidence, tested by permutation."
    computed = Table(("asked", "answer"), tuple(_computed(theory)), title, note, labels=2)
    pairs = _published_pairs(theory)
    notes = [_published(pairs)] if pairs else []
    notes += [questions_by_draws(theory.meanings)] if theory.meanings else []
    return [*notes, *(table for table in (rates, computed) if table.rows)]


def _rates(theory: entries.TheoryEntry) -> Iterator[Row]:
    if sizes := theory.horizon:
        pair = (cells.said_cell(sizes[kind], f"{sizes[kind]:,.3g}") for kind in _BOTH)
        yield "largest size still verified", *pair
    if scaling := theory.scaling:
        labels = cells.Number(scaling["labels"], unit="count")
        yield f"labels at size {scaling['size']:,.3g}", "", labels
    if sides := theory.dynamics:
        yield "labelling keeps up", *(_when(sides[kind]) for kind in _BOTH)
    if depth := theory.depth:
        stages = count(int(depth["deepest"]), "stage")
        yield f"deepest pipeline, steepness {depth['stage']:g}", stages, ""
    if moved := theory.transfer:
        words = f"labels for a shift of {points(moved['shift'])}"
        yield words, cells.number_cell(moved["labels"]), ""
    if theory.effective_labels is not None:
        worth = cells.Number(theory.effective_labels, unit="count")
        yield "worth, in independent labels", worth, ""
    if floors := theory.robustness_floor:
        yield "precision when perturbed", *(points(floors[kind]) for kind in _BOTH)
    if grouping := theory.grouping:
        words = f"groups known, loss {grouping['loss']:g}: labels"
        yield words, cells.number_cell(grouping["labels"]), ""
    if theory.rounds is not None:
        yield "recalibrations whose gain can be seen", "", count(theory.rounds, "round")
    if phases := theory.two_phase:
        words = f"{phases['levels']:,} levels x {phases['per_level']:.3g}, then {phases['left']:,}"
        yield "two-phase audit, labels", "", words


_BOTH = ("passive", "active")


def _when(side: entries.Dynamics) -> str:
    words = {"from": "from time {:,.3g} on", "until": "until time {:,.3g}"}
    return words.get(side.outcome, side.outcome).format(side.time)


def _computed(theory: entries.TheoryEntry) -> Iterator[Row]:
    if pipeline := theory.pipeline:
        for name, steep in zip(pipeline.names, pipeline.steepness, strict=True):
            yield f"steepness of {name}", cells.estimate_cell(steep, digits=2)
        yield "the whole, at most by its stages", cells.number_cell(pipeline.bound, digits=2)
    for tuned in theory.temperature or ():
        name = f"{tuned.model}: " if len(theory.temperature or ()) > 1 else ""
        yield f"{name}if a temperature is off", points(tuned.error)
    for graded in theory.self_evaluation or ():
        name = f"{graded.model}: " if len(theory.self_evaluation or ()) > 1 else ""
        parts = {"the size of its gap": graded.gap, "accuracy": graded.accuracy}
        if any(part["correlation"] is None for part in parts.values()):
            continue
        for what, part in parts.items():
            words = f"correlation {part['correlation']:.2f} (p {part['p_value']:.2g})"
            yield f"{name}confidence against {what}", words


def _published_pairs(theory: entries.TheoryEntry) -> list[entries.PublishedEntry]:
    return theory.published_pairs or ([theory.published] if theory.published else [])


def _theory_answers(theory: entries.TheoryEntry) -> Iterator[str]:
    """Yield the sentences that answer what was asked beyond labels and precision."""
    if pairs := _published_pairs(theory):
        yield _told_apart(pairs)
    for pair in theory.meanings or ():
        yield model_difference(pair)
    if grouping := theory.grouping:
        yield (
            f"{count(int(grouping['labels']), 'label')} show a grouping loss of "
            f"{grouping['loss']:g} with 80 % power, if the groups are known. Groups that must "
            "first be learned took 4 to 16 times as many in simulations."
        )


def _told_apart(pairs: Sequence[entries.PublishedEntry]) -> str:
    display = sum(pair.outcome == "shown" for pair in pairs)
    if len(pairs) == 1:
        return f"The two published scores {'differ' if display else 'may be equal: undecided'}."
    return f"{display} of {len(pairs)} pairs of published scores are shown to differ."


def _published(pairs: Sequence[entries.PublishedEntry]) -> Table:
    """Return every pair of published scores: can they differ?"""
    names = pairs[0].model_a is not None
    several = len({pair.benchmark for pair in pairs}) > 1
    columns: Columns = {
        "first": lambda e: e.model_a if names else cells.number_cell(e.a, digits=3),
        "second": lambda e: e.model_b if names else cells.number_cell(e.b, digits=3),
        **({"benchmark": "benchmark"} if several else {}),
        "points": lambda e: _points_gap(e.gap),
        "": "outcome",
        "questions to tell it from 0": lambda e: cells.number_cell(e.labels_needed),
    }
    note = (
        "Answers taken as independent: models that fail on the same questions differ less by "
        "chance. Differences in points, with 95 % intervals."
    )
    return table_of(pairs, columns, "Published scores", note=note, labels=2 + several, main=True)


def _points_gap(gap: EstimateEntry) -> str:
    assert gap.value is not None
    assert gap.low is not None
    return f"{100 * gap.value:+.1f} ± {100 * (gap.value - gap.low):.1f}"


# -- leaderboard ------------------------------------------------------------------------------


def leaderboard_blocks(document: LeaderboardFields) -> Iterator[Block]:
    """Yield the blocks of a ``calibrant.leaderboard/1`` document: ranks, and what is open."""
    metric, unstable, pairs = document.metric, document.instability, document.pairs
    share = cells.share_cell(unstable.share)
    measurements = cells.percent_cell if metric == "accuracy" else cells.estimate_cell
    yield Paragraph(
        f"{count(len(document.groups), 'group')} among {count(len(document.results), 'model')}; "
        f"{sum(pair.tie for pair in pairs)} of {len(pairs)} pairs are ties.",
        strong=True,
    )
    columns: Columns = {
        "model": "model",
        "rank": "rank",
        "rank interval": lambda e: cells.rank_cell(e.rank_low, e.rank_high),
        "group": "group",
        metric: lambda e: measurements(getattr(e, metric)),
        f"rank moves at {share}": lambda e: cells.share_cell(unstable.models[e.model]),
    }
    title = f"Leaderboard by {metric}, {count(document.questions, 'question')}"
    note = (
        f"Rank intervals hold all at once ({cells.share_cell(document.level)}). In resamples of "
        f"{share} of the questions the best model changes in "
        f"{cells.share_cell(unstable.best_changes)}, the order of all in "
        f"{cells.share_cell(unstable.any_change)}; "
        f"{cells.share_cell(unstable.pairs_flipped, digits=1)} of pairs flip."
    )
    yield table_of(document.results, columns, title, note=note, main=True)
