"""A plan and a leaderboard as text: what labels cost, step by step, and what they can show."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from calibrant.claims.words import count, percent, points, points_range
from calibrant.core.hints import Hint
from calibrant.report import cells
from calibrant.report.answers import warnings_of
from calibrant.report.blocks import Block, Paragraph, Table, entry_name, table_of

_ALPHA = 0.05


def blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of a ``calibrant.plan/1`` document."""
    entry = document["results"][0]
    parts: list[Block] = [Paragraph(str(warning["text"])) for warning in warnings_of(document)]
    plans = document["plans"] or []
    if any(plan.get("needed") for plan in plans):
        parts.append(_labels_for_claim([plan for plan in plans if plan.get("needed")], entry))
    elif any(plan.get("shows") for plan in plans):
        parts.append(_shown_by_labels([plan for plan in plans if plan.get("shows")]))
    theory = document.get("theory")
    if theory and is_asked(theory):
        # Whoever asks for more than labels and precision is answered first.
        parts.extend(theory_tables(theory))
    parts.append(Paragraph(_headline(entry), strong=not plans))
    steep = entry["lipschitz"]
    steepness = "infinite" if steep is None else f"{steep:.3g}"
    if document["assumed_lipschitz"]:
        steepness += " (assumed, not measured)"
    parts.append(Paragraph(f"error rate {entry['error_rate']:.3g}, Lipschitz constant {steepness}"))
    if entry["precision"] is not None:
        title = f"Labels for a precision of {entry['precision']:g}"
        parts.append(_steps(document["rows"], title, _LABELS))
    if entry["labels"] is not None:
        title = f"Precision of {entry['labels']:,} labels"
        parts.append(_steps(document["rows"], title, _PRECISION))
    if entry.get("preset"):
        parts.append(Paragraph(_preset(entry["preset"])))
    if entry["expiry"]:
        parts.append(Paragraph(_expiry(entry["expiry"])))
    if theory and not is_asked(theory):
        parts.extend(theory_tables(theory))
    if document["measured"]:
        parts.append(_measured(document["measured"]))
    if document["leaderboard"]:
        parts.extend(leaderboard_blocks(document["leaderboard"]))
    parts.extend(Paragraph(note) for note in entry["notes"])
    parts.append(Paragraph(document["caveat"]))
    return parts


def _labels_for_claim(plans: list[dict[str, Any]], entry: Mapping[str, Any]) -> Table:
    """Return the labels that show the claim; what the worst case asks for is a remark."""
    needed, worst = plans[0]["needed"], entry["passive_labels"]
    note = "By the test that label and audit use."
    if worst is not None and entry["precision"] is not None:
        note += (
            f" In the worst case {worst:,} random labels tell the error within "
            f"{points(entry['precision'])}."
        )
    return table_of(
        [
            {"name": _named(plan, plans), **plan["needed"][truth]}
            for plan in plans
            for truth in ("calibrated", "half")
        ],
        {
            "model": "name",
            "if its error is": lambda e: _error(e["true_error"]),
            "one look": lambda e: _labels(e["one_look"]),
            "looking all the time": lambda e: _labels(e["all_looks"]),
            "then used, on average": lambda e: _labels(e["mean_used"]),
        },
        f"Labels that show an error below {points(needed['threshold'])} with a chance of "
        f"{percent(needed['power'])}",
        note=note,
    )


def _error(error: float) -> cells.Number:
    return cells.said_cell(error, points(error) if error else "calibrated")


def _shown_by_labels(plans: list[dict[str, Any]]) -> Table:
    """Return the smallest errors that a number of labels can show."""
    shows = plans[0]["shows"]
    return table_of(
        plans,
        {
            "model": lambda e: _named(e, plans),
            "if it is calibrated": lambda e: _below(e["shows"]["calibrated"]),
            "if its error is half of that": lambda e: _below(e["shows"]["half"]),
        },
        f"What {count(shows['labels'], 'label')} can show",
        note="The smallest limit that the error can be shown to be below, with a chance of "
        f"{percent(shows['power'])}, by the test that label and audit use.",
    )


def _below(value: float | None) -> cells.Number:
    return cells.said_cell(value, "nothing" if value is None else f"below {points(value)}")


def _named(plan: Mapping[str, Any], plans: list[dict[str, Any]]) -> str:
    several = len({other["method"] for other in plans}) > 1
    keys = ("model", "method", "group") if several else ("model", "group")
    return " / ".join(str(plan[key]) for key in keys if plan.get(key) is not None)


def _labels(value: int | None) -> cells.Number:
    return cells.number_cell(value, missing="more than there are")


