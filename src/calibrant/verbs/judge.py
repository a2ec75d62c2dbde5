"""`judge`: can I trust my judge?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from msgspec.structs import asdict

from calibrant.core import shared_options as opt
from calibrant.core.errors import InputError, error_source, require_known
from calibrant.core.hints import TABLE, Call, Hint
from calibrant.core.places import writing
from calibrant.core.verb import INPUT, Option, verb
from calibrant.data import judge_table
from calibrant.data.recalibration_map import save_maps
from calibrant.data.sources.input import document_head, origin_of, recorded
from calibrant.findings.claims.judge import joined_claims, size_words
from calibrant.findings.documents.labels import JudgeEntry
from calibrant.labels.judge_entry import JudgeView, judge_entry
from calibrant.labels.labelling.designs import choose_batch
from calibrant.labels.labelling.pools import LabelPool
from calibrant.labels.page.batches import write_for_people
from calibrant.labels.people_ratings import choice_p_value
from calibrant.report.result import JudgeResult

# Fewer ratings give no interval worth the name; below the second, intervals are said to be rough.
_FEWEST, _ROUGH = 10, 100
# A choice that is random looks less so once in a thousand tables.
_CHOSEN = 0.001
_SETTINGS = (
    "judge human scale? human_scale? order pairs tie? first? swapped? model? question? answer? "
    "existing features by precision? cost? margin rated"
)


@verb(example="calibrant judge ratings.csv --judge gpt4 --human expert1,expert2 --save map.json")
def judge(
    data: Annotated[Any, opt.inputs("Table with a judge's scores, and people's on some rows.")],
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
        Columns that the judge may favour: a length, a family; of pairs the lengths of both sides.
    by
        People's mean for each value of this column.
    precision
        Half the width that the interval of people's mean should have, to count labels.
    cost
        What a verdict of each judge costs, in dollars.
    margin
        Means that differ by less than this share of the scale are called equal.
    rated
        A batch that people filled in: its ratings are taken for the rows that it names.
    batch
        Write the rows that people should rate next, spread along the judge's scores.
    save
        Write what scores mean as a map; of several judges, one each.

        `calibrant.load_mend` reads it: scores and ratings count from 0 to 1 of their scales.
    seed
        Seed of the map's folds.

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
    if pairs and len(pairs) != 2:
        raise InputError(f"a pair has two sides, got {len(pairs)} columns")
    require_known(cost or {}, judge, "a cost is that of a judge, and there is none called {}")
    roles = judge_table.JudgeColumns.__struct_fields__
    columns = judge_table.JudgeColumns(**{name: request[name] for name in roles})
    head = document_head("judge", data, seed=seed, settings=settings)
    with error_source(head["source"]):
        if not judge or not human:
            raise _unnamed(data, {"judge": judge, "human": human})
        table = judge_table.read_judge_table(data, columns, rated)
        require_known(by, table.frame.columns, "there is no column {}")
        views = _views(table)
        warnings = _checked(views[0], data, settings)
        found = [judge_entry(view, request, origin_of(head)) for view in views]
    entries, maps = zip(*found, strict=True)
    labels_needed = entries[0].labels_needed
    missing = 0 if labels_needed is None else labels_needed.labels - entries[0].labels
    if save is not None:
        with writing(save):
            save_maps(maps, save)
    if batch is not None:
        rows = _batch(views[0], max(_FEWEST, missing), seed)
        write_for_people(rows, Path(batch), keep=[judge_table.ROW, *human])
    document = {
        **head,
        "dropped": dict(table.left_out),
        "data": {
            "rows": table.frame.height,
            "columns": recorded(asdict(table.columns), "model? question? answer? pairs"),
            "warnings": [{"id": "judge.reading", "subject": {}, "text": text} for text in warnings],
        },
        "results": entries,
        "claims": [claim.to_dict() for claim in joined_claims(entries, margin=margin)],
        "next": _next(entries[0], missing, data, settings),
    }
    return JudgeResult(document)


def _unnamed(data: Any, roles: Mapping[str, Sequence[str]]) -> InputError:
    """Return what to type where the judge's column or people's is not named."""
    names = judge_table.open_judged(data).columns
    likely = judge_table.likely_columns(names)
    rule = f"which columns hold the judge's scores, and people's? There are {', '.join(names)}"
    named = {role: given or likely[role] or ["COLUMN"] for role, given in roles.items()}
    return InputError(rule, hint=Hint("name both:\n{0}", _again(data, named)))


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


def _checked(view: JudgeView, data: Any, settings: Mapping[str, Any]) -> list[str]:
    """Return what is to be known of the ratings; refuse a choice that is seen not to be random."""
    pool, swapped, notes = view.pool, view.table.swapped, list(view.table.notes)
    labels, rows = int(pool.known.sum()), pool.people.size
    if labels < _FEWEST:
        few = f"{labels} rated rows are too few"
        rule = f"{few} to say anything about the judge: {_FEWEST} at least"
        raise InputError(rule, hint="let people rate about 100 rows, chosen at random")
    if labels < rows and (p := choice_p_value(pool)) < _CHOSEN:
        rule = (
            f"the {labels:,} rated rows are no random choice of {rows:,}: their scores or models "
            f"are others than those of the rest (p = {p:.0e})"
        )
        if settings["existing"] != "random":
            call = _again(data, {**settings, "existing": "random"})
            hint = Hint("if they were drawn at random all the same:\n{0}", call)
            raise InputError(rule, hint=hint)
        notes.append(f"{rule}; taken as random, as asked: people's mean may be off")
    if labels < _ROUGH:
        notes.append(f"{labels} rated rows: intervals are rough below {_ROUGH}")
    if swapped is not None and (agreed := float((swapped == view.score).mean())) < 0.5:
        notes.append(
            f"verdicts in both orders agree in {100 * agreed:.0f} % of pairs only: is the "
            "second one written by place instead of by side?"
        )
    return notes


def _batch(view: JudgeView, size: int, seed: int) -> pl.DataFrame:
    """Return the rows to rate next, with their number in the table and cells to fill in."""
    table = view.table
    draws = choose_batch(LabelPool(view.unit, view.pool.people), size, rng=seed)
    number = pl.Series(judge_table.ROW, table.rows[draws])
    rows: pl.DataFrame = table.frame[draws.tolist()].with_columns(number)
    people = table.columns.human
    return rows.select(number.name, pl.exclude(number.name, *table.scores, *people), *people)


def _again(data: Any, settings: Mapping[str, Any]) -> Call:
    """Return this call with its own options, those left out that are as nobody set them."""
    request = {name: value for name, value in settings.items() if value and name != "margin"}
    return Call("judge", data if isinstance(data, str | Path) else TABLE, **request)


def _next(
    entry: JudgeEntry, missing: int, data: Any, settings: Mapping[str, Any]
) -> dict[str, str]:
    """Return the next batch for people; else the page."""
    more, why = {"html": "judge.html"}, "See models, map and flips on a page"
    if entry.labels_needed is not None and missing > 0:
        more, within = {"batch": "batch.csv"}, size_words(entry, entry.labels_needed.precision)
        why = f"{missing:,} rows for people: their mean is then known to within {within}"
    elif entry.path is None and entry.scale.kind != "pairs":
        more, why = {"save": "map.json"}, "Keep what a score means, for rows that nobody will rate"
    # The next command asks for the same: without a choice that was confirmed it would be refused.
    names = {name: value for name, value in settings.items() if value != "checked"}
    return {"command": _again(data, {**names, **more}).text(), "why": why}
