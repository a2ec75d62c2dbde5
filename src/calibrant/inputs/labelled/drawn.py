"""Tables of labels that calibrant drew: what their columns say about the draw is used, or refused.

Such rows are no free choice of the pool. Each says how many rows it stands for, how evenly its
draw was spread and by which design, see `calibrant label export`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.calls import Call
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.metrics.drawn_block import DrawnBlock, DrawSpread
from calibrant.metrics.row_block import RowBlock
from calibrant.planning.labelling.session import WHOLE
from calibrant.records import ScoreBlock
from calibrant.records.label_columns import ALONG, DESIGN, DRAW_COLUMNS, SPREAD, WEIGHT
from calibrant.records.tables import collect, scan_table

# Weights that differ by less are equal but for rounding.
_SAME = 1e-6


def equal_chances(weight: pl.Series) -> bool:
    """Return whether all rows stand for as many others."""
    values = weight.cast(pl.Float64, strict=False).to_numpy()
    return bool(values.max() - values.min() <= _SAME * values.max())


def drawn_rules(tables: Sequence[Any], rules: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the rules by which tables of drawn labels are read, and a note that says so.

    Parameters
    ----------
    tables
        Tables that have the column ``label_weight``.
    rules
        Columns and rules of `calibrant.records.load_scores`; weights that are named win.
    """
    if rules.get("weights") not in (None, WEIGHT):
        return rules, []
    found = [collect(scan_table(table), table) for table in tables]
    equal = all(equal_chances(frame[WEIGHT]) for frame in found)
    spread = [n for n in (ALONG, SPREAD) if all(n in frame.columns for frame in found)]
    told = "drawn with equal chances" if equal else f"whose chances the column {WEIGHT} undoes"
    changed = {
        **rules,
        "weights": None if equal else WEIGHT,
        "features": [*(rules.get("features") or ()), *spread],
    }
    return changed, [f"these are labels of a draw, {told}"]


def spread_of(frame: pl.DataFrame) -> DrawSpread | None:
    """Return how the rows of a block were spread when they were drawn, or None."""
    if ALONG not in frame.columns or SPREAD not in frame.columns:
        return None
    along, share = (
        frame[name].cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
        for name in (ALONG, SPREAD)
    )
    return DrawSpread(along, np.nan_to_num(np.clip(share, 0.0, 1.0)))


def block_of(block: ScoreBlock, **options: Any) -> RowBlock:
    """Return the block of one model's rows; of drawn labels it knows how they were spread.

    Parameters
    ----------
    block
        The rows.
    options
        ``probability``, ``bins``, ``level``, ``resamples``, ``rng`` of `RowBlock`.
    """
    rows = (block.confidence, block.correct, block.weights, block.units)
    spread = spread_of(block.frame)
    if spread is None:
        return RowBlock(*rows, **options)
    return DrawnBlock(*rows, spread=spread, **options)


def refuse_unequal(weight: pl.Series, source: str) -> None:
    """Refuse labels of unequal chances where rows have to count the same."""
    if not equal_chances(weight):
        raise InputError(
            "the labels were drawn with unequal chances, and only `audit` and a baseline of "
            "`monitor` can undo them",
            source=source,
            hint=Hint(
                "draw with equal chances: {call}; or audit the models one by one",
                call=Call("label serve", "TABLE", design="stratified"),
            ),
        )


def refuse_incomplete(part: int, of: int, designs: Sequence[str], source: str) -> None:
    """Refuse a comparison on questions of which some models' answers are labelled only.

    One label serves all models that gave an answer. A question on which all agree is complete
    with one label, one with three answers needs three: where single answers were drawn, complete
    questions are no fair choice.
    """
    if part and not all(design.endswith(WHOLE) for design in designs):
        raise InputError(
            f"{part:,} of {of:,} labelled questions have labels for some models only, and "
            "questions on which models agree had a greater chance of being complete",
            source=source,
            hint=Hint(
                "draw whole questions: {call}; or audit the models one by one",
                call=Call("label serve", "TABLE", whole_questions=True),
            ),
        )


def refuse_exported(table: Any, source: str, question: str, model: str) -> None:
    """Refuse an exported table of labels for a comparison that its draw does not allow."""
    frame = collect(scan_table(table), table)
    refuse_unequal(frame[WEIGHT], source)
    if question not in frame.columns or model not in frame.columns:
        return
    models = frame.group_by(question).agg(pl.col(model).n_unique().alias("models"))["models"]
    designs = frame[DESIGN].unique().to_list() if DESIGN in frame.columns else [""]
    part = int((models < frame[model].n_unique()).sum())
    refuse_incomplete(part, models.len(), [str(design) for design in designs], source)


def without_draw(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows without what is known of their draw: it is no feature of a question."""
    return frame.drop(DRAW_COLUMNS, strict=False)
