"""What doubtful grades leave: errors among the others, by data set; and pairs that are hard."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.answers.semantics import Grader, cluster_answers
from calibrant.answers.semantics.verdict import cohen_kappa
from calibrant.core.arrays import named_stream

_RESAMPLES = 1000
# Counted on the same pairs at commit 64c7832, before answers had types:
# pairs, rightly joined or kept apart, rightly graded, wrong without doubt.
BEFORE = {"hard": (79, 37, 33, 27), "fresh": (101, 61, 66, 18)}


def doubt_table(rows: Sequence[Any], parts: Sequence[str]) -> list[list[Any]]:
    """Kappa, errors of both kinds, doubt and errors without doubt; intervals over questions."""
    grader, table = Grader(judge=None), []
    for part in parts:
        chosen = [row for row in rows if row.part == part]
        grades = [grader.grade(r.answer, r.references, question=r.question) for r in chosen]
        found = np.array([bool(grade.correct) for grade in grades])
        doubt = np.array([grade.doubtful for grade in grades])
        right = np.array([row.right for row in chosen])
        _, unit = np.unique([row.question for row in chosen], return_inverse=True)
        cells = np.zeros((unit.max() + 1, 8))
        np.add.at(cells, (unit, 4 * doubt + 2 * found + right), 1)
        rng = named_stream(0, "doubt")
        share = np.full(len(cells), 1 / len(cells))
        again = rng.multinomial(len(cells), share, size=_RESAMPLES) @ cells
        value, drawn = _measures(cells.sum(axis=0)[None])[0], _measures(again)
        ends = np.nanquantile(drawn, [0.025, 0.975], axis=0)
        told = [f"{v:.3f} [{a:.3f}, {b:.3f}]" for v, a, b in zip(value, *ends, strict=True)]
        table.append([part, len(chosen), *told])
    return table


def _measures(counts: Any) -> Any:
    """Kappa, accepted among wrong, rejected among right, doubtful, wrong among the others."""
    sums = counts.reshape(-1, 2, 2, 2)
    both, sure = sums.sum(axis=1), sums[:, 0]
    kappa = [cohen_kappa(table) for table in both]
    accepted = both[:, 1, 0] / both[:, :, 0].sum(axis=1)
    rejected = both[:, 0, 1] / both[:, :, 1].sum(axis=1)
    doubtful = sums[:, 1].sum(axis=(1, 2)) / sums.sum(axis=(1, 2, 3))
    missed = (sure[:, 0, 1] + sure[:, 1, 0]) / sure.sum(axis=(1, 2))
    return np.column_stack([kappa, accepted, rejected, doubtful, missed])


def pairs_table(path: Path) -> list[list[Any]]:
    """Pairs by kind: joined or kept apart rightly, graded rightly, wrong without doubt."""
    grader = Grader(judge=None)
    kinds: dict[str, list[int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            same = row["same"] == "1"
            ids = cluster_answers([row["a"], row["b"]], question=row["question"])
            grade = grader.grade(row["a"], [row["b"]], question=row["question"])
            wrong = bool(grade.correct) != same
            counts = kinds.setdefault(row["kind"], [0, 0, 0, 0])
            told = (1, (len(set(ids)) == 1) == same, not wrong, wrong and not grade.doubtful)
            kinds[row["kind"]] = [a + int(b) for a, b in zip(counts, told, strict=True)]
    total = [sum(column) for column in zip(*kinds.values(), strict=True)]
    return [["all", *total], *([kind, *counts] for kind, counts in sorted(kinds.items()))]


def pair_lines(title: str, name: str, path: Path, markdown: Any) -> list[str]:
    """A section on hard pairs: before and now, then by kind."""
    table = pairs_table(path)
    return [
        f"### {title}",
        "",
        *markdown(
            ["kind", "pairs", "rightly joined or apart", "rightly graded", "wrong without doubt"],
            [["all, before types", *BEFORE[name]], *table],
        ),
    ]
