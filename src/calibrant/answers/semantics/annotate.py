"""The step from draws to the semantics table."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import polars as pl

from calibrant.answers.semantics.extract import extract_answer, not_attempted, parse_vote
from calibrant.answers.semantics.settle import Group, SemanticsOptions, Settled, Settler
from calibrant.answers.semantics.stated import parse_confidence, parse_top_k, scale_of_all
from calibrant.answers.semantics.text.normalise import clean_text
from calibrant.core import InputError

# What the texts of a purpose hold; the others hold an answer.
ROLES = {
    "verb": "stated",
    "verb_topk": "list",
    "p_true": "vote",
    "p_true_cand": "vote",
    "selfcheck": "vote",
    "self_ask": "probe",
    "self_ask_cand": "probe",
}
_KEY = ["question_id", "model"]
_NEEDED = ("question_id", "model", "purpose", "draw", "text")
_EXAMPLES = 20
# Parts that are shared out: some tenths of a second of work each.
TEXTS_AT_ONCE, GROUPS_AT_ONCE = 2_000, 200
Mapper: TypeAlias = Callable[..., Iterator[Any]]
# Columns of the verdicts: which field of a grade they hold.
_GRADED: dict[str, tuple[str, type[pl.DataType]]] = {
    "correct": ("correct", pl.Boolean),
    "graded": ("reason", pl.String),
    "grader": ("grader", pl.String),
    "chance": ("probability", pl.Float64),
}


@dataclass
class Annotated:
    """Both tables and the document that says how they came about; unpacks to the tables."""

    draws: pl.DataFrame
    semantics: pl.DataFrame
    document: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return iter((self.draws, self.semantics))


def annotate(
    draws: pl.DataFrame,
    questions: pl.DataFrame | None = None,
    *,
    options: SemanticsOptions | None = None,
    mapper: Mapper | None = None,
) -> Annotated:
    """Fill in what the draws say and return the class and grade of each.

    Parameters
    ----------
    draws
        Table with question_id, model, purpose, draw and text.
    questions
        Table with question_id and, where known, text, references, kind, choices and siblings
        (names known to be wrong and different from each other). Without references there are
        classes but no grades.
    options
        See `SemanticsOptions`.
    mapper
        Runs parts of the work and keeps their order, here or elsewhere; the result is the same.
        Only for rules: a judge keeps one docket, and an embedder stays in this process.

    Returns
    -------
    annotated
        Unpacks to ``(draws, semantics)``; the columns are described in
        `calibrant.answers.semantics`.

    Examples
    --------
    >>> draws = pl.DataFrame({
    ...     "question_id": ["q"] * 3, "model": ["m"] * 3, "draw": [0, 1, 0],
    ...     "purpose": ["answer", "answer", "verb"],
    ...     "text": ["Paris", "I don't know.", "paris | 0.9"],
    ... })
    >>> questions = pl.DataFrame({
    ...     "question_id": ["q"], "text": ["Capital of France?"], "references": [[["Paris"]]]
    ... })
    >>> filled, semantics = annotate(draws, questions)
    >>> semantics.select("class_id", "correct", "reason").rows()
    [(0, True, 'attempted'), (None, None, 'refusal'), (0, True, 'attempted')]
    >>> filled["stated_confidence"].to_list()
    [None, None, 0.9]
    """
    options = options or SemanticsOptions()
    _check(draws, questions)
    _check_shared(options, mapper)
    work = _with_questions(draws, questions)
    read, notes = _read(work, options, mapper or map)
    work = pl.concat([work.drop("answer", strict=False), read], how="horizontal")
    settler = Settler(options)
    long = _long_answers(work)
    verdicts, settled = _settle(long, work, settler, mapper)
    semantics = _semantics(work, long, verdicts)
    filled = ["answer", "stated_confidence", "stated_answers", "stated_confidences"]
    out = draws.drop(filled, strict=False).with_columns(work.select(filled))
    document = _document(settler, settled, semantics, notes)
    return Annotated(out, semantics, document)


def _check(draws: pl.DataFrame, questions: pl.DataFrame | None) -> None:
    for name in _NEEDED:
        if name not in draws.columns:
            raise InputError(f"the draws table needs a column {name!r}; it has {draws.columns}")
    if questions is not None:
        if "question_id" not in questions.columns:
            raise InputError(f"the questions table needs question_id; it has {questions.columns}")
        if questions["question_id"].is_duplicated().any():
            twice = questions.filter(pl.col("question_id").is_duplicated())["question_id"][0]
            raise InputError(f"a question_id is given once; {twice!r} is there more often")


def _check_shared(options: SemanticsOptions, mapper: Mapper | None) -> None:
    if mapper is None:
        return
    for helper, what in ((options.judge, "a judge"), (options.compare, "an embedder")):
        if helper is not None:
            raise InputError(
                f"{what} works on the whole table at once, an engine shares it out",
                hint=f"leave out {what}, or the engine",
            )


def _with_questions(draws: pl.DataFrame, questions: pl.DataFrame | None) -> pl.DataFrame:
    """Return the draws with a row number, their role and their question's kind."""
    work = draws.select(
        [*_NEEDED, *(["answer"] if "answer" in draws.columns else [])]
    ).with_columns(
        pl.col("question_id").cast(pl.String),
        pl.col("model").cast(pl.String),
        pl.int_range(pl.len()).alias("row"),
        pl.col("purpose")
        .cast(pl.String)
        .replace_strict(ROLES, default="answer", return_dtype=pl.String)
        .alias("role"),
    )
    question_rows = (
        pl.DataFrame(schema={"question_id": pl.String}) if questions is None else questions
    )
    targets: dict[str, pl.DataType | type[pl.DataType]] = {
        "text": pl.String,
        "references": pl.Null,
        "kind": pl.String,
        "choices": pl.List(pl.String),
        "siblings": pl.List(pl.String),
    }
    columns = [
        pl.col(name) if name in question_rows.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in targets.items()
    ]
    about = question_rows.select(pl.col("question_id").cast(pl.String), *columns)
    return work.join(
        about.rename({"text": "question"}), on="question_id", how="left", maintain_order="left"
    ).with_columns(
        pl.col("question").fill_null(""),
        pl.col("kind").fill_null("open"),
        pl.col("siblings").fill_null(pl.lit([], dtype=pl.List(pl.String))),
    )


