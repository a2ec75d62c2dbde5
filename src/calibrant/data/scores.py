"""The scores table: one row per question, model and method, checked rule by rule."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import structs

from calibrant.core.errors import InputError, OutOfRangeError, error_source, require_choice
from calibrant.core.hints import TABLE, Call, Hint
from calibrant.data import rules, score_table, tables
from calibrant.data.formats import FEW_BROKEN, FEW_UNGRADED
from calibrant.data.reading import Reading
from calibrant.data.reading.cells import read_number, read_outcome
from calibrant.data.reading.names import columns_called
from calibrant.data.reading.question import right_of_errors
from calibrant.data.reading.roles import ROLES, Roles, RoleSearch
from calibrant.data.reading.scales import RANKS, read_confidence
from calibrant.data.score_rows import (
    FIELD,
    answers_told_apart,
    counted_once,
    fields_of_units,
    named_columns,
    select_columns,
)
from calibrant.data.sources.options import cluster_of

ON_INVALID = ("missing", "error", "drop")
_ROWS_NAMED = 10
_NO_TEXT = pl.lit(None, pl.String)


def load_scores(
    source: Any,
    *,
    confidence: str | None = None,
    correct: str | None = None,
    model: str | None = None,
    method: str | None = None,
    question: str | None = None,
    answer: str | None = None,
    weights: str | None = None,
    cluster: str | None = None,
    unit: str | None = None,
    on_invalid: str | None = None,
    labels: str = "required",
    graded: bool = False,
    scale: str | None = None,
    right: str | None = None,
    gold: str | None = None,
    probs: str | None = None,
    repeats: bool = False,
    mend: str | Path | None = None,
    non_probability: Collection[str] = (),
    features: Sequence[str] | None = None,
    others: bool = False,
    by: Sequence[str] = (),
    beside_others: bool = False,
    ranks: bool = False,
) -> score_table.Scores:
    """Read and check a scores table.

    Parameters
    ----------
    source
        Path, dataframe or mapping of columns; or a list of them, read one after the other. Where
        a file of a list has no model column, its name is the model.
    confidence, correct, model, method, question, answer, weights
        Column names. Default: the names of the scores schema, or the only column that is called
        or filled like one. `question` may name several columns, separated by commas, that make
        up the id together; `confidence` may name several columns, each of which becomes a method.
    cluster
        Column whose rows depend on each other: a topic, a document, a user.
    unit
        Column of what rows are parts of: rows of one depend on each other, too.
    on_invalid
        ``"missing"`` (default) leaves out rows without a confidence, up to 5 % without an outcome
        and up to 1 in 1,000 with a broken confidence, and stops at rows that break another rule;
        ``"error"`` stops at all of them, ``"drop"`` leaves all of them out. What is left out is
        counted, and its grades are kept for the accuracy.
    labels
        ``"required"``, or ``"optional"`` where rows without an outcome are wanted (labelling).
    graded
        Allow outcomes between 0 and 1.
    scale
        ``"fraction"``, ``"percent"``, levels (``"1-5"``) or words (``"low=0.3,high=0.9"``);
        default: what the values say, where they leave no doubt.
    right
        Words of the outcome that mean right, separated by commas; all others mean wrong.
    gold
        Column of the right answer: the outcome is whether `answer` is the same.
    probs
        What the columns of class probabilities share, such as ``p_``: the confidence is the
        highest, and an answer is right where its class is the one in `correct`.
    repeats
        Several rows of one question are repeated answers, not an error.
    mend
        File of maps that `mend` saved: confidences are replaced by what they mean.
    non_probability
        Methods whose score is not a probability: their range is not checked.
    features
        Further columns to keep; None keeps all.
    others
        Keep all others beside these: rows of any column may hang together.
    by
        Those of them whose values name groups: in a text table `1.1` and `1.10` are two.
    beside_others
        Other tables are read beside this one: numbers of questions tell which rows belong together.
    ranks
        Take scores of which only the order tells.

    Examples
    --------
    >>> table = {"certainty": ["90 %", "40 %", ""], "ok": ["yes", "no", "yes"]}
    >>> scores = load_scores(table)
    >>> scores.reading.sentence
    'Read certainty as the confidence in percent, ok as the outcome (yes/no).'
    >>> scores.dropped, scores.graded["correct"].to_list()
    ({'confidence_missing': 1}, [1.0, 0.0, 1.0])
    >>> load_scores({"confidence": [0.9, 0.4, 1.7], "correct": [1, 0, 1]})
    Traceback (most recent call last):
    ...
    calibrant.core.errors.OutOfRangeError: a table in memory, row 3: the confidence must be at \
