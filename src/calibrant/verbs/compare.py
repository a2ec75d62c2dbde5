"""`compare`: is A better calibrated than B, or only more accurate?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Unpack

from calibrant.comparison.compare import Watch, compare_parts
from calibrant.comparison.league import decide_document, document_claims
from calibrant.comparison.parts import streamed_source
from calibrant.comparison.pipeline import ComparisonOptions
from calibrant.comparison.source import (
    NOT_A_PROBABILITY,
    CompareSource,
    ComparisonKey,
    ComparisonRequest,
    table_source,
)
from calibrant.core import shared_options as opt
from calibrant.core.document import plain
from calibrant.core.errors import InputError, NoConfidenceError
from calibrant.core.verb import ADVANCED, INPUT, Option, Supplied, verb
from calibrant.data.sources.options import ReadingOptions, table_settings
from calibrant.findings.claims.dependence import dependence_entry
from calibrant.findings.claims.margins import COMPARISON_MARGIN
from calibrant.report.result import AccuracyResult, CompareResult
from calibrant.verbs.accuracy import accuracy_document
from calibrant.verbs.dependent_rows import told_dependence
from calibrant.verbs.opening.choose_source import is_large
from calibrant.verbs.opening.open_input import open_input
from calibrant.verbs.score_documents import with_rows


def compare_document(
    source: CompareSource, options: ComparisonOptions, watch: Watch | None = None
) -> CompareResult:
    """Build the document of a comparison from its opened input."""
    compared = compare_parts(
        source.read,
        source.parts,
        [key.models for key in source.comparisons.wholes],
        options=options,
        pools=source.pools,
        each=source.each,
        watch=watch,
    )
    refused = list(source.comparisons.refused)
    parts = []
    for key, part in zip(source.comparisons.wholes, compared, strict=True):
        if isinstance(part, InputError):
            refused.append((key, part))
            continue
        for entry in part["results"]:
            entry["verification"] = source.verification(key, entry["model"])
        for pair in part["pairs"]:
            doubt = source.grading(key, pair["a"], pair["b"])
            pair |= {} if doubt is None else {"grading": doubt}
        parts.append({"keys": key.keys, **part})
    if not parts:
        raise _refusal(refused, source.head["source"])
    rule = decide_document(parts, level=options["level"], margin=options["margin"])
    _reversals_by_group(parts)
    missing = [part["keys"] | plain(row) for part in parts for row in part["missing"]]
    data = {**source.data, "missing": missing}
    matches = [
        (" and ".join(key.models[:2]), dependence_entry(item)) for key, item in source.searches
    ]
    told_dependence({"data": data, "input": source.head.get("input")}, matches)
    # Thousands of pairs are plain data already.
    pairs = [pair for part in parts for pair in part["told"]]
    return CompareResult.of_plain(
        plain(
            {
                **source.head,
                **options,
                "reading": source.reading,
                "data": data,
                "claims": document_claims(parts, level=options["level"]),
                "dropped": dict(source.dropped),
                "emptied_models": list(source.emptied),
                "not_compared": [
                    *({**key.keys, "reason": error.rule} for key, error in refused),
                    *(
                        {**key.keys, "model": model, "reason": reason}
                        for key, model, reason in source.comparisons.taken_out
                    ),
                ],
                "multiplicity": rule,
                "league": [{**part["keys"], **part["league"]} for part in parts],
                "results": _keyed(parts, "results"),
                "pairs": None,
                "summaries": [{name: part[name] for name in _SUMMARY} for part in parts],
                "self_preference": _keyed(parts, "self_preference"),
            }
        )
        | {"pairs": pairs}
    )


_SUMMARY = ("keys", "questions", "questions_shared_by_all", "left_out", "summary")


def _keyed(parts: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    return [{**part["keys"], **entry} for part in parts for entry in part[name]]


def _reversals_by_group(parts: Sequence[dict[str, Any]]) -> None:
    """Put the reversal rates of a method's groups beside those of all its questions."""
    for part in parts:
        method, group = part["keys"].values()
        if group is not None or not part["summary"]["cases"]:
            continue
        part["summary"]["by_group"] = [
            {
                "group": peer["keys"]["group"],
                "cases": peer["summary"]["cases"],
                **peer["summary"]["rates"],
            }
            for peer in parts
            if peer["keys"]["method"] == method
            and peer["keys"]["group"] is not None
            and peer["summary"]["cases"]
        ]


def _refusal(refused: Sequence[tuple[ComparisonKey, InputError]], source: str) -> InputError:
    """Return why nothing could be compared: the first reason, and how many parts there are."""
    # That a score is no probability is known beforehand; another reason says more.
    key, error = next(
        ((key, error) for key, error in refused if error.rule != NOT_A_PROBABILITY), refused[0]
    )
    message = f"{key.place}: {error.rule}"
    if len(refused) > 1:
        message += f" (none of the {len(refused)} methods and groups can be compared)"
    return InputError(message, source=source, hint=error.hint)


