"""An audit of a table of any size: parts are summed by an engine, the sums are merged."""

from __future__ import annotations

import importlib
import sys
import threading
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

import calibrant
from calibrant.core.errors import InputError, UndefinedMetricWarning
from calibrant.core.rng import named_stream
from calibrant.inputs.audit_options import AuditOptions
from calibrant.inputs.engines import Engine, LocalEngine, engine_named
from calibrant.inputs.footers import streamed_input
from calibrant.inputs.repeated import refuse_repeats
from calibrant.inputs.streaming import staged, sum_plan
from calibrant.records.batches import Part, table_parts
from calibrant.records.part_sums import PartSums, SumPlan, ThreadSums, model_blocks, sum_part
from calibrant.stats.mergeable import CellSums

if TYPE_CHECKING:
    from calibrant.report.result import Result

__all__ = ["streamed_audit", "summed"]

_CURVE_POINTS = 100
_HISTOGRAM_BINS = 20
_SWITCH_S = 0.0002


def streamed_audit(data: str | Path, options: AuditOptions) -> Result:
    """Audit a table in one pass over its parts; the document does not depend on the engine.

    Parameters
    ----------
    data
        A parquet file, a folder or glob of them, a URL, or a csv or jsonl file.
    options
        The options of `audit`.
    """
    options = replace(options, on_invalid=options.on_invalid or "error")
    runner = engine_named(options.engine)
    with staged(str(data)) as source:
        streamed = sum_plan(
            source,
            bins=options.bins,
            by=options.by,
            percent=options.scale == "percent",
            drop=options.on_invalid == "drop",
            columns=options.columns,
        )
        parts = table_parts(source, streamed.plan.columns)
        if not parts:
            raise InputError("the table has no rows", source=str(data))
        files = streamed_input(str(data), source, parts)
        total = summed(parts, streamed.plan, runner, shown=str(data), staged=source)
        if not total.blocks:
            counts = ", ".join(f"{rule} {count}" for rule, count in total.dropped.items())
            raise InputError(f"no row keeps the rules: {counts}", source=str(data))
        _refuse_scores(total, str(data))
        refuse_repeats(streamed, total.rows)
    entries = _entries(total, streamed.plan, options)
    from calibrant.report.result import Result
    from calibrant.verbs.significance import correct_for_number
    from calibrant.verbs.verdict import audit_verdict

    multiplicity = correct_for_number(entries)
    entries = [{**entry, "verdict": audit_verdict(entry)} for entry in entries]
    return Result(
        {
            "schema": "calibrant.audit/1",
            "version": calibrant.__version__,
            "source": str(data),
            "input": files,
            "seed": options.seed,
            "settings": options.settings,
            "level": options.level,
            "bins": options.bins,
            "resamples": options.resamples,
            "recalibrated": None,
            "reading": {
                "way": "streamed",
                "rows": total.rows,
                "parts": len(parts),
                "cells": streamed.plan.grid.cells,
            },
            "multiplicity": multiplicity,
            "dropped": total.dropped,
            "dropped_rows": total.dropped_rows,
            "emptied_models": sorted(total.thinned - {key[0] for key in total.blocks}),
            "results": entries,
            "sem_ece": [],
        }
    )


def summed(
    parts: list[Part], plan: SumPlan, engine: Engine, *, shown: str, staged: str
) -> PartSums:
    """Return the sums of all parts; rows of a rewritten text table are named after the table."""
    total = PartSums()
    threading.Thread(target=_load_metrics, daemon=True).start()
    # Loading holds the interpreter's lock; counting needs it often, and only for a moment.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        if isinstance(engine, LocalEngine):
            sums = ThreadSums(plan)
            for part in engine.map(sums, parts):
                total.add(part)
            total.add_blocks(sums.blocks())
        else:
            for part in engine.map(partial(sum_part, plan=plan), parts):
                total.add(part)
    except InputError as error:
        source = shown if error.source == staged else error.source
        raise InputError(error.rule, source=source, row=error.row, hint=error.hint) from None
    finally:
        sys.setswitchinterval(interval)
    if staged != shown and shown not in staged:
        total.dropped_rows = {
            rule: [name.replace(staged, shown, 1) for name in names]
            for rule, names in total.dropped_rows.items()
        }
    return total


def _load_metrics() -> None:
    """Load what the end needs while the parts are read; it takes as long as ten million rows."""
    for name in ("metrics.streamed", "planning.streamed", "verbs.verdict", "report.terminal.evidence.audit"):
        importlib.import_module(f"calibrant.{name}")


def _refuse_scores(total: PartSums, source: str) -> None:
    """Refuse methods that rank answers without being a probability."""
    named = {key[1] for key in total.blocks} - {"confidence"}
    if not named:
        return
    from calibrant.confidence import methods

    ranking = {entry["name"] for entry in methods() if not entry["probability"]}
    found = sorted(named & ranking)
    if found:
        raise InputError(
            f"{found[0]} is a score, not a probability, and a streamed audit takes probabilities",
            source=source,
            hint="leave its rows out, or audit it in memory, without --engine",
        )


def _entries(total: PartSums, plan: SumPlan, options: AuditOptions) -> list[dict[str, Any]]:
    """Return a block per (model, method), each followed by its groups."""
    blocks: list[tuple[dict[str, str], CellSums]] = []
    for (model, method), sums in model_blocks(total.blocks, plan.by, plan.grid).items():
        keys = {"model": model, "method": method}
        blocks.append((keys, sums))
        for column in plan.by:
            blocks += [
                ({**keys, column: key[3]}, found)
                for key, found in sorted(total.blocks.items(), key=lambda item: item[0])
                if key[:3] == (model, method, column)
            ]
    made = partial(_entry, plan=plan, options=options)
    # Blocks run side by side, so the linear algebra library gets one thread for each.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return list(LocalEngine().map(made, blocks))


def _entry(
    block: tuple[dict[str, str], CellSums], *, plan: SumPlan, options: AuditOptions
) -> dict[str, Any]:
    from calibrant.metrics.streamed import CellBlock
    from calibrant.planning.streamed import verification_from_cells
    from calibrant.verbs.significance import tests_of_rows

    keys, sums = block
    stream = named_stream(options.seed, *keys.items())
    cells = CellBlock(sums, plan.grid, level=options.level, resamples=options.resamples, rng=stream)
    group = {name: key for name, key in keys.items() if name not in ("model", "method")}
    metrics = cells.estimates()
    test, mean = (cells.calibration_test(bins, stream) for bins in (plan.grid.bins, 1))
    diagram = cells.reliability_bins()
    curve = cells.reliability_curve(_CURVE_POINTS, stream)
    return {
        "model": keys["model"],
        "method": keys["method"],
        "group": group or None,
        "n": cells.n,
        "questions": cells.n,
        "probability": True,
        "metrics": metrics,
        "sketch_error": cells.errors,
        **tests_of_rows(test, mean, metrics["confidence_gap"]),
        "reliability": {
            "bins": diagram.to_dict(),
            "curve": curve.to_dict(),
            "histogram": cells.histogram(_HISTOGRAM_BINS),
        },
        "verification": verification_from_cells(**cells.verification_sums(), rng=stream),
        "notes": _notes(metrics, plan),
    }


def _notes(metrics: Mapping[str, Any], plan: SumPlan) -> list[str]:
    notes = [
        f"streamed: every row is one question, and confidences within 1/{plan.grid.cells:,} of "
        "each other are ranked as equal; sketch_error bounds what that can change"
    ]
    undefined = [name for name, found in metrics.items() if found.interval == "undefined"]
    return notes + [f"{name} is undefined: all answers are the same" for name in undefined]
