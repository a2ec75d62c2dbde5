"""What to use in which situation: the table of docs/which-method.md, written from the numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import rankdata

from studies._confidence_groups import (
    ASKED_AGAIN,
    BLACK_BOX,
    BOTH,
    CHOICE,
    DEEPSEEK,
    LOCAL,
    ONE_CALL,
    OPEN,
    SECOND_TURN,
    Areas,
)
from studies._page import ROOT

PAGE = ROOT / "docs" / "which-method.md"
WRITER = "written by `python -m studies confidence_best`"
Row = Mapping[str, Any]


def mean_areas(scores: pl.DataFrame) -> dict[str, tuple[float, float, float]]:
    """AUROC of each method, mean over models, with its 95 % interval over questions.

    The models answer the same questions, so that their errors are added up by question (column
    ``unit``, else ``question_id``) before they are squared.
    """
    unit = "unit" if "unit" in scores.columns else "question_id"
    found = {}
    for method in scores.partition_by("method", maintain_order=True):
        models = method.partition_by("model", maintain_order=True)
        areas, parts = [], []
        for own in models:
            area, influence = area_with_influence(
                own["confidence"].to_numpy(), own["correct"].to_numpy() > 0.5
            )
            areas.append(area)
            parts.append(own.select(unit, push=influence / own.height / len(models)))
        pushes = pl.concat(parts).group_by(unit).agg(pl.col("push").sum())["push"]
        error = float(np.sqrt((pushes.to_numpy() ** 2).sum()))
        mean = float(np.mean(areas))
        found[str(method["method"][0])] = (mean, mean - 1.96 * error, mean + 1.96 * error)
    return found


def area_difference(scores: pl.DataFrame, one: str, other: str) -> tuple[float, float, float]:
    """AUROC of one method minus another's, mean over models, with its interval over questions."""
    models = scores["model"].n_unique()
    total, parts = 0.0, []
    for sign, name in ((1.0, one), (-1.0, other)):
        method = scores.filter(pl.col("method") == name)
        for own in method.partition_by("model", maintain_order=True):
            area, influence = area_with_influence(
                own["confidence"].to_numpy(), own["correct"].to_numpy() > 0.5
            )
            total += sign * area / models
            parts.append(own.select("question_id", push=sign * influence / own.height / models))
    pushes = pl.concat(parts).group_by("question_id").agg(pl.col("push").sum())["push"].to_numpy()
    error = float(np.sqrt((pushes**2).sum()))
    return total, total - 1.96 * error, total + 1.96 * error


def area_with_influence(score: np.ndarray, right: np.ndarray) -> tuple[float, np.ndarray]:
    """AUROC, and what each row adds to its error (DeLong's placements)."""
    hits, misses = score[right], score[~right]
    whole = rankdata(score)
    below = (whole[right] - rankdata(hits)) / misses.size
    above = 1 - (whole[~right] - rankdata(misses)) / hits.size
    area = float(below.mean())
    influence = np.empty(score.size)
    influence[right] = (below - area) * score.size / hits.size
    influence[~right] = (above - area) * score.size / misses.size
    return area, influence


def best_of(areas: Mapping[str, tuple[float, ...]], names: Collection[str]) -> str:
    """The method with the largest mean AUROC among some."""
    return max((name for name in areas if name in names), key=lambda name: areas[name][0])


def shown(area: Sequence[float]) -> str:
    """Write an AUROC in percent with its interval."""
    value, low, high = (100 * number for number in area)
    return f"{value:.1f} % ({low:.1f} to {high:.1f})"


def behind(rows: Sequence[Row], data: str, method: str) -> str:
    """In how many models another single method is shown to be better."""
    own = [row for row in rows if row["data"] == data and row["method"] == method]
    lost = sum(row["p_holm"] < 0.05 for row in own)
    of = f" of {len(own)}" if len(own) > 1 else ""
    if not lost:
        return "no method is shown to be better"
    return f"another method is better in {lost}{of} model{'s' if len(own) > 1 else ''}"


