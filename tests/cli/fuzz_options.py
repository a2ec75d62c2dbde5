"""Every option of every verb with values that make no sense, alone and in pairs.

``python tests/cli/fuzz_options.py 0 1 2000`` runs every single value and 2,000 pairs (share 0 of 1)
and prints how each ended.
"""

import importlib
import json
import random
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl
from click.testing import CliRunner

from calibrant.cli.main import app
from calibrant.core.errors import CalibrantError
from calibrant.core.verb import declaration
from calibrant.data import Study
from calibrant.verbs.label import label_next
from cli.all_commands import commands, parameters
from judged import ratings
from support import two_models

NUMBERS = ["-1", "0", "1", "99999999999999999999", "1.5", "nan", "inf", "-inf", "1e308", "1e-320"]
NUMBERS += ["", "x", "0,5", "٣", "0x10", " 7 "]
COLUMNS = ["", " ", "nothing", "confidence", "correct", "topic", "question_id", "time", "k"]
COLUMNS += ["confidence,correct", ",", "topic,,k", "topic,topic", "Ünï☃", "x" * 4000, "-", "\n"]
NAMES = ["", " ", "nothing", "confidence", "correct", "topic", "question_id", "method", "time"]
NAMES += ["confidence,correct", ",", "topic,,k", "topic,topic", "Ünï☃", "x" * 4000, "-", "\n"]
NAMES += ["small,", ",small", "small,small", "small,large", "small,huge", "1,2,", "1,8", "nan,1"]
NAMES += ["-1,1", "inf,1", "1e308,1e308", "small=1,large=", "small=1,small=2", "=", "c10=1"]
NAMES += ["c10=nan,c01=1", "c10=inf,c01=1", "c10=-1,c01=1", "c10=1,c10=2", "c10=1e308,c01=1e308"]
NAMES += ["ece>", "ece>nan", ">0.1", "ece>0.1", "nonsense<1", "9999-99-99", "2026-02-30"]
PLACES = ["", " ", "-", ".", "none/x.json", "bytes.bin", "scores.csv/x", "Ünï☃.json", "y" * 300]
PLACES += ["/dev/null", "empty.csv", "half.json", "loop"]
# What would begin long work, a cluster, or a wait without end if it were taken.
LONG = {
    "--resamples": {"99999999999999999999"},
    "--follow": {"99999999999999999999", "1e308", "inf"},
    "--embed": {"topic", "question_id", "method", "time", "confidence", "correct"},
}
QUICK = {
    "--resamples": "20",
    "--random-splits": "2",
    "--items": "20",
    "--per-k": "1",
}


@dataclass(frozen=True)
class Case:
    """A command with the options that are tried on it."""

    words: str
    options: tuple[tuple[str, str | None], ...]

    def __str__(self) -> str:
        tried = (
            f"{name}={value!r}"[:60] if value is not None else name for name, value in self.options
        )
        return f"{self.words} {' '.join(tried)}"


@dataclass(frozen=True)
class Outcome:
    """How a command ended: ``taken``, ``refused``, ``claim failed``, or what went wrong."""

    kind: str
    message: str
    seconds: float


def values_of(parameter):
    """Return what to try for an option: by its type, and by what it names."""
    if parameter.type is bool:
        return [None]
    if parameter.type in (int, float):
        values = NUMBERS
    elif parameter.option.place:
        values = PLACES
    elif parameter.option.metavar == "COL":
        values = COLUMNS
    else:
        values = NAMES + NUMBERS[:10] + PLACES[3:6]
    return [value for value in values if value not in LONG.get(f"--{parameter.word}", ())]


def single_cases():
    """Return every option with every value."""
    return [
        Case(words, ((f"--{parameter.word}", value),))
        for words, command in commands()
        # These serve until somebody stops them.
        if words not in ("label serve", "serve", "view")
        for parameter in parameters(command).values()
        if not parameter.option.argument
        for value in values_of(parameter)
    ]


def pair_cases(count, seed):
    """Return pairs of options of one command, each with some value."""
    chosen = random.Random(seed)
    by_command = {}
    for case in single_cases():
        by_command.setdefault(case.words, []).append(case.options[0])
    pairs = []
    while len(pairs) < count:
        words = chosen.choice(sorted(by_command))
        first, second = chosen.choice(by_command[words]), chosen.choice(by_command[words])
        if first[0] != second[0]:
            pairs.append(Case(words, (first, second)))
    return pairs


