"""`audit`: is this confidence calibrated, and how sure can we be?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Unpack

from calibrant.core import shared_options as opt
from calibrant.core.errors import NoConfidenceError
from calibrant.core.verb import Option, verb
from calibrant.data.sources.options import AuditOptions, ReadingOptions
from calibrant.verbs.opening.choose_source import open_audit

if TYPE_CHECKING:
    from calibrant.report.result import AccuracyResult, AuditResult


@verb(
    example="calibrant audit scores.csv --by domain --html audit.html",
    outputs=("json", "html", "fail_if", "allow_undecided", "junit"),
    shared=opt.TABLE,
)
def audit(
    data: opt.Data,
    correct: opt.OutcomesOrColumn = None,
    *,
    weights: Annotated[str | None, opt.column()] = None,
    labels: opt.LabelStoreFile = None,
    samples: opt.SampleColumn = None,
    reference: opt.ReferenceColumn = None,
    references: opt.ReferencesFile = None,
    judge: opt.JudgeModel = None,
    judge_url: opt.JudgeUrl = None,
    max_judge_calls: opt.MostJudgeCalls = None,
    by: opt.By = (),
    bins: Annotated[int | None, Option(metavar="N", min=1, max=100000)] = None,
    level: opt.Level = 0.95,
    resamples: opt.Resamples = 1000,
    margin: opt.Margin = 0.02,
    recalibrate: Annotated[str | None, Option(metavar="NAME")] = None,
    metrics: Annotated[Sequence[str], Option(metavar="A,B,..", kind="names")] = (),
    graded: opt.Graded = False,
    classwise: Annotated[bool, Option()] = False,
    unlimited_draws: Annotated[bool, Option()] = False,
    label: Annotated[str, opt.advanced(choices=("split", "pool"))] = "split",
    engine: opt.Engine = None,
    wrong: opt.WrongRows = 0,
    seed: opt.Seed = 0,
    **table: Unpack[opt.RowOptions],
) -> AuditResult | AccuracyResult:
    """Audit confidences against outcomes.

    Parameters
    ----------
    data
        An array of confidences (then `correct` is the array of outcomes), a scores table (path,
        dataframe, list of dictionaries or data set), ``-`` for standard input, a study folder, or
        a foreign log (Inspect, lm-eval, ..) or a folder of them.
    correct
        Array of outcomes, or the name of their column.
    weights
        Column of row weights.
    labels
        Store of labels that people made of this pool (`label serve`); by default the one beside
        the table, unless the table has all outcomes. Each label counts with the weight of its
        draw; outcomes in the table itself are then left out.
    samples, reference, references
        For sampled answers that nobody has clustered or graded: the column of answers, the
        column of the right answer or a file of questions with theirs. Answers that mean the same
        are put together and graded, every method that the columns allow is scored, and the
        calibration over meanings (Sem-ECE) is added. Naming one of the three is enough; the
        document says under ``samples`` which columns were guessed.
    judge, judge_url, max_judge_calls
        Model that judges what rules leave open when samples are clustered and graded, where it
        is reached, and how often it may be asked. Its replies are kept beside the input.
    by
        Columns that split each (model, method) into groups with blocks of their own.
    bins
        Equal-width bins of the calibration error: 15, and 10 for Sem-ECE.
    level
        Coverage of the intervals.
    resamples
        Bootstrap resamples behind them.
    margin
        Calibration errors and mean gaps below it do not matter: two percentage points.
    recalibrate
        Recalibrate first, cross-fitted: mend, temperature, platt, isotonic, beta,
        histogram.

        Each (model, method) for itself. Needed for scores that are not probabilities.
    metrics
        Add metrics by name: rms_calibration_error, mce, adaptive_ece, ks_calibration_error,
        log_loss_calibration, log_loss_refinement.

        They stand under ``named_metrics`` of each block. Beside each
        stands what a perfectly calibrated model would show on as many rows.
    graded
        Outcomes may lie between 0 and 1.
    classwise
        Audit the probability of each class of `probs`, not only of the highest.

        Every answer has one row per class; tests are between answers and corrected over classes.
    unlimited_draws
        Add a model-based estimate of Sem-ECE with unlimited draws.

        See `calibrant.metrics.semantic.unlimited_draws_ece`.
    label
        What Sem2 answers for: the meaning that each split selects, or the mode of all draws.

        ``pool`` is what the authors' published code grades; see `calibrant.metrics.sem_ece`.
    engine
        Read the table in parts and never whole: ``local`` (threads), ``ray`` or
        ``ray://HOST:PORT``. By default a table of more than five million rows is streamed by
        ``local`` and a smaller one is read into memory; the document says which under
        ``reading``.
    wrong
        List so many answers that are wrong with the highest confidence, under ``wrong``.
    seed
        The same input and seed give the same file.
    **table
        How the table is read, see `calibrant.data.load_scores`. A study, where refusals and
        unreadable confidences are part of the record, leaves out and counts all rows that break
        a rule.

    Returns
    -------
    AuditResult or AccuracyResult
        Document ``calibrant.audit/1``; where there are grades and no confidence
        ``calibrant.accuracy/1``: shares right, and differences between models.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1.0, 500)
    >>> correct = rng.random(500) < confidence - 0.2
    >>> block = audit(confidence, correct)["results"][0]
    >>> block["n"], round(block["metrics"]["brier"]["value"], 2)
    (500, 0.24)
    """
    outcomes = correct if isinstance(correct, str) else None
    if classwise:
        from calibrant.verbs.classes import classwise_result

        more = {"bins": bins, "level": level, "resamples": resamples, "margin": margin}
        return classwise_result(audit, data, {**table, "correct": outcomes}, seed=seed, **more)
    named_metrics: tuple[str, ...] = ()
    if metrics:
        # Loaded here: most audits add none.
        from calibrant.metrics.blocks.row_block import check_named

        named_metrics = check_named(metrics)
    options = AuditOptions(
        table=ReadingOptions(**table, correct=outcomes, weights=weights, graded=graded),
        by=tuple(by),
        bins=15 if bins is None else bins,
        meaning_bins=10 if bins is None else bins,
        unlimited_draws=unlimited_draws,
        label=label,
        named_metrics=named_metrics,
        labels=labels,
        level=level,
        resamples=resamples,
        recalibrate=recalibrate,
        engine=engine,
        seed=seed,
    )
    request = None
    if any(value is not None for value in (samples, reference, references)):
        # Loaded here: most audits are of confidences that are there.
        from calibrant.answers.graded_samples import JudgeChoice, SampleRequest
        from calibrant.answers.samples import SampleColumns

        columns = SampleColumns(samples, reference, table["question"], table["model"], outcomes)
        choice = None if judge is None else JudgeChoice(judge, judge_url, max_judge_calls)
        request = SampleRequest(columns, references, choice)
    try:
        source = open_audit(data, correct, options, request)
    except NoConfidenceError as error:
        if weights or labels or recalibrate or metrics or correct is not outcomes:
            raise
        from calibrant.verbs.accuracy import accuracy_document

        about = {**table, "correct": outcomes}
        return accuracy_document(data, about, error, by=by, level=level)
    # Loaded here: the parts of a large table are read first, and reading needs none of it.
    from calibrant.verbs.score_documents import audit_document, with_rows

    result = audit_document(source, options, margin)
    if correct is not outcomes:
        data = {"confidence": data, "correct": correct}
    return with_rows(result, data, {**table, "correct": outcomes}, wrong)
