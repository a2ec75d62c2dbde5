"""Promises that the papers suggest and do not have: which of them hold where the truth is known?

`CALIBRANT_PARTS=excess python -m simulations paper_extensions` runs one part.
"""

from __future__ import annotations

import os
from itertools import product

import numpy as np
import polars as pl
from studies._page import DATA

from calibrant.labels import grouping_labels, meaning_plan
from calibrant.trust import CostMatrix, DecisionRisk, GroupingLoss
from calibrant.trust.decision_risk import pointwise_risk
from simulations._epistemic_worlds import decision_world
from simulations._pieces import markdown_table, share_interval, write_page

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "60"))
LOSS = 0.01
TIMES = (1, 4, 16)
DRAWS, PILOT = (2, 4, 10, 20, 50), 200
ERRORS = (0.15, 0.20, 0.25, 0.30)


def _share(count: float, runs: int) -> str:
    low, high = share_interval(int(count), runs)
    return f"{count / runs:.2f} [{low:.2f}, {high:.2f}]"


def excess() -> list[str]:
    """An upper bound on the excess cost of decisions: how often is the truth above it?"""
    rows = []
    for kind in ("nothing to save", "groups", "what matters is not given", "rare outcomes"):
        costs = CostMatrix(c10=1, c01=9) if kind == "rare outcomes" else CostMatrix()
        _, f, p, _ = decision_world(kind, 400_000, np.random.default_rng(99))
        truth = float(pointwise_risk(p, f, costs).mean())
        for n in (1_000, 4_000):
            uppers = []
            for seed in range(RUNS):
                x, f, p, y = decision_world(kind, n, np.random.default_rng([11, n, seed]))
                saved = DecisionRisk(costs=costs, seed=seed).fit(x, f, y).saved_
                uppers.append(2 * saved.value - saved.low)
            broken = np.sum(np.array(uppers) < truth - 1e-12)
            mean = f"{np.mean(uppers):.4f}"
            rows.append([kind, f"{n:,}", f"{truth:.4f}", mean, _share(broken, RUNS)])
            print("  ", *rows[-1], flush=True)
    return [
        "## A promise on excess risk",
        "",
        "Excess risk is what decisions by the confidence cost beyond decisions by the truth. Trees "
        "estimate what they can save, with a standard error. 'Bound': estimate plus 1.76 standard "
        f"errors, which `decide --max-excess` would promise with 95 %. {RUNS} runs a row.",
        "",
        *markdown_table(["world", "rows", "true excess", "mean bound", "truth above bound"], rows),
        "A promise may break in 5 % of runs. This one breaks as often as the table says: what no "
        "column tells is never found, and few rows show little of the rest. The cost of today's "
        "decisions is the only bound that held, so `--max-excess` is not offered.",
        "",
    ]


def _loss_world(kind: str, n: int, rng: np.random.Generator):
    """Return columns, confidence, outcome, true chance and what the columns add to it."""
    f = rng.uniform(0.2, 0.8, n)
    one, two, group = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 8, n)
    effect = {
        "eight groups": np.where(group % 2 == 0, 1.0, -1.0),
        "one number, a wave": np.sqrt(2) * np.sin(np.pi * one),
        "two numbers together": np.sign(one) * np.sign(two),
        "one group of twenty": np.where(rng.random(n) < 0.05, 19**0.5, -(19**-0.5)),
    }[kind]
    columns = {"group": group.astype(str), "one": one, "two": two}
    if kind == "one group of twenty":
        columns["rare"] = (effect > 0).astype(str)
        f = rng.uniform(0.2, 0.5, n)
    added = LOSS**0.5 * effect
    y = (rng.random(n) < np.clip(f + added, 0, 1)).astype(float)
    return columns, f, y, added


