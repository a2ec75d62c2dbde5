"""`plan`: how many labels does a claim need, and what do these labels show?"""

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Unpack

from calibrant.core import shared_options as opt
from calibrant.core.errors import InputError, error_source
from calibrant.core.hints import Hint
from calibrant.core.verb import Option, verb
from calibrant.data import source_name
from calibrant.data.sources.input import document_head, recorded
from calibrant.data.sources.options import table_settings
from calibrant.findings.claims.labels import leaderboard_claims, plan_claims
from calibrant.findings.documents.fields import typed
from calibrant.labels import Goal, plan_document
from calibrant.labels.claim_plan import claim_entries, parse_claim
from calibrant.labels.published import published_scores
from calibrant.labels.theory import Theory, grouping_floor, theory_document
from calibrant.report.result import PlanResult
from calibrant.verbs import plan_table

_LEAST_SHARE = 1e-9
_STEEPEST = 1e6


@verb(example="calibrant plan --precision 0.05 --error-rate 0.2", shared=opt.TABLE)
def plan(
    scores: Annotated[Any, opt.inputs(metavar="[TABLE..]")] = None,
    *,
    samples: opt.SampleColumn = None,
    reference: opt.ReferenceColumn = None,
    claim: Annotated[str | None, Option(metavar="CLAIM")] = None,
    power: Annotated[float, opt.share()] = 0.8,
    target: Annotated[str, Option(choices=("pool", "population"))] = "pool",
    by: opt.By = (),
    precision: Annotated[float | None, Option(metavar="D", max=1)] = None,
    labels: Annotated[int | None, Option(metavar="M")] = None,
    error_rate: Annotated[float | None, Option(metavar="E")] = None,
    lipschitz: Annotated[float | None, Option(metavar="L", max=1000000.0)] = None,
    lipschitz_rule: Annotated[str, opt.advanced(choices=("default", "paper"))] = "default",
    model_count: Annotated[int, Option(metavar="N")] = 1,
    groups: Annotated[int, Option(metavar="N")] = 1,
    smallest_share: Annotated[float, Option(metavar="PI", min=_LEAST_SHARE, max=1)] = 1.0,
    stages: Annotated[str | Sequence[float], opt.advanced(metavar="L,L,..")] = (),
    preset: Annotated[str | None, Option(metavar="NAME")] = None,
    drift: Annotated[float | None, Option(metavar="RATE", max=1000000.0)] = None,
    per: Annotated[str, Option(metavar="UNIT")] = "month",
    start: Annotated[dt.date | str | None, Option(metavar="DATE", kind="date")] = None,
    rank: Annotated[str | None, Option(metavar="METRIC")] = None,
    published: Annotated[Any, Option(metavar="A,B,..|TABLE")] = (),
    growth: Annotated[float | None, opt.advanced(metavar="X")] = None,
    size: Annotated[float | None, opt.advanced(metavar="N", needs="growth")] = None,
    decay: Annotated[float | None, opt.advanced(metavar="X")] = None,
    label_rate: Annotated[float | None, opt.advanced(metavar="R", needs="decay")] = None,
    transfer: Annotated[float | None, opt.advanced(metavar="D")] = None,
    correlation: Annotated[float | None, opt.advanced(metavar="R", min=0, below=1)] = None,
    perturbed_error: Annotated[float | None, opt.advanced(metavar="E", min=0, max=1)] = None,
    rounds: Annotated[Sequence[float], opt.advanced(metavar="ECE,G", kind="numbers")] = (),
    two_phase: Annotated[bool, opt.advanced()] = False,
    grouping_loss: Annotated[float | None, opt.advanced(metavar="X", max=0.25)] = None,
    seed: opt.Seed = 0,
    **table: Unpack[opt.TableOptions],
) -> PlanResult:
    """Plan labels: for a claim about a pool, for a precision, or from labels at hand.

    Parameters
    ----------
    scores
        Scores to measure error rate and steepness on.

        A pool: scores with or without outcomes. With `claim` or `labels` the plan is simulated
        from its confidences. Where it has outcomes, error rate and steepness are measured.
    samples, reference
        Columns of sampled answers of two models or more, and of the right answer.

        Then: how many questions, with how many draws each, show that two models differ by meaning
        (see `calibrant.labels.meaning_plan`); with `precision`, that they differ by so much.
    claim
        The claim to be shown about TABLE, such as 'ece<0.05'.
    power
        Chance of showing the claim.

        The plan tells the labels for one look and for looking all the time, if the model is
        calibrated and if its error is half the threshold.
    target
        What a claim is about: this pool, or all answers like it.

        ``pool``: the claim is about these rows, as in `label`. ``population``: about all answers
        like them, as in `audit`; that takes more labels.
    by
        Columns whose values are planned for one by one; with `rank`, ranked one by one.
    precision
        Precision of the calibration error wanted.
    labels
        Labels at hand: what do they show?
    error_rate
        Share of wrong answers.
    lipschitz
        Steepness of the gap; 1 if not measured.

        Where it is not measured it is 1, as in published tables.
    lipschitz_rule
        Measure the steepness as usual, or as the paper's own script does.

        ``paper``: bins of 10 labels, or of 1 % of them, in place of 30; see
        `calibrant.labels.published_steepness`.
    model_count
        2 for a comparison of two models.
    groups
        Groups that must each be verified.
    smallest_share
        Share of the smallest group.
    stages
        Steepness of a pipeline's stages, inf if jumpy; 'measured': the models of TABLE are its
        stages.

        ``"2,2"`` for two.
    preset
        Settings of a rule book: eu-ai-act, nist-ai-rmf or fda-samd.
    drift
        Drift of the calibration error per unit of time.
    per
        Unit of time: hour, day, week, month or year.
    start
        Day of the verification: when it expires.
    rank
        Leaderboard with ties: accuracy, brier or ece.
    published
        Published accuracies, or a table of them: can they differ?

        Accuracies on `labels` questions, or a table with the columns model, accuracy, benchmark
        and questions; with more than two every pair on one benchmark is told.
    growth
        Error rate falls as size^-X: up to which size?
    size
        Size of the model, for its growth.
    decay
        Error rate falls as time^-X: does labelling keep up?
    label_rate
        Labels per unit of time.
    transfer
        Largest change of the gap by fine-tuning.
    correlation
        Correlation of neighbouring labels.
    perturbed_error
        Error rate under perturbation.
    rounds
        Error now, and the share that a recalibration leaves: how many can be verified?
    two_phase
        Lay out the published two-phase audit of these labels.

        These further worst-case rates: see `calibrant.labels.theory.Theory`.
    grouping_loss
        Labels that show a grouping loss this large with 80 % power, if the groups are known.

        Groups that must first be learned took 4 to 16 times as many in simulations.
    seed
        The same input and seed give the same file.
    **table
        How the table is read, see `calibrant.data.load_scores`.

    Returns
    -------
    PlanResult
        Document ``calibrant.plan/1``.

    Examples
    --------
    >>> result = plan(precision=0.01, error_rate=0.05)
    >>> result["passive_labels"], result["active_labels"]
    (50000, 500)
    """
    request, columns = dict(locals()), dict(table)
    if samples is not None or reference is not None:
        return _by_meaning(
            scores,
            {"samples": samples, "reference": reference},
            {"claim": claim, "rank": rank, "by": by, "labels": labels},
            columns,
            precision=precision,
            power=power,
            seed=seed,
        )
    from_table = stages == plan_table.MEASURED
    if scores is None:
        of_table = {"rank": rank, "claim": claim, "stages": stages if from_table else None}
        _refuse_without_table({**of_table, **columns})
    threshold = None if claim is None else parse_claim(claim)
    scored = tuple(published_scores(published, labels))
    labels = max((score.labels for score in scored), default=None) if labels is None else labels
    _refuse_tiny(precision=precision, error_rate=error_rate, drift=drift)
    source = source_name(scores) if isinstance(scores, str | Path) else None
    with error_source(source):
        rows = plan_table.PlanTable.of_scores(
            scores,
            columns,
            by,
            whole_questions=rank is not None,
            seed=seed,
            lipschitz_rule=lipschitz_rule,
        )
        pipeline: dict[str, Any] = (
            plan_table.measured_pipeline(rows.measurements)
            if from_table
            else {"stages": _stages(stages)}
        )
    rate, steepness = rows.rates(scored)
    error_rate = rate if error_rate is None else error_rate
    lipschitz = steepness if lipschitz is None else lipschitz
    if error_rate is None and preset is None:
        raise InputError(
            "a plan needs the error rate of the model",
            hint=Hint("give {error_rate}, a pool to measure it on, or a {preset}"),
        )
    if precision is None and labels is None and claim is None:
        if grouping_loss is not None:
            labels = int(grouping_floor(grouping_loss, rows.noise, error_rate)["labels"])
        elif rows.worst is not None and preset is None:
            labels = int(rows.worst.labels)
    goal = Goal(
        error_rate=error_rate or 0.0,
        lipschitz=1.0 if lipschitz is None else lipschitz,
        precision=threshold if precision is None and labels is None else precision,
        labels=labels,
        models=model_count,
        groups=groups,
        smallest_share=smallest_share,
        stages=pipeline["stages"],
        drift=drift,
        per=per,
        start=start if isinstance(start, dt.date) else None,
    )
    theory = Theory(
        growth, size, decay, label_rate, transfer, correlation, perturbed_error,
        scored, tuple(rounds), two_phase, grouping_loss, rows.noise,
    )  # fmt: skip
    settings = {
        **asdict(goal),
        **recorded(request, "preset rank lipschitz_rule claim power target by"),
        **table_settings(columns),
    }
    document = {
        **document_head("plan", scores, seed=seed, settings=settings),
        **plan_document(goal, preset=preset),
        "reading": None if rows.pool is None else rows.pool.reading.to_dict(),
        "dropped": rows.dropped,
        "assumed_lipschitz": lipschitz is None and not goal.stages,
        "measured": rows.measurements,
        "data": {"warnings": list(rows.warnings(goal.error_rate)), "notes": rows.notes()},
    }
    if rows.graded is not None:
        rows.graded.tell(document)
    # Labels of the pool show something where a claim or a number of labels is named.
    shows = threshold or (labels is not None and grouping_loss is None)
    with error_source(source):
        warnings = document["data"]["warnings"]
        document |= plan_table.rankings(rows.labelled, rank, by, seed, warnings)
        document["plans"] = [] if rows.pool is None or not shows else claim_entries(
            rows.pool.frame, threshold=threshold, labels=labels, power=power, by=by,
            target=target, seed=seed,
        )  # fmt: skip
    document["theory"] = {
        **theory_document(theory, goal, error_rate),
        **plan_table.table_theory(rows, labels, seed),
        **({"pipeline": pipeline} if from_table else {}),
    } or None
    result = PlanResult(document)
    claims = [*plan_claims(result.plans or [])]
    if result.leaderboard:
        claims += leaderboard_claims(typed(result.leaderboard))
    return PlanResult.of_plain({**result, "claims": [each.to_dict() for each in claims]})


