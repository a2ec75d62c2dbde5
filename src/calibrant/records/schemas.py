"""The four tables and their versions. Further columns are carried along as features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from calibrant.core.errors import SchemaError
from calibrant.core.registry import did_you_mean

_TEXT, _WHOLE, _REAL, _FLAG = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Names and types of a table; `required` columns must be there."""

    name: str
    version: int
    required: Mapping[str, pl.DataType]
    optional: Mapping[str, pl.DataType] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, pl.DataType]:
        """All declared columns."""
        return {**self.required, **self.optional}


QUESTIONS = TableSchema(
    "questions",
    1,
    {"question_id": _TEXT, "text": _TEXT},
    {
        "references": pl.List(pl.List(_TEXT)),
        "kind": _TEXT,
        "choices": pl.List(_TEXT),
        "domain": _TEXT,
        "k": _WHOLE,
    },
)
DRAWS = TableSchema(
    "draws",
    1,
    {"question_id": _TEXT, "model": _TEXT, "purpose": _TEXT, "draw": _WHOLE, "text": _TEXT},
    {
        "answer": _TEXT,
        "finish_reason": _TEXT,
        "token_logprobs": pl.List(_REAL),
        "first_token_top_logprobs": pl.List(
            pl.Struct({"token": pl.String(), "logprob": pl.Float64()})
        ),
        "temperature": _REAL,
        "seed": _WHOLE,
        "prompt_tokens": _WHOLE,
        "completion_tokens": _WHOLE,
        "cost": _REAL,
        "latency_s": _REAL,
        "request_id": _TEXT,
    },
)
SEMANTICS = TableSchema(
    "semantics",
    1,
    {"question_id": _TEXT, "model": _TEXT, "draw": _WHOLE, "class_id": _WHOLE},
    {"purpose": _TEXT, "correct": _FLAG, "reason": _TEXT, "grader": _TEXT, "chance": _REAL},
)
SCORES = TableSchema(
    "scores",
    1,
    {"confidence": _REAL, "correct": _REAL},
    {"question_id": _TEXT, "model": _TEXT, "method": _TEXT, "answer": _TEXT, "weights": _REAL},
)
TABLES = {schema.name: schema for schema in (QUESTIONS, DRAWS, SEMANTICS, SCORES)}


def check_table(frame: pl.DataFrame, schema: TableSchema, *, source: str) -> pl.DataFrame:
    """Return the frame with declared columns cast to their types, or say what is wrong.

    Casting is strict: a value that does not fit its type is an error, never null.
    """
    for name in schema.required:
        if name not in frame.columns:
            raise SchemaError(
                f"the {schema.name} table (version {schema.version}) needs a column {name!r}",
                source=source,
                hint=did_you_mean(name, frame.columns),
            )
    declared = schema.columns
    casts = [
        pl.col(name).cast(declared[name])
        for name, dtype in frame.schema.items()
        if name in declared and dtype not in (declared[name], pl.Null)
    ]
    try:
        return frame.with_columns(casts)
    except pl.exceptions.PolarsError as error:
        raise SchemaError(
            f"the {schema.name} table has a column of another type: {error}", source=source
        ) from None
