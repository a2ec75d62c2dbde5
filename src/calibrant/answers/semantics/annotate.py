"""The step from draws to the semantics table."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
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
# What is known of a question, empty where a table does not have it.
_ABOUT: dict[str, pl.DataType | type[pl.DataType]] = {
    "question_id": pl.String,
    "text": pl.String,
    "references": pl.Null,
    "kind": pl.String,
    "choices": pl.List(pl.String),
    "siblings": pl.List(pl.String),
}
_EXAMPLES = 20
# Parts that are shared out: some tenths of a second of work each.
TEXTS_AT_ONCE, GROUPS_AT_ONCE = 2_000, 200
Mapper: TypeAlias = Callable[..., Iterator[Any]]
_VERDICT: dict[str, type[pl.DataType]] = {
    "class_id": pl.Int64,
    "correct": pl.Boolean,
    "graded": pl.String,
    "grader": pl.String,
    "chance": pl.Float64,
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
    for reader, what in ((options.judge, "a judge"), (options.compare, "an embedder")):
        if mapper is not None and reader is not None:
            raise InputError(
                f"{what} works on the whole table at once, an engine shares it out",
                hint=f"leave out {what}, or the engine",
            )
    work = _with_questions(draws, questions)
    read, notes = _read(work, options, mapper or map)
    work = pl.concat([work.drop("answer", strict=False), read], how="horizontal")
    settler = Settler(options)
    # One row per answer to classify: of each draw, and of each place of a list.
    attempted = work.filter(pl.col("reason") == "attempted", pl.col("role") != "vote")
    listed = pl.col("role") == "list"
    answers = pl.when(listed).then("stated_answers").otherwise(pl.concat_list("answer"))
    long = attempted.select(
        "row", *_KEY, answers.alias("answer"), place=pl.int_ranges(answers.list.len())
    ).explode("answer", "place")
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
    if questions is None:
        return
    if "question_id" not in questions.columns:
        raise InputError(f"the questions table needs question_id; it has {questions.columns}")
    twice = questions.filter(pl.col("question_id").is_duplicated())["question_id"]
    if len(twice):
        raise InputError(f"a question_id is given once; {twice[0]!r} is there more often")


def _with_questions(draws: pl.DataFrame, questions: pl.DataFrame | None) -> pl.DataFrame:
    """Return the draws with a row number, their role and their question's kind."""
    work = draws.select(*_NEEDED, *({"answer"} & set(draws.columns))).with_columns(
        pl.col("question_id", "model").cast(pl.String),
        pl.int_range(pl.len()).alias("row"),
        pl.col("purpose")
        .cast(pl.String)
        .replace_strict(ROLES, default="answer", return_dtype=pl.String)
        .alias("role"),
    )
    about = pl.DataFrame(schema=_ABOUT) if questions is None else questions
    columns = [
        pl.col(name) if name in about.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in _ABOUT.items()
    ]
    about = about.select(columns).rename({"text": "question"})
    return work.join(
        about.with_columns(pl.col("question_id").cast(pl.String)),
        on="question_id",
        how="left",
        maintain_order="left",
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
    read = pl.concat([distinct, pl.concat([each for each, _ in readings])], how="horizontal")
    joined = work.select(key).join(
        read, on=key, how="left", maintain_order="left", nulls_equal=True
    )
    return joined.drop(key), notes


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
        settled = list(chain(*mapper(partial(_settle_part, options=settler.options), parts)))
    settler.read_again(groups, settled)
    values = [
        (class_id, grade.correct, grade.reason, grade.grader, grade.probability)
        for each in settled
        for class_id, grade in zip(each.clusters.ids, each.grades, strict=True)
    ]
    answers = grouped.select(*_KEY, answer="answers").explode("answer")
    return answers.hstack(pl.DataFrame(values, schema=_VERDICT, orient="row")), settled


def _settle_part(groups: list[Group], options: SemanticsOptions) -> list[Settled]:
    return Settler(options).settle(groups)


def _semantics(work: pl.DataFrame, long: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    joined = long.join(verdicts, on=[*_KEY, "answer"], how="left", maintain_order="left")
    first = joined.filter(pl.col("place") == 0).select("row", *_VERDICT)
    listed = work.filter(pl.col("role") == "list").select("row")
    lists = (
        joined.join(listed, on="row", how="semi")
        .group_by("row", maintain_order=True)
        .agg(pl.col("class_id").alias("stated_classes"), pl.col("correct").alias("stated_correct"))
    )
    return (
        work.select("row", *_KEY, "purpose", "draw", "reason")
        .join(first, on="row", how="left", maintain_order="left")
        .join(lists, on="row", how="left", maintain_order="left")
        .with_columns(pl.coalesce("graded", "reason"), pl.coalesce("grader", "reason"))
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