def situations(
    rows: Sequence[Row], areas: dict[str, Areas], ensemble: str, sca: str
) -> list[tuple[str, ...]]:
    """Recommend a method per situation: the largest mean AUROC among those that it allows."""
    one, few = best_of(areas[OPEN], ONE_CALL), best_of(areas[LOCAL], ONE_CALL)
    both = best_of(areas[LOCAL], BOTH)
    black = best_black_box(areas)
    again, asked = best_of(areas[LOCAL], SECOND_TURN), best_of(areas[DEEPSEEK], ASKED_AGAIN)
    spread = [100 * row["auroc"] for row in rows if row["data"] == CHOICE]
    return [
        ("one call with log-probs, open answers", f"`{one}`",
         f"AUROC {shown(areas[OPEN][one])}, six models; {behind(rows, OPEN, one)}", "1 call"),
        ("one call with log-probs, answers of a few words", f"`{few}`",
         f"{shown(areas[LOCAL][few])}, three small models; {behind(rows, LOCAL, few)}", "1 call"),
        ("multiple choice, option probabilities", "`option_softmax`",
         f"{shown(areas[CHOICE]['option_softmax'])}, seven models on five benchmarks, from "
         f"{min(spread):.0f} % to {max(spread):.0f} %", "1 call"),
        ("black box, k samples", f"`{black}`",
         f"DeepSeek-V3 {shown(areas[DEEPSEEK][black])}; small models "
         f"{shown(areas[LOCAL][black])}. `consistency_greedy`, a share of draws: "
         f"{shown(areas[DEEPSEEK]['consistency_greedy'])} and "
         f"{shown(areas[LOCAL]['consistency_greedy'])}", "k calls more"),
        ("samples and log-probs", f"`{both}`",
         f"{shown(areas[LOCAL][both])}, small models; one call has {shown(areas[LOCAL][few])}",
         "k calls more"),
        ("a second question to the model", "do not rely on it alone",
         f"`{again}` {shown(areas[LOCAL][again])}, small models; `{asked}` "
         f"{shown(areas[DEEPSEEK][asked])}, DeepSeek-V3: {behind(rows, DEEPSEEK, asked)}",
         "1 to k calls more"),
        ("graded questions of your own (300 or more)", "`ensemble` over all that you have",
         ensemble, "that of its methods"),
        ("several right answers per question", "any of the above",
         f"{sca.partition('.')[0]} ([by model](studies/confidence_best.md))", "k calls more"),
    ]  # fmt: skip


def short_answer(areas: dict[str, Areas], local: pl.DataFrame) -> str:
    """Name the methods, and say whether samples are shown to add to one call."""
    one, few = best_of(areas[OPEN], ONE_CALL), best_of(areas[LOCAL], ONE_CALL)
    both = best_of(areas[LOCAL], BOTH)
    gain, low, high = (100 * x for x in area_difference(local, both, few))
    interval = f"{gain:+.1f} points of AUROC, 95 % interval {low:+.1f} to {high:+.1f}"
    samples = (
        f"samples on top of them bring more (`{both}`: {interval})"
        if low > 0
        else f"one call is enough: samples are not shown to bring more (`{both}`: {interval})"
    )
    return (
        f"Short answer: if the model gives log-probs, {samples}. Take `{one}`, or `{few}` for "
        f"answers of a few words. Without log-probs, sample 10 to 20 answers and take "
        f"`{best_black_box(areas)}`. Recalibrate before you read any of them as a probability."
    )


def best_black_box(areas: dict[str, Areas]) -> str:
    """The best from samples alone: a large and three small models, mean of both data sets."""
    sampled = {
        name: ((areas[DEEPSEEK][name][0] + areas[LOCAL][name][0]) / 2,) for name in BLACK_BOX
    }
    return best_of(sampled, BLACK_BOX)


def cautions(rows: Sequence[Row]) -> list[str]:
    """What to know before choosing."""
    errors = [100 * row["ece"] for row in rows]
    return [
        "- **A ranking score is no probability.** `calibrant methods` says which are. After "
        f"isotonic recalibration the methods here have an error of {min(errors):.1f} to "
        f"{max(errors):.1f} points (one model each).",
    ]


def write_situations(answer: str, lines: Sequence[Sequence[str]], remarks: Sequence[str]) -> None:
    """Put answer, table and remarks into the page, each between its marks."""
    table = [
        "| your situation | take | what the study shows | cost |",
        "| --- | --- | --- | --- |",
        *("| " + " | ".join(line) + " |" for line in lines),
    ]
    text = PAGE.read_text(encoding="utf-8")
    for name, put in (("answer", [answer]), ("situations", table), ("remarks", remarks)):
        begin, end = f"<!-- {name}: {WRITER} -->", f"<!-- end of {name} -->"
        start, stop = text.index(begin) + len(begin), text.index(end)
        text = text[:start] + "\n\n" + "\n".join(put) + "\n\n" + text[stop:]
    PAGE.write_text(text, encoding="utf-8")
