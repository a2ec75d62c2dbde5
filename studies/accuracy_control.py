"""Does a fair view still follow accuracy? Gaps of accuracy against gaps of calibration, by view."""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from itertools import combinations

import altair as alt
import numpy as np
import polars as pl

from calibrant.comparison.statements import log_odds, shift_confidence
from calibrant.metrics import ece
from studies._page import DATA, StudyPage

# A clone of Linwei94/LLM-Calibration-Study (MIT): all models of the study, not those at hand alone.
WHOLE = os.environ.get("CALIBRATION_STUDY")
# Thinking modes and quantised copies of models that are there too.
COPIES = re.compile(r"-think$|^Qwen3-[\d.]+B-(?:FP8|AWQ)$")
RESAMPLES, DOTS = 2_000, 300
LEAST_QUESTIONS = 100
PAPER = ("raw", "DA", "IA")
VIEWS = (*PAPER, "DA, stronger accuracy", "odds, weaker accuracy", "odds, stronger accuracy",
         "odds, mean of both", "DA and odds, mean")  # fmt: skip
Row = tuple[np.ndarray, np.ndarray]
Gaps = dict[str, float]


def error(said: np.ndarray, right: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the ECE of the paper: ten bins of equal width."""
    return float(ece(said, right, bins=10, weights=weights))


def views(one: Row, other: Row) -> Gaps | None:
    """Return the gaps of two models on the same questions, first minus second, in every view."""
    (p, y), (q, z) = one, other
    a, b = y.mean(), z.mean()
    same = y == z
    if not (0 < a < 1 and 0 < b < 1) or same.sum() < LEAST_QUESTIONS:
        return None
    found = {"accuracy": a - b, "raw": error(p, y) - error(q, z)}
    found["IA"] = error(p[same], y[same]) - error(q[same], z[same])
    for name, goal in (("weaker", min(a, b)), ("stronger", max(a, b))):
        weights = [np.where(r == 1, goal / m, (1 - goal) / (1 - m)) for r, m in ((y, a), (z, b))]
        still = error(p, y, weights[0]) - error(q, z, weights[1])
        said = [
            shift_confidence(c, float(log_odds(goal) - log_odds(m))) for c, m in ((p, a), (q, b))
        ]
        moved = error(said[0], y, weights[0]) - error(said[1], z, weights[1])
        found["DA" if name == "weaker" else "DA, stronger accuracy"] = still
        found[f"odds, {name} accuracy"] = moved
    odds = (found["odds, weaker accuracy"] + found["odds, stronger accuracy"]) / 2
    still = (found["DA"] + found["DA, stronger accuracy"]) / 2
    return {**found, "odds, mean of both": odds, "DA and odds, mean": (odds + still) / 2}


def pairs_of(models: dict[str, pl.DataFrame]) -> tuple[list[tuple[int, int]], list[Gaps]]:
    """Return all pairs of models with their gaps on the questions that both answered."""
    places, gaps = [], []
    for (i, one), (j, other) in combinations(enumerate(models.values()), 2):
        both = one.join(other, on="question_id", how="inner")
        if both.height < LEAST_QUESTIONS:
            continue
        columns = (both[name].to_numpy() for name in ("said", "right", "said_right", "right_right"))
        p, y, q, z = columns
        found = views((p, y), (q, z))
        if found is not None:
            places.append((i, j))
            gaps.append(found)
    return places, gaps


def correlation(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Return the correlation about the origin: no pair has a first and a second model."""
    return float((weights @ (x * y)) / np.sqrt((weights @ x**2) * (weights @ y**2)))


def correlations(
    places: list[tuple[int, int]], gaps: list[Gaps], models: int
) -> dict[str, tuple[float, float, float]]:
    """Return each view's correlation with accuracy, and its interval by resampled models."""
    rng = np.random.default_rng(0)
    first, second = np.array(places).T
    x = np.array([gap["accuracy"] for gap in gaps])
    drawn = rng.multinomial(models, np.full(models, 1 / models), RESAMPLES)
    weights = (drawn[:, first] * drawn[:, second]).astype(np.float64)
    weights = weights[(weights > 0).sum(axis=1) >= 3]
    found = {}
    for view in VIEWS:
        y = np.array([gap[view] for gap in gaps])
        spread = [correlation(x, y, row) for row in weights]
        low, high = np.nanquantile(spread, [0.025, 0.975])
        found[view] = (correlation(x, y, np.ones(x.size)), float(low), float(high))
    return found


def tidy(table: pl.DataFrame, said: str) -> dict[str, pl.DataFrame]:
    """Return the rows of each model that have a confidence in [0, 1] and a grade."""
    rows = table.select(
        "question_id",
        "model",
        said=pl.col(said).cast(pl.Float64),
        right=pl.col("correct").cast(pl.Float64),
    )
    rows = rows.filter(pl.col("said").is_between(0, 1), pl.col("right").is_not_null())
    parts = rows.partition_by("model", as_dict=True, maintain_order=True)
    return {str(name): part.drop("model") for (name,), part in parts.items()}


def mmlu(said: str) -> dict[str, pl.DataFrame]:
    files = ("mmlu_pro_16_models", "mmlu_pro_base_models")
    columns = ["question_id", "model", "correct", said]
    tables = [
        pl.read_parquet(DATA / "scores" / f"{file}.parquet", columns=columns) for file in files
    ]
    names = [table.with_columns(pl.col("model").cast(pl.String)) for table in tables]
    return tidy(pl.concat(names, how="vertical_relaxed"), said)


def whole_study(said: str) -> dict[str, pl.DataFrame]:
    """Return all models with such a confidence, from the authors' repository."""
    return {name: rows for name, rows in _published(said) if rows["right"].sum()}


def _published(said: str) -> Iterator[tuple[str, pl.DataFrame]]:
    for path in _git("ls-tree", "-r", "--name-only", "HEAD", "results").split():
        named = re.fullmatch(r"results/mmlu_pro_(.+)_eval_all_None\.csv", path)
        if named is None or COPIES.search(named[1]):
            continue
        rows = pl.read_csv(io.StringIO(_git("show", f"HEAD:{path}")), infer_schema_length=None)
        right = (pl.col("correct_answer") == pl.col("extracted_answer")).fill_null(False)
        rows = rows.rename({rows.columns[0]: "question_id"}).select(
            "question_id", model=pl.lit(named[1]), correct=right,
            **{said: pl.col(said).cast(pl.Float64, strict=False)},
        )  # fmt: skip
        yield from tidy(rows, said).items()


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(WHOLE), *words], capture_output=True, check=True)
    return done.stdout.decode("utf-8")


