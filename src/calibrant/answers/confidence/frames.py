"""From the tables `draws`, `semantics` and `questions` to the compact structure."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from calibrant.answers.confidence.alternatives import first_tokens, with_best_option, yes_no_masses
from calibrant.answers.confidence.columns import tokens_from_frame
from calibrant.answers.confidence.compact import NO_CLASS, DrawBlock, DrawTable, TopTokens
from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.data import check_table
from calibrant.data.study import DRAWS, SEMANTICS

_POOL = "p_true_pool"


def verified_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a model's verdicts on meanings that it drew itself: unit, class_id, verdict columns.

    A candidate belongs to the meaning of the draws whose answer is the same text, but for case
    and spaces. Two candidates of one meaning are two rows.
    """
    draws = frame.filter(pl.col("block") == "samples", pl.col("class_id").is_not_null())
    draws = draws.select("unit", "class_id", key=_plain(pl.coalesce("answer", "text")))
    draws = draws.unique(["unit", "key"], keep="first", maintain_order=True)
    request = _verdicts(frame).drop("class_id").rename({"asked": "key"})
    joined = request.join(draws, on=["unit", "key"], how="inner", maintain_order="left")
    return joined.sort("unit", "draw", maintain_order=True)


def panel_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the verdicts of other models on each greedy answer: one row per judge and unit."""
    forms = {"key": _plain(pl.coalesce("answer", "text")), "whole": _plain(pl.col("text"))}
    answers = frame.filter(pl.col("block") == "greedy")
    answers = answers.select("unit", "question_id", author="model", **forms)
    pairs = answers.join(_verdicts(frame).drop("unit"), on="question_id", maintain_order="left")
    matches = (pl.col("asked") == pl.col("key")) | (pl.col("asked") == pl.col("whole"))
    peers = pairs.filter(pl.col("author") != pl.col("model"), matches)
    peers = peers.unique(["unit", "model"], keep="first", maintain_order=True)
    return peers.sort("unit", maintain_order=True)


def _verdicts(frame: pl.DataFrame) -> pl.DataFrame:
    request = frame.filter((pl.col("purpose") == _POOL) & pl.col("about").is_not_null())
    return request.with_columns(_plain(pl.col("about")).alias("asked"))


def _plain(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()


_KEY = ["question_id", "model", "purpose", "draw"]
_SINGLE = {"verb": "verb_samples", "verb_topk": "verb_topk_samples"}
_LEADING = {"confidences": "stated_confidence", "answers": "answer"}
_LEADING |= {"classes": "class_id", "correct": "correct"}
_OPTIONAL: dict[str, pl.DataType] = {
    "answer": pl.String(),
    "temperature": pl.Float64(),
    "token_logprobs": pl.List(pl.Float64()),
    "first_token_top_logprobs": pl.List(pl.Struct({"token": pl.String(), "logprob": pl.Float64()})),
    "stated_confidence": pl.Float64(),
    "stated_answers": pl.List(pl.String()),
    "stated_confidences": pl.List(pl.Float64()),
    "class_id": pl.Int64(),
    "correct": pl.Boolean(),
    "stated_classes": pl.List(pl.Int64()),
    "stated_correct": pl.List(pl.Boolean()),
}


def compact_table(
    draws: pl.DataFrame,
    semantics: pl.DataFrame | None = None,
    questions: pl.DataFrame | None = None,
    *,
    similarities: pl.DataFrame | None = None,
) -> DrawTable:
    """Put the tables of a study into columns.

    Parameters
    ----------
    draws
        Table `draws`; the columns ``stated_confidence``, ``stated_answers``,
        ``stated_confidences`` (texts already parsed), ``embedding`` and ``alone_logprob`` are read
        where present.
    semantics
        Class and grade of each draw, joined by question, model, purpose and draw. Class ids are
        comparable within a question and model, whatever the purpose.
    questions
        Needed for choice and yes/no questions.
    similarities
        Columns question_id, model, similarity: the row-major matrix of similarities between the
        sampled answers in draw order.

    Returns
    -------
    DrawTable
        One unit per question and model, in the order of the draws.
    """
    frame = _joined(draws, semantics)
    units = frame.select("question_id", "model").unique(maintain_order=True)
    units = units.with_row_index("unit").with_columns(pl.col("unit").cast(pl.Int64))
    frame = frame.join(units, on=["question_id", "model"], how="left", maintain_order="left")
    frame = frame.with_columns(block=_block_name()).sort("unit", "draw", maintain_order=True)
    by_block = frame.partition_by("block", as_dict=True).items()
    parts = {str(name): part for (name,), part in by_block}
    for single, number in _SINGLE.items():
        # The draw at temperature 0 of each unit, or its first draw where there is none.
        sample = [parts[name] for name in (single, number) if name in parts]
        if sample:
            firsts = pl.concat(sample).unique("unit", keep="first", maintain_order=True)
            parts[single] = firsts.sort("unit")
    blocks = {name: _block(name, part, len(units)) for name, part in parts.items()}
    if "about" in frame.columns and (frame["purpose"] == _POOL).any():
        for name, rows in (("verified", verified_rows(frame)), ("panel", panel_rows(frame))):
            if rows.height:
                blocks[name] = _block(name, rows, len(units))
    if "greedy" in blocks:
        blocks["greedy"] = _with_options(blocks["greedy"], parts["greedy"], frame, questions)
    return DrawTable(
        question_id=units["question_id"],
        model=units["model"],
        blocks=blocks,
        similarity=None if similarities is None else _matrices(units, similarities, blocks),
    )


def _joined(draws: pl.DataFrame, semantics: pl.DataFrame | None) -> pl.DataFrame:
    draws = check_table(draws, DRAWS, source="draws")
    _refuse_duplicates(draws, "draws")
    if semantics is not None:
        semantics = check_table(semantics, SEMANTICS, source="semantics")
        if "purpose" not in semantics.columns:
            semantics = semantics.with_columns(pl.lit("answer").alias("purpose"))
        _refuse_duplicates(semantics, "semantics")
        names = ["class_id", "correct", "stated_classes", "stated_correct"]
        rows = semantics.select(*_KEY, *(name for name in names if name in semantics.columns))
        draws = draws.drop([name for name in names if name in draws.columns])
        draws = draws.join(rows, on=_KEY, how="left", maintain_order="left")
    return draws.with_columns(
        (pl.col(name) if name in draws.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in _OPTIONAL.items()
    )


def _refuse_duplicates(frame: pl.DataFrame, source: str) -> None:
    repeated = frame.select(pl.struct(_KEY).is_duplicated()).to_series()
    if repeated.any():
        row = int(repeated.arg_max() or 0)
        key = frame.select(_KEY).row(row, named=True)
        raise InputError(
            f"a draw is listed once per question, model, purpose and draw, got {key} twice",
            source=source,
            row=row + 1,
        )


def _block_name() -> pl.Expr:
    purpose, frozen = pl.col("purpose"), (pl.col("temperature") == 0.0).fill_null(False)
    return (
        pl.when((purpose == "greedy") | ((purpose == "answer") & frozen))
        .then(pl.lit("greedy"))
        .when(purpose == "answer")
        .then(pl.lit("samples"))
        .when(purpose.is_in(list(_SINGLE)) & ~frozen)
        .then(purpose + "_samples")
        .otherwise(purpose)
    )


def _block(name: str, frame: pl.DataFrame, n_units: int) -> DrawBlock:
    if name.startswith("verb_topk"):
        # Of a stated list the entry of largest confidence counts, the first among equals.
        place = pl.col("stated_confidences").list.arg_max()
        frame = frame.with_columns(
            pl.col(f"stated_{lists}").list.get(place, null_on_oob=True).alias(single)
            for lists, single in _LEADING.items()
        )
    more: dict[str, Any] = {}
    if name in ("samples", "greedy"):
        texts = frame["text"].fill_null("").cast(pl.Categorical)
        more = _likelihood(frame) | {
            "string": texts.to_physical().to_numpy().astype(np.int64),
            "text": frame["text"],
            "columns": tokens_from_frame(frame),
        }
        for values in {"end_logprob", "alone_logprob"} & set(frame.columns):
            more[values] = _floats(frame[values])
    if name == "samples":
        more["embedding"] = _embedding(frame)
    if name == "greedy":
        flat = first_tokens(frame)
        rows = flat["row"].to_numpy().astype(np.int64)
        more["top"] = TopTokens(rows, _floats(flat["logprob"]), flat["token"])
    probe = name.startswith("p_true") or name in ("verified", "panel", "selfcheck")
    if probe:
        more["vote"] = _votes(frame)
    if probe or name == "greedy":
        more["true_mass"], more["false_mass"] = yes_no_masses(frame)
    if name.startswith(("verb", "self_ask")):
        more["stated"] = _stated(frame)
    return DrawBlock(
        unit=frame["unit"].to_numpy().astype(np.int64),
        n_units=n_units,
        class_id=frame["class_id"].fill_null(NO_CLASS).to_numpy().astype(np.int64),
        correct=_floats(frame["correct"]),
        answer=frame.select(pl.coalesce("answer", "text").alias("answer")).to_series(),
        **more,
    )


def _likelihood(frame: pl.DataFrame) -> dict[str, Floats]:
    """Return log-prob, number of tokens and smallest token log-prob; NaN where any is missing."""
    tokens = pl.col("token_logprobs")
    finite = (tokens.list.len() > 0) & (tokens.list.drop_nulls().list.len() == tokens.list.len())
    values = frame.select(
        pl.when(finite).then(tokens.list.sum()).alias("logprob"),
        pl.when(finite).then(tokens.list.len()).alias("tokens"),
        pl.when(finite).then(tokens.list.min()).alias("min_logprob"),
        pl.when(finite).then(tokens.list.max()).alias("max"),
    )
    row = int(values["max"].arg_max() or 0)
    largest = values["max"].max()
    if isinstance(largest, float) and largest > 1e-6:
        raise InputError(
            f"a token log-prob must not be positive, got {largest}",
            source="draws",
            hint=f"question {frame['question_id'][row]!r}, model {frame['model'][row]!r}",
        )
    return {name: _floats(values[name]) for name in ("logprob", "tokens", "min_logprob")}


def _stated(frame: pl.DataFrame) -> Floats:
    confidence = _floats(frame["stated_confidence"])
    wrong = np.flatnonzero((confidence < 0) | (confidence > 1))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"a stated confidence lies in [0, 1], got {confidence[row]}",
            source="draws",
            hint=f"question {frame['question_id'][row]!r}: divide percentages by 100",
        )
    return confidence


def _votes(frame: pl.DataFrame) -> Floats:
    words = frame["answer"].str.strip_chars().str.to_lowercase()
    votes = {"true": 1.0, "false": 0.0}
    return _floats(words.replace_strict(votes, default=None, return_dtype=pl.Float64))


def _embedding(frame: pl.DataFrame) -> Floats | None:
    if "embedding" not in frame.columns:
        return None
    column = frame["embedding"].cast(pl.List(pl.Float64))
    sizes = column.list.len().drop_nulls().unique()
    if not len(sizes):
        return None
    if len(sizes) > 1:
        raise InputError(
            f"all embeddings must have the same length, got lengths {sizes.sort().to_list()}",
            source="draws",
        )
    matrix = np.full((len(column), int(sizes[0])), np.nan)
    present = column.is_not_null().to_numpy()
    matrix[present] = column.drop_nulls().list.to_array(int(sizes[0])).to_numpy()
    return matrix


def _with_options(
    block: DrawBlock, greedy: pl.DataFrame, frame: pl.DataFrame, questions: pl.DataFrame | None
) -> DrawBlock:
    """Add the options of choice questions; keep yes/no words for yes/no questions only."""
    binary: list[str] = []
    if questions is not None and "kind" in questions.columns:
        binary = questions.filter(kind="binary")["question_id"].to_list()
    request = greedy["question_id"].is_in(binary).to_numpy()
    yes, no = (np.where(request, mass, np.nan) for mass in (block.true_mass, block.false_mass))
    block = replace(block, true_mass=yes, false_mass=no)
    return block if questions is None else with_best_option(block, greedy, frame, questions)


def _matrices(
    units: pl.DataFrame, similarity: pl.DataFrame, blocks: dict[str, DrawBlock]
) -> list[Floats | None]:
    key = ["question_id", "model"]
    values = similarity.select(*key, "similarity")
    joined = units.join(values, on=key, how="left", maintain_order="left")
    counts = blocks["samples"].count if "samples" in blocks else np.zeros(len(units))
    matrices: list[Floats | None] = [None] * len(units)
    for unit, cells in enumerate(joined["similarity"]):
        size = int(counts[unit])
        if cells is not None and len(cells) != size * size:
            raise InputError(
                f"a similarity matrix has one cell per pair of draws: {size * size} cells for "
                f"{size} draws, got {len(cells)}",
                source="similarity",
                hint=f"question {joined['question_id'][unit]!r}",
            )
        if cells is not None:
            matrices[unit] = np.asarray(cells, dtype=np.float64).reshape(size, size)
    return matrices


def _floats(series: pl.Series) -> Floats:
    """Return the column as floats, null as NaN."""
    return series.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)
