"""`decide`: where may the model answer alone, with what promise?"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
import polars as pl
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from calibrant.answers.features import refuse_outcome, without_missing
from calibrant.core import shared_options as opt
from calibrant.core.arrays import named_stream
from calibrant.core.errors import InputError, error_about, error_source
from calibrant.core.hints import Hint
from calibrant.core.places import writing
from calibrant.core.verb import Option, verb
from calibrant.data import ScoreBlock, Scores
from calibrant.data.score_table import CLUSTER
from calibrant.data.sources.drawn_labels import Grades, study_grades
from calibrant.data.sources.input import document_head, input_files, origin_of, recorded, today
from calibrant.data.sources.options import table_settings
from calibrant.findings.claims import Claim
from calibrant.findings.claims.decide import decide_claims
from calibrant.findings.documents.decisions import DecideEntry, DecideTogether
from calibrant.metrics.stats.graded_summary import grading_summary
from calibrant.report.result import DecideResult
from calibrant.trust.policy import SelectivePolicy
from calibrant.trust.selective.fit import Selective
from calibrant.trust.selective.whole_units import (
    WholeUnits,
    likely_unit,
    rejected_units,
    unit_score_name,
    whole_block,
)
from calibrant.trust.traffic_shift import ANSWER
from calibrant.trust.units import UNIT_SCORES
from calibrant.verbs.classes import SetsOfClasses
from calibrant.verbs.deferring import how_asked, read_traffic, traffic_of
from calibrant.verbs.dependent_rows import DependentBlocks
from calibrant.verbs.opening.open_input import only_of, read_scores
from calibrant.verbs.score_documents import scores_document, with_rows


@verb(example="calibrant decide scores.csv --max-error 0.05 --save policy.json", shared=opt.TABLE)
def decide(
    data: opt.ScoresData,
    *,
    max_error: Annotated[float | None, opt.share()] = None,
    delta: Annotated[float, opt.share()] = 0.1,
    costs: Annotated[
        Mapping[str, float] | None,
        Option(metavar="wrong=10,ask=1", kind="map", example="wrong=10,ask=1"),
    ] = None,
    features: Annotated[Sequence[str], opt.names()] = (),
    group: Annotated[str | None, Option(metavar="COL")] = None,
    each: Annotated[str | None, Option(metavar="COL")] = None,
    traffic: Annotated[Any, Option(metavar="TABLE", place="read")] = None,
    score: Annotated[str | None, Option(choices=tuple(UNIT_SCORES))] = None,
    stop: Annotated[bool, Option()] = False,
    drop: Annotated[bool, Option()] = False,
    sets: Annotated[bool, Option()] = False,
    only_model: Annotated[str | None, Option(metavar="NAME")] = None,
    only_method: Annotated[str | None, Option(metavar="NAME")] = None,
    save: Annotated[str | Path | None, opt.written()] = None,
    wrong: opt.WrongRows = 0,
    seed: opt.Seed = 0,
    **table: Unpack[opt.TableOptions],
) -> DecideResult:
    """Find where a model may answer alone, and promise how often it is then wrong.

    Parameters
    ----------
    data
        Path, study folder or dataframe with one graded answer per question.
    max_error
        Largest share of wrong answers among those given.

        It is kept with probability
        1 - `delta`, or nothing is certified.
    delta
        Largest chance that a promise of this table fails.

        The models and methods of a table share it: the best of them may be chosen afterwards.
    costs
        What a wrong answer and asking somebody cost.

        As ``wrong`` and ``ask``. Without `max_error` the cheapest threshold is taken, with it the
        cheapest certified one.
    features
        Columns that help to tell right from wrong: length, topic, further confidences.

        The policy then needs them to decide.
    group
        Column of groups. Those with under 15 labels are asked, and groups never labelled.
    each
        Promise it in every group of this column at once.

        It answers less.
    traffic
        Recent rows without labels, with groups: the promise is for their mix.

        Without them it is for questions like the labelled ones. Give 2,000 rows or more, and
        `group`.
    score
        What is held against the threshold of a whole `unit`: product (default), min or mean.

        A unit passes alone where the product of its confidences, the least or their mean is high
        enough; it is wrong where any of its rows is.
    stop
        Each `unit` is a run of steps: stop it early where a confidence is low.

        At most `max_error` of the stopped runs would have succeeded.
    drop
        Each `unit` is an answer of claims: drop those whose confidence is low.

        At most `max_error` of all answers then keep a wrong claim.
    sets
        Sets of classes that miss the right one in at most `max_error` of cases, from `probs`.

        The policy then names the classes of a set: ``policy.holds([0.7, 0.2, 0.1])``.
    only_model
        Model to use where there are several.
    only_method
        Method to use where there are several.

        Without either each gets an entry.
    save
        Write the policy as JSON.

        `calibrant.load_policy` reads it.
    wrong
        List so many answers that are wrong with the highest confidence, under ``wrong``.
    seed
        Seed of the labels that fit a score (a third, with `features`).
    **table
        How the table is read, see `calibrant.data.load_scores`.

    Returns
    -------
    DecideResult
        A document ``calibrant.decide/1`` with one entry per model and method in ``results``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> said = rng.random(2000)
    >>> right = (rng.random(2000) < 0.5 + 0.5 * said).astype(int)
    >>> found = decide({"confidence": said, "correct": right}, max_error=0.2)
    >>> found["results"][0]["certified"], found["claims"][0]["outcome"]
    (True, 'shown')
    """
    if max_error is None and costs is None:
        hint = Hint("give {max_error}", max_error=0.05)
        raise InputError("a decision needs a limit on the error, or costs", hint=hint)
    # A table of traffic has no truth value.
    about_rows = {"features": bool(features), "traffic": traffic is not None}
    others = [name for name, given in about_rows.items() if given]
    how = unit_score_name(table["unit"], score, stop, drop, others)
    about = [*others, *(["unit"] if how else [])]
    of_classes = _sets_of(max_error, delta, table, about) if sets else None
    group = _group_column(group, each, traffic)
    columns = list(dict.fromkeys([*features, *([group] if group else [])]))
    refuse_outcome(columns, table["correct"])
    settings = {
        **recorded(locals(), "max_error delta costs features"),
        **({} if group is None else {"group": group, "each": each is not None}),
        **({} if traffic is None else {"traffic": input_files(traffic)}),
        **recorded(locals(), "score only_model only_method"),
        **{name: True for name, given in (("stop", stop), ("drop", drop), ("sets", sets)) if given},
        **table_settings(table),
    }
    opt.refuse_mended(table, save, "a policy")
    head = document_head("decide", data, seed=seed, settings=settings)
    with error_source(head["source"]):
        kept = None if how or sets else columns
        scores = read_scores(data, table, features=kept, others=True)
        scores = without_missing(scores, columns, table["on_invalid"])
        scores = only_of(scores, model=only_model, method=only_method)
        together = DependentBlocks.of_scores(scores, scores.blocks(), skip=columns)
        blocks = together.blocks
    coming = None if traffic is None else read_traffic(traffic, table, columns)
    reasons = [together.withheld(n, mixed=coming is not None) for n in range(len(blocks))]
    if save is not None:
        _require_one(blocks, head["source"])
    asked = None if save is None else how_asked(data, blocks[0].keys["method"])
    # Who picks the best of several promises picks one that fails more often: they share delta.
    among = len(blocks)
    rule = Selective(
        max_error=max_error, delta=delta / among, costs=costs, each=each is not None, seed=seed
    )
    if of_classes is not None:
        of_classes.delta = delta / among
    fits = [
        copy(of_classes).fit(block, {**origin_of(head), **block.keys, "asked": None})
        if of_classes is not None
        else _fit(copy(rule), block, features, group, coming, head=head, asked=asked, withheld=why)
        if how is None
        else _fit_units(WholeUnits(copy(rule), str(table["unit"]), how), block, scores, group, head)
        for block, why in zip(blocks, reasons, strict=True)
    ]
    path, grades = None if save is None else str(save), study_grades(data)
    results = [
        replace(
            fit.entry(block.keys["model"], block.keys["method"], block.correct, path),
            among=among,
            grading=_grading(grades, block, fit, seed) if isinstance(fit, Selective) else UNSET,
            together=_together(block, fit, words, why) if isinstance(fit, Selective) else UNSET,
        )
        for block, fit, words, why in zip(blocks, fits, together.words, reasons, strict=True)
    ]
    if save is not None:
        with writing(save):
            _as_claimed(fits[0].policy_, results[0]).save(save)
    document = scores_document(head, scores, results, _claims(results, blocks))
    together.tell(document)
    _tell_units(document, fits, None if how or sets else blocks[0])
    chosen = {"models": only_model and [only_model], "methods": only_method and [only_method]}
    return with_rows(DecideResult(document), data, table, wrong, **chosen)


def _tell_units(document: dict[str, Any], fits: Sequence[Any], rows: ScoreBlock | None) -> None:
    """Note what is left out of units, and where single rows look like parts of some."""
    notes = [text for fit in fits if isinstance(fit, WholeUnits) for text in fit.notes()]
    if rows is not None and (hint := likely_unit(rows)) is not None:
        notes.append(hint.shell() if document.get("input") else str(hint))
    if notes:
        document["data"]["notes"] = [*document["data"].get("notes", ()), *notes]


def _require_one(blocks: Sequence[ScoreBlock], source: str) -> None:
    if len(blocks) > 1:
        pairs = ", ".join(f"{block.keys['model']} / {block.keys['method']}" for block in blocks[:5])
        raise InputError(
            f"a policy is for one model and method; the table has {len(blocks)} ({pairs})",
            source=source,
            hint=Hint("choose with {only_model} or {only_method}"),
        )


def _claims(results: Sequence[DecideEntry], blocks: Sequence[ScoreBlock]) -> Iterator[Claim]:
    """Yield what is said of every model and method, and of which share of its answers."""
    for entry, block in zip(results, blocks, strict=True):
        confidence = entry.n / (entry.n + block.unscored.height)
        yield from decide_claims(entry, named=len(results) > 1, stated=confidence)


def _group_column(group: str | None, each: str | None, traffic: Any) -> str | None:
    if each is not None and (traffic is not None or group not in (None, each)):
        raise InputError(Hint("{each} names its groups itself: leave out {group} and {traffic}"))
    if traffic is not None and group is None:
        rule = "a promise for the mix of the traffic needs groups"
        raise InputError(rule, hint=Hint("name the column of both tables with {group}"))
    return each or group


def _fit(
    fit: Selective,
    block: ScoreBlock,
    features: Sequence[str],
    group: str | None,
    traffic: pl.DataFrame | None,
    *,
    head: Mapping[str, Any],
    asked: Mapping[str, Any] | None,
    withheld: str | None,
) -> Selective:
    with error_about(f"model {block.keys['model']}, method {block.keys['method']}", head["source"]):
        return fit.fit(
            block.frame.select(list(features)) if features else None,
            block.confidence,
            block.correct,
            groups=None if group is None else block.frame[group],
            traffic=None if traffic is None else traffic_of(traffic, block.keys, features, group),
            beside=block.frame.select(pl.col(ANSWER)) if ANSWER in block.frame.columns else None,
            cluster=None if withheld else block.units,
            withheld=withheld is not None,
            made=today(),
            fitted_on={**origin_of(head), **block.keys, "asked": asked},
        )


def _sets_of(
    max_error: float | None, delta: float, table: Mapping[str, Any], others: Sequence[str]
) -> SetsOfClasses:
    label = table["correct"] or table["gold"]
    if max_error is None or not table["probs"] or label is None:
        rule = Hint("{sets} needs class probabilities, the true class and a limit")
        mode = {"probs": "p_", "correct": "y", "max_error": 0.1}
        raise InputError(rule, hint=Hint("name them: {probs} {correct} {max_error}", **mode))
    if others:
        raise InputError(Hint("give one of {sets} and {" + others[0] + "}"))
    return SetsOfClasses(max_error, delta, table["probs"], label)


def _fit_units(
    fit: WholeUnits, block: ScoreBlock, scores: Scores, group: str | None, head: Mapping[str, Any]
) -> WholeUnits:
    with error_about(f"model {block.keys['model']}, method {block.keys['method']}", head["source"]):
        whole = whole_block(block, scores, fit.column, fit.how)
        missing = len(
            {*block.frame[CLUSTER], *rejected_units(block, scores)} - {*whole.frame[CLUSTER]}
        )
        origin = {**origin_of(head), **block.keys, "unit": fit.column, "asked": None}
        return fit.fit(whole, left_out=missing, group=group, made=today(), fitted_on=origin)


def _together(
    block: ScoreBlock, fit: Selective, words: str, withheld: str | None
) -> DecideTogether | UnsetType:
    """Return how many labels rows are worth that hang together, or why nothing is promised."""
    if block.units is None and withheld is None:
        return UNSET
    count = len(block.correct) if block.units is None else len(np.unique(block.units))
    return DecideTogether(column=words, clusters=count, labels=fit.worth_, withheld=withheld)


def _grading(
    grades: Grades | None, block: ScoreBlock, fit: Selective, seed: int
) -> dict[str, Any] | UnsetType:
    """Return how far grading error leaves the error open among the answers that are given."""
    if grades is None:
        return UNSET
    setting = block.frame.filter(pl.Series(fit.policy_.decide_many(block.frame)))
    graded = grades.of(setting) if setting.height else None
    if graded is None:
        return UNSET
    rng = named_stream(seed, "grading", *map(str, block.keys.values()))
    # The promise fails on one side only, with a chance of delta.
    summary = grading_summary(graded, rng, probability=False, level=1 - 2 * fit.delta)
    right = summary.pop("accuracy")
    wrong = {"low": 1 - right["high"], "high": 1 - right["low"]}
    value = None if right["value"] is None else 1 - right["value"]
    return {**summary, "error": {"value": value, **wrong}}


def _as_claimed(policy: SelectivePolicy, entry: DecideEntry) -> SelectivePolicy:
    """Return the policy to save: not certified where errors of the grades may break its promise."""
    limit = entry.max_error
    if not entry.grading or limit is None or entry.grading["error"]["high"] <= limit:
        return policy
    promise = {**policy.promise, "certified": False, "depends_on": "grades"}
    return dataclasses.replace(policy, promise=promise)