def benchmark(name: str) -> dict[str, pl.DataFrame]:
    table = pl.read_parquet(DATA / "scores" / "mcq_5_benchmarks_7_models.parquet")
    kept = (pl.col("dataset").cast(pl.String) == name) & (
        pl.col("prompt").cast(pl.String) == "first"
    )
    return tidy(table.filter(kept), "confidence")


def pools() -> dict[str, Callable[[], dict[str, pl.DataFrame]]]:
    """Return the pools of models that answered the same questions."""
    table = pl.read_parquet(
        DATA / "scores" / "mcq_5_benchmarks_7_models.parquet", columns=["dataset"]
    )
    names = table["dataset"].cast(pl.String).unique().sort().to_list()
    methods = {"log-probs": "logit_perplexity_confidence", "stated": "verbal_numerical_confidence"}
    whole = {"MMLU-Pro, log-probs, whole study": lambda: whole_study(methods["log-probs"])}
    return {
        **(whole if WHOLE else {}),
        **{f"MMLU-Pro, {name}": (lambda c=column: mmlu(c)) for name, column in methods.items()},
        **{name: (lambda n=name: benchmark(n)) for name in names},
    }


def chart(gaps: list[Gaps]) -> alt.TopLevelMixin:
    """Draw Figure 1 of the paper: each pair once, the more accurate model first."""
    shown = (
        "raw",
        "DA",
        "IA",
        "odds, weaker accuracy",
        "odds, stronger accuracy",
        "odds, mean of both",
    )
    some = np.random.default_rng(0).permutation(len(gaps))[:DOTS]
    rows = [
        {
            "view": view,
            "accuracy": 100 * abs(gap["accuracy"]),
            "gap": 100 * gap[view] * np.sign(gap["accuracy"]),
        }
        for gap in (gaps[place] for place in some)
        for view in shown
    ]
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X("accuracy:Q", title="more accurate by, points"),
        y=alt.Y("gap:Q", title="larger calibration error by, points"),
    )
    zero = base.mark_rule(color="#888").encode(y=alt.datum(0), x=alt.X())
    layers = base.mark_circle(size=14, opacity=0.5) + zero
    return layers.properties(width=190, height=150).facet(
        facet=alt.Facet("view:N", sort=list(shown), title=None), columns=3
    )


