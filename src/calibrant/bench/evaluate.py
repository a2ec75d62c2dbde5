"""`bench evaluate`: confidence by number of right answers, and on mixes of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
import polars as pl
from msgspec import structs

from calibrant.answers.confidence import METHODS, DrawTable, class_mass, compact_table, score_table
from calibrant.bench.evaluation_claims import evaluation_claims, loss_warnings, method_losses
from calibrant.bench.macro import knowledge_coverage
from calibrant.bench.multi_answer import evaluate_multi_answer
from calibrant.bench.thresholds import mass_histogram, tune_aggregation
from calibrant.core import shared_options as opt
from calibrant.core.document import plain
from calibrant.core.errors import InputError, did_you_mean, error_source, require_known
from calibrant.core.hints import Hint
from calibrant.core.names import PAPER, ranking_methods
from calibrant.core.verb import Option, verb
from calibrant.data import Scores, Study, load_scores, read_table, source_name
from calibrant.data.formats import is_study
from calibrant.data.sources.input import document_head
from calibrant.data.sources.options import table_settings
from calibrant.findings.claims import joined
from calibrant.findings.claims.margins import COMPARISON_MARGIN
from calibrant.findings.documents.fields import typed
from calibrant.metrics.inputs import is_graded
from calibrant.report.result import MultiAnswerResult

_TUNED = ("sca", "snca", "sfca")
_REFERENCE = "sca"
_QUESTION_COLUMNS = ("question_id", "k", "domain", "subtype")


@verb(example="calibrant bench evaluate scores.csv --reference consistency", shared=opt.TABLE)
def bench_evaluate(
    data: Annotated[Any, opt.source(metavar="SCORES", argument=True)],
    *,
    questions: Annotated[Any, opt.source(metavar="PATH")] = None,
    draws: Annotated[Any, opt.source(metavar="PATH")] = None,
    mixes: Sequence[Sequence[int]] | None = None,
    reference: Annotated[str | None, Option(metavar="NAME")] = None,
    tune: Annotated[Sequence[str], Option(metavar="A,B,..")] = _TUNED,
    tau_grid: Annotated[Sequence[float], opt.advanced(metavar="A,B,..", kind="numbers")] = (),
    about: opt.About = None,
    variant: opt.Variant = None,
    tau: opt.Tau = None,
    similarity: opt.Similarity = None,
    coverage_mass: Annotated[
        str, opt.advanced(choices=("frequency", "probability", "draws"))
    ] = "frequency",
    coverage_threshold: Annotated[float, opt.advanced(metavar="SHARE", min=0, max=1)] = 0.1,
    resamples: Annotated[int, opt.advanced(metavar="N", min=2, max=1_000_000)] = 1_000,
    items: Annotated[int, opt.advanced(metavar="N", min=2, max=1_000_000)] = 1_000,
    margin: opt.Margin = COMPARISON_MARGIN,
    level: opt.Level = 0.95,
    seed: opt.Seed = 0,
    **table: Unpack[opt.TableOptions],
) -> MultiAnswerResult:
    """Evaluate confidences on questions with one and with several right answers.

    Parameters
    ----------
    data
        Scores with k and domain, or a study folder.

        ``subtype`` is used where scores have it.
    questions
        Questions, where scores lack k and domain.

        Table with ``k``, ``domain`` and ``subtype`` by ``question_id``.
    draws
        Draws with class_id, for coverage and tau.

        With log-probs where there are some; a study has its own.
    mixes
        Numbers of right answers to pool; None: [1], [1, 2], .. of those present.
    reference
        Method that others are tested against; sca by default.

        Where the table has it.
    tune
        Methods whose threshold is tuned; '' for none.

        On a fifth of the questions.
    tau_grid
        Thresholds to try; by default such that fit the masses.

        These are quantiles of the masses for sca, and shares up to 0.5 for snca and sfca.
    about, variant, tau, similarity
        Score the draws again with these choices, instead of taking the scores as they are (see
        `calibrant.answers.confidence.Options`); only methods that the draws allow are then
        evaluated.
    coverage_mass
        Mass of a known answer.
    coverage_threshold
        Mass from which on an answer is known.

        The mass is the share of the draws (``frequency``), or the summed probability of its texts,
        each counted once (``probability``) or as often as it was drawn (``draws``, as in the
        paper).
    resamples
        Draws of the test.
    items
        Questions in each draw of the test.
    margin
        Differences below it do not matter: of AUROC, and of the gap between confidence and
        accuracy.
    level
        Coverage of the intervals.
    seed
        The same seed gives the same document.
    **table
        How the scores are read, see `calibrant.data.load_scores`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> right = rng.random(200) < 0.6
    >>> table = {"question_id": np.arange(200), "method": ["consistency"] * 200,
    ...          "confidence": np.where(right, 0.8, 0.4), "correct": right,
    ...          "k": [1, 2] * 100, "domain": ["award"] * 200}
    >>> result = bench_evaluate(table)
    >>> result["mixes"], result["results"][0]["mixes"][1]["auroc"]["value"]
    ([[1], [1, 2]], 1.0)
    """
    tune = _tuned_methods(tune)
    study = Study(data) if isinstance(data, str | Path) and is_study(data) else None
    with error_source(source_name(data)):
        scores = _scores(study.read("scores") if study else data, questions, _rows(table, study))
    with error_source(source_name(data if study else draws)):
        sample = _draw_table(study, draws)
    scoring = {"about": about, "variant": variant, "tau": tau, "similarity": similarity}
    frame, unscored = _rescored(scores.frame, sample, scoring)
    missing = method_losses(frame, scores.rejected if unscored is None else unscored)
    if reference is not None:
        rule = "{reference} is a method of the table, got {0}"
        _require_methods([reference], sorted(set(frame["method"])), rule)
    coverage = _coverage(sample, coverage_mass, coverage_threshold) if sample is not None else None
    document = evaluate_multi_answer(
        frame,
        mixes=mixes,
        reference=reference or _REFERENCE,
        ranking_methods=ranking_methods(),
        incomplete=[(loss.model, loss.method) for loss in missing if not loss.compared],
        coverage=coverage,
        draws=resamples,
        items=items,
        level=level,
        seed=seed,
    )
    settings = {"resamples": resamples, "items": items, "level": level, "tune": list(tune),
                "margin": margin, "scoring": scoring, **table_settings(table)}  # fmt: skip
    values = [data, *(item for item in (questions, draws) if item is not None)]
    settings["graded"] = study is None and is_graded(frame["correct"].cast(pl.Float64).to_numpy())
    document = {**document_head("multi_answer", values, seed=seed, settings=settings), **document}
    document["reading"] = scores.reading.to_dict()
    document["dropped"] = dict(scores.dropped)
    document["losses"] = [structs.asdict(loss) for loss in missing]
    out = sum(loss.left_out for loss in missing)
    rows = {"rows_read": frame.height + out, "rows": frame.height}
    document["data"] = {**rows, "warnings": loss_warnings(missing)}
    document["coverage_rule"] = {"mass": coverage_mass, "threshold": coverage_threshold}
    document |= {"tuning": [], "masses": [] if sample is None else mass_histogram(sample)}
    if sample is not None and tune:
        question_rows = frame.select("question_id", "k", "domain").unique()
        document["tuning"] = tune_aggregation(
            sample, question_rows, methods=tune, grid=tau_grid or None, level=level, seed=seed
        )
    document["claims"] = [c.to_dict() for c in evaluation_claims(typed(plain(document)), margin)]
    return MultiAnswerResult(document)


def _tuned_methods(names: str | Sequence[str]) -> list[str]:
    """Return the methods to tune, from a list separated by commas too."""
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",")] if names else []
    if not all(names):
        rule = "{tune} is a list of names separated by commas, got {0}"
        raise InputError(Hint(rule, repr(",".join(names))))
    _require_methods(names, list(METHODS), "{tune} names confidence methods, got {0}")
    return list(names)


def _require_methods(names: Sequence[str], choices: list[str], rule: str) -> None:
    for name in names:
        if name not in choices:
            raise InputError(Hint(rule, repr(name)), hint=did_you_mean(name, choices))


def _rows(table: Mapping[str, Any], study: Study | None) -> dict[str, Any]:
    """Return how rows are read: grades may be shares, and a study leaves out what it lacks."""
    on_invalid = table.get("on_invalid") or ("drop" if study else None)
    return {**table, "on_invalid": on_invalid, "graded": True}


def _scores(data: Any, questions: Any, table: Mapping[str, Any]) -> Scores:
    frame = read_table(data)
    if questions is not None:
        question_rows = _questions(questions)
        columns = [c for c in _QUESTION_COLUMNS if c in question_rows.columns]
        extra = [c for c in columns if c == "question_id" or c not in frame.columns]
        frame = frame.join(question_rows.select(extra), on="question_id", how="left")
    _require_filled(frame, questions)
    k = frame["k"]
    numbers = k.cast(pl.String).str.strip_chars().cast(pl.Int32, strict=False)
    wrong = numbers.is_null() | (numbers < 1)
    if wrong.any():
        row = int(wrong.arg_true()[0])
        raise InputError(
            f"the number of right answers k is a whole number from 1, got {k[row]!r}", row=row + 1
        )
    frame = frame.with_columns(numbers.cast(pl.Int64))
    return load_scores(frame, **table, non_probability=ranking_methods())


def _require_filled(frame: pl.DataFrame, questions: Any) -> None:
    """Refuse scores of which nobody says how many right answers a question has, and where."""
    missing = [column for column in ("k", "domain") if column not in frame.columns]
    if missing:
        kind = "column" if len(missing) == 1 else "columns"
        are = "is" if len(missing) == 1 else "are"
        lacking, where = f"{are} no {kind} {joined([repr(name) for name in missing])}", "the scores"
        hint = Hint("give the questions with {questions}, or join them to the scores")
        if questions is not None:
            where = f"the scores and the questions ({source_name(questions)})"
            hint = Hint("add what is missing to the questions")
        raise InputError(f"there {lacking} in {where}", hint=hint)
    empty = frame.select(pl.any_horizontal(pl.col("k", "domain").is_null()).alias("empty"))["empty"]
    if empty.any():
        row = int(empty.arg_true()[0])
        unfilled = [repr(column) for column in ("k", "domain") if frame[column][row] is None]
        name = frame["question_id"][row] if "question_id" in frame.columns else row + 1
        raise InputError(
            f"the question {name!r} has no {joined(unfilled)}",
            row=row + 1,
            hint=Hint("give every question a row with both, in the scores or with {questions}"),
        )


def _questions(source: Any) -> pl.DataFrame:
    """Read the questions, one row per id: a second one would double the scores of the first."""
    questions = read_table(source)
    rule = "there is no column {} in the questions"
    require_known(["question_id"], questions.columns, rule, source=source_name(source))
    again = questions["question_id"].is_duplicated()
    if again.any():
        row = int(again.arg_true()[1]) + 1
        raise InputError(
            f"the question {questions['question_id'][row - 1]!r} appears more than once",
            source=source_name(source),
            row=row,
            hint="give a table with one row per question",
        )
    return questions


def _draw_table(study: Study | None, draws: Any) -> DrawTable | None:
    if study is not None and study.has("draws") and study.has("semantics"):
        return compact_table(study.read("draws"), study.read("semantics"))
    if draws is None:
        return None
    frame = read_table(draws)
    if "class_id" not in frame.columns:
        raise InputError(
            f"draws need a column class_id (the meaning of each), got {', '.join(frame.columns)}"
        )
    return compact_table(frame)


def _rescored(
    frame: pl.DataFrame, table: DrawTable | None, scoring: Mapping[str, Any]
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Score the draws again where a choice was made, and return what then has no score or grade.

    Without a choice the scores stay as they are; the rows that lack something were left out.
    """
    choice = {name: value for name, value in scoring.items() if value is not None}
    if not choice:
        return frame, None
    if table is None:
        rule = "{" + next(iter(choice)) + "} is about how draws are scored, and there are none"
        raise InputError(Hint(rule), hint=Hint("give a study folder, or draws with {draws}"))
    names = [name for name in frame["method"].unique(maintain_order=True) if name in METHODS]
    columns = [c for c in _QUESTION_COLUMNS if c in frame.columns]
    scored = score_table(table, methods=names, **choice).scores
    # One variant for all: the settings name it, the methods keep their names.
    scored = scored.with_columns(pl.col("method").str.strip_suffix(PAPER))
    question_rows = scored.join(
        frame.select(columns).unique(), on="question_id", maintain_order="left"
    )
    unscored = pl.col("confidence").is_null() | pl.col("correct").is_null()
    reason = pl.when(pl.col("confidence").is_null()).then(pl.lit("confidence_missing"))
    reason_or_grade = reason.otherwise(pl.lit("correct_missing"))
    left_out = question_rows.filter(unscored).with_columns(reason_or_grade.alias("rule"))
    return question_rows.filter(~unscored), left_out


def _coverage(table: DrawTable, mass: str, threshold: float) -> pl.DataFrame:
    block = table.samples
    classes = block.classes
    if mass == "frequency":
        units, counts = knowledge_coverage(block.unit, block.class_id, threshold=threshold)
    else:
        meanings = np.where(classes.answered, np.arange(classes.unit.size), -1)
        masses = class_mass(block, distinct=mass == "probability")
        units, counts = knowledge_coverage(classes.unit, meanings, masses, threshold=threshold)
    question, model = table.question_id.gather(units), table.model.gather(units)
    return pl.DataFrame({"question_id": question, "model": model, "coverage": counts})