def _read(
    work: pl.DataFrame, options: SemanticsOptions, mapper: Mapper
) -> tuple[pl.DataFrame, Counter[str]]:
    """Read every distinct text once and spread the result over the rows."""
    key = ["text", "role", "kind", "choices"]
    distinct = work.select(key).unique(maintain_order=True)
    stating = distinct.filter(pl.col("role").is_in(["stated", "list", "probe"]))["text"]
    # Bytes are read as they come; only texts can show on which scale the others speak.
    texts = [text for text in stating if isinstance(text, str)]
    options = replace(options, scale=scale_of_all(texts, options.scale))
    parts = list(distinct.iter_slices(TEXTS_AT_ONCE)) or [distinct]
    readings = list(mapper(partial(read_draws, options=options), parts))
    notes = sum((each for _, each in readings), Counter[str]())
    distinct = distinct.with_row_index("text_row")
    kind = work.select(key).join(
        distinct, on=key, how="left", maintain_order="left", nulls_equal=True
    )["text_row"]
    return pl.concat([table for table, _ in readings])[kind], notes


def _long_answers(work: pl.DataFrame) -> pl.DataFrame:
    """Return one row per answer to classify: of each draw, and of each place of a list."""
    attempted = work.filter(pl.col("reason") == "attempted", pl.col("role") != "vote")
    listed, one = pl.col("stated_answers"), pl.concat_list("answer")
    answers = pl.when(pl.col("role") == "list").then(listed).otherwise(one).alias("answer")
    places = pl.int_ranges(pl.col("answer").list.len()).alias("place")
    return attempted.select("row", *_KEY, answers).with_columns(places).explode("answer", "place")


def _settle(
    long: pl.DataFrame, work: pl.DataFrame, settler: Settler, mapper: Mapper | None
) -> tuple[pl.DataFrame, list[Settled]]:
    """Return one row per distinct answer of a question and model with its class and grade."""
    grouped = (
        long.group_by(*_KEY, "answer", maintain_order=True)
        .agg(pl.len().alias("count"))
        .group_by(_KEY, maintain_order=True)
        .agg(pl.col("answer").alias("answers"), pl.col("count").alias("counts"))
    )
    about = work.select(
        "question_id", "question", "references", "kind", "choices", "siblings"
    ).unique("question_id", maintain_order=True)
    rows = grouped.join(about, on="question_id", how="left", maintain_order="left").drop(_KEY)
    groups = [Group(**row) for row in rows.iter_rows(named=True)]
    # What the embedded judge reads is read here, many texts at once.
    if mapper is None or settler.options.embedded is not None:
        settled = settler.settle(groups)
    else:
        parts = [groups[i : i + GROUPS_AT_ONCE] for i in range(0, len(groups), GROUPS_AT_ONCE)]
        settled_parts = mapper(partial(_settle_part, options=settler.options), parts)
        settled = [group for part in settled_parts for group in part]
    settler.read_again(groups, settled)
    columns = [pl.Series("class_id", [s.clusters.ids for s in settled], dtype=pl.List(pl.Int64))]
    for name, (field_name, kind) in _GRADED.items():
        values = [[getattr(grade, field_name) for grade in s.grades] for s in settled]
        columns.append(pl.Series(name, values, dtype=pl.List(kind)))
    verdicts = grouped.select(*_KEY, answer="answers").with_columns(columns)
    return verdicts.explode("answer", "class_id", *_GRADED), settled


