"""A table while it is being labelled: its rows, its batches, and what comes back from people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.output import writing
from calibrant.planning.peers import peer_agreement
from calibrant.records import load_scores, read_table, source_name
from calibrant.verbs.groups import scores_source

__all__ = ["BATCH", "ROW", "Labelling", "open_labelling", "read_batch", "write_table"]

ROW = "label_row"
BATCH = "label_batch"
_YES = {"1", "1.0", "true", "t", "yes", "y", "right", "correct"}
_NO = {"0", "0.0", "false", "f", "no", "n", "wrong", "incorrect"}
_QUESTION_TEXT = ("text", "question", "prompt", "question_text")


class Labelling:
    """The raw table, its checked view, and where labels go."""

    def __init__(
        self, raw: pl.DataFrame, source: str, columns: Mapping[str, Any], judge: str | None
    ) -> None:
        self.raw = raw
        self.source = source
        self.columns = columns
        self.judge = judge
        self.side: pl.Series | None = None
        self.frame = pl.DataFrame()
        self.dropped: dict[str, int] = {}
        self.refresh()

    @property
    def outcome(self) -> str:
        """Name of the outcome's column in the raw table."""
        return self.columns.get("correct") or "correct"

    @property
    def batches(self) -> int:
        """Batches taken back so far."""
        if BATCH not in self.raw.columns:
            return 0
        return int(self.raw[BATCH].max() or 0)  # type: ignore[arg-type]

    def refresh(self) -> None:
        """Check the rows again after labels were added."""
        try:
            scores = load_scores(
                self.raw.with_row_index(ROW, offset=1), labels="optional", **dict(self.columns)
            )
        except InputError as error:
            # The frame was read here, so the message has to name the file in its place.
            raise InputError(
                error.rule, source=self.source, row=error.row, hint=error.hint
            ) from None
        self.frame, self.dropped = scores.frame, dict(scores.dropped)

    def use_peers(self) -> None:
        """Take the agreement of the other models as side information."""
        self.side = peer_agreement(self.frame)

    def blocks(
        self,
    ) -> list[tuple[dict[str, str], pl.DataFrame, np.ndarray[Any, np.dtype[np.float64]] | None]]:
        """Return keys, rows and side information of every (model, method)."""
        frame = self.frame
        name = None
        if self.side is not None:
            name = "label_peers"
            frame = frame.with_columns(self.side.alias(name))
        elif self.judge is not None:
            name = self.judge
        found = []
        for part in frame.partition_by(["model", "method"], maintain_order=True):
            keys = {key: str(part[key][0]) for key in ("model", "method")}
            side = None
            if name is not None:
                side = part[name].cast(pl.Float64).to_numpy().reshape(-1, 1)
            found.append((keys, part, side))
        return found

    def write_batch(self, rows: list[int], path: Path, number: int) -> None:
        """Write the chosen rows for a person: question and answer, never the confidence."""
        order = pl.DataFrame({ROW: rows}, schema={ROW: self.frame.schema[ROW]})
        batch = order.join(self.frame, on=ROW, how="left", maintain_order="left")
        shown = [name for name in _QUESTION_TEXT if name in batch.columns]
        keep = [ROW, "question_id", "model", *shown]
        keep += [name for name in ("answer", "references") if name in batch.columns]
        nested = [name for name in keep if batch.schema[name].is_nested()]
        batch = batch.with_columns(
            pl.col(name).map_elements(_listed, return_dtype=pl.String) for name in nested
        )
        batch = batch.select(keep).with_columns(
            pl.lit(number).alias(BATCH), pl.lit(None, dtype=pl.String).alias("correct")
        )
        write_table(batch, path)

    def add(self, labels: pl.DataFrame, source: str) -> int:
        """Put the labels into the table; an item is labelled once and for its own answer."""
        names = ["question_id", "correct", *self._answers()]
        known = self.frame.select(
            pl.col(ROW).cast(pl.Int64), *(pl.col(name).alias(f"{name}_table") for name in names)
        )
        merged = labels.join(known, on=ROW, how="left", maintain_order="left")
        checks = [(pl.col("question_id_table").is_null(), "the row is not in the table")]
        checks.append(
            (
                pl.col("question_id").cast(pl.String) != pl.col("question_id_table"),
                "the question is another one than in the table",
            )
        )
        if {"answer", "answer_table"} <= set(merged.columns):
            checks.append(
                (
                    pl.col("answer")
                    .cast(pl.String)
                    .ne_missing(pl.col("answer_table").cast(pl.String)),
                    "the answer is another one than in the table",
                )
            )
        checks.append(
            (
                pl.col("correct_table").is_not_null()
                & (pl.col("correct_table") != pl.col("label")),
                "the item has the opposite label already",
            )
        )
        for broken, rule in checks:
            bad = merged.filter(broken)
            if bad.height:
                raise InputError(
                    f"{rule} ({ROW} {bad[ROW][0]})",
                    source=source,
                    hint="label the batch that `calibrant label next` wrote for this very table",
                )
        self._write(labels)
        return labels.height

    def _answers(self) -> list[str]:
        return ["answer"] if "answer" in self.frame.columns else []

    def _write(self, labels: pl.DataFrame) -> None:
        rows = labels[ROW].to_numpy().astype(np.intp) - 1
        outcome = self.raw[self.outcome].cast(pl.Float64).to_list()
        number = [None] * self.raw.height
        if BATCH in self.raw.columns:
            number = self.raw[BATCH].to_list()
        for row, label, batch in zip(rows, labels["label"], labels[BATCH], strict=True):
            outcome[row], number[row] = label, batch
        self.raw = self.raw.with_columns(
            pl.Series(self.outcome, outcome, dtype=pl.Float64),
            pl.Series(BATCH, number, dtype=pl.Int64),
        )
        self.refresh()


