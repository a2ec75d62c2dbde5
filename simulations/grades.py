"""Do intervals from machine grades and some checks cover the truth? In worlds where it is known.

`CALIBRANT_REPEATS` says how many runs per world, `CALIBRANT_PARTS=people,beside` which parts run.
Results are kept by part; the page is docs/simulations/grades.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.harness import ROOT
from scipy.special import expit, logit

from calibrant.answers.semantics import Grader
from calibrant.core.arrays import Floats, named_stream
from calibrant.metrics.stats.graded_estimates import (
    CheckedGrades,
    Graded,
    GradedEstimate,
    graded_accuracy,
    graded_auroc,
    graded_difference,
    graded_error,
    graded_gap,
    soft_area,
)
from calibrant.metrics.stats.graded_summary import cells_for, choose_checks
from calibrant.report.charts.chart import TONES, Axis, Chart, Line, Mark, ReferenceLine
from calibrant.report.charts.draw import chart_file
from calibrant.report.charts.svg import count_words, points
from simulations._grades_beside import EARLIER, WORTH, beside, beside_table

ANSWERS, CHECKS = 2000, (30, 60, 120, 200)
KINDS = ("symmetric", "false accepts", "worse where confident", "flag and chance useless")
ERRORS = (0.02, 0.05, 0.1, 0.2)
_DOUBT = 0.4


@dataclass(frozen=True)
class World:
    """How often the grader errs, and where."""

    error: float
    kind: str
    overconfident: bool = True
    shift: float = 0.0

    def with_error(self, error: float) -> World:
        return replace(self, error=error)


@dataclass(frozen=True)
class Drawn:
    """Graded answers with their truth."""

    graded: Graded
    truth: Floats


PAGE = ROOT / "docs" / "simulations" / "grades.md"
RESULTS = ROOT / "simulations" / "grades_results"
WORLDS = [World(error, kind) for error in ERRORS for kind in KINDS]


def true_rate(confidence: Floats) -> Floats:
    """The model is over-confident by 12 points."""
    return np.clip(confidence - 0.12, 0.02, 0.98)


def draw(world: World, rng: np.random.Generator, n: int, ease: Floats | None = None) -> Drawn:
    """Draw answers: confidence, truth, grade, the grader's own chance and its flag."""
    ease = rng.normal(size=n) if ease is None else ease
    raw = 1.1 + world.shift + 1.2 * (0.7 * ease + np.sqrt(0.51) * rng.normal(size=n))
    confidence = np.clip(expit(raw), 0.02, 0.995)
    truth = (rng.random(n) < true_rate(confidence)).astype(np.float64)
    doubtful = rng.random(n) < _DOUBT
    # A fifth of the errors hides where the grader has no doubt.
    told = np.where(doubtful, world.error * (1 - 0.2 * (1 - _DOUBT)) / _DOUBT, world.error * 0.2)
    rate = told * np.exp(0.6 * rng.normal(size=n) - 0.18)
    if world.kind == KINDS[3]:
        rate = world.error * np.exp(0.6 * rng.normal(size=n) - 0.18)
    elif world.kind == KINDS[2]:
        rate = rate * confidence**3 / (confidence**3).mean()
    elif world.kind == KINDS[1]:
        rate = np.where(truth == 0, rate / max(float((1 - truth).mean()), 0.05), 0.0)
    grade = np.where(rng.random(n) < np.minimum(rate, 0.9), 1 - truth, truth)
    if world.kind in (KINDS[1], KINDS[3]):
        rate = told * np.exp(0.6 * rng.normal(size=n) - 0.18)
    rate, base = np.minimum(rate, 0.49), float(truth.mean())
    right = base * (1 - rate) / (base * (1 - rate) + (1 - base) * rate)
    wrong = base * rate / (base * rate + (1 - base) * (1 - rate))
    chance = np.clip(np.where(grade == 1, right, wrong), 1e-3, 1 - 1e-3)
    chance = expit(2 * logit(chance)) if world.overconfident else chance
    return Drawn(Graded(confidence, grade, chance, doubtful), truth)