def _settle_part(groups: list[Group], options: SemanticsOptions) -> list[Settled]:
    return Settler(options).settle(groups)


def _semantics(work: pl.DataFrame, long: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    joined = long.join(verdicts, on=[*_KEY, "answer"], how="left", maintain_order="left")
    first = joined.filter(pl.col("place") == 0).select("row", "class_id", *_GRADED)
    listed = work.filter(pl.col("role") == "list").select("row")
    lists = (
        joined.join(listed, on="row", how="semi")
        .group_by("row", maintain_order=True)
        .agg(pl.col("class_id").alias("stated_classes"), pl.col("correct").alias("stated_correct"))
    )
    base = work.select("row", *_KEY, "purpose", "draw", "reason")
    table = base.join(first, on="row", how="left", maintain_order="left").join(
        lists, on="row", how="left", maintain_order="left"
    )
    return (
        table.with_columns(pl.coalesce("graded", "reason"), pl.coalesce("grader", "reason"))
        .drop("row", "reason")
        .rename({"graded": "reason"})
    )


def _document(
    settler: Settler, settled: list[Settled], semantics: pl.DataFrame, notes: Counter[str]
) -> dict[str, Any]:
    decided: Counter[str] = Counter()
    for result in settled:
        decided.update(result.clusters.decided_by)
    conflicts = [pair for result in settled for pair in result.clusters.conflicts]
    masked = [text for result in settled for text in result.masked]
    options, docket = settler.options, settler.docket
    return {
        "schema": "calibrant.semantics/1",
        "normalisation": list(settler.grader.normaliser.steps),
        "clustering": options.clustering,
        "grading": options.grading,
        "embedded": None if options.embedded is None else options.embedded.name,
        "embedder": None if options.compare is None else options.compare.name,
        "judge": None if docket is None else docket.judge.name,
        "judge_calls": 0 if docket is None else docket.calls,
        "judge_calls_refused": 0 if docket is None else docket.refused,
        "judge_stopped": None if docket is None else getattr(docket.judge, "stopped", None),
        "judge_replies_unreadable": 0 if docket is None else docket.unreadable,
        "judge_asymmetric": [] if docket is None else docket.asymmetric[:_EXAMPLES],
        "conflicts": len(conflicts),
        "conflict_examples": conflicts[:_EXAMPLES],
        "joined_by": dict(sorted(decided.items())),
        "graders": _counts(semantics, "grader"),
        "reasons": _counts(semantics, "reason"),
        "mixed_classes": sum(result.mixed_classes for result in settled),
        "instructions_masked": len(masked),
        "instruction_examples": masked[:_EXAMPLES],
        "texts_mended": dict(sorted(notes.items())),
        "results": [],
    }


def _counts(table: pl.DataFrame, column: str) -> dict[str, int]:
    counts = table.group_by(column).len().sort("len", column, descending=[True, False])
    return dict(counts.iter_rows())


_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "answer": pl.String,
    "stated_confidence": pl.Float64,
    "stated_answers": pl.List(pl.String),
    "stated_confidences": pl.List(pl.Float64),
    "reason": pl.String,
    "rule": pl.String,
}
_Text = tuple[str | bytes | None, str, str, list[str] | None]
_Row = tuple[str | None, float | None, list[str] | None, list[float | None] | None, str, str]


def read_draws(texts: pl.DataFrame, options: SemanticsOptions) -> tuple[pl.DataFrame, Counter[str]]:
    """Read distinct texts, a row each of text, role, kind and choices; count what was mended."""
    notes: Counter[str] = Counter()
    rows = [_read_one(text, options, notes) for text in texts.iter_rows()]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row"), notes


def _read_one(values: _Text, options: SemanticsOptions, notes: Counter[str]) -> _Row:
    text, role, kind, choices = values
    plain, corrected = clean_text(text)
    for note in corrected:
        notes["not UTF-8" if note.startswith("byte") else note] += 1
    if role == "vote":
        vote = parse_vote(plain)
        return None if vote is None else str(vote), None, None, None, _reason(vote, "vote"), "vote"
    if role == "probe":
        probed = parse_confidence(plain, scale=options.scale, words=options.words)
        return None, probed, None, None, _reason(probed, "probe"), "probe"
    if role == "list":
        listed = parse_top_k(plain, scale=options.scale, words=options.words)
        if listed:
            answers = [entry.answer or "" for entry in listed]
            confidences = [entry.confidence for entry in listed]
            return answers[0], confidences[0], answers, confidences, "attempted", "list"
        return None, None, None, None, not_attempted(plain) or "unparsed", "list"
    extracted = extract_answer(
        plain,
        kind=kind,
        choices=choices,
        stated=True if role == "stated" else None,
        scale=options.scale,
        words=options.words,
    )
    return extracted.answer, extracted.confidence, None, None, extracted.status, extracted.rule


def _reason(value: object, name: str) -> str:
    return name if value is not None else "unparsed"