def floors() -> list[str]:
    """The labels that show a grouping loss, against the floor of one who knows the groups."""
    rows = []
    kinds = ("eight groups", "two numbers together", "one group of twenty")
    for kind in kinds:
        _, f, _, added = _loss_world(kind, 200_000, np.random.default_rng(5))
        chance = np.clip(f + added, 0, 1)
        spread = float((chance * (1 - chance)).mean())
        floor = grouping_labels(LOSS, noise=spread)
        powers = []
        for times in TIMES:
            n = floor * times
            shown = 0
            for seed in range(RUNS):
                rng = np.random.default_rng([12, times, seed])
                x, f, y, _ = _loss_world(kind, n, rng)
                shown += GroupingLoss(seed=seed).fit(x, f, y).lower_ > 0
            powers.append(f"{shown / RUNS:.2f}")
        known = _known_power(kind, floor)
        rows.append([kind, f"{floor:,}", f"{known:.2f}", *powers])
        print("  ", *rows[-1], flush=True)
    columns = ["where the loss is", "floor, labels", "groups known, at the floor",
               *(f"learned, {times} x" for times in TIMES)]  # fmt: skip
    return [
        "## Labels that show a grouping loss",
        "",
        f"`plan --grouping-loss {LOSS}`: whoever knows what the columns say shows a loss above 0 "
        "with 80 % power from (1.645 + 0.842)^2 times noise by loss labels on, noise being the "
        "mean of p (1 - p). Power of that test at the floor (4,000 runs), and of `groups` at so "
        f"many times the floor ({RUNS} runs; three columns or four, one or two of them matter).",
        "",
        *markdown_table(columns, rows),
        "With known groups the test has the 80 % that the floor promises, or less where the loss "
        "is in a rare group. What must first be learned takes 4 to 16 times as many labels: how "
        "many depends on where the loss is: `plan` states the floor as a floor. It takes outcomes "
        "to be as noisy in all groups.",
        "",
    ]


def _known_power(kind: str, n: int, runs: int = 4_000) -> float:
    """Return how often the best test with known groups shows the loss."""
    _, f, y, added = _loss_world(kind, n * runs, np.random.default_rng(6))
    product = (added * (y - np.clip(f, 0, 1))).reshape(runs, n)
    return float(np.mean(product.mean(axis=1) > 1.645 * product.std(axis=1) / np.sqrt(n)))


def by_count() -> list[str]:
    """Right answers that are deferred at equal error, with and without knowing k (MACE)."""
    path = DATA / "mace" / "deepseek_v3.parquet"
    if not path.exists():
        print(f"   left out: {path} is absent", flush=True)
        return []
    table = pl.read_parquet(path, columns=["k", "consistency_conf", "greedy_correct"]).drop_nulls()
    said, right, counts = (table[name].cast(pl.Float64).to_numpy() for name in
                           ("consistency_conf", "greedy_correct", "k"))  # fmt: skip
    halves = np.array([_deferred(said, right, counts, seed) for seed in range(200)])
    rows = []
    for place, error in enumerate(ERRORS):
        one, each = halves[:, place].T
        low, high = np.quantile(one - each, [0.025, 0.975])
        rows.append(
            [f"{error:.0%}", f"{one.mean():.1%}", f"{each.mean():.1%}",
             f"{100 * (one - each).mean():+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]"]
        )  # fmt: skip
    return [
        "## Deferral that knows how many answers are right",
        "",
        f"DeepSeek-V3 on {table.height:,} questions with 1, 2, 4 or 6 right answers (MACE), "
        f"{1 - right.mean():.0%} of answers wrong; confidence is agreement of 20 draws. What it "
        "means is learned on one half by isotonic steps, over all questions or for each number of "
        "right answers. On the other half the surest are answered as far as the error allows (of "
        "a tie, a share at random). A right answer that is deferred is a wrongful deferral. Means "
        "of 200 halves, with the middle 95 % of them.",
        "",
        *markdown_table(
            ["error of the answered", "right but deferred", "the same, knowing k", "saved"], rows
        ),
        "Knowing the number of right answers saves wrongful deferrals: agreement falls with it, "
        "and a lower agreement then means no worse an answer. At 15 % one threshold reaches the "
        "error in some halves only. A table with a column k gets this by `decide --features k`.",
        "",
    ]