most 1 (confidence = 1.7); 1 of 3 rows break a rule: confidence_above_1 1
      -> if the column holds percentages, use scale="percent"; otherwise use on_invalid="drop" to \
leave such rows out and have them counted
    """
    on_invalid, cluster = on_invalid or ON_INVALID[0], cluster_of(unit, cluster)
    require_choice("on_invalid", on_invalid, ON_INVALID)
    require_choice("labels", labels, ("required", "optional"))
    options = {name: value for name, value in locals().items() if name != "source"}
    if mend is not None:
        return _load_mended(source, mend, options)
    if isinstance(source, list | tuple):
        return _load_many(source, options)
    asked = {name: options.get(name) for name in (*ROLES, "scale", "right", "gold", "probs")}
    asked |= {"question_id": question, "repeats": "rows" if repeats else None}
    name, required = tables.source_name(source), labels == "required"
    named = named_columns(model, method, question, answer)
    lazy = tables.scan_table(source, names=named, groups=by)
    columns = [asked.get(role) for role in (*ROLES, "gold")]
    lazy = tables.with_fields(lazy, (*columns, *(features or ()), *by))
    names = tables.column_names(lazy, source)
    if others or features is None:
        # All columns are kept: they are read once, and looked at in memory.
        lazy = tables.collect(lazy, source).lazy()

    def peek(some: Sequence[str]) -> pl.DataFrame:
        return tables.collect(lazy.select(some), source)

    with error_source(name):
        sample = partial(tables.some_rows, lazy, source)
        roles = RoleSearch(names, asked, peek, sample, () if required else ("correct",)).roles(
            [name for name in names if name not in (*by, *(features or ()))],
            beside_others=beside_others,
        )
        if roles.derived is not None:
            lazy = roles.derived.applied(lazy)
        if features is not None and unit is not None and roles.models and FIELD not in names:
            features, by = ([name for name in some if name != FIELD] for some in (features, by))
        chosen = select_columns(lazy, names, roles, features, others=others)
        frame = tables.collect(chosen, source)
        if frame.height == 0:
            raise InputError("the table has no rows")
        if unit is not None and roles.models:
            frame, roles = fields_of_units(frame, roles, unit)
        used = {*by, *(features or ()), *chain.from_iterable(roles.columns.values())}
        runs = [column for column in columns_called("run", names) if column not in used]
        frame, roles, note = answers_told_apart(frame, roles, runs, peek, repeats=repeats)
        frame, reading = _typed(frame, roles, scale, right, non_probability, graded=graded)
        reading = structs.replace(reading, notes=(*tables.table_notes(source), *reading.notes))
    if reading.scale in RANKS:
        if not ranks:
            raise _no_probabilities(reading)
        non_probability = {*non_probability, *frame["method"].unique()}
    checks = rules.rule_checks(
        frozenset(non_probability), graded=graded, labels=required, answer=bool(roles["answer"])
    )
    repeats = repeats or note is not None
    checked = _checked(frame, name, on_invalid, checks, repeats=repeats or not roles["question_id"])
    # Models that stand side by side in a row answered one question.
    told_apart = {"question_id": roles["question_id"] or note or roles.models}
    told_apart |= {"model": roles["model"] or roles.models, "method": roles["method"]}
    unused = [column for column in names if column not in (*(features or ()), *by)]
    likely = [] if roles["weights"] else columns_called("weights", unused)
    scores = replace(
        checked,
        assumed=tuple(role for role, named_by in told_apart.items() if not named_by),
        reading=structs.replace(reading, repeats=note),
        likely_weights=likely[0] if len(likely) == 1 else None,
    )
    plain = not (roles["question_id"] or roles["weights"] or cluster or repeats)
    return counted_once(scores) if plain and required else scores


def _load_mended(source: Any, mend: str | Path, options: Mapping[str, Any]) -> score_table.Scores:
    # A judge's map knows the scale of the scores that it reads.
    scale = score_table.scales_of_maps(mend, options["scale"])
    try:
        scores = load_scores(source, **{**options, "mend": None, "scale": scale})
    except OutOfRangeError as error:
        if not isinstance(scale, Mapping):
            raise
        judges = ", ".join(f"{name} {ends or '0-1'}" for name, ends in scale.items() if name)
        rule = f"the scores are not on the judge's scale: the map reads {judges}"
        raise InputError(rule, source=error.source, row=error.row) from None
    return score_table.mended_scores(scores, mend)


def _load_many(sources: Sequence[Any], options: Mapping[str, Any]) -> score_table.Scores:
    if not sources:
        raise InputError("at least one table is needed")
    models = score_table.models_by_file(sources)
    if len(sources) == 1:
        return score_table.named_model(load_scores(sources[0], **options), models[0])
    options = {**options, "beside_others": True}
    parts = []
    for number, (source, model) in enumerate(zip(sources, models, strict=True), start=1):
        # A table in memory has no name: which of them it is must be said all the same.
        name = source if isinstance(source, str | Path) else f"table {number} of {len(sources)}"
        with error_source(str(name)):
            part = score_table.named_model(load_scores(source, **options), model)
        parts.append(replace(part, source=str(name)))
    return score_table.joined_scores(parts, tables.source_name(sources), repeats=options["repeats"])


def _no_probabilities(reading: Reading) -> InputError:
    rule = f"only the order of {reading.columns['confidence']} tells, and this needs probabilities"
    call = Call("audit", TABLE, recalibrate="platt")
    return InputError(rule, hint=Hint("make some of it first: {call}", call=call))


def _typed(
    frame: pl.DataFrame,
    roles: Roles,
    scale: str | Mapping[str, str | None] | None,
    right: str | None,
    non_probability: Collection[str],
    *,
    graded: bool,
) -> tuple[pl.DataFrame, Reading]:
    """Read numbers, remembering the text of cells that hold none, and how they were read."""
    names = roles["confidence"]
    if right is None and not graded:
        roles = _with_meaning(frame, roles)
    # Columns that become methods may be written on scales of their own.
    parts = frame.partition_by("_place", maintain_order=True) if len(names) > 1 else [frame]
    if isinstance(scale, Mapping):
        parts = [own for part in parts for own in part.partition_by("method", maintain_order=True)]
        names = names if len(names) == len(parts) else [part["method"][0] for part in parts]
    read = []
    for part, name in zip(parts, names, strict=True):
        own = scale.get(part["method"][0], scale[""]) if isinstance(scale, Mapping) else scale
        read.append(read_confidence(part, own or roles.scale, non_probability, name))
    frame = pl.concat([part for part, _, _ in read], how="diagonal_relaxed")
    frame, words = read_outcome(frame.with_columns(_neither=False), right or roles.right)
    if "weights" in frame.columns:
        frame = read_number(frame, "weights").with_columns(_weighted=pl.lit(True))
    else:
        frame = frame.with_columns(weights=pl.lit(1.0), _weights_text=_NO_TEXT, _weighted=False)
    columns = {role: ",".join(by_name) for role, by_name in roles.columns.items() if by_name}
    guessed = (scale is None and roles.scale is not None) or any(part[2] for part in read)
    all_guessed = (*roles.guessed, *(["scale"] if guessed else []))
    cluster = columns.pop("cluster", None)
    scales = " or ".join(dict.fromkeys(part[1] for part in read))
    reading = Reading(columns, all_guessed, scales, words, roles.same, cluster)
    notes = tuple(dict.fromkeys(roles.notes))
    return frame, structs.replace(reading, models=roles.models, notes=notes, options=roles.options)


def _with_meaning(frame: pl.DataFrame, roles: Roles) -> Roles:
    """Return which words mean right where a column says what went wrong, such as `is_error`."""
    if roles.right is not None or len(roles["correct"]) != 1 or roles.derived is not None:
        return roles
    right, note = right_of_errors(frame["correct"].alias(roles["correct"][0]))
    if right is None:
        return roles
    return structs.replace(roles, right=right, notes=(*roles.notes, note))


def _checked(
    frame: pl.DataFrame, source: str, on_invalid: str, checks: Mapping[str, pl.Expr], *,
    repeats: bool,
) -> score_table.Scores:  # fmt: skip
    frame = frame.with_columns(rules.at_the_ends(pl.col("confidence")))
    # A row that breaks several rules breaks the gravest.
    broken_rules = [pl.when(test).then(pl.lit(rule)) for rule, test in checks.items()]
    frame = frame.with_columns(rule=pl.coalesce(broken_rules))
    # Looking for a second row of a question is quick, numbering all of them is not.
    if not repeats and frame.select(score_table.ROW_KEYS).is_duplicated().any():
        # Which of the valid rows of a question counts would be a guess.
        valid = pl.col("rule").is_null()
        again = valid & (valid.cast(pl.Int64).cum_sum().over(*score_table.ROW_KEYS) > 1)
        frame = frame.with_columns(
            pl.when(again).then(pl.lit("duplicate_row")).otherwise("rule").alias("rule")
        )
    bad = frame.filter(pl.col("rule").is_not_null())
    if bad.height == 0:
        return _clean(frame, source)
    duplicate = pl.col("rule").eq("duplicate_row").fill_null(False)
    masks = rules.broken_masks(bad, **checks, duplicate_row=duplicate)
    # A row may break several rules; those that most rows break come first.
    broken = dict(sorted(masks.items(), key=lambda item: -int(item[1].sum())))
    counts = {name: int(mask.sum()) for name, mask in broken.items()}
    faults = set(broken) - _left_out(counts, on_invalid, frame.height)
    if faults:
        raise rules.row_error(bad, source, faults=faults, counts=counts, total=frame.height)
    keep_mask = frame.filter(pl.col("rule").is_null())
    if keep_mask.height == 0:
        hint = rules.PERCENTAGES if {*broken} == {"confidence_above_1"} else "check the columns"
        rule = f"no row keeps the rules: {rules.counts_text(counts)}"
        raise InputError(rule, source=source, hint=hint)
    rows = {
        name: bad.filter(mask)["_row"].head(_ROWS_NAMED).to_list() for name, mask in broken.items()
    }
    scores, rejected = _clean(keep_mask, source), score_table.rejected_rows(bad)
    unscored = _unscored(bad, broken, scores.frame.columns)
    scores = replace(scores, rejected=rejected, unscored=unscored)
    return replace(scores, dropped=counts, dropped_rows=rows)


def _left_out(counts: Mapping[str, int], on_invalid: str, total: int) -> set[str]:
    """Return the rules that rows may break and are then left out."""
    if on_invalid == "error":
        return set()
    # Which of two answers to a question counts would be a guess.
    if on_invalid == "drop":
        return set(counts) - {"duplicate_row"}
    most = {"correct_missing": FEW_UNGRADED, **dict.fromkeys(rules.UNSCORED, FEW_BROKEN)}
    rare = {name for name, count in counts.items() if count <= most.get(name, 0.0) * total}
    return set(rules.MISSING) | rare


def _unscored(
    bad: pl.DataFrame, broken: Mapping[str, pl.Series], columns: Sequence[str]
) -> pl.DataFrame:
    """Return the rows whose grade is sound and whose confidence is not: it is NaN there."""
    faults = [mask for name, mask in broken.items() if name not in rules.UNSCORED]
    graded = bad.filter(~pl.any_horizontal(*faults, pl.lit(False)))
    if "weights" in columns:
        graded = graded.filter(pl.col("weights") > 0)
    missing = pl.lit(float("nan")).cast(bad.schema["confidence"]).alias("confidence")
    return graded.with_columns(missing).select(columns)


def _clean(frame: pl.DataFrame, source: str) -> score_table.Scores:
    weighted = bool(frame["_weighted"].any())
    hidden = [name for name in frame.columns if name.startswith("_") or name == "rule"]
    clean = frame.drop(hidden if weighted else [*hidden, "weights"])
    if not weighted:
        return score_table.Scores(clean, source)
    selection, weightless = score_table.split_weightless(clean)
    return score_table.Scores(selection, source, weightless=weightless)