def main() -> None:
    page = StudyPage("accuracy_control", "Does a fair view still follow accuracy?")
    page.text(
        "The paper on accuracy-controlled evaluation (ACE) shows that raw errors follow accuracy: "
        "a correlation of -0.670 over 40 averages of pairs (Figure 1). A view that takes accuracy "
        "out should leave none. Here every pair of models that answered the same questions "
        "counts, each way round (the correlation is about the origin). Intervals resample models, "
        "not pairs, since one model is in many pairs. Errors are in ten bins of equal width."
    )
    table, told, first = [], {}, None
    for name, made in pools().items():
        models = made()
        places, gaps = pairs_of(models)
        found = correlations(places, gaps, len(models))
        told[name] = (len(models), len(gaps), found)
        first = gaps if first is None else first
        cells = (f"{value:.2f} [{low:.2f}, {high:.2f}]" for value, low, high in found.values())
        table.append([name, len(models), len(gaps), *cells])
    if WHOLE:
        page.text(
            "The pool called the whole study is read from a clone of "
            "Linwei94/LLM-Calibration-Study (MIT): all models with log-probs of answers, without "
            "thinking modes and quantised copies of the same model (`CALIBRATION_STUDY=PATH`)."
        )
    page.text(words(told))
    page.table(["models on", "models", "pairs", *VIEWS], table)
    page.figure(
        "views",
        chart(first),
        f"Pairs of models of the first pool, up to {DOTS} at random; one dot per pair.",
    )
    page.text(
        "*How to read this.* Above 0 the more accurate model comes out as the worse calibrated "
        "one: the view takes out more than accuracy. A correlation of 0 does not prove that a "
        "view is fair, since more accurate models may also be better calibrated."
    )
    page.write()


def words(told: dict[str, tuple[int, int, dict[str, tuple[float, float, float]]]]) -> str:
    """Say of the largest pool how far each view follows accuracy, and which one does not."""
    name, (_, pairs, found) = max(told.items(), key=lambda item: item[1][1])
    models = round((1 + (1 + 8 * pairs) ** 0.5) / 2)  # those that state anything
    cells = {
        view: f"{value:+.2f} ({low:+.2f} to {high:+.2f})"
        for view, (value, low, high) in found.items()
    }
    free = {
        name: [view for view, (_, low, high) in part.items() if low <= 0 <= high]
        for name, (_, count, part) in told.items()
        if count == pairs
    }
    over = {view: sum(part[view][1] > 0 for *_, part in told.values()) for view in VIEWS}
    under = {view: sum(part[view][2] < 0 for *_, part in told.values()) for view in VIEWS}
    held = "; ".join(f"{name}: {', '.join(found) or 'none'}" for name, found in free.items())
    return (
        f"On {name} with {models} models and {pairs:,} pairs the correlation is "
        f"{cells['raw']} raw, {cells['DA']} under DA and {cells['IA']} under IA. "
        f"Views whose interval holds 0: {held}. "
        f"Above 0 in so many of {len(told)} pools: "
        + ", ".join(f"{view} {count}" for view, count in over.items())
        + ". Below 0: "
        + ", ".join(f"{view} {count}" for view, count in under.items())
        + "."
    )
