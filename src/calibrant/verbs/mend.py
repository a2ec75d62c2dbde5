"""`mend`: what does a stated confidence mean here?"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
from msgspec import convert, structs

from calibrant.answers.features import beside_methods, refuse_outcome, without_missing
from calibrant.core import shared_options as opt
from calibrant.core.errors import InputError, error_source
from calibrant.core.hints import Hint
from calibrant.core.places import writing
from calibrant.core.verb import Option, verb
from calibrant.data import ScoreBlock, Scores
from calibrant.data.mend import LEAST_LABELS, Mend, fit_columns
from calibrant.data.recalibration_map import MENDED, RecalibrationMap, save_maps
from calibrant.data.sources.drawn_labels import study_grades
from calibrant.data.sources.input import document_head, origin_of, recorded
from calibrant.data.sources.objects import plain_input
from calibrant.data.sources.options import table_settings
from calibrant.findings.claims.decide import TOO_FEW_GROUPS, mend_claims
from calibrant.findings.documents.decisions import MendColumns, MendEntry, MendMeaning, MendPromise
from calibrant.metrics.recalibration.mend_fit import Labels
from calibrant.report.result import MendResult
from calibrant.verbs.dependent_rows import DependentBlocks
from calibrant.verbs.opening.open_input import only_of, read_scores
from calibrant.verbs.score_documents import scores_document

_VALUES = 12


@verb(example="calibrant mend scores.csv --save mend.json", shared=opt.TABLE)
def mend(
    data: opt.ScoresData,
    correct: opt.OutcomesOrColumn = None,
    *,
    features: Annotated[Sequence[str], opt.names()] = (),
    methods: Annotated[Sequence[str], opt.names()] = (),
    only_model: Annotated[str | None, Option(metavar="NAME")] = None,
    only_method: Annotated[str | None, Option(metavar="NAME")] = None,
    save: Annotated[str | Path | None, opt.written()] = None,
    seed: opt.Seed = 0,
    **table: Unpack[opt.RowOptions],
) -> MendResult:
    """Learn what stated confidences mean, and promise how far off that is.

    Parameters
    ----------
    data
        Path, study folder or dataframe with graded answers, or an array of confidences.
    correct
        Array of outcomes, or the name of their column.
    features
        Other columns that tell how often an answer is right: a category, its length.

        They are read where there are 500 labels or more and they lower the Brier score.
    methods
        Methods of one table to mend together.

        The confidence is that of the first; those of the others are read like `features`.
    only_model
        Model to use where there are several.
    only_method
        Method to use where there are several.

        Without either each gets an entry.
    save
        Write the map as JSON.

        `calibrant.load_mend` reads it.
    seed
        Seed of the folds and of the draws behind the promise.
    **table
        How the table is read, see `calibrant.data.load_scores`. Rows of one question count as
        one label as far as they are right and wrong together.

    Returns
    -------
    MendResult
        A document ``calibrant.mend/1`` with one entry per model and method in ``results``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> said = rng.choice([0.8, 0.9, 0.95], 600)
    >>> right = (rng.random(600) < said - 0.25).astype(int)
    >>> found = mend(said, right)
    >>> found["results"][0]["verdict"], found["claims"][1]["outcome"]
    ('mended', 'shown')
    """
    if table["mend"] is not None:
        raise InputError(
            "a map is learned from confidences as stated", hint=Hint("leave out {mend}")
        )
    if correct is not None and not isinstance(correct, str):
        said, right = plain_input(data, correct)
        data, correct = {"confidence": said, "correct": right}, None
    columns: opt.TableOptions = {**table, "correct": correct}
    refuse_outcome(features, correct)
    settings = recorded(locals(), "features methods only_model only_method")
    settings |= table_settings(columns)
    head = document_head("mend", data, seed=seed, settings=settings)
    named = [*features, *methods[1:]]
    with error_source(head["source"]):
        scores = read_scores(data, columns, features=features, others=True)
        scores = beside_methods(scores, methods) if methods else scores
        scores = only_of(scores, model=only_model, method=only_method)
        scores = without_missing(scores, named, table["on_invalid"])
        together = DependentBlocks.of_scores(scores, scores.blocks(), skip=named)
        blocks = together.blocks
        origin = {**origin_of(head), **_graders(scores, data)}
        learned = [
            _learned(block, named, origin, seed, withheld=together.withheld(number) is not None)
            for number, block in enumerate(blocks)
        ]
    if save is not None:
        with writing(save):
            save_maps([fitted for fitted, _ in learned], save)
    results = [
        _entry(fitted, columns_read, block, save)
        for (fitted, columns_read), block in zip(learned, blocks, strict=True)
    ]
    claims = [claim for entry in results for claim in mend_claims(entry, named=len(results) > 1)]
    document = scores_document(head, scores, results, claims)
    together.tell(document)
    return MendResult(document)


def _graders(scores: Scores, data: Any) -> dict[str, str]:
    """Return who read the answers, where that is known: people of a store, or a study's grader."""
    if scores.drawn_from is not None:
        return {"labels_by": "people"}
    return {} if study_grades(data) is None else {"labels_by": "automatic grader"}


