"""What else could be said from machine grades: checks alone, grades as truth, earlier checks."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from calibrant.core.arrays import named_stream
from calibrant.metrics.stats.graded_estimates import PRIOR, CheckedGrades, soft_area
from calibrant.metrics.stats.graded_summary import choose_checks

# Earlier checks of another data set: so many, and what one of them counts for here.
EARLIER, WORTH = 200, 0.25
# How often the grader erred there, as a multiple of how often it errs here.
_EARLIER = (
    ("earlier, alike", 1.0),
    ("earlier, half as many errors", 0.5),
    ("earlier, a tenth of the errors", 0.1),
    ("earlier, three times the errors", 3.0),
)
_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])


def mean_interval(values):
    """Return mean and 95 % interval by Student's t."""
    reach = stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() - reach, values.mean() + reach


def area_interval(confidence, right):
    """Return the 95 % interval of AUROC by its influence."""
    area, _, influence = soft_area(confidence, right)
    reach = 1.96 * influence.std() / np.sqrt(len(right))
    return area - reach, area + reach


def gap_with_earlier(checked, earlier, rng):
    """Return the gap's interval where earlier checks, discounted, are part of the prior."""
    graded = checked.graded
    wrong = PRIOR + checked.errors + WORTH * earlier.errors
    fine = 1 - PRIOR + checked.checks - checked.errors
    fine = fine + WORTH * (earlier.checks - earlier.errors)
    drawn = rng.beta(wrong, fine, (1000, len(wrong))) @ (graded.counts / graded.size * _SIGNS)
    noise = np.sqrt(np.var(graded.confidence - checked.chance_right()) / graded.size)
    gap = (graded.confidence - graded.grade).mean() - drawn + noise * rng.normal(size=1000)
    return np.quantile(gap, [0.025, 0.975])


def beside(worlds, checks, repeats, draw, truths, answers):
    """Return {(quantity, way, checks): [covered, width] of all runs in all worlds}."""
    found = {}

    def add(name, way, number, ends, wanted):
        told = found.setdefault((name, way, number), [])
        told.append((float(ends[0] <= wanted <= ends[1]), float(ends[1] - ends[0])))

    for place, world in enumerate(worlds):
        large = draw(world, named_stream(place, "grades, truth"), 100_000)
        wanted = truths(large)
        for number in checks:
            rng = named_stream(1000 * place + number, "grades, beside")
            for _ in range(repeats):
                drawn = draw(world, rng, answers)
                graded, some = drawn.graded, rng.choice(answers, number, replace=False)
                for way, rows, y in (
                    ("checks only", some, drawn.truth[some]),
                    ("grades as truth", slice(None), graded.grade),
                ):
                    c = graded.confidence[rows]
                    add("gap", way, number, mean_interval(c - y), wanted["gap"])
                    if 1 < y.sum() < len(y) - 1:
                        add("AUROC", way, number, area_interval(c, y), wanted["AUROC"])
                rows = choose_checks(graded, number, rng)
                checked = CheckedGrades(graded, rows, drawn.truth[rows])
                for way, factor in _EARLIER:
                    other = draw(world.with_error(world.error * factor), rng, answers)
                    seen = choose_checks(other.graded, EARLIER, rng)
                    before = CheckedGrades(other.graded, seen, other.truth[seen])
                    add("gap", way, number, gap_with_earlier(checked, before, rng), wanted["gap"])
    return found


def beside_table(found):
    """Return lines of a table: coverage and width of each way."""
    numbers = sorted({number for *_, number in found})
    lines = [
        "| quantity | way | " + " | ".join(f"{n} checks" for n in numbers) + " |",
        "| --- | --- |" + " ---: |" * len(numbers),
    ]
    for name, way in dict.fromkeys(key[:2] for key in found):
        each = [np.mean(found[name, way, n], axis=0) for n in numbers]
        cells = " | ".join(f"{covered:.3f}, {width:.3f} wide" for covered, width in each)
        lines.append(f"| {name} | {way} | {cells} |")
    return [*lines, ""]