def _by_meaning(
    data: Any,
    drawn: dict[str, str | None],
    refused: dict[str, Any],
    columns: dict[str, Any],
    **options: Any,
) -> PlanResult:
    """Plan the questions that tell models apart by what their draws mean."""
    seed = options["seed"]
    goal, pairs = plan_table.meaning_pairs(data, drawn, refused, columns, **options)
    found = plan(**goal, power=options["power"], seed=seed).to_dict()
    settings = {**found["settings"], **drawn}
    head = document_head("plan", data, seed=seed, settings=settings)
    return PlanResult({**found, **head, "theory": {"meanings": pairs}})


def _refuse_tiny(**shares: float | None) -> None:
    """Refuse shares below which the labels needed are more than a number can hold."""
    for name, value in shares.items():
        if value is not None and 0 < value < _LEAST_SHARE:
            rule = "{" + name + "} is 0 or from {0} on, got {1}"
            raise InputError(Hint(rule, f"{_LEAST_SHARE:g}", f"{value:g}"))


def _refuse_without_table(options: dict[str, Any]) -> None:
    """Refuse options that would be passed over: they are about a table."""
    values = [name for name, value in options.items() if value not in (None, False)]
    if values:
        rule = "{" + values[0] + "} is about a table, and none is given, got {0}"
        hint = "give a table of scores, or leave the option out"
        raise InputError(Hint(rule, repr(options[values[0]])), hint=hint)


def _stages(values: str | Sequence[float]) -> tuple[float, ...]:
    """Return the steepness of each stage; an infinite one is a jump."""
    parts: Sequence[str | float] = values
    if isinstance(values, str):
        words = values.split(",") if values.strip() else []
        if not all(word.strip() for word in words):
            rule = "{stages} is a list of numbers separated by commas, got {0}"
            raise InputError(Hint(rule, repr(values)))
        parts = words
    try:
        steepness = tuple(map(float, parts))
    except ValueError:
        rule = f"stages are numbers separated by commas, such as 2,2 or 2,inf; got {values!r}"
        raise InputError(rule) from None
    for stage in steepness:
        if stage != math.inf and not stage <= _STEEPEST:
            rule = "the steepness of {stages} is a number up to {0}, got {1}"
            raise InputError(Hint(rule, f"{_STEEPEST:g}", f"{stage:g}"))
    return steepness