def _learned(
    block: ScoreBlock,
    names: Sequence[str],
    origin: Mapping[str, Any],
    seed: int,
    *,
    withheld: bool,
) -> tuple[RecalibrationMap, MendColumns | None]:
    """Return the map, which also reads the columns where they pay, and what is told of them."""
    about = {**block.keys, "fitted_on": origin}
    corrected = Mend(seed=seed).fit(
        block.confidence, block.correct, groups=block.units, about=about
    )
    fitted = corrected.map_
    if withheld:
        # Rows of so few groups say little of others like them: the curve is served, no more.
        promise = dict(fitted.promise) | {"off_by": None}
        fitted = structs.replace(fitted, verdict=TOO_FEW_GROUPS, promise=promise)
    if not names:
        return fitted, None
    unused = MendColumns(names=list(names), verdict="too few", promise=None, map=None, score=None)
    if withheld or fitted.n < LEAST_LABELS:
        return fitted, unused
    confidence, right = (np.asarray(part, np.float64) for part in (block.confidence, block.correct))
    labels = Labels.of(confidence, right, units=block.units)
    read = fit_columns(labels, block.frame.select(names), fitted, seed=seed)
    if read.map.verdict == MENDED:
        return structs.replace(fitted, columns=read), convert(read.to_dict(), MendColumns)
    promise = convert(read.map.promise, MendPromise)
    return fitted, structs.replace(unused, verdict=read.map.verdict, promise=promise)


def _entry(
    fitted: RecalibrationMap,
    columns: MendColumns | None,
    block: ScoreBlock,
    save: str | Path | None,
) -> MendEntry:
    # The same input gives the same document on any day; the file says when it was made.
    entry = {**fitted.to_dict(), "table": [], "path": None if save is None else str(save)}
    return structs.replace(
        convert(entry, MendEntry), columns=columns, table=list(_table(fitted, block))
    )


def _table(fitted: RecalibrationMap, block: ScoreBlock) -> Iterator[MendMeaning]:
    """Yield what stated values mean: all where they are few, else at even ranks."""
    stated_confidence = np.unique(block.confidence)
    if len(stated_confidence) > _VALUES:
        ranks = np.linspace(0.02, 0.98, _VALUES)
        stated_confidence = np.unique(np.quantile(block.confidence, ranks, method="nearest"))
    nearest = np.abs(block.confidence[:, None] - stated_confidence).argmin(axis=1)
    rows = np.bincount(nearest, minlength=len(stated_confidence)).tolist()
    right = np.bincount(nearest, block.correct, len(stated_confidence)).tolist()
    for confidence, count, hits in zip(stated_confidence.tolist(), rows, right, strict=True):
        low, high = fitted.interval(confidence)
        value = fitted.probability(confidence)
        yield MendMeaning(
            says=confidence, means=value, low=low, high=high, n=count, right=hits / count
        )
