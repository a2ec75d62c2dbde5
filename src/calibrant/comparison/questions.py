"""Models side by side on every question, and which questions they differ on together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.arrays import Array, Floats, Indices, Ints, Mask, RngLike, as_generator
from calibrant.core.errors import InputError, require_known
from calibrant.data.groupings import LEAST_ROWS, SAMPLE, row_groupings, under_own_names
from calibrant.data.score_table import Scores
from calibrant.metrics.stats.clusters import CellResiduals
from calibrant.metrics.stats.dependence import Dependence, search_groups

# With 1,000 resamples the table of counts of a block takes 200 MB.
BLOCK_QUESTIONS = 50_000


class QuestionBlock(Struct, frozen=True):
    """Confidence and grade of every model on some questions; NaN where a model has none.

    A row may be graded without a stated confidence: it counts for accuracy alone.

    Parameters
    ----------
    models
        Names, in the order given.
    questions
        Ids of the questions that at least one model answered.
    confidence, correct
        (models, questions).
    cluster
        What each question belongs to, where questions depend on each other: codes from 0.
    """

    models: tuple[str, ...]
    questions: npt.NDArray[np.str_]
    confidence: Floats
    correct: Floats
    cluster: Indices | None = None

    @property
    def size(self) -> int:
        """Number of questions."""
        return int(self.questions.size)

    @property
    def present(self) -> Mask:
        """(models, questions): whether the answer is graded and has a confidence."""
        return ~(np.isnan(self.confidence) | np.isnan(self.correct))

    @property
    def outcome(self) -> Floats:
        """(models, questions): the grade where a confidence belongs to it, else NaN."""
        return np.where(np.isnan(self.confidence), np.nan, self.correct)

    def take(self, rows: Indices) -> QuestionBlock:
        """Return the block of these questions alone."""
        return QuestionBlock(
            self.models,
            self.questions[rows],
            self.confidence[:, rows],
            self.correct[:, rows],
            None if self.cluster is None else np.unique(self.cluster[rows], return_inverse=True)[1],
        )


def known_models(scores: pl.DataFrame, models: Sequence[str] | None) -> list[str]:
    """Return the models to compare, in order; refuse unknown ones and fewer than two.

    Examples
    --------
    >>> known_models(pl.DataFrame({"model": ["b", "a", "b"]}), None)
    ['b', 'a']
    """
    nameless = scores["model"].null_count()
    if nameless:
        raise InputError(
            f"{nameless:,} of {scores.height:,} rows have no model",
            hint="fill the column of models in, or leave those rows out",
        )
    names = scores["model"].unique(maintain_order=True).to_list()
    target_names = list(dict.fromkeys(models)) if models is not None else names
    require_known(target_names, names, "there is no model {}")
    if len(target_names) < 2:
        raise InputError(
            f"a comparison needs at least two models, got {len(target_names)}: "
            f"{', '.join(target_names)}",
            hint="give a table with several models, or several tables",
        )
    return target_names


def align_models(scores: pl.DataFrame, models: Sequence[str] | None = None) -> QuestionBlock:
    """Put the models of one confidence method side by side.

    Parameters
    ----------
    scores
        Columns question_id, model, confidence, correct, and cluster_id where questions depend on
        each other. The first row of a model for a question is held against the first of another,
        the second against the second; all rows of a question then belong together.
    models
        Models to compare, in this order; None takes all in order of appearance.

    Examples
    --------
    >>> table = pl.DataFrame(
    ...     {
    ...         "question_id": ["q1", "q2", "q1"],
    ...         "model": ["a", "a", "b"],
    ...         "confidence": [0.5, 0.6, 0.7],
    ...         "correct": [1.0, 0.0, 1.0],
    ...     }
    ... )
    >>> align_models(table).present.tolist()
    [[True, True], [True, False]]
    """
    target = known_models(scores, models)
    choice = scores.filter(pl.col("model").is_in(target))
    cluster = choice["cluster_id"] if "cluster_id" in choice.columns else None
    if choice.select("question_id", "model").is_duplicated().any():
        nth = choice.select(pl.int_range(pl.len()).over("question_id", "model")).to_series()
        ids = choice["question_id"].cast(pl.String)
        cluster = ids if cluster is None else cluster
        again = pl.select(
            pl.when(nth > 0).then(pl.format("{}, row {}", ids, nth + 1)).otherwise(ids)
        )
        choice = choice.with_columns(again.to_series().alias("question_id"))
    block = placed(choice, target)
    if cluster is None:
        return block
    clusters = dict(zip(choice["question_id"].cast(pl.String), cluster.rank("dense"), strict=True))
    return replace(block, cluster=np.array([clusters[name] for name in block.questions]) - 1)


def placed(chosen: pl.DataFrame, models: Sequence[str]) -> QuestionBlock:
    """Put rows of these models in their places; the first of several rows of a place stays."""
    ids = chosen["question_id"].cast(pl.String)
    questions = ids.unique(maintain_order=True)
    place = pl.DataFrame({"question_id": questions}).with_row_index("place")
    rows = pl.DataFrame({"question_id": ids}).join(
        place, on="question_id", how="left", maintain_order="left"
    )["place"]
    column = rows.to_numpy().astype(np.intp)
    number = {name: position for position, name in enumerate(models)}
    line = chosen["model"].cast(pl.String).replace_strict(number, return_dtype=pl.Int64).to_numpy()
    tables = []
    for name in ("confidence", "correct"):
        table = np.full((len(models), questions.len()), np.nan)
        values = chosen[name].to_numpy().astype(np.float64)
        table[line[::-1], column[::-1]] = values[::-1]
        tables.append(table)
    return QuestionBlock(tuple(models), questions.to_numpy().astype(str), *tables)


def deal_blocks(whole: QuestionBlock) -> Iterator[QuestionBlock]:
    """Yield the questions in blocks that fit into memory together with their resamples."""
    pieces = max(round(whole.size / BLOCK_QUESTIONS), 1)
    if pieces == 1:
        yield whole
        return
    # Dealt at random: blocks of neighbours in a sorted table would differ more than by chance.
    cluster = np.arange(whole.size) if whole.cluster is None else whole.cluster
    order = np.random.default_rng(whole.size).permutation(int(cluster.max()) + 1)
    place = np.argsort(order)[cluster]
    dealt = np.argsort(place, kind="stable")
    # A cluster stays together.
    first = np.flatnonzero(np.diff(place[dealt], prepend=-1))
    cuts = [part[0] for part in np.array_split(first, pieces)[1:]]
    for rows in np.split(dealt, cuts):
        yield whole.take(rows)


class Resamples(Struct, frozen=True):
    """(questions, 1 + resamples) counts; column 0 is the data itself."""

    counts: npt.NDArray[np.float32]

    def totals(self, weights: Floats) -> Floats:
        """Return the sums over questions of every row of weights, (rows, questions).

        Resamples are summed in single precision; the data itself, whose value is reported, in
        double precision.
        """
        sums = (weights.astype(np.float32) @ self.counts).astype(np.float64)
        sums[:, 0] = weights.sum(axis=1)
        return sums


def resample_counts(
    questions: int, resamples: int, rng: RngLike, cluster: Indices | None = None
) -> Resamples:
    """Draw multinomial counts for every resample; column 0 counts every question once.

    Questions of one cluster are drawn together.
    """
    generator = as_generator(rng)
    units = questions if cluster is None else int(cluster.max()) + 1
    counts = np.empty((questions, resamples + 1), dtype=np.float32)
    counts[:, 0] = 1
    for draw in range(1, resamples + 1):
        times = np.bincount(generator.integers(0, units, units), minlength=units)
        counts[:, draw] = times if cluster is None else times[cluster]
    return Resamples(counts)


# So many models are each held against the others.
_MOST_MODELS = 12


def question_clusters(
    scores: Scores,
    frame: pl.DataFrame,
    questions: Array,
    confidence: Floats,
    correct: Floats,
    skip: Collection[str] = (),
) -> Dependence | None:
    """Search questions on which models differ together.

    What several models get wrong together does not move their difference: each model is held
    against the mean of the others. Columns that hold several values of one question are of
    answers, and say nothing of questions.

    Parameters
    ----------
    scores
        The table.
    frame
        Rows of all models.
    questions
        The id of each question.
    confidence, correct
        Of each model and question, shape (models, questions); NaN where there is none.
    skip
        Columns that are not looked at.
    """
    if scores.drawn_from is not None or questions.size < LEAST_ROWS:
        return None
    question_rows = frame.with_columns(pl.col("question_id").cast(pl.String))
    place = pl.DataFrame({"question_id": questions.astype(str)})
    first = question_rows.unique("question_id", keep="first", maintain_order=True)
    rows = place.join(first, on="question_id", how="left", maintain_order="left")
    own = {*skip, *_of_answers(question_rows, rows)}
    rows = under_own_names(rows, scores.reading, scores.assumed)
    groupings = [*row_groupings(rows, own)]
    difference = _apart(confidence, correct)
    # Of two models one difference is all there is.
    models = np.unique(np.linspace(0, len(difference) - 1, _MOST_MODELS).astype(int)).tolist()
    models = models[:1] if len(difference) == 2 else models
    matches = Dependence(tested=tuple(each.kind for each in groupings))
    for model in models:
        nothing, share = np.zeros(questions.size), 1 / len(models)
        search = search_groups(nothing, difference[model], groupings, share=share)
        if search.inflation > matches.inflation:
            matches = search
    return matches


def _of_answers(frame: pl.DataFrame, rows: pl.DataFrame) -> set[str]:
    """Return the columns with several values for one question: they are of answers."""
    subset = frame.filter(pl.col("question_id").is_in(rows["question_id"].head(SAMPLE).implode()))
    names = [name for name, kind in subset.schema.items() if not kind.is_nested()]
    counts = subset.group_by("question_id").agg(pl.col(names).exclude("question_id").n_unique())
    return {name for name in counts.columns[1:] if int(str(counts[name].max())) > 1}


def _apart(confidence: Floats, correct: Floats) -> Floats:
    """Return how far each model is from the mean of the others, beyond what confidence says."""
    left = np.full(confidence.shape, np.nan)
    answers = np.isfinite(confidence) & np.isfinite(correct)
    # Questions that only one model has are harder or easier: beside them, it differs on all others.
    answers &= answers.sum(axis=0) > 1
    for model, (confidences, right) in enumerate(zip(confidence, correct, strict=True)):
        has = answers[model]
        if has.any():
            left[model, has] = CellResiduals.of_rows(confidences[has], right[has]).residual
    finite, notes = np.isfinite(left), np.nan_to_num(left)
    others = np.maximum(finite.sum(axis=0) - finite, 1)
    companion = (notes.sum(axis=0) - notes) / others
    return np.where(finite, notes - companion, 0.0)


# Rows that are put in their places at once; bounds what is held beside the table.
_SLICE = 4_000_000


class CandidateTable(Struct, frozen=True):
    """Every model's confidence in every model's answer; NaN where it was not asked.

    Parameters
    ----------
    confidence
        (judges, authors, questions): how sure the judge is that the author's answer is right.
    correct
        (authors, questions): the grade of the author's answer.
    identity
        (authors, questions): a number per distinct answer of a question, so that a candidate
        that several models named counts once.
    """

    confidence: Floats
    correct: Floats
    identity: Ints


def align_candidates(candidates: pl.DataFrame, block: QuestionBlock) -> CandidateTable:
    """Put judges and authors side by side on the questions of a block.

    Parameters
    ----------
    candidates
        Columns question_id, judge, author, confidence; and answer, where the same answer of two
        models is to count once.
    block
        The models; the grade of a candidate is the grade of its author's own answer.
    """
    models, questions = block.models, block.questions.tolist()
    confidence = np.full((len(models), len(models), len(questions)), np.nan)
    answers = np.repeat(np.arange(len(models))[:, None], len(questions), axis=1)
    targets = {"judge": models, "author": models, "question_id": questions}
    texts = [name for name in (*targets, "answer") if name in candidates.columns]
    table = candidates.with_columns(pl.col(texts).cast(pl.Categorical))
    places = [
        pl.col(name).cast(pl.Enum(values), strict=False).to_physical().cast(pl.Int64).fill_null(-1)
        for name, values in targets.items()
    ]
    # From the end to the start: of several scores for one place the first stays.
    for start in reversed(range(0, table.height, _SLICE)):
        part = table.slice(start, _SLICE)
        judge, author, question = (part.select(place).to_series().to_numpy() for place in places)
        scores = part["confidence"].to_numpy()
        usable = (judge >= 0) & (author >= 0) & (question >= 0) & ~np.isnan(scores)
        rows = np.flatnonzero(usable)[::-1]
        confidence[judge[rows], author[rows], question[rows]] = scores[rows]
        if "answer" in part.columns:
            codes = part["answer"].to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
            answers[author[rows], question[rows]] = codes[rows]
    confidence[:, np.isnan(block.correct)] = np.nan
    # The first author who gave the same answer.
    identity = np.argmax(answers[:, None, :] == answers[None, :, :], axis=1)
    return CandidateTable(confidence, block.correct, identity)
