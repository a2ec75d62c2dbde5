"""The page of claims: every sentence, its test, and how often it is false."""

from __future__ import annotations

import importlib

from benchmarks.harness import ROOT

from calibrant.findings.claims import ClaimRule, checks, declared
from simulations import _dependence_tables
from simulations.claims.harness import BAR, DOCUMENT, rate_interval, stored

PAGE = ROOT / "docs" / "claims.md"
# Runs from which on a rate of 5 % is known to within 1.5 points.
SETTLED = 1_000
# So many worlds are shown; all of them are in `results` beside this file.
_WORST = 5
_LIMITS = """Named limits. Of continuous confidences a pattern finer than the slices can be missed
(100 teeth of 3 points with 10,000 rows: called calibrated in {teeth}), so the sentence names its
slices. A calibrated model with as many continuous confidences is called so in 28 % of 200 runs.
Rows that are repeated among round values alone, and not all of them, are not found.
Forecasts of labels came true in 83 % of simulations at least and in 94 % on average (100 to 2,000
labels, gaps of 0 to 8 points).
"""
HEAD = f"""# Every claim, and how often it is false

calibrant says a sentence about data only as the outcome of a declared test. Here is every such
claim: the question and the hypothesis, the test, and in how many simulated data sets the claim was
made although it is false. The worlds are made, so their truth is known. The worst world is named;
all are in `simulations/claims/results`. A claim that is not on this page cannot be printed.

A claim is [shown, equivalent, undecided, or it depends](concepts/claims.md). Brackets hold 95 %
intervals. `--margin` sets another margin. **Made where true**: from the world in which a true claim
is made most rarely to the surest one. **Open**: some worlds have fewer than {SETTLED:,} runs. The
page is written by `make simulate claims`.
"""


def every_rule() -> list[ClaimRule]:
    """Return the rules of all rooms: of `calibrant.findings.claims`, and of rooms that have their
    own."""
    checks.load()
    for name in ("evaluation_claims", "question_report"):
        importlib.import_module(f"calibrant.bench.{name}")
    return sorted(declared(), key=lambda rule: rule.id)


def written() -> str:
    results = stored()
    audits = [row for part in ("audit", "tables") for row in stored(part).get(DOCUMENT, [])]
    parts = [HEAD, _documents(audits), _tables(), _dependence()]
    tests: dict[str, str] = {}
    for rule in every_rule():
        parts.append(_section(rule, results.get(rule.id, []), tests))
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
        "| world | audits | with a false sentence |",
        "| --- | ---: | ---: |",
    ]
    for row in rows:
        low, high = rate_interval(row["false"], row["runs"])
        lines.append(
            f"| {row['world'].removeprefix('table: ')} | {row['runs']:,} "
            f"| {100 * row['false'] / row['runs']:.1f} % [{100 * low:.1f}, {100 * high:.1f}] |"
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


def _dependence() -> str:
    """How often something false is said where rows hang together and nobody said so."""
    return "\n".join(["## Rows that hang together", "", *_dependence_tables.lines()])


def _section(rule, rows, tests) -> str:
    """What a claim says, its test and its rates; a test named above stands there."""
    test = f"{_sentence(rule.test)} Correction: {rule.correction}."
    if rule.margin is not None:
        test += f" Margin: {100 * rule.margin:g} points."
    first = tests.setdefault(test, rule.id)
    lines = [
        f"## `{rule.id}`",
        "",
        f"*{rule.question}* {rule.hypothesis}.",
        "",
        f"**Test.** {test if first == rule.id else f'As for `{first}`.'}",
        "",
    ]
    if not rows:
        return "\n".join([*lines, "Not simulated.", ""])
    worst = max(rows, key=lambda row: row["false"] / row["runs"])
    low, high = rate_interval(worst["false"], worst["runs"])
    said = (
        f"**False** in {100 * worst['false'] / worst['runs']:.1f} % at most "
        f"[{100 * low:.1f}, {100 * high:.1f}]; {len(rows)} worlds, worst: {worst['world']}."
        + _power([row for row in rows if row["power"]])
    )
    open_rows = [row for row in rows if row["runs"] < SETTLED and not row["power"]]
    # A world ends early where its claims are known to be false in less than 5 % of runs.
    if any(rate_interval(row["false"], row["runs"])[1] > BAR for row in open_rows):
        said += " **Open.**"
    return "\n".join([*lines, said, ""])


def _power(rows) -> str:
    """How often the claim is made where it is true: the worlds where that is rarest and surest."""
    if not rows:
        return ""
    rows = sorted(rows, key=lambda row: row["true"] / row["runs"])
    ends = rows if len(rows) == 1 else (rows[0], rows[-1])
    said = " to ".join(f"{100 * row['true'] / row['runs']:.0f} %" for row in ends)
    return f" **Made where true** in {said} (rarest: {rows[0]['world']})."


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
