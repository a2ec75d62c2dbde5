"""`judge`: can I trust my judge?"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from msgspec.structs import asdict, replace

from calibrant.core import shared_options as opt
from calibrant.core.errors import InputError, error_source, require_known
from calibrant.core.hints import TABLE, Call, Hint, declared_options
from calibrant.core.places import free_name
from calibrant.core.verb import INPUT, Option, verb
from calibrant.data import judge_table
from calibrant.data.judge_batches import number_column, refuse_filled
from calibrant.data.mend import refuse_other_file
from calibrant.data.recalibration_map import RecalibrationMap, save_maps
from calibrant.data.sources.input import document_head, origin_of, recorded
from calibrant.findings.claims import count
from calibrant.findings.claims.judge import joined_claims, size_words
from calibrant.findings.documents.labels import JudgeEntry
from calibrant.labels.judge_entry import JudgeView, judge_entry
from calibrant.labels.labelling.designs import choose_batch
from calibrant.labels.labelling.pools import LabelPool
from calibrant.labels.page.batches import check_ending, write_for_people
from calibrant.labels.people_ratings import called_in, choice_p_value
from calibrant.report.result import JudgeResult

# Fewer ratings give no interval worth the name; below the second, intervals are said to be rough.
_FEWEST, _ROUGH = 10, 100
# A choice that is random looks less so once in a thousand tables.
_CHOSEN = 0.001
# Letters of a cell in a note; of more different cells a map does not keep what they say.
_LETTERS, _MOST_WORDS = 80, 20
_SETTINGS = (
    "judge human scale? human_scale? order pairs tie? first? swapped? model? question? answer? "
    "existing features by precision? cost? margin rated"
)


@verb(example="calibrant judge ratings.csv --judge gpt4 --human expert1,expert2 --save map.json")
def judge(
    data: Annotated[
        Any, opt.inputs("Table with a judge's scores, and people's on some.", "TABLE", kind="")
    ],
    *,
    judge: Annotated[Sequence[str], opt.names(metavar="COL,..", group=INPUT)] = (),
    human: Annotated[Sequence[str], opt.names(metavar="COL,..", group=INPUT)] = (),
    scale: Annotated[str | None, Option(metavar="1-5", group=INPUT)] = None,
    human_scale: Annotated[str | None, Option(metavar="1-5", group=INPUT)] = None,
    order: Annotated[Sequence[str], opt.names(metavar="BAD,OK,GOOD", group=INPUT)] = (),
    pairs: Annotated[Sequence[str], opt.names(metavar="COL,COL", group=INPUT)] = (),
    tie: Annotated[str | None, Option(metavar="WORD", group=INPUT)] = None,
    first: Annotated[str | None, opt.column()] = None,
    swapped: Annotated[str | None, opt.column()] = None,
    model: opt.ModelColumn = None,
    question: opt.QuestionColumn = None,
    answer: Annotated[str | None, opt.column()] = None,
    existing: Annotated[str, Option(group=INPUT, choices=("checked", "random"))] = "checked",
    features: Annotated[Sequence[str], opt.names()] = (),
    by: opt.By = (),
    precision: Annotated[float | None, Option(metavar="POINTS", above=0)] = None,
    cost: Annotated[Mapping[str, float] | None, Option(metavar="A=0.02,..", kind="map")] = None,
    margin: opt.Margin = 0.02,
    rated: Annotated[Sequence[str], opt.files("Batch that people filled in", "FILE")] = (),
    batch: Annotated[str | Path | None, opt.written()] = None,
    save: Annotated[str | Path | None, opt.written()] = None,
    seed: opt.Seed = 0,
) -> JudgeResult:
    """Say what a judge's scores are worth beside people's, and what people would say of all rows.

    Parameters
    ----------
    data
        Path, or a table in memory.
    judge
        Columns of the judge's scores; of several each is measured, and their panel.
    human
        Columns of people's ratings, a person each; empty cells are rows that nobody rated.

        Two people on some rows show how far people agree, and whether the judge favours a model.
    scale
        Ends of the judge's scale; the values say it by default.
    human_scale
        Ends of people's scale, where it is another one.
    order
        Words of the scale, the worst first.
    pairs
        Columns of the two models of a pair; verdicts are A, B or a tie, 1 or 2, or a model's name.
    tie
        Word for a tie.
    first
        Column that says which side of a pair was shown first.
    swapped
        Column of the judge's verdict on the same pair in the other order, A and B as before.
    model
        Column of the model that answered.
    question
        Column of what the row is about: answers to one question are rated alike.
    answer
        Column of the answer graded.

        It is shown beside surprising verdicts.
    existing
        How rows with a rating were chosen: check for signs of a choice, or take them as random.
    features
        Columns that the judge may favour: a length, a family; of pairs the two lengths.
    by
        People's mean for each value of this column.
    precision
        Half the width of the interval that is wanted of people's mean, to count labels: in the
        units of their ratings, or in points of a percentage for yes/no and pairs.
    cost
        What a verdict of each judge costs, in dollars; above 0.
    margin
        Means that differ by less than this share of the scale are called equal.
    rated
        A batch that people filled in: its ratings are taken for the rows that it names.
    batch
        Write the rows that people should rate next, spread along the judge's scores.

        Neither a judge's verdict nor another person's stands in it.
    save
        Write what scores mean as a map; of several judges, one each.

        Other verbs read the judge's scores by it as they stand. A map that
        `calibrant.load_mend` reads takes and gives shares: 0 to 1 of either scale.
    seed
        Seed of the map's folds and of the batch.

    Returns
    -------
    JudgeResult
        A document ``calibrant.judge/1`` with one entry per judge in ``results``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = rng.integers(1, 6, 400).astype(float)
    >>> scores = np.clip(people + rng.integers(0, 3, 400), 1, 5)
    >>> rated = np.where(np.arange(400) < 150, people, np.nan)
    >>> found = judge({"judge": scores, "expert": rated}, judge=["judge"], human=["expert"])
    >>> found["claims"][0]["id"], found["claims"][0]["outcome"]
    ('judge.lenient', 'shown')
    """
    request = dict(locals())
    settings = recorded(request, _SETTINGS)
    choices = recorded(request, f"{_SETTINGS} seed save?")
    _check_request(request)
    roles = judge_table.JudgeColumns.__struct_fields__
    columns = judge_table.JudgeColumns(**{name: request[name] for name in roles})
    head = document_head("judge", data, seed=seed, settings=settings)
    with error_source(head["source"]):
        if not judge or not human:
            raise _unnamed(data, choices)
        table = judge_table.read_judge_table(data, columns, rated)
        require_known(by, table.frame.columns, "there is no column {}")
        _refuse_idle(table, request)
        views = _views(table)
        warnings = _checked(views, data, choices)
        if precision is not None and table.kind != "ratings":
            request["precision"] = precision / 100
        found = [judge_entry(view, request, origin_of(head)) for view in views]
    entries, maps = zip(*found, strict=True)
    labels_needed = entries[0].labels_needed
    missing = 0 if labels_needed is None else labels_needed.labels - entries[0].labels
    outputs = {}
    if save is not None:
        save_maps(list(map(_with_cells, maps, views)), save)
        outputs[str(save)] = count(len(maps), "map")
    if batch is not None:
        rows = _batch(views[0], max(_FEWEST, missing), seed)
        people = table.columns.human
        write_for_people(rows, Path(batch), keep=[rows.columns[0], *people])
        outputs[str(batch)] = f"{count(rows.height, 'row')} to rate: fill in {', '.join(people)}"
    document = {
        **head,
        "dropped": dict(table.left_out),
        "data": {
            "rows": table.frame.height,
            "columns": recorded(asdict(table.columns), "model? question? answer? pairs"),
            "warnings": [{"id": "judge.reading", "subject": {}, "text": text} for text in warnings],
            "written": outputs,
        },
        "results": entries,
        "claims": [claim.to_dict() for claim in joined_claims(entries, margin=margin)],
        "next": _next(entries[0], missing, data, choices, None if batch is None else str(batch)),
    }
    return JudgeResult(document)


def _check_request(request: Mapping[str, Any]) -> None:
    """Refuse what can be told of the options alone."""
    if any(isinstance(part, str) and part == "-" for part in (request["data"], *request["rated"])):
        rule = "standard input cannot be read twice, and the next command reads this again"
        raise InputError(rule, hint="save it as a file first")
    if request["pairs"] and len(request["pairs"]) != 2:
        raise InputError(f"a pair has two sides, got {len(request['pairs'])} columns")
    costs = request["cost"] or {}
    rule = "a cost is that of a judge, and there is none called {}"
    require_known(costs, request["judge"], rule)
    if free := [name for name, cost in costs.items() if not cost > 0]:
        raise InputError(Hint("{cost} is above 0, got {0}", f"{free[0]}={costs[free[0]]:g}"))
    if request["save"] is not None:
        refuse_other_file(request["save"])
    if request["batch"] is not None:
        check_ending(Path(request["batch"]))


def _refuse_idle(table: judge_table.JudgeTable, request: Mapping[str, Any]) -> None:
    """Refuse options that would change nothing of this table, and a batch without rows."""
    pairs, features = table.kind == "pairs", request["features"]
    idle = [
        *(["scale", "human_scale"] if pairs else ["pairs"]),
        *["first"] * (table.swapped is not None),
    ]
    if name := next((name for name in idle if request[name]), None):
        unused = Hint(f"{{{name}}} changes nothing of these verdicts")
        raise InputError(unused, hint=Hint(f"leave out {{{name}}}"))
    if pairs and len(features) not in (0, 2):
        rule = f"of pairs the lengths of both sides are compared, got {len(features)} columns"
        raise InputError(rule, hint=Hint("{features}", features="LENGTH_A,LENGTH_B"))
    if request["batch"] is not None:
        refuse_filled(Path(request["batch"]), table.columns.human)
        if np.isfinite(table.people).any(axis=1).all():
            raise InputError("every row is rated already", hint=Hint("leave out {batch}"))


def _unnamed(data: Any, choices: Mapping[str, Any]) -> InputError:
    """Return what to type where the judge's column or people's is not named."""
    names, likely = judge_table.proposed_columns(data)
    rule = f"which columns hold the judge's scores, and people's? There are {', '.join(names)}"
    columns_named = {
        role: choices[role] or likely[role] or ["COLUMN"] for role in ("judge", "human")
    }
    return InputError(
        rule, hint=Hint("name both:\n{0}", _again(data, {**choices, **columns_named}))
    )


def _views(table: judge_table.JudgeTable) -> list[JudgeView]:
    """Return every judge, and a panel of several: the mean of their scores, or the majority."""
    views = [JudgeView(table, n, score, table.scales[n]) for n, score in table.scores.items()]
    if len(views) > 1:
        unit, name = np.mean([view.unit for view in views], axis=0), "panel (mean)"
        if table.kind != "ratings":
            unit, name = (np.sign(unit - 0.5) + 1) / 2, "panel (majority)"
        alike = len({view.scale for view in views}) == 1
        scale = views[0].scale if alike else judge_table.RatingScale()
        views.append(JudgeView(table, name, scale.low + scale.span * unit, scale))
    return views


def _checked(views: Sequence[JudgeView], data: Any, choices: Mapping[str, Any]) -> list[str]:
    """Return what is to be known of the ratings; refuse a choice that is seen not to be random."""
    view, p = views[0], len(views) * min(choice_p_value(view.pool) for view in views)
    pool, swapped, notes = view.pool, view.table.swapped, list(view.table.notes)
    labels, rows = int(pool.known.sum()), pool.people.size
    if labels < _FEWEST:
        few = f"{labels} rated rows are too few"
        rule = f"{few} to say anything about the judge: {_FEWEST} at least"
        raise InputError(rule, hint="let people rate about 100 rows, chosen at random")
    if labels < rows and p < _CHOSEN:
        rule = (
            f"the {labels:,} rated rows are no random choice of {rows:,}: their scores or models "
            f"are others than those of the rest (p = {p:.0e})"
        )
        if choices["existing"] != "random":
            call = _again(data, {**choices, "existing": "random"})
            hint = Hint("if they were drawn at random all the same:\n{0}", call)
            raise InputError(rule, hint=hint)
        notes.append(f"{rule}; taken as random, as asked: people's mean may be off")
    for person, reason in called_in(view.table.people).items():
        counts = "counted in people's mean, and not in how far people agree"
        notes.append(f"{view.table.columns.human[person]} {reason}: {counts}")
    if labels < _ROUGH:
        notes.append(f"{labels} rated rows: intervals are rough below {_ROUGH}")
    if swapped is not None and (agreed := float((swapped == view.score).mean())) < 0.5:
        notes.append(
            f"verdicts in both orders agree in {100 * agreed:.0f} % of pairs only: is the "
            "second one written by place instead of by side?"
        )
    return notes


def _with_cells(fitted: RecalibrationMap, view: JudgeView) -> RecalibrationMap:
    """Return a map that knows what the judge's cells say: words, or numbers turned around."""
    table, scale = view.table, view.scale
    if view.name not in table.scores:
        return fitted
    shares = pl.Series("share", scale.unit(table.values[view.name]))
    cells = pl.DataFrame([table.cells[view.name].alias("word"), shares])
    readable = cells.filter(shares.is_finite()).unique().sort("share", "word")
    words, numbers = (
        dict(readable.rows()),
        readable["word"].cast(pl.Float64, strict=False).to_numpy(),
    )
    about: dict[str, Any] = {}
    if np.allclose(1 - scale.unit(numbers), readable["share"]):
        about["judge_scale"] = [scale.high, scale.low]
    elif len(words) == readable.height <= _MOST_WORDS and not any(
        re.search("[,=]", w) for w in words
    ):
        steps = max(len(scale.words) - 1, 1)
        usual = {word: place / steps for place, word in enumerate(scale.words)}
        about["judge_words"] = {**usual, **words}
    if np.allclose(scale.unit(numbers), readable["share"]):
        return fitted
    return replace(fitted, fitted_on={**fitted.fitted_on, **about})


