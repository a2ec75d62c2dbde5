"""`cascade`: when to ask a larger model or a person, and what it costs."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Unpack

from msgspec.structs import asdict, replace

from calibrant.answers.features import embedded, refuse_outcome, without_missing
from calibrant.core import shared_options as opt
from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import Hint
from calibrant.core.places import writing
from calibrant.core.verb import Option, verb
from calibrant.data.sources.engines import engine_named
from calibrant.data.sources.input import document_head, origin_of, recorded
from calibrant.data.sources.options import table_settings
from calibrant.findings.claims.decide import cascade_claims
from calibrant.metrics import calibrator_from_dict
from calibrant.report.result import CascadeResult
from calibrant.trust.decision_risk import CostMatrix
from calibrant.trust.deferral.answers import EVERY_QUESTION, Answers
from calibrant.trust.deferral.strategies import STRATEGIES, StrategyOptions, Target
from calibrant.trust.deferral.tournament import SplitPlan, tournament
from calibrant.verbs import deferring
from calibrant.verbs.opening.open_input import only_of, read_scores
from calibrant.verbs.score_documents import scores_document

_PRICES_WRITTEN = "1,8,70 or small=1,large=70"


@verb(
    example="calibrant cascade scores.csv --models small,large --price 1,8 --features domain",
    shared=opt.TABLE,
)
def cascade(
    data: opt.ScoresData,
    *,
    models: Annotated[Sequence[str], opt.names()],
    features: Annotated[Sequence[str], opt.names()] = (),
    embed: opt.EmbedColumn = None,
    embed_dimensions: opt.EmbedDimensions = 8,
    price: Annotated[
        Mapping[str, float] | Sequence[float] | None,
        Option(metavar="1,8,70", kind="map or numbers", example=_PRICES_WRITTEN),
    ] = None,
    cost: Annotated[str | None, Option(metavar="COL")] = None,
    only_method: Annotated[str | None, Option(metavar="NAME")] = None,
    decision: Annotated[str, Option(choices=("answer", "class"))] = "answer",
    costs: opt.CostMap = None,
    threshold: Annotated[float | None, opt.share(needs="costs")] = None,
    recalibration: Annotated[str, opt.advanced(metavar="NAME")] = "platt",
    min_samples_leaf: Annotated[int, opt.advanced(metavar="N", min=1, max=10**9)] = 15,
    strategies: Annotated[Sequence[str] | None, Option(metavar="A,B,..", kind="names")] = None,
    random_splits: Annotated[int, opt.advanced(metavar="N", min=1, max=10000)] = 20,
    budget: Annotated[float | None, Option(metavar="SHARE", above=0, max=1000000.0)] = None,
    accuracy: Annotated[float | None, opt.share()] = None,
    guarantee: Annotated[float | None, opt.share()] = None,
    delta: Annotated[float, opt.share(needs="guarantee")] = 0.1,
    strategy: Annotated[str | None, opt.advanced(metavar="NAME")] = None,
    tolerance: Annotated[float | None, Option(metavar="RISK", min=0, max=1e15)] = None,
    save: Annotated[str | Path | None, opt.written()] = None,
    engine: opt.Engine = None,
    seed: opt.Seed = 0,
    **table: Unpack[opt.TableOptions],
) -> CascadeResult:
    """Compare strategies of asking several models, and save the best policy.

    Parameters
    ----------
    data
        Path, study folder or dataframe with one row per question and model.
    models
        Models, cheapest first.
    features
        Columns that the policies may use.

        A column that differs between the models of one
        question is known only once that model has answered, and no router sees it.
    embed, embed_dimensions
        As for `groups`.
    price
        Price per call, or per unit of the column of costs.

        By name, or in the order of `models`.
    cost
        Column of costs or token counts.

        With prices: price times column.
    only_method
        Method to use where there are several.
    decision
        What the outcome is: the grade of each model's own answer, or the class itself.
    threshold
        Where a confidence decides 1 (class only).
    costs
        See `calibrant.trust.Cascade`.
    recalibration
        How to recalibrate: platt, isotonic, beta or temperature.
    min_samples_leaf
        Rows that a leaf of a tree must have.
    strategies
        Ways to decide, compared: value, risk, excess, risk_shrunk, risk_boosting, calibration,
        confidence, router, router_knn.
    random_splits
        Random splits that are averaged.
    budget
        Mean cost per question, as a share of what the largest model costs.
    accuracy
        Accuracy to reach at the lowest cost.

        Without it and without `budget`: the largest model's accuracy. Two neighbouring settings are
        mixed by a hash of the question to hit it.
    guarantee
        Promise an accuracy of at least the largest model's minus this.
    delta
        Largest chance that the promise fails.

        With a budget the cost is promised too. 30 % of the questions are
        kept apart for it.
    strategy
        Save this strategy instead of the best one.

        It is refused where another one on the same page is clearly better.
    tolerance
        Risk that a saved cascade (risk, or excess) tolerates.

        Estimated risk up to which a risk cascade gives an answer instead of asking the next
        model; at least 0. With ``strategy="excess"`` it is the excess risk: 0 stops where no
        later model would do better. It is then the policy that is saved, unless a strategy on the
        same page is clearly more accurate at its cost.
    save
        Write the policy as JSON.

        It is fitted on all questions; `calibrant.load_policy` reads it.
    engine
        Where the splits run: ``local`` (threads), ``ray`` or ``ray://HOST:PORT``; None runs them
        one after the other. The document is the same.
    seed
        Seed of the splits.
    **table
        How the table is read, see `calibrant.data.load_scores`.

    Returns
    -------
    CascadeResult
        A document ``calibrant.cascade/1`` with one entry in ``results``.
    """
    matrix = None if costs is None else CostMatrix.of(costs)
    options = StrategyOptions(decision, matrix, threshold, recalibration, min_samples_leaf)
    if strategies is not None:
        options = replace(options, strategies=tuple(strategies))
    require_known(options.strategies, STRATEGIES, "there is no strategy {}")
    # Strategies that need neither would pass over a name that does not exist.
    calibrator_from_dict({"calibrator": recalibration})
    _refuse_shared_rows(table)
    price = deferring.prices(price, models)
    opt.refuse_mended(table, save, "a policy")
    refuse_outcome(features, table["correct"])
    kept = [name for name in dict.fromkeys([*features, embed, cost]) if name is not None]
    scores = without_missing(read_scores(data, table, features=kept), kept, table["on_invalid"])
    methods = sorted(scores.frame["method"].unique())
    if only_method is None and len(methods) > 1:
        rule = f"the table has {len(methods)} methods, a cascade needs one: {', '.join(methods)}"
        raise InputError(rule, hint=Hint("choose with {only_method}"))
    scores = only_of(scores, method=only_method)
    frame, names, embedder = embedded(scores.frame, list(features), embed, embed_dimensions)
    answers, left_out = deferring.aligned_answers(
        frame, models, names, price, cost, embed, table["on_invalid"]
    )
    options = _possible(options, answers, embed, asked=strategies is not None)
    mapper = map if engine is None else engine_named(engine).map
    entry = tournament(answers, options, SplitPlan(splits=random_splits, seed=seed), mapper=mapper)
    target = Target(budget, accuracy, guarantee, delta, strategy)
    policy, chosen = deferring.chosen_policy(answers, options, target, tolerance, seed, save)
    settings = {
        **asdict(options),
        "costs": None if matrix is None else matrix.to_dict(),
        "random_splits": random_splits,
        **recorded(locals(), "models features price cost only_method tolerance budget"),
        **recorded(locals(), "accuracy guarantee delta strategy"),
        **table_settings(table),
    }
    head = document_head("cascade", data, seed=seed, settings=settings)
    if save is not None and policy is not None:
        asked = deferring.how_asked(data, scores.frame["method"][0])
        origin, seen = {**origin_of(head), "asked": asked}, deferring.profile_of(answers)
        with writing(save):
            dataclasses.replace(policy, fitted_on=origin, embedding=embedder, **seen).save(save)
    head |= {"decision": decision, "embedding": embedder}
    results = [replace(entry, policy=chosen)]
    document = scores_document(head, scores.only(model=models), results, ())
    claims = [claim.to_dict() for claim in cascade_claims(chosen, answers.models, entry.n)]
    return CascadeResult(document | {"dropped": {**scores.dropped, **left_out}, "claims": claims})


def _refuse_shared_rows(table: opt.TableOptions) -> None:
    """Refuse what a cascade would pass over: it takes every question as a draw of its own."""
    for name in ("cluster", "unit", "repeats"):
        if table.get(name):
            raise InputError(
                "a cascade takes one answer of each model to every question, and every question as "
                "a draw of its own",
                hint=Hint(f"leave out {{{name}}}, and keep one row of what belongs together"),
            )


def _possible(
    options: StrategyOptions, answers: Answers, embed: str | None, *, asked: bool
) -> StrategyOptions:
    """Return the strategies that the columns allow; refuse those asked for that they do not."""
    if list(answers.features.columns) == list(EVERY_QUESTION):
        blind = [name for name in options.strategies if name.startswith(("risk", "router"))]
        if asked and blind:
            raise InputError(
                f"the strategy {blind[0]!r} needs a column that is known before any model is "
                "asked: the same for all models of a question",
                hint=Hint("name one with {features}, or use {embed}"),
            )
        selection = tuple(name for name in options.strategies if name not in blind)
        return replace(options, strategies=selection)
    if embed is not None and not asked:
        return replace(options, strategies=(*options.strategies, "router_knn"))
    return options