def prepare(folder):
    """Write the tables, the study and the odd files that the commands are given."""
    days = [f"2026-01-{1 + i % 28:02}" for i in range(240)]
    table = two_models(120).with_columns(time=pl.Series(days))
    table.write_csv(folder / "scores.csv")
    ratings(60, 30).write_csv(folder / "ratings.csv")
    half = pl.when(pl.int_range(240) % 3 == 0).then("correct")
    table.with_columns(correct=half).write_csv(folder / "open.csv")
    label_next(folder / "open.csv", folder / "batch.csv", size=6)
    filled = pl.read_csv(folder / "batch.csv").with_columns(correct=pl.lit(1))
    filled.write_csv(folder / "batch.csv")
    study = Study(folder / "study")
    study.write(
        "scores", table.with_columns(pl.col("correct").cast(pl.Float64), answer=pl.lit("x"))
    )
    (folder / "study" / "study.toml").write_text(
        'name = "s"\nquestions = "q.jsonl"\nmethods = ["verb"]\n[[models]]\nname = "m"\n'
        'client = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:9"\n'
    )
    line = '{"question_id": "q0", "text": "?", "references": [["x"]], "kind": "open"}\n'
    (folder / "study" / "q.jsonl").write_text(line)
    rows = [("q0", "x", "x"), ("q0", "x", "y"), ("q1", "z", "z"), ("q1", "z", "z")]
    names = ["question_id", "reference", "answer"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(folder / "samples.csv")
    (folder / "bytes.bin").write_bytes(bytes(range(256)) * 4)
    (folder / "empty.csv").write_text("")
    (folder / "half.json").write_text('{"schema": "calibrant.audit/1", ')
    (folder / "loop").symlink_to("loop")
    CliRunner().invoke(app, ["bench", "mace", "--out", f"{folder}/made.jsonl", "--per-k", "1"])
    CliRunner().invoke(app, ["plan", "--preset", "fda-samd", "--json", f"{folder}/plan.json"])


NEEDED = {
    "run": ["study", "--dry-run"],
    "groups": ["scores.csv", "--features", "topic"],
    "cascade": ["scores.csv", "--models", "small,large", "--price", "1,8", "--features", "topic",
                "--strategies", "confidence", "--random-splits", "2"],
    "judge": ["ratings.csv", "--judge", "judge", "--human", "expert1,expert2"],
    "decide": ["scores.csv", "--max-error", "0.3", "--only-model", "small"],
    "grade": ["samples.csv"],
    "plan": ["--precision", "0.1", "--error-rate", "0.1"],
    "label next": ["open.csv", "--out", "next.csv"],
    "label add": ["open.csv", "batch.csv", "--out", "added.csv"],
    "label status": ["open.csv"],
    "label export": ["open.csv", "--out", "exported.csv"],
    "bench mace": ["--out", "mace.jsonl"],
    "bench check": ["made.jsonl"],
    "bench evaluate": ["scores.csv", "--reference", "consistency"],
    "report": ["plan.json"],
    "methods": [],
    "demo": [],
    "init": ["new-study"],
    "models list": [],
    "models fetch": [],
}  # fmt: skip


@cache
def options_of(words):
    """Return the options of a command by name."""
    return {option: part for part in dict(commands())[words].params for option in part.opts}


def words_of(case):
    """Return the words of a case; options of the base that are tried are left out."""
    tried = {name for name, _ in case.options}
    kept = list(NEEDED.get(case.words, ["scores.csv"]))
    for name in tried & set(kept):
        at = kept.index(name)
        del kept[at : at + 1 + (not options_of(case.words)[name].is_flag)]
    for name, value in QUICK.items():
        known = options_of(case.words).get(name)
        if known is not None and not known.is_flag and name not in tried:
            kept += [name, value]
    for name, value in case.options:
        kept += [name] if value is None else [f"{name}={value}"]
    return [*case.words.split(), *kept]


LONG_WORK = ("calibrant.verbs.demo:demo", "calibrant.verbs.models:fetch_model")


def stop_before(place):
    """Let a verb end where its work would begin: its options are checked, and that is all."""
    module, _, name = place.partition(":")
    declaration(getattr(importlib.import_module(module), name)).function = no_work


class TakenError(CalibrantError):
    """Long or remote work was about to begin: all options were taken."""


def no_work(*_args, **_options):
    """Stand in for what asks a model or a network."""
    raise TakenError("taken")


def run_case(case):
    """Run a command in the folder one is in."""
    # A batch with open items is not written over: what another case drew is not this one's.
    Path("next.csv").unlink(missing_ok=True)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = CliRunner().invoke(app, words_of(case))
    seconds = time.perf_counter() - started
    error = done.exception
    if error is None or isinstance(error, TakenError):
        return Outcome("taken", done.output, seconds)
    if isinstance(error, CalibrantError):
        kind = {1: "claim failed", 2: "refused"}.get(error.exit_code, "odd exit code")
        return Outcome(kind, str(error), seconds)
    if isinstance(error, SystemExit) and error.code in (1, 2):
        kind = "refused" if error.code == 2 else "claim failed"
        return Outcome(kind, done.output, seconds)
    text = "".join(traceback.format_exception(error))
    return Outcome("traceback", text, seconds)


def names_the_option(case, message):
    """Return whether a refusal names one of its options, or the value that was given."""
    lowered = message.lower()
    return any(
        name in lowered
        or name.strip("-").replace("-", " ") in lowered
        or name.strip("-").replace("-", "_") in lowered
        or any(
            _is_shown(part, message) for part in [value or "", *re.split("[,<>=/]", value or "")]
        )
        for name, value in case.options
    )


def _is_shown(part, message):
    """Return whether a message shows a value: its beginning, or quotes around nothing."""
    beginning = repr(part.strip())[1:40].rstrip("'")
    return beginning in message if beginning else repr(part) in message


def main():
    """Run a share of all cases, in random order, and say what came of it."""
    share, shares, pairs = (int(word) for word in sys.argv[1:4])
    cases = [*single_cases(), *pair_cases(pairs, seed=0)]
    random.Random(0).shuffle(cases)
    counts = Counter()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        prepare(Path())
        for place in LONG_WORK:
            stop_before(place)
        for case in cases[share::shares]:
            outcome = run_case(case)
            counts[len(case.options), outcome.kind] += 1
            shown = {"case": str(case), "kind": outcome.kind, "seconds": round(outcome.seconds, 1)}
            named = outcome.kind != "refused" or names_the_option(case, outcome.message)
            told = "" if outcome.kind == "taken" else outcome.message[-1500:]
            sys.stdout.write(json.dumps({**shown, "named": named, "message": told}) + "\n")
            sys.stdout.flush()
    for (size, kind), count in sorted(counts.items()):
        sys.stdout.write(f"{size} option(s): {count} {kind}\n")


if __name__ == "__main__":
    main()
