"""Trees on residuals beside scikit-learn's, and the speed of served decisions."""

from __future__ import annotations

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from benchmarks._served_world import policy_of_two
from benchmarks._served_world import world as two_models
from benchmarks.harness import Page, median_seconds, seconds
from calibrant.trust import Cascade, Selective, TreeGroupingLoss
from calibrant.trust.honest_trees import partition_loss
from calibrant.trust.trees import grow_tree

FEATURES = 10
MODELS = ("small", "medium", "large")


def world(n, seed):
    """Features, a confidence that misses most of them, residuals and the true grouping loss."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, FEATURES))
    hidden = np.sin(2 * x[:, 1]) + 0.7 * x[:, 2] * (x[:, 3] > 0) + 0.3 * x[:, 4]
    confidence = 1 / (1 + np.exp(-x[:, 0]))
    truth = np.clip(confidence + 0.15 * np.tanh(hidden), 0.01, 0.99)
    correct = (rng.random(n) < truth).astype(float)
    return x, confidence, correct, truth


def trees(page, sizes):
    held = world(500_000, 99)
    rows = []
    for n in sizes:
        x, f, y, _ = world(n, n)
        for leaves in (64, None):
            rows.append(_compare(x, y - f, held, n, leaves))
    page.table(
        f"Tree on residuals, {FEATURES} features",
        [
            "rows",
            "leaves",
            "calibrant, histogram",
            "scikit-learn DecisionTreeRegressor",
            "ratio",
            "times faster",
            "captured, histogram",
            "captured, exact",
        ],
        rows,
    )
    page.text(
        "Captured is the debiased grouping loss of the leaves on 500,000 rows of their own, as a "
        "share of the true one; ± is its 95 % sampling error."
    )


def _compare(x, residual, held, n, leaves):
    grown = {}

    def ours():
        grown["ours"] = grow_tree(x, residual, max_leaf_nodes=leaves)

    def peer():
        grown["peer"] = DecisionTreeRegressor(
            min_samples_leaf=15, max_leaf_nodes=leaves, random_state=0
        ).fit(x, residual)

    quick = median_seconds(ours, warm=False)
    slow = median_seconds(peer, warm=False, budget=20.0)
    hx, hf, hy, truth = held
    exact = float(np.mean((truth - hf) ** 2))
    found = []
    for name in ("ours", "peer"):
        tree = grown[name]
        leaf = tree.apply(hx)
        if name == "peer":
            _, leaf = np.unique(leaf, return_inverse=True)
        loss = partition_loss(leaf, hy - hf, int(leaf.max()) + 1)
        found.append(f"{loss.value / exact:.3f} ± {1.96 * np.sqrt(loss.variance) / exact:.3f}")
    return (
        f"{n:,}",
        "no limit" if leaves is None else leaves,
        seconds(quick),
        seconds(slow),
        quick / slow,
        slow / quick,
        *found,
    )


def losses(page):
    rows = []
    for n in (100_000, 1_000_000):
        x, f, y, _ = world(n, n)
        spent = median_seconds(
            lambda x=x, f=f, y=y: TreeGroupingLoss(repeats=1).fit(x, f, y), warm=False
        )
        rows.append((f"{n:,}", seconds(spent)))
    page.table("Grouping loss with interval, one split, whole chain", ["rows", "time"], rows)


def served(page):
    n = 20_000
    rng = np.random.default_rng(0)
    table = {"topic": rng.choice(["a", "b", "c", "d"], n)}
    table |= {f"x{number}": rng.normal(size=n) for number in range(9)}
    chance = np.clip(0.5 + 0.2 * table["x0"], 0.05, 0.95)
    right = {name: (rng.random(n) < chance).astype(float) for name in MODELS}
    said = {name: np.clip(chance + 0.1 * rng.normal(size=n), 0, 1) for name in MODELS}
    policy = Cascade(MODELS, tolerance=0.25).fit(
        table, said, right, price={"small": 1, "medium": 3, "large": 10}
    )
    query = {name: column[0].item() for name, column in table.items()}
    answers = {name: float(column[0]) for name, column in said.items()}
    one = median_seconds(lambda: policy.route(query, answers))
    import polars as pl

    many = 1_000_000
    at = rng.integers(0, n, many)
    frame = pl.DataFrame(table)[at]
    spoken = {name: column[at] for name, column in said.items()}
    batch = median_seconds(lambda: policy.route_batch(frame, spoken), warm=False)
    leaves = sum(stage.residual.tree_.n_leaves for stage in policy.stages_)
    page.table(
        "Served decisions: risk cascade of three models, 10 features",
        ["work", "time", "target"],
        [
            ("one query, all three answers in", seconds(one), "< 1 ms"),
            ("batch of 1,000,000 queries", seconds(batch), "< 2 s"),
        ],
    )
    page.text(f"The three trees have {leaves:,} leaves together.")


def decided(page):
    """Time one question through the policies that `decide` and `cascade` save."""
    answers = two_models(4000, 0)
    row = {"topic": "easy", "tokens": 30, "confidence": 0.5}
    selective = Selective(max_error=0.4).fit(
        answers.features.hstack(answers.answer_features["small"]),
        answers.confidence[:, 0],
        answers.correct[:, 0],
    )
    policy = policy_of_two()
    said = {"small": {"confidence": 0.5, "tokens": 30}}
    page.table(
        "One question through a saved policy",
        ["policy", "time", "target"],
        [
            ("decide", seconds(median_seconds(lambda: selective.policy_.decide(row))), "< 1 ms"),
            (
                "cascade of two models",
                seconds(median_seconds(lambda: policy.policy.route({"topic": "easy"}, said))),
                "< 1 ms",
            ),
        ],
    )


def main() -> None:
    page = Page("epistemic", "Epistemic error", packages=["numpy", "scikit-learn", "polars"])
    served(page)
    decided(page)
    losses(page)
    trees(page, (100_000, 1_000_000))
    page.write()


if __name__ == "__main__":
    main()
