"""The page of claims: every sentence, its test, and how often it is false."""

from __future__ import annotations

import importlib

import numpy as np
from benchmarks.harness import ROOT

from calibrant.claims import ClaimRule, catalogue, declared
from simulations.claims.audit_worlds import OFF
from simulations.claims.harness import BAR, DOCUMENT, rate_interval, stored

PAGE = ROOT / "docs" / "claims.md"
# Runs from which on a rate of 5 % is known to within 1.5 points.
SETTLED = 1_000
# So many worlds are shown; all of them are in `results` beside this file.
_WORST = 8
_LIMITS = """Named limits. Of continuous confidences a pattern finer than the slices can be missed
(100 teeth of 3 points with 10,000 rows: called calibrated in {teeth}), so the sentence names its
slices. Blocks of neighbours side by side missed it in 10 % of 400 runs, windows that begin at every
row miss it less often; a calibrated model with as many continuous confidences is then called so in
28 % of 200 runs (37 % of 250 with blocks). Only this world was measured again with windows.
Rows that are repeated among round values alone, and not all of them, are not found.
Forecasts of labels came true in 83 % of simulations at least and in 94 % on average (100 to 2,000
labels, gaps of 0 to 8 points).
"""
# World, claim, whether the share is of false or true claims, and that share before: Holm over two
# tests, of the mean gap and of the error in 15 bins.
_BEFORE = (
    (".95/1.0 crossed by 5, n = 2,000", "audit.miscalibrated", "false", "68 to 100 %"),
    ("15 topics, effects of 10 points, n = 2,000", DOCUMENT, "false", "23 to 53 %"),
    ("missing: 60 % of the wrong, n = 500", DOCUMENT, "false", "100 %"),
    ("over by 4, nine values, n = 500", "audit.over_confident", "true", "56 %"),
    ("over by 4, nine values, n = 500", "audit.miscalibrated", "true", "62 %"),
    ("over by 4, continuous, n = 500", "audit.over_confident", "true", "41 %"),
    ("over by 4, continuous, n = 500", "audit.miscalibrated", "true", "42 %"),
    ("too extreme, logit / 1.5, n = 200", "audit.over_confident", "true", "41 %"),
    ("too extreme, logit / 1.5, n = 200", "audit.miscalibrated", "true", "47 %"),
    ("wavy by 8, n = 500", "audit.miscalibrated", "true", "71 %"),
    ("rare errors, over by 2, n = 500", "audit.over_confident", "true", "70 %"),
    ("rare errors, over by 2, n = 500", "audit.miscalibrated", "true", "78 %"),
)
HEAD = """# Every claim, and how often it is false

calibrant says a sentence about data only as the outcome of a declared test. This page lists every
such claim: the question, the hypothesis, the test, and the share of simulated data sets in which
the claim was made although it is false. The worlds are made, so their truth is known. The world
in which a claim is false most often is named; all are in `simulations/claims/results`.
The page is written by `make simulate claims`; a claim that is not on it cannot be printed.

A claim has one of four outcomes. **Shown**: the test rejects the opposite at 5 %, after correction
for the number of claims. **Equivalent**: the difference is below the margin, by two one-sided
tests. **Undecided**: neither; the sentence says what would decide it. **Depends**: the answer
changes with a choice that the data cannot settle.
"""


def every_rule() -> list[ClaimRule]:
    """Return the rules of all rooms: of `calibrant.claims`, and of rooms that have their own."""
    catalogue.load()
    for name in ("evaluation_claims", "question_claims"):
        importlib.import_module(f"calibrant.bench.{name}")
    return sorted(declared(), key=lambda rule: rule.id)


def written() -> str:
    results = stored()
    audits = [row for part in ("audit", "tables") for row in stored(part).get(DOCUMENT, [])]
    parts = [HEAD, _documents(audits), _tables(), _compared(results)]
    for rule in every_rule():
        rows = results.get(rule.id, [])
        parts.append(_section(rule, rows))
    return "\n".join(parts)


def _documents(rows) -> str:
    """How often any sentence of one audit is false."""
    worst = sorted(rows, key=lambda row: row["false"] / row["runs"], reverse=True)
    false, runs = (sum(row[name] for row in rows) for name in ("false", "runs"))
    lines = [
        "## Any false sentence in one audit",
        "",
        "All sentences of one audit share a level of 4.5 %, several models included. Over all "
        f"worlds, any sentence was false in {100 * false / max(runs, 1):.1f} % of {runs:,} audits. "
        "Most often so:",
        "",
    ]
    teeth = next(row for row in rows if "100 teeth of 3" in row["world"])
    share = f"{100 * teeth['false'] / teeth['runs']:.1f} % of {teeth['runs']:,} runs"
    return "\n".join([*lines, *_table(worst[:_WORST]), "", _LIMITS.format(teeth=share)])


