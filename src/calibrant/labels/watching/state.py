"""The state of a watch in a file: written whole or not at all, read back tomorrow."""

import json
import os
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError, SchemaError
from calibrant.core.places import writing
from calibrant.labels.watching.watch import CalibrationWatch

SCHEMA = "calibrant.monitor_state/2"
# Its gaps are accuracy minus confidence; they are turned when it is read.
_FIRST = "calibrant.monitor_state/1"


def load_state(path: str | Path | None) -> dict[tuple[str, str], CalibrationWatch]:
    """Return the watches of a state by model and method; none where there is no file yet."""
    if path is None or not Path(path).exists() or not Path(path).stat().st_size:
        return {}
    try:
        state = json.loads(Path(path).read_text(encoding="utf-8"))
        if state.get("schema") not in (SCHEMA, _FIRST):
            rule = f"this is no state of a monitor (schema {state.get('schema')!r})"
            hint = "name another file: it is created at the end"
            raise SchemaError(rule, source=str(path), hint=hint)
        if state["schema"] == _FIRST:
            _turn_gaps(state["watches"])
        watches = [CalibrationWatch.from_dict(entry) for entry in state["watches"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        rule = f"the state of the monitor cannot be read ({type(error).__name__})"
        hint = "name another file, and start the watch anew with a baseline"
        raise InputError(rule, source=str(path), hint=hint) from None
    return {(watch.keys["model"], watch.keys["method"]): watch for watch in watches}


def _turn_gaps(watches: list[dict[str, Any]]) -> None:
    for entry in (entry for watch in watches for entry in watch["history"]):
        value, low, high, *peers = entry["gap"]
        entry["gap"] = [0.0 - value, 0.0 - high, 0.0 - low, *peers]


def save_state(path: str | Path, watches: dict[tuple[str, str], CalibrationWatch]) -> None:
    """Write the state beside its place, then move it there."""
    target = Path(path)
    states = [watch.to_dict() for watch in watches.values()]
    text = json.dumps({"schema": SCHEMA, "watches": states})
    half = target.with_name(target.name + ".part")
    with writing(target):
        half.write_text(text, encoding="utf-8")
        os.replace(half, target)
