"""Where what `audit` was given goes: every call of a run, followed by the interpreter's profiler.

Reading the code for calls follows every branch and every value made from the input. A run shows
what the input itself enters, and whether code of a lower layer ever calls code of a higher one.
"""

from __future__ import annotations

import sys
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import calibrant as cal
from studies._page import ROOT

SOURCE = ROOT / "src" / "calibrant"
# Declares the verb and checks its options: every call passes through it.
DECLARATION = "core/"
DECLARED = ("core/verb.py", "verbs/audit.py")


class Call(NamedTuple):
    """A call of a function in a file of calibrant: who called it, and with what."""

    here: str
    caller: str | None
    given: tuple[Any, ...] = ()


def table(n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    said = rng.uniform(0.4, 1, n)
    right = (rng.random(n) < said).astype(int)
    return pl.DataFrame(
        {"question_id": [f"q{i}" for i in range(n)], "confidence": said, "correct": right}
    )


def inputs(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield an input of each kind, by name; files are written to the folder."""
    frame = table()
    frame.write_csv(folder / "scores.csv")
    frame.write_parquet(folder / "scores.parquet")
    logs = SOURCE / "verbs" / "study" / "examples" / "logs" / "lm_eval"
    yield "csv", str(folder / "scores.csv")
    yield "parquet", str(folder / "scores.parquet")
    yield "frame", frame
    yield "rows", frame.to_dicts()
    yield "log", str(next(iter(sorted(logs.glob("*choice*.jsonl")))))


def _place(frame: FrameType) -> str | None:
    """Return the file of calibrant in which a function stands, or None; loading is no call."""
    code = frame.f_code
    if not code.co_filename.startswith(str(SOURCE)) or code.co_name == "<module>":
        return None
    return Path(code.co_filename).relative_to(SOURCE).as_posix()


def calls_of(run: Callable[[], object]) -> list[Call]:
    """Return every call into calibrant during a run, in all its threads."""
    found: list[Call] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        here = _place(frame) if event == "call" else None
        if here is None:
            return
        caller = frame.f_back
        while caller is not None and _place(caller) is None:
            caller = caller.f_back
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = tuple(frame.f_locals.get(name) for name in names)
        found.append(Call(here, None if caller is None else _place(caller), given))

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def audited(data: Any, **options: Any) -> list[Call]:
    """Return the calls of an audit; a run before it loads what is loaded on first use."""
    cal.audit(data, resamples=20, **options)
    return calls_of(lambda: cal.audit(data, resamples=20, **options))


def calls_with(data: Any, calls: Iterable[Call]) -> list[Call]:
    """Return the calls that were given `data` itself, without the declaration of the verb."""
    return [
        call
        for call in calls
        if not call.here.startswith(DECLARATION) and any(value is data for value in call.given)
    ]


def entered(data: Any, calls: list[Call]) -> list[str]:
    """Return the files that `data` itself enters until it is opened, in order.

    A document names its input, and the name of a file is the path that was given: what comes
    after the opening is followed with a path object, which is never a name.
    """
    opened = [call.here for call in calls].index("verbs/score_documents.py")
    return list(dict.fromkeys(call.here for call in calls_with(data, calls[:opened])))


def layers() -> dict[str, int]:
    """Return the number of each package's layer, 0 on top, as the import contract has them."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    contract = next(one for one in contracts if one["type"] == "layers")
    return {
        name.strip(): number
        for number, line in enumerate(contract["layers"])
        for name in line.split("|")
    }


def climbs(calls: Iterable[Call]) -> set[tuple[str, str]]:
    """Return the calls from a lower layer into a higher one, as (caller's file, file)."""
    layer = layers()
    return {
        (call.caller, call.here)
        for call in calls
        if call.caller is not None
        and layer[call.here.split("/")[0]] < layer[call.caller.split("/")[0]]
    }