def _headline(entry: Mapping[str, Any]) -> str:
    sentences = []
    if entry["precision"] is not None:
        passive = entry["passive_labels"]
        asked = "no number of" if passive is None else f"{passive:,}"
        sentences.append(
            f"Knowing the calibration error within {points(entry['precision'])} takes {asked} "
            f"random labels in the worst case, or {entry['active_labels']:,} chosen ones."
        )
    if entry["labels"] is not None:
        passive = entry["passive_precision"]
        reached = "not at all" if passive is None else f"within {points(passive)}"
        sentences.append(
            f"{count(entry['labels'], 'random label')} show the calibration error {reached} in the "
            f"worst case; chosen ones within {points(entry['active_precision'])}."
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


def _steps(rows: list[dict[str, Any]], title: str, fields: Mapping[str, str]) -> Table:
    def rate(name: str) -> Callable[[Mapping[str, Any]], cells.Cell]:
        return lambda row: cells.number_cell(row[name], digits=4, missing="impossible")

    note = Hint(
        "Rates of the worst case. What these answers need: {claim}.", claim="'ece<0.05'"
    ).shell()
    rates = {words: rate(name) for words, name in fields.items()}
    return table_of(rows, {"what is checked": "step", **rates}, title, note=note)


def _preset(preset: Mapping[str, Any]) -> str:
    text = f"{preset['title']}: about {preset['available']:,} labels are thought to exist"
    if preset["gap"] is not None:
        text += f", {preset['gap']:.1f} times fewer than needed passively"
        if preset["gap"] <= 1:
            text = f"{preset['title']}: the {preset['available']:,} labels that exist are enough"
    return text + "."


def _expiry(expiry: Mapping[str, Any]) -> str:
    until = f", on {expiry['date']}" if expiry["date"] else ""
    text = (
        f"With a drift of {expiry['drift']:g} per {expiry['per']} the verification expires after "
        f"{expiry['half_life']:.3g} {expiry['per']}s ({expiry['days']:,.1f} days){until}"
    )
    if expiry["labels_per_unit"] is not None:
        text += (
            f"; to stay verified takes {expiry['labels_per_unit']:,.0f} labels per {expiry['per']}"
        )
    return text + "."


def _measured(blocks: list[dict[str, Any]]) -> Table:
    several = len({block["method"] for block in blocks}) > 1
    tests = max(block["significance"]["tests"] for block in blocks)
    labels = {block["verification"]["labels"] for block in blocks}
    size = f"{min(labels):,}" if len(labels) == 1 else f"{min(labels):,} to {max(labels):,}"

    def checked(name: str, digits: int) -> Callable[[Mapping[str, Any]], cells.Cell]:
        return lambda block: cells.estimate_cell(block["verification"][name], digits=digits)

    return table_of(
        blocks,
        {
            "model": lambda e: entry_name(e) if several else str(e["model"]),
            "error rate": checked("error_rate", 2),
            "Lipschitz": checked("lipschitz", 1),
            "passive floor": checked("passive_floor", 2),
            "ECE +/-": lambda e: cells.Number(e["verification"]["resolution"]["half_width"]),
            "shown to be miscalibrated": _yes_or_no,
        },
        f"Measured on the table, {size} labels per model",
        note="'ECE +/-': half the 95 % interval of the ECE on this very data, 15 bins. 'yes': as "
        "in an audit of this table, by two tests of each model (perfect calibration, mean gap), "
        f"corrected by Holm's rule for {tests:,} tests. 'below the floor': shown here, but "
        "a claim of this size cannot be verified with as many labels in the worst case.",
    )


def _yes_or_no(block: Mapping[str, Any]) -> str:
    """Answer as the audit of the same table does; the worst-case floor is a remark."""
    tests = [block["significance"][name] for name in ("calibration", "gap")]
    if not any(test is not None and test["p_adjusted"] <= _ALPHA for test in tests):
        return "no"
    below = block["verification"].get("verdict", "verified") != "verified"
    return "yes, below the floor" if below else "yes"


# -- what else was asked ----------------------------------------------------------------------

Row = tuple[cells.Cell, ...]


def is_asked(found: Mapping[str, Any]) -> bool:
    """Return whether an option asked for any of this, not the table alone."""
    return bool(found.keys() - {"temperature", "self_evaluation"})


def theory_tables(found: Mapping[str, Any]) -> list[Table]:
    """Return what is a rate, for random and for chosen labels, and what was computed."""
    rates, computed = (
        tuple(row for name, made in rows.items() if name in found for row in made(found[name]))
        for rows in (_RATES, _COMPUTED)
    )
    tables = (
        Table(
            ("asked", "random labels", "chosen labels"),
            rates,
            title="What else was asked",
            note="Rates of the worst case, with constant 1.",
        ),
        Table(
            ("asked", "answer"),
            computed,
            title="What the numbers themselves say",
            note="Correlations are between ranks of bins of confidence, tested by permutation.",
            labels=2,
        ),
    )
    return [table for table in tables if table.rows]


def _horizon(found: Mapping[str, Any]) -> Iterator[Row]:
    sizes = (cells.said_cell(found[kind], f"{found[kind]:,.3g}") for kind in ("passive", "active"))
    yield ("largest size still verified", *sizes)


def _scaling(found: Mapping[str, Any]) -> Iterator[Row]:
    yield (f"labels at size {found['size']:,.3g}", "", cells.Number(found["labels"], unit="count"))


def _dynamics(found: Mapping[str, Any]) -> Iterator[Row]:
    def when(side: Mapping[str, Any]) -> str:
        if side["outcome"] in ("always", "never"):
            return str(side["outcome"])
        time = f"time {side['time']:,.3g}"
        return f"from {time} on" if side["outcome"] == "from" else f"until {time}"

    yield "labelling keeps up", when(found["passive"]), when(found["active"])


def _transfer(found: Mapping[str, Any]) -> Iterator[Row]:
    yield f"labels for a shift of {points(found['shift'])}", cells.number_cell(found["labels"]), ""


def _effective(found: float) -> Iterator[Row]:
    yield ("worth, in independent labels", cells.Number(found, unit="count"), "")


def _robustness(found: Mapping[str, Any]) -> Iterator[Row]:
    yield "precision when perturbed", points(found["passive"]), points(found["active"])


def _depth(found: Mapping[str, Any]) -> Iterator[Row]:
    stages = count(found["deepest"], "stage")
    yield (f"deepest pipeline, steepness {found['stage']:g}", stages, "")


def _pipeline(found: Mapping[str, Any]) -> Iterator[Row]:
    for name, steep in zip(found["names"], found["steepness"], strict=True):
        yield (f"steepness of {name}", cells.estimate_cell(steep, digits=2))
    yield ("the whole, at most by its stages", cells.number_cell(found["bound"], digits=2))


def _published(found: Mapping[str, Any]) -> Iterator[Row]:
    gap = found["gap"]
    told = f"{100 * gap['value']:+.1f} ({points_range(gap['low'], gap['high'])}) points"
    yield ("difference of the scores, 95 % interval", told)
    if found["labels_needed"] is not None:
        yield ("questions to tell it from 0", cells.number_cell(found["labels_needed"]))


def _published_pairs(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for pair in found:
        for name, *told in _published(pair):
            yield (f"{pair['a']:g} and {pair['b']:g}: {name}", *told)


def _rounds(found: int) -> Iterator[Row]:
    yield ("recalibrations whose gain can be seen", "", count(found, "round"))


def _two_phase(found: Mapping[str, Any]) -> Iterator[Row]:
    told = f"{found['levels']:,} levels x {found['per_level']:.3g}, then {found['left']:,}"
    yield ("two-phase audit, labels", "", told)


def _temperature(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for entry in found:
        name = f"{entry['model']}: " if len(found) > 1 else ""
        yield (f"{name}if a temperature is off", points(entry["error"]))


def _self_evaluation(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for entry in found:
        name = f"{entry['model']}: " if len(found) > 1 else ""
        gap, right = entry["gap"], entry["accuracy"]
        if gap["correlation"] is None or right["correlation"] is None:
            continue
        for what, part in (("the size of its gap", gap), ("accuracy", right)):
            told = f"correlation {part['correlation']:.2f} (p {part['p_value']:.2g})"
            yield (f"{name}confidence against {what}", told)


_RATES: dict[str, Any] = {
    "horizon": _horizon,
    "scaling": _scaling,
    "dynamics": _dynamics,
    "depth": _depth,
    "transfer": _transfer,
    "effective_labels": _effective,
    "robustness_floor": _robustness,
    "rounds": _rounds,
    "two_phase": _two_phase,
}
_COMPUTED: dict[str, Any] = {
    "pipeline": _pipeline,
    "published": _published,
    "published_pairs": _published_pairs,
    "temperature": _temperature,
    "self_evaluation": _self_evaluation,
}


# -- leaderboard ------------------------------------------------------------------------------


def leaderboard_blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of a ``calibrant.leaderboard/1`` document: ranks, and what is open."""
    metric, unstable = document["metric"], document["instability"]
    ties = sum(pair["tie"] for pair in document["pairs"])
    share = cells.share_cell(unstable["share"])
    measured = cells.percent_cell if metric == "accuracy" else cells.estimate_cell
    return [
        Paragraph(
            f"{len(document['groups'])} groups among {len(document['results'])} models; {ties} of "
            f"{len(document['pairs'])} pairs are ties.",
            strong=True,
        ),
        table_of(
            document["results"],
            {
                "model": "model",
                "rank": "rank",
                "rank interval": lambda e: cells.rank_cell(e["rank_low"], e["rank_high"]),
                "group": "group",
                metric: lambda e: measured(e[metric]),
                f"rank moves at {share}": lambda e: cells.share_cell(
                    unstable["models"][e["model"]]
                ),
            },
            f"Leaderboard by {metric}, {document['questions']:,} questions",
            note=f"Rank intervals hold all at once ({cells.share_cell(document['level'])}). In "
            f"resamples of {share} of the questions the best model changes in "
            f"{cells.share_cell(unstable['best_changes'])}, the order of all in "
            f"{cells.share_cell(unstable['any_change'])}; "
            f"{cells.share_cell(unstable['pairs_flipped'], digits=1)} of pairs flip.",
            main=True,
        ),
    ]
