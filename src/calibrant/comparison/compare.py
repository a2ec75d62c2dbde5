"""Compare models that answered the same questions: every model, every pair, every view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from msgspec import Struct
from threadpoolctl import threadpool_limits

from calibrant.comparison import entries, pipeline, questions
from calibrant.comparison.decision import MARGIN, missing_questions
from calibrant.comparison.evidence import PairEvidence, described_gaps, pair_evidences
from calibrant.comparison.footings import TARGETS, SharedViews
from calibrant.comparison.league import decide_document, document_claims, league_row
from calibrant.comparison.reversal import summary_of_pairs
from calibrant.comparison.survey import AnswerCounts
from calibrant.core.arrays import RngLike, as_generator
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.findings.claims.compare import LEAST_QUESTIONS

__all__ = ["LEAST_QUESTIONS", "Pool", "TableReader", "Watch", "compare_models", "compare_parts"]


# Is told what is being done, how much of it is done, and of how much.
Watch: TypeAlias = Callable[[str, int, int], None]


class Pool(Struct, frozen=True):
    """Candidates of a comparison in memory, and the resamples of its questions."""

    candidates: questions.CandidateTable
    resamples: questions.Resamples


class ComparedModels(Struct):
    """One comparison while its pairs come in, by the numbers of their models."""

    models: Sequence[str]
    survey: AnswerCounts
    pool: Pool | None
    options: pipeline.ComparisonOptions
    results: list[dict[str, Any]] = []
    league: list[dict[str, Any]] = []
    pairs: dict[tuple[int, int], tuple[dict[str, Any], PairEvidence]] = {}

    def take_model(self, number: int, footings: SharedViews) -> None:
        """Add what is seen of a model by itself; models come in their order."""
        name, level = self.models[number], self.options["level"]
        verdicts = self._judged(number, range(len(self.models)))
        self.results.append(
            entries.result_entry(number, name, footings, self.survey, verdicts, level)
        )
        self.league.append(league_row(number, name, footings, self.survey, level))

    def take(self, pairs: Sequence[pipeline.PairViews]) -> None:
        """Add some pairs."""
        survey = self.survey
        evidence = pair_evidences(pairs, survey, margin=self.options["margin"])
        for pair, display, gaps in zip(pairs, evidence, described_gaps(pairs), strict=True):
            few = pair.first.n < LEAST_QUESTIONS
            # No interval and no test: the values stay, and the sentence says why there is no more.
            display = display.without_tests() if few else display
            sides = pair.a, pair.b
            verdicts = self._judged(pair.a, sides), self._judged(pair.b, sides)
            entry = entries.pair_entry(
                pair, self.models, display, gaps, verdicts, survey, self.options
            )
            self.pairs[sides] = entries.untested_entry(entry) if few else entry, display

    def _judged(self, judge: int, members: Sequence[int]) -> entries.CandidateViews | None:
        if self.pool is None:
            return None
        candidates, resamples = self.pool.candidates, self.pool.resamples
        return entries.candidate_views(
            candidates, resamples, judge, members, bins=self.options["bins"]
        )

    def document(self) -> dict[str, Any]:
        """Return the entries of the comparison; pairs in the order of the models."""
        ordered = [self.pairs[sides] for sides in sorted(self.pairs)]
        pairs = [pair for pair, _ in ordered]
        models, survey, pool, level = self.models, self.survey, self.pool, self.options["level"]
        counts = {"questions": survey.questions, "questions_shared_by_all": survey.complete}
        return {
            **counts,
            "left_out": {name: int(n) for name, n in zip(models, survey.alone, strict=True)},
            "missing": missing_questions(survey, models, level=level),
            "results": self.results,
            "league": {**counts, "rows": self.league},
            "pairs": pairs,
            "evidence": [visible for _, visible in ordered],
            "summary": summary_of_pairs([pair for pair in pairs if pair["n"] >= LEAST_QUESTIONS]),
            "self_preference": []
            if pool is None
            else entries.self_preference(pool.candidates, models, pool.resamples, level=level),
        }


def compare_parts(
    read: pipeline.BlockReader,
    parts: int,
    models: Sequence[Sequence[str]],
    *,
    options: pipeline.ComparisonOptions,
    pools: dict[int, Pool] | None = None,
    each: pipeline.Each = map,
    watch: Watch | None = None,
) -> list[dict[str, Any] | InputError]:
    """Compare the models of several comparisons whose questions come in parts.

    Parameters
    ----------
    read, parts
        The questions; one part where they are in memory.
    models
        Names of the models of every comparison.
    options
        bins, target, level, resamples, lipschitz, margin.
    pools
        Candidates by comparison.
    each
        Maps a function over tasks in order.
    watch
        Is told how many models of how many are done.

    Returns
    -------
    list
        Per comparison its entries (see `ComparedModels.document`), or why there are none.
    """
    target = options["target"]
    if isinstance(target, str) and target not in TARGETS:
        raise InputError(f"target is {', '.join(TARGETS)} or a number, got {target!r}")
    # One thread per product, for all of it: a limit that one task lifts would be lifted for the
    # others, and the threads of the linear algebra library would fight over cores.
    with threadpool_limits(1):
        surveyed = pipeline.surveys(read, parts, resamples=options["resamples"], each=each)
        refused = {
            place: _refusal(surveyed.get(place), names) for place, names in enumerate(models)
        }
        sound = {number: survey for number, survey in surveyed.items() if refused[number] is None}
        compared = {
            number: ComparedModels(models[number], survey, (pools or {}).get(number), options)
            for number, survey in sound.items()
        }
        total = sum(len(models[number]) for number in sound)
        views = pipeline.pair_views(read, parts, sound, options, each)
        for finished, (number, model, footings, pairs) in enumerate(views, start=1):
            if watch is not None:
                watch("models compared", finished, total)
            compared[number].take_model(model, footings)
            if pairs:
                compared[number].take(pairs)
        return [refused[number] or compared[number].document() for number in range(len(models))]


def _refusal(survey: AnswerCounts | None, models: Sequence[str]) -> InputError | None:
    """Return why these models cannot be compared, or None."""
    pairs = np.triu_indices(len(models), 1)
    most = 0 if survey is None else int(survey.both[:, :, 0][pairs].max())
    if survey is None or not most:
        sizes = np.zeros(len(models)) if survey is None else survey.moments[:, 0]
        counts = ", ".join(f"{name} {int(n):,}" for name, n in zip(models, sizes, strict=True))
        return InputError(
            f"the models have no question in common (rows: {counts})",
            hint=Hint(
                "compare fewer models, or check that {question} names the same ids in all tables"
            ),
        )
    for number, name in enumerate(models):
        accuracy = float(survey.accuracy(number, number)[0])
        if not 0 < accuracy < 1:
            return InputError(
                f"{name} has accuracy {accuracy:g}: models are brought to a common accuracy, which "
                "needs both right and wrong answers of every model",
                hint=Hint("leave this model out with {models}, or use more questions")
                if len(models) > 2
                else "use more questions, or compare with another model",
            )
    if most < LEAST_QUESTIONS:
        return InputError(
            f"the models share {most} question{'s' * (most != 1)}; an interval needs at least "
            f"{LEAST_QUESTIONS}: with fewer it would exclude the truth too often",
            hint="add questions that both models answered",
        )
    return None


class TableReader:
    """Questions in memory, a block list per comparison.

    Parameters
    ----------
    wholes
        The questions of every comparison.
    streams
        Per comparison: gives the generator of its resamples anew.
    """

    def __init__(
        self,
        wholes: Sequence[questions.QuestionBlock],
        streams: Sequence[Callable[[], np.random.Generator]],
    ) -> None:
        self.wholes = list(wholes)
        self.kept = all(whole.size <= questions.BLOCK_QUESTIONS for whole in wholes)
        self.blocks = [
            pipeline.Questions(number, block, partial(_nth, stream, place), keep=self.kept)
            for number, (whole, stream) in enumerate(zip(wholes, streams, strict=True))
            for place, block in enumerate(questions.deal_blocks(whole))
        ]

    def __call__(self, part: int) -> list[pipeline.Questions]:  # noqa: ARG002 - there is one part
        """Return all blocks."""
        return self.blocks

    def pool(self, comparison: int, candidates: pl.DataFrame, resamples: int) -> Pool:
        """Return the candidates of a comparison beside its resamples."""
        whole = self.wholes[comparison]
        (block, *more) = [item for item in self.blocks if item.comparison == comparison]
        if more:
            raise InputError(
                f"candidates are compared on up to {questions.BLOCK_QUESTIONS:,} questions, "
                f"got {whole.size:,}"
            )
        return Pool(questions.align_candidates(candidates, whole), block.resamples(resamples))


def _nth(stream: Callable[[], np.random.Generator], place: int) -> np.random.Generator:
    """Return the generator of one block: the first has the stream itself."""
    generator = stream()
    return generator if not place else generator.spawn(place)[-1]


def compare_models(
    scores: pl.DataFrame,
    *,
    models: Sequence[str] | None = None,
    candidates: pl.DataFrame | None = None,
    bins: int = 15,
    target: str | float = "weakest",
    level: float = 0.95,
    resamples: int = 1000,
    lipschitz: float = 1.0,
    margin: float = MARGIN,
    rng: RngLike = 0,
) -> dict[str, Any]:
    """Compare models that answered the same questions, for one confidence method.

    Parameters
    ----------
    scores
        Columns question_id, model, confidence, correct. Every pair is compared on the questions
        that both models have.
    models
        Which models; None takes all.
    candidates
        Columns question_id, judge, author, confidence (and answer), for the candidate-aligned
        view; None leaves that view out.
    bins
        Equal-width bins of the ECE in the views of the literature.
    target
        Common accuracy of the distribution-aligned view: ``"weakest"``, ``"strongest"``,
        ``"mean"`` or a number.
    level, resamples, rng
        Paired bootstrap over questions.
    lipschitz
        Lipschitz constant behind the verification floor, which is shown and decides nothing.
    margin
        Differences of calibration errors below it do not matter.

    Returns
    -------
    dict
        ``questions``, ``missing``, ``results`` per model, ``league``, ``pairs`` with their
        verdicts, ``summary``, ``multiplicity``, ``claims``, ``self_preference``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.beta(4, 2, 600)
    >>> right = (rng.random(600) < chance).astype(float)
    >>> table = pl.DataFrame(
    ...     {
    ...         "question_id": np.tile(np.arange(600), 2),
    ...         "model": np.repeat(["honest", "loud"], 600),
    ...         "confidence": np.concatenate([chance, chance**0.2]),
    ...         "correct": np.tile(right, 2),
    ...     }
    ... )
    >>> compare_models(table, resamples=200)["pairs"][0]["winner"]
    'honest'
    """
    options = pipeline.ComparisonOptions(
        bins=bins,
        target=target,
        level=level,
        resamples=resamples,
        lipschitz=lipschitz,
        margin=margin,
    )
    whole = questions.align_models(scores, models)
    # Drawn from once, so that the resamples can be drawn again from a seed of their own.
    seed = int(as_generator(rng).integers(2**63))
    read = TableReader([whole], [partial(np.random.default_rng, seed)])
    pools = {} if candidates is None else {0: read.pool(0, candidates, resamples)}
    (document,) = compare_parts(read, 1, [whole.models], options=options, pools=pools)
    if isinstance(document, InputError):
        raise document
    part = {"keys": {"method": None, "group": None}, **document}
    rule = decide_document([part], level=level, margin=margin)
    claims = document_claims([part], level=level)
    part = {name: value for name, value in part.items() if name not in ("told", "sentences")}
    return {**part, "multiplicity": rule, "claims": claims}