def _deferred(
    said: np.ndarray, right: np.ndarray, counts: np.ndarray, seed: int
) -> list[tuple[float, float]]:
    """Return the share of right answers deferred at each error: with one map, with one per k."""
    order = np.random.default_rng([13, seed]).permutation(len(said))
    fit, test = np.split(order, [len(order) // 2])
    chance = np.empty((2, len(said)))
    chance[0] = _rates(said[fit], right[fit], said)
    for k in np.unique(counts):
        own = fit[counts[fit] == k]
        chance[1, counts == k] = _rates(said[own], right[own], said[counts == k])
    curves = [_curve(score[test], right[test]) for score in chance]
    return [tuple(_lost(*curve, error) for curve in curves) for error in ERRORS]


def _curve(score: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return right and wrong answers given as the threshold falls, from tie to tie."""
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) < 0, True)
    good, bad = np.cumsum(right[order])[last], np.cumsum(1 - right[order])[last]
    return np.append(0.0, good), np.append(0.0, bad)


def _lost(good: np.ndarray, bad: np.ndarray, error: float) -> float:
    """Return the share of right answers that are deferred where so many of the given are wrong."""
    part = np.linspace(0, len(good) - 1, 20 * len(good))
    places = np.arange(len(good))
    goods, bads = np.interp(part, places, good), np.interp(part, places, bad)
    allowed = bads <= error * (goods + bads) + 1e-9
    return float(1 - goods[allowed].max() / good[-1])


def _rates(known, right, wanted):
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression(out_of_bounds="clip").fit(known, right).predict(wanted)


def _question_world(n, rng):
    """Return, per model, the chances of five meanings and which of them is right."""
    hard = rng.uniform(0.0, 1.0, n)
    models = []
    for sharp, skill in ((2.5, 0.75), (1.5, 0.8)):
        weights = rng.gamma(0.6, size=(n, 5)) ** sharp + 1e-9
        chances = np.sort(weights / weights.sum(axis=1, keepdims=True), axis=1)[:, ::-1]
        lucky = rng.random(n) < np.clip(skill * (1.3 - hard), 0, 1)
        models.append((chances, np.where(lucky, 0, rng.integers(1, 5, n))))
    return models


def _gaps(world, draws, rng):
    """Return the difference of the gaps of two models per question, by Sem1 and by Sem2."""
    both = []
    for chances, truth in world:
        halves = [rng.multinomial(draws // 2, chances) for _ in range(2)]
        apart = (_gap(*halves, truth=truth) + _gap(*halves[::-1], truth=truth)) / 2
        both.append(np.stack([_gap(sum(halves), sum(halves), truth), apart]))
    return both[0] - both[1]


def _gap(chosen, read, truth):
    """Return share minus right of the classes that lead among `chosen`, ties averaged."""
    lead = chosen == chosen.max(axis=1, keepdims=True)
    share = (lead * read / read.sum(axis=1, keepdims=True)).sum(axis=1)
    return (share - lead[np.arange(len(truth)), truth]) / lead.sum(axis=1)


def _limit(world):
    """Return the difference of the gaps with unlimited draws."""
    gaps = [chances[:, 0] - (truth == 0) for chances, truth in world]
    return float((gaps[0] - gaps[1]).mean())


def meanings(runs: int = 250) -> list[str]:
    """Questions that tell two models apart by the gap of their leading meaning."""
    whole = _question_world(400_000, np.random.default_rng(3))
    limit = _limit(whole)
    finite = {m: _gaps(whole, m, np.random.default_rng(4)).mean(axis=1) for m in DRAWS}
    tests: dict[tuple[int, int], list[tuple[float, ...]]] = {}
    for seed in range(runs):
        rng = np.random.default_rng([14, seed])
        pilot = _question_world(PILOT, rng)
        spread = {m: _gaps(pilot, m, rng).var(axis=1, ddof=1) for m in (4, 10)}
        noise = (spread[4] - spread[10]) / (1 / 4 - 1 / 10)
        for draws, place in product(DRAWS, range(2)):
            # Between questions, and by chance of the draws: this part shrinks with them.
            forecast = spread[10][place] + max(noise[place], 0) * (1 / draws - 1 / 10)
            aim = finite[draws][place]
            n = max(int(np.ceil((1.96 + 0.842) ** 2 * forecast / aim**2)), 20)
            gaps = _gaps(_question_world(n, rng), draws, rng)[place]
            mean, reach = gaps.mean(), 1.96 * gaps.std(ddof=1) / np.sqrt(n)
            covered = [abs(mean - truth) <= reach for truth in (aim, limit)]
            tests.setdefault((draws, place), []).append((n, mean > reach, *covered))
    rows = []
    for (draws, place), found in tests.items():
        n, *shares = np.array(found, float).T
        cells = (_share(part.sum(), runs) for part in shares)
        name = ("Sem1", "Sem2")[place]
        rows.append([draws, name, f"{finite[draws][place]:+.3f}", f"{np.median(n):,.0f}", *cells])
        print("  ", *rows[-1], flush=True)
    return [
        "## Questions and draws that tell two models apart by meaning",
        "",
        "The gap of a model is the share of its leading meaning less the share of questions where "
        f"that meaning is right. With unlimited draws two models differ by {limit:+.3f} here, with "
        f"few draws by less. A pilot of {PILOT} questions with 10 draws plans the questions for 80 "
        "% power to show the difference as it is at so many draws; then other questions are asked. "
        f"{runs:,} runs.",
        "",
        *markdown_table(
            ["draws", "by", "difference at these draws", "questions planned", "power",
             "covers it", "covers that with unlimited draws"], rows),
        "With half to twice the draws of the pilot the plan keeps its power, and the interval "
        "covers the difference at the draws that were asked. Two draws or 50 are too far from the "
        "pilot's 10 for Sem2. The difference with unlimited draws is another one, which few draws "
        "do not show: no plan is offered for it.",
        "",
    ]  # fmt: skip


def _drawn(world: list, draws: int, rng: np.random.Generator) -> pl.DataFrame:
    """Return one row per draw of two models."""
    parts = []
    for model, (chances, truth) in zip("ab", world, strict=True):
        steps = chances.cumsum(axis=1)[:, None, :]
        drawn = (rng.random((len(truth), draws, 1)) > steps).sum(axis=2).clip(0, 4)
        names = {"question_id": np.repeat(np.arange(len(truth)), draws), "class_id": drawn.ravel()}
        right = (drawn == truth[:, None]).ravel()
        parts.append(pl.DataFrame({**names, "correct": right}).with_columns(model=pl.lit(model)))
    return pl.concat(parts)


def shipped(runs: int = 2 * RUNS) -> list[str]:
    """`plan --samples` as it is: pilots plan, other questions are asked, and the plan is tested."""
    rows = []
    truth = {}
    for draws in (5, 10, 20):
        rng = np.random.default_rng([15, draws])
        worlds = [_drawn(_question_world(4_000, rng), draws, rng) for _ in range(3)]
        truth[draws] = float(np.mean([meaning_plan(w)[0]["difference"].value for w in worlds]))
    limit = _limit(_question_world(400_000, np.random.default_rng(3)))
    found: dict[int, list[tuple[float, ...]]] = {draws: [] for draws in truth}
    for seed in range(runs):
        rng = np.random.default_rng([16, seed])
        pilot = _drawn(_question_world(PILOT, rng), 10, rng)
        for draws, aim in truth.items():
            (pair,) = meaning_plan(pilot, difference=aim)
            (n,) = (step["questions"] for step in pair["needed"] if step["draws"] == draws)
            (asked,) = meaning_plan(_drawn(_question_world(n, rng), draws, rng))
            seen = asked["difference"]
            covered = [seen.low <= goal <= seen.high for goal in (aim, limit)]
            found[draws].append((n, seen.low > 0, *covered))
    for draws, tests in found.items():
        n, *shares = np.array(tests, float).T
        cells = (_share(part.sum(), runs) for part in shares)
        rows.append([draws, f"{truth[draws]:+.3f}", f"{np.median(n):,.0f}", *cells])
        print("  ", *rows[-1], flush=True)
    return [
        "## The plan by meaning as it is shipped",
        "",
        f"`plan --samples` on pilots of {PILOT} questions with 10 draws, for the same two models: "
        f"Sem2 over all splits, half to twice as many draws. {runs} runs.",
        "",
        *markdown_table(
            ["draws", "difference at these draws", "questions planned", "power", "covers it",
             "covers that with unlimited draws"], rows),
    ]  # fmt: skip


PARTS = {
    "excess": excess,
    "floors": floors,
    "by_count": by_count,
    "meanings": meanings,
    "shipped": shipped,
}


def main() -> None:
    words = "Promises beyond the papers: which hold?"
    write_page("paper_extensions", words, PARTS, ["numpy", "scikit-learn"])


if __name__ == "__main__":
    main()