def estimates(
    drawn: Drawn, edges: Floats, checks: int, rng: np.random.Generator
) -> Iterator[tuple[str, GradedEstimate]]:
    """All four estimates of one model from one choice of checks."""
    checked = _checked(drawn, checks, rng)
    yield "accuracy", graded_accuracy(checked, rng)
    yield "gap", graded_gap(checked, rng)
    yield "error", graded_error(checked, np.searchsorted(edges, drawn.graded.confidence))
    yield "AUROC", graded_auroc(checked)


def truths(confidence: Floats, right: Floats, edges: Floats) -> dict[str, float]:
    """What the estimates are about, from a large draw or from all labels."""
    cell = np.searchsorted(edges, confidence)
    gap = np.bincount(cell, right - confidence, edges.size + 1) / confidence.size
    return {
        "accuracy": float(right.mean()),
        "gap": float((confidence - right).mean()),
        "error": float(np.abs(gap).sum()),
        "AUROC": soft_area(confidence, right)[0],
    }


@dataclass
class Tally:
    """Whether intervals covered, how wide they were, and what grades alone would have done."""

    covered: list[bool]
    width: list[float]
    off: list[float]

    @classmethod
    def empty(cls) -> Tally:
        return cls([], [], [])

    def add(self, found: GradedEstimate, truth: float) -> None:
        self.covered.append(found.low <= truth <= found.high)
        self.width.append(found.high - found.low)
        self.off.append(abs(found.as_graded - truth))


def run_worlds(repeats: int, worlds: list[World]) -> dict[tuple[str, int], list[Tally]]:
    """One tally per world for each quantity and number of checks."""
    found: dict[tuple[str, int], list[Tally]] = {}
    for place, world in enumerate(worlds):
        large = draw(world, named_stream(place, "grades, truth"), 200_000).graded.confidence
        for checks in CHECKS:
            cells = cells_for(checks)
            edges = np.quantile(large, np.arange(1, cells) / cells)
            wanted = truths(large, true_rate(large), edges)
            rng = named_stream(1000 * place + checks, "grades")
            tallies = {name: Tally.empty() for name in (*wanted, "difference")}
            for _ in range(repeats):
                for name, each in estimates(draw(world, rng, ANSWERS), edges, checks, rng):
                    tallies[name].add(each, wanted[name])
                tallies["difference"].add(*_difference(world, checks, rng))
            for name, tally in tallies.items():
                found.setdefault((name, checks), []).append(tally)
    return found