def _listed(value: Any) -> str:
    """Return right answers as one line: aliases with a slash, answers with a bar."""
    parts = [value] if isinstance(value, str) else list(value)
    return " | ".join(
        part if isinstance(part, str) else " / ".join(str(alias) for alias in part)
        for part in parts
    )


def open_labelling(
    table: Any, *, judge: str | None, peers: bool, columns: Mapping[str, Any]
) -> Labelling:
    """Read a table that is being labelled; a missing outcome column means 'no label yet'."""
    raw = read_table(scores_source(table))
    source = source_name(table)
    if ROW in raw.columns:
        raise InputError(
            f"this is a batch (it has a column {ROW}), not the table it came from", source=source
        )
    outcome = columns.get("correct") or "correct"
    if outcome not in raw.columns:
        raw = raw.with_columns(pl.lit(None, dtype=pl.Float64).alias(outcome))
    if judge is not None:
        if judge not in raw.columns:
            raise InputError(f"there is no column {judge!r} of a judge", source=source)
        verdicts = raw[judge].cast(pl.Float64, strict=False)
        outside = verdicts.is_null() | verdicts.is_nan() | (verdicts < 0) | (verdicts > 1)
        if outside.any():
            row = int(outside.arg_max() or 0) + 1
            raise InputError(
                f"the judge's verdict lies in [0, 1] for every item (column {judge})",
                source=source,
                row=row,
            )
    if judge is not None and peers:
        raise InputError("give either a judge or the peers as side information, not both")
    work = Labelling(raw, source, columns, judge)
    if peers:
        work.use_peers()
    return work


def read_batch(path: Path) -> tuple[pl.DataFrame, int]:
    """Return the filled rows of a batch (0 or 1 in ``label``) and how many are still empty."""
    batch = read_table(path)
    for name in (ROW, "question_id", BATCH, "correct"):
        if name not in batch.columns:
            raise InputError(
                f"a batch has the column {name!r}",
                source=str(path),
                hint="give the file that `calibrant label next` wrote",
            )
    text = batch["correct"].cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    known = pl.Series([*_YES, *_NO, ""])
    strange = ~text.is_in(known.implode())
    if strange.any():
        row = int(strange.arg_max() or 0)
        raise InputError(
            f"a label is 1 or 0 (or true, false, yes, no), got {text[row]!r}",
            source=str(path),
            row=row + 1,
        )
    label = text.replace_strict(
        {word: 1.0 for word in _YES} | {word: 0.0 for word in _NO} | {"": None},
        return_dtype=pl.Float64,
    )
    batch = batch.with_columns(label.alias("label"), pl.col(ROW, BATCH).cast(pl.Int64))
    filled = batch.filter(pl.col("label").is_not_null())
    if filled.height == 0:
        raise InputError("no label is filled in", source=str(path))
    if filled[ROW].is_duplicated().any():
        raise InputError("an item occurs twice in the batch", source=str(path))
    return filled.drop("correct"), batch.height - filled.height


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table in the format its name says: csv, jsonl or parquet."""
    ending = path.suffix.lower()
    if ending not in (".csv", ".jsonl", ".parquet"):
        raise InputError(f"a table is written as .csv, .jsonl or .parquet, got {path.name!r}")
    if ending == ".csv":
        nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
        if nested:
            raise InputError(
                f"a csv cannot hold the nested column {nested[0]!r}",
                source=str(path),
                hint="write .parquet or .jsonl",
            )
    with writing(path):
        if ending == ".csv":
            frame.write_csv(path)
        elif ending == ".jsonl":
            frame.write_ndjson(path)
        else:
            frame.write_parquet(path)