def _batch(view: JudgeView, size: int, seed: int) -> pl.DataFrame:
    """Return the rows to rate next, with their number in the table and cells to fill in.

    Whoever rates them sees no verdict of anybody.
    """
    table, columns, key = view.table, view.table.columns, number_column(view.table.frame)
    draws = choose_batch(LabelPool(view.unit, view.pool.people), size, rng=seed)
    likely = judge_table.likely_columns(table.frame)
    displayed = {columns.question, columns.answer, *columns.pairs}
    hidden = {*likely["judge"], *likely["human"], columns.swapped} - displayed
    hidden |= {*table.scores, *columns.human}
    rows: pl.DataFrame = table.frame[draws.tolist()].select(
        pl.exclude([name for name in hidden if name])
    )
    empty = (pl.lit(None, pl.String).alias(person) for person in columns.human)
    return rows.select(pl.Series(key, table.rows[draws]), pl.all(), *empty)


def _again(data: Any, choices: Mapping[str, Any]) -> Call:
    """Return this call with its own options, those left out that are as nobody set them."""
    usual = {name: option.default for name, option in declared_options("judge").items()}
    columns_named = {name: value for name, value in choices.items() if value not in (None, [], {})}
    request = {name: value for name, value in columns_named.items() if value != usual[name]}
    return Call("judge", data if isinstance(data, str | Path) else TABLE, **request)


def _next(
    entry: JudgeEntry, missing: int, data: Any, choices: Mapping[str, Any], batch: str | None
) -> dict[str, str]:
    """Return what to do with a batch, or the next one for people; else the map and the page."""
    people = ", ".join(choices["human"])
    more: dict[str, Any] = {"html": free_name("judge.html")}
    why = "See models, map and flips on a page"
    if batch is not None:
        more, why = (
            {"rated": [*choices["rated"], batch]},
            f"Fill in {people}; then take {batch} back",
        )
    elif entry.labels_needed is not None and missing > 0:
        within = size_words(entry, entry.labels_needed.precision)
        more = {"batch": free_name("batch.csv")}
        why = f"{missing:,} rows for people: their mean is then known to within about {within}"
    elif entry.path is None and entry.scale.kind != "pairs":
        more = {"save": free_name("map.json")}
        why = "Keep what a score means, for rows that nobody will rate"
    return {"command": _again(data, {**choices, **more}).text(), "why": why}