def _difference(
    world: World, checks: int, rng: np.random.Generator
) -> tuple[GradedEstimate, float]:
    """Two models on the same questions; the second is graded three times worse."""
    better = World(world.error * 0.5, world.kind, world.overconfident, 0.3)
    worse = World(world.error * 1.5, world.kind, world.overconfident)
    ease = rng.normal(size=ANSWERS)
    a, b = draw(better, rng, ANSWERS, ease), draw(worse, rng, ANSWERS, ease)
    found = graded_difference(_checked(a, checks // 2, rng), _checked(b, checks // 2, rng), rng)
    return found, _true_difference()


def _checked(drawn: Drawn, checks: int, rng: np.random.Generator) -> CheckedGrades:
    rows = choose_checks(drawn.graded, checks, rng)
    return CheckedGrades(drawn.graded, rows, drawn.truth[rows])


@cache
def _true_difference() -> float:
    rng = named_stream(0, "grades, difference")
    noise = rng.normal(size=400_000)
    first, second = (np.clip(expit(1.1 + s + 1.2 * noise), 0.02, 0.995) for s in (0.3, 0.0))
    return float(true_rate(first).mean() - true_rate(second).mean())


def run_people(folder: Path, repeats: int) -> dict[tuple[str, int], list[Tally]]:
    """Answers that people judged (NQ301), redrawn; confidence is made up, truth is theirs."""
    from studies.semantics import load_rows

    rows = [row for row in load_rows(folder) if row.part == "nq301"]
    grader = Grader(judge=None)
    grades = [grader.grade(row.answer, row.references, question=row.question) for row in rows]
    truth = np.array([row.right for row in rows], dtype=np.float64)
    grade = np.array([bool(each.correct) for each in grades], dtype=np.float64)
    chance = np.array([0.05 if g.probability is None else g.probability for g in grades])
    doubt = np.array([each.doubtful or each.correct is None for each in grades])
    rng = named_stream(0, "people")
    confidence = expit(
        0.9 + 0.8 * (truth - 0.5) + 0.4 * (chance - 0.5) + rng.normal(size=len(rows))
    )
    found: dict[tuple[str, int], list[Tally]] = {}
    for checks in CHECKS:
        cells = cells_for(checks)
        edges = np.quantile(confidence, np.arange(1, cells) / cells)
        wanted = truths(confidence, truth, edges)
        tallies = {name: Tally.empty() for name in wanted}
        for _ in range(repeats):
            take = rng.integers(0, len(rows), 1000)
            graded = Graded(confidence[take], grade[take], chance[take], doubt[take])
            for name, each in estimates(Drawn(graded, truth[take]), edges, checks, rng):
                tallies[name].add(each, wanted[name])
        for name, tally in tallies.items():
            found[(name, checks)] = [tally]
    return found


def table_rows(found: dict[tuple[str, int], list[Tally]]) -> list[list[Any]]:
    """Quantity, checks, coverage (of all worlds and the least), width, how far off grades are."""
    rows: list[list[Any]] = []
    for (name, checks), tallies in found.items():
        each = [float(np.mean(tally.covered)) for tally in tallies]
        off = [_mean(tallies, "width"), _mean(tallies, "off")]
        rows.append([name, checks, float(np.mean(each)), min(each), *off])
    return rows


def table(rows: list[list[Any]]) -> list[str]:
    """Lines of a Markdown table."""
    return [
        "| quantity | checks | covers | least world | width | grades off by |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {checks} | " + " | ".join(f"{each:.3f}" for each in told) + " |"
            for name, checks, *told in rows
        ),
    ]


def _mean(tallies: list[Tally], name: str) -> float:
    return float(np.mean([np.mean(getattr(tally, name)) for tally in tallies]))


def run_beside(repeats: int, worlds: list[World]) -> Any:
    """What checks alone, grades as truth, and earlier checks would say in the same worlds."""
    edges = np.array([0.5])
    return beside(
        worlds,
        CHECKS,
        repeats,
        draw,
        lambda large: truths(large.graded.confidence, true_rate(large.graded.confidence), edges),
        ANSWERS,
    )


def beside_lines(repeats: int, found: Any) -> list[str]:
    return [
        "## Beside it",
        "",
        f"The same worlds, {repeats} runs each. 'Earlier': {EARLIER} checks of another data set "
        f"with the same kind of errors join the prior, each worth {WORTH} of a check.",
        "",
        *beside_table(found),
        "Earlier checks narrow the gap's interval by a third at 30 checks, by a tenth at 200. "
        "Where the grader erred ten times less there, 30 and 60 checks cover 92 %: too little, so "
        "the program does not use them by itself.",
        "",
    ]


def picture(rows: list[tuple[str, int, float, float]], alone: list[tuple[str, int, float]]) -> str:
    """Return the widths of intervals by number of checks, beside how far off grades are.

    Parameters
    ----------
    rows
        Quantity, checks, width of its interval, distance of grades taken as truth.
    alone
        Quantity, checks, width of the interval from checked answers alone.
    """
    lines: list[Mark] = []
    for tone, name in zip(TONES, dict.fromkeys(name for name, *_ in alone), strict=False):
        own = [(checks, width) for quantity, checks, width, _ in rows if quantity == name]
        only = [(checks, width) for quantity, checks, width in alone if quantity == name]
        tips = [f"{name}, {checks} checks: {points(width)} wide" for checks, width in own]
        lines.append(Line(own, tone, name, tips=tips))
        lines.append(Line(only, tone, f"{name}, checks only", "dashed"))
    off = float(np.mean([row[3] for row in rows]))
    lines.append(ReferenceLine(off, words="unchecked grades are off by this", dashed=True))
    return chart_file(
        Chart(
            "widths",
            "How wide intervals with grading error are",
            "Worlds of the table: width of the 95 % interval by number of checked grades, and of "
            "one from the checked answers alone (dashed). The rule is how far off a number from "
            "unchecked grades is, with an interval that knows nothing of it.",
            Axis("checked grades", words=count_words),
            Axis("width of the interval, points", words=lambda value: f"{100 * value:.0f}"),
            lines,
        )
    )


def worlds_part(repeats: int) -> dict[str, Any]:
    """Coverage and width in made-up worlds."""
    return {"rows": table_rows(run_worlds(repeats, WORLDS)), "runs": repeats}


def beside_part(repeats: int) -> dict[str, Any]:
    """Other ways in the same worlds."""
    found = run_beside(repeats, WORLDS)
    alone = [
        [name, checks, float(np.mean([width for _, width in told]))]
        for (name, way, checks), told in found.items()
        if way == "checks only"
    ]
    return {"lines": beside_lines(repeats, found), "alone": alone}


def people_part(repeats: int) -> dict[str, Any]:
    """Coverage on answers that people judged."""
    rows = table_rows(run_people(ROOT.parent / "shared" / "data", repeats))
    return {"rows": rows, "runs": repeats}


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "worlds": worlds_part,
    "beside": beside_part,
    "people": people_part,
}