def _table(rows) -> list[str]:
    """Lines of worlds, each with its rate and the interval of that."""
    lines = [
        "| world | audits | with a false sentence | interval |",
        "| --- | ---: | ---: | ---: |",
    ]
    for row in rows:
        low, high = rate_interval(row["false"], row["runs"])
        lines.append(
            f"| {row['world'].removeprefix('table: ')} | {row['runs']:,} "
            f"| {100 * row['false'] / row['runs']:.1f} % "
            f"| {100 * low:.1f} to {100 * high:.1f} % |"
        )
    return lines


def _tables() -> str:
    """How often any sentence is false of tables with missing, repeated and clustered rows."""
    rows = stored("tables").get(DOCUMENT, [])
    lines = [
        "## Missing, repeated and clustered rows",
        "",
        "Whole tables through `audit` and `compare`, as a user calls them. All are calibrated over "
        "all answers; the models that are compared are right equally often.",
        "",
    ]
    return "\n".join([*lines, *_table(rows), ""])


def _compared(results) -> str:
    """How often claims are false, and made where they are true, before cells and now."""
    lines = [
        "## Before cells, and now",
        "",
        "Before, claims rested on the mean gap and on 15 bins of equal width. Spiegelhalter's test "
        "(1986) alone, on rows of the same worlds, has 5 % for itself; an audit shares 4.5 % among "
        "all its sentences.",
        "",
        "| world | claim | share | before | now | Spiegelhalter alone |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for world, claim, kind, before in _BEFORE:
        alone = _spiegelhalter(world) if claim == "audit.miscalibrated" else ""
        for row in results.get(claim, []):
            if row["world"] == world:
                now = f"{100 * row[kind] / row['runs']:.0f} % of {row['runs']:,}"
                lines.append(f"| {world} | `{claim}` | {kind} | {before} | {now} | {alone} |")
    return "\n".join([*lines, ""])


def _spiegelhalter(world: str) -> str:
    """How often Spiegelhalter's test alone rejects perfect calibration at 5 %, where it is off."""
    name, _, size = world.rpartition(", n = ")
    if name not in OFF:
        return ""
    rng, found = np.random.default_rng(1986), 0
    for _ in range(SETTLED):
        said, right = OFF[name].rows(rng, int(size))
        tilt = 1 - 2 * said
        spread = float((tilt**2 * said * (1 - said)).sum()) ** 0.5
        found += abs(float(((right - said) * tilt).sum())) > 1.959964 * spread
    return f"{100 * found / SETTLED:.0f} % of {SETTLED:,}"


def _section(rule, rows) -> str:
    lines = [
        f"## `{rule.id}`",
        "",
        f"**Question.** {rule.question}",
        "",
        f"**Hypothesis.** {rule.hypothesis}",
        "",
        f"**Test.** {_sentence(rule.test)} Correction for number: {rule.correction}.",
        "",
    ]
    if rule.margin is not None:
        lines += [f"**Margin.** {100 * rule.margin:g} points unless `--margin` says otherwise.", ""]
    if not rows:
        return "\n".join([*lines, "Not simulated.", ""])
    worst = max(rows, key=lambda row: row["false"] / row["runs"])
    low, high = rate_interval(worst["false"], worst["runs"])
    lines.append(
        f"**False at most in {100 * worst['false'] / worst['runs']:.1f} %** of runs (95 % interval "
        f"{100 * low:.1f} to {100 * high:.1f}; {len(rows)} worlds, worst: {worst['world']})."
        + _power([row for row in rows if row["power"]])
    )
    open_rows = [row for row in rows if row["runs"] < SETTLED and not row["power"]]
    # A world ends early where its claims are known to be false in less than 5 % of runs.
    if any(rate_interval(row["false"], row["runs"])[1] > BAR for row in open_rows):
        lines += ["", f"**Not settled yet**: some worlds have fewer than {SETTLED:,} runs."]
    return "\n".join([*lines, ""])


def _power(rows) -> str:
    """How often the claim is made where it is true: the worlds where that is rarest and surest."""
    if not rows:
        return ""
    rows = sorted(rows, key=lambda row: row["true"] / row["runs"])
    ends = rows if len(rows) == 1 else (rows[0], rows[-1])
    said = " to ".join(f"{100 * row['true'] / row['runs']:.0f} % ({row['world']})" for row in ends)
    return f" Made where it is true: {said}."


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