# The paired bootstrap takes 4 kB per question in memory; larger tables are compared in parts.
STREAM_ROWS = 1_000_000


@verb(
    example="calibrant compare scores.csv --models small,large --html compare.html",
    shared=opt.TABLE,
)
def compare(
    data: opt.Data,
    *,
    models: Annotated[Sequence[str] | None, opt.names()] = None,
    candidates: Annotated[Any, Option(metavar="TABLE", group=INPUT, place="read")] = None,
    labels: opt.LabelStoreFile = None,
    by: opt.By = (),
    bins: Annotated[int | None, Option(metavar="N", min=1, max=100_000)] = None,
    target: Annotated[
        str | float,
        Option(metavar="weakest|strongest|mean|NUMBER", kind="name or number", above=0, below=1),
    ] = "weakest",
    level: opt.Level = 0.95,
    resamples: opt.Resamples = 1000,
    lipschitz: Annotated[float, Option(metavar="L", group=ADVANCED, min=0, max=1e6)] = 1.0,
    graded: opt.Graded = False,
    margin: opt.Margin = COMPARISON_MARGIN,
    engine: opt.Engine = None,
    seed: opt.Seed = 0,
    watch: Annotated[Callable[[str, int, int], None] | None, Supplied("steps")] = None,
    **table: Unpack[opt.TableOptions],
) -> CompareResult | AccuracyResult:
    """Say which model is better calibrated, and which is only more accurate.

    Parameters
    ----------
    data
        A scores table with several models (path, dataframe), a list of tables, a study, or a
        list of foreign logs.
    models
        Use these models only.

        None takes all.
    candidates
        Every model's confidence in every model's answer (candidate-aligned view).

        Table with question_id, judge, author, confidence (and answer). A study may hold it.
    labels
        Store of labels that people made of this pool; by default the one beside the table, unless
        the table has all outcomes. They must have been drawn with equal chances, by whole
        questions.
    by
        Columns that split the questions into groups with comparisons of their own.
    bins
        Equal-width bins of the calibration error: 15, and 10 for Sem-ECE.
    target
        Accuracy that all are brought to.
    lipschitz
        Lipschitz constant behind the verification floor.
    level, resamples, margin
        See `calibrant.comparison.compare_models`.
    graded
        Outcomes may lie between 0 and 1.
    engine
        Where the work is shared out: ``local`` (threads), ``ray`` or ``ray://HOST:PORT``. A
        table of up to a million rows is compared in memory, a larger one is read in parts, without
        the candidate-aligned view. The document does not depend on the engine and says under
        ``reading`` which way was taken.
    seed
        The same input and seed give the same file.
    watch
        Is told what is being done, how much is done, and of how much.
    **table
        How the table is read, see `calibrant.data.load_scores`.

    Returns
    -------
    CompareResult or AccuracyResult
        Without a confidence document ``calibrant.accuracy/1``: paired differences of the shares
        right. Else document ``calibrant.compare/1``. What cannot be compared stands in
        ``not_compared`` with the reason: a model that is never right or never wrong (unless
        `models` names it), a method
        or group (a score that is no probability); where nothing can be, the reason is raised.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = []
    >>> for name, skill in (("small", 0.4), ("large", 0.8)):
    ...     for i in range(300):
    ...         rows.append(
    ...             {
    ...                 "question_id": i,
    ...                 "model": name,
    ...                 "confidence": 0.9,
    ...                 "correct": rng.random() < skill,
    ...             }
    ...         )
    >>> import polars as pl
    >>> pair = compare(pl.DataFrame(rows), resamples=200)["pairs"][0]
    >>> pair["verdict"], pair["winner"]  # both always say 90 %
    ('more accurate, alike', 'large')
    """
    request = ReadingOptions(**table, graded=graded)
    streamed = (
        candidates is None
        and not (graded or labels or table["right"] or table["repeats"] or table["cluster"])
        and not table["mend"]
        and is_large(data, rows=STREAM_ROWS)
    )
    handle = None
    if not streamed:
        handle = open_input(data, table["correct"], labels=labels, scale=table["scale"])
    if bins is None:
        bins = 10 if handle is not None and handle.holds_only_draws(request) else 15
    options: ComparisonOptions = {
        "bins": bins,
        "target": target,
        "level": level,
        "resamples": resamples,
        "lipschitz": lipschitz,
        "margin": margin,
    }

    def settings(stated: Mapping[str, object]) -> dict[str, object]:
        columns = {name: column for name, column in table.items() if name not in stated}
        return {**options, "models": models, "by": list(by)} | table_settings({**stated, **columns})

    goal = ComparisonRequest(models, tuple(by), request, options, settings, engine, seed)
    if handle is None:
        with streamed_source(data, goal) as source:
            return with_rows(compare_document(source, options, watch), data, table)
    try:
        source = table_source(handle, candidates, goal)
    except NoConfidenceError as error:
        if candidates is not None or labels:
            raise
        return accuracy_document(data, table, error, by=by, models=models, level=level)
    return with_rows(compare_document(source, options, watch), data, table)