def main() -> None:
    repeats = int(os.environ.get("CALIBRANT_REPEATS", "100"))
    RESULTS.mkdir(exist_ok=True)
    for name in os.environ.get("CALIBRANT_PARTS", ",".join(PARTS)).split(","):
        told = json.dumps(PARTS[name](repeats), indent=1)
        (RESULTS / f"{name}.json").write_text(told + "\n", encoding="utf-8")
    held = {name: json.loads((RESULTS / f"{name}.json").read_text("utf-8")) for name in PARTS}
    lines = [
        "# Intervals from machine grades and some checks",
        "",
        "Written by `python -m simulations grades`, each part from its own run "
        f"(`CALIBRANT_PARTS`); {held['worlds']['runs']} runs in each of {len(WORLDS)} "
        f"worlds, {ANSWERS:,} answers each. The grader errs on 2 to 20 % of them: in both "
        "directions, only by false accepts, more where the model is confident, or with a flag "
        "that knows nothing. "
        "Intervals are meant to cover in 95 of 100 runs.",
        "",
        *table(held["worlds"]["rows"]),
        "",
        "![Width of intervals by number of checked grades](grades-widths.svg)",
        "",
        *held["beside"]["lines"],
        "## Answers that people judged",
        "",
        "1,488 answers to 301 Natural Questions, graded by rules and words, 1,000 redrawn in "
        f"each of {held['people']['runs']} runs. The confidences are made up, the verdicts are "
        "not.",
        "",
        *table(held["people"]["rows"]),
        "",
    ]
    rows = [(name, checks, width, off) for name, checks, _, _, width, off in held["worlds"]["rows"]]
    alone = [(name, checks, width) for name, checks, width in held["beside"]["alone"]]
    drawn = picture(rows, sorted(alone, key=lambda row: (row[0] == "AUROC", row[1])))
    (PAGE.parent / "grades-widths.svg").write_text(drawn, encoding="utf-8")
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
