"""Cascades on all pools of three models: the comparison of the paper's Figure 6, and more."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
from msgspec.structs import replace
from simulations._epistemic_real import SAID, Pools, table

from calibrant.trust import GroupingLoss
from calibrant.trust.deferral.answers import Answers
from calibrant.trust.deferral.strategies import STRATEGIES, StrategyOptions
from studies._page import DATA, StudyPage
from studies._pools import BUDGETS, measure
from studies.epistemic import ADULT

MOST = int(os.environ.get("CALIBRANT_POOLS", "455"))
DEPTHS = (1, 3, 5, 10, None)
RULES = StrategyOptions(strategies=("value", "risk", "calibration", "confidence", "router"))
WORDS = {**STRATEGIES, "single": "mix of single models", "largest": "always the largest model"}


def mmlu(most=MOST):
    """Yield names and answers of the pools, in an order that a smaller number samples."""
    pools = Pools()
    for at in np.random.default_rng(0).permutation(len(pools.all))[:most]:
        yield pools.all[at], pools.answers(pools.all[at])


def adult():
    """Yield the one pool of Adult, on the rows that its scores were not fitted on."""
    rows = pl.read_parquet(DATA / "tabular" / "uci_adult_with_probs.parquet")
    rows = rows.filter(pl.col("split") == "test")
    names = ("p_lr3", "p_hgb")
    said = rows.select(names).cast(pl.Float64).to_numpy().clip(0, 1)
    right = np.repeat(rows["y"].to_numpy().astype(float)[:, None], 2, axis=1)
    cost = np.broadcast_to([1.0, 10.0], said.shape).copy()
    yield names, Answers(names, rows.select(ADULT), said, right, cost)


def budgets_section(page, found, words):
    """Write accuracy at each budget, ours against the others."""
    rows = []
    for budget in BUDGETS:
        for name in (*RULES.strategies, "single"):
            if (name, budget) not in found.worth:
                continue
            level, cost = found.level((name, budget))
            row = [f"{budget:.0%}", WORDS[name], len(found.worth[name, budget]), level, cost]
            rows.append((*row, *_against(found, ("value", budget), (name, budget))))
        rows.append(
            (f"{budget:.0%}", WORDS["largest"], len(found.worth["largest", None]),
             *found.level(("largest", None)),
             *_against(found, ("value", budget), ("largest", None)))
        )  # fmt: skip
    page.table(
        ("budget", "strategy", "pools", words, "cost / largest", "one-step minus this",
         "pools where one-step is better"),
        rows,
    )  # fmt: skip


def told(page, found):
    """Say in words against which strategies the one-step rule is ahead, and where it is not."""
    for name in (*RULES.strategies[1:], "single", "largest"):
        sides = {"ahead": [], "behind": [], "undecided": []}
        for budget in BUDGETS:
            other = (name, None if name == "largest" else budget)
            if other not in found.worth or ("value", budget) not in found.worth:
                continue
            mean, error, _ = found.difference(("value", budget), other)
            side = "undecided" if abs(mean) < 1.96 * error else "ahead" if mean > 0 else "behind"
            sides[side].append(f"{budget:.0%} ({100 * mean:+.1f} points)")
        parts = [f"{side} at {', '.join(at)}" for side, at in sides.items() if at]
        page.text(f"One-step against {WORDS[name]}: {'; '.join(parts)}.")


def _against(found, one, other):
    if one == other or one not in found.worth:
        return "", ""
    mean, error, pools = found.difference(one, other)
    text = f"{mean:+.3f} [{mean - 1.96 * error:+.3f}, {mean + 1.96 * error:+.3f}]"
    return text, f"{np.mean(pools > 0):.0%}"


def paper_section(page, found):
    """Write the paper's own comparison, at its tolerance 0."""
    ours = ("risk", None)
    rows = []
    for name, other in (
        ("always the largest model", ("largest", None)),
        ("cascade on calibration risk, tolerance 0", ("calibration", None)),
        ("predictive router at the same cost", ("router", None)),
    ):
        mean, error, pools = found.difference(ours, other)
        ratio = np.array([found.cost[ours][p] / found.cost[other][p] for p in found.cost[other]])
        both = np.mean((pools > 0) & (ratio < 1))
        interval = f"{mean:+.3f} [{mean - 1.96 * error:+.3f}, {mean + 1.96 * error:+.3f}]"
        rows.append((name, len(pools), interval, float(ratio.mean()), f"{both:.0%}"))
    gain, _, _ = found.difference(ours, ("largest", None))
    page.text(
        f"The paper's rule at tolerance 0 gains {100 * gain:+.1f} points on the largest model at "
        f"{found.level(ours)[1]:.0%} of its cost; the paper reports +6 points at 46 % on its own "
        "data."
    )
    page.table(
        ("risk cascade, tolerance 0, against", "pools", "accuracy gained", "cost ratio",
         "better and cheaper"),
        rows,
    )  # fmt: skip


def depth_section(page):
    """Write what the depth of the trees does."""
    page.heading("Depth of the trees (the paper's appendix C.6)")
    rows = []
    few = StrategyOptions(strategies=("risk", "router"), decision="class")
    for depth in DEPTHS:
        found = measure(mmlu(min(MOST, 40)), replace(few, max_depth=depth))
        cells = [found.level(("risk", budget))[0] for budget in BUDGETS]
        mean, error, _ = found.difference(("risk", None), ("largest", None))
        gain = f"{mean:+.3f} ± {error:.3f}"
        rows.append(("unlimited" if depth is None else depth, *cells, gain))
    page.table(
        ("depth", *(f"accuracy at {b:.0%}" for b in BUDGETS), "tolerance 0 against the largest"),
        rows,
    )


def size_section(page):
    """Write the grouping loss of every model."""
    page.heading("Grouping loss by size (the paper's Figure 4 and appendix C.2)")
    rows = []
    for (name,), part in sorted(table().group_by("model"), key=lambda item: item[0]):
        part = part.filter(pl.col(SAID).is_finite() & pl.col(SAID).is_between(0, 1))
        y = part["correct"].to_numpy().astype(float)
        loss = GroupingLoss().fit(
            part.select("category", "token_length"), part[SAID].cast(pl.Float64).to_numpy(), y
        )
        share = loss.value_ / max(y.mean() * (1 - y.mean()), 1e-9)
        rows.append((name, float(y.mean()), f"{loss.value_:.4f}", f"{loss.lower_:.4f}", share))
    page.table(
        ("model", "accuracy", "grouping loss", "at least", "share of the outcome's variance"), rows
    )
    page.text(
        "The paper compares base with instruction-tuned models. These fifteen are all "
        "instruction-tuned; the pairs at hand are Qwen3 without and with thinking."
    )


def main() -> None:
    page = StudyPage("epistemic_pools", "Cascades on all pools of three models")
    page.text(
        f"{MOST} of the 455 pools of three among 15 models on MMLU-Pro, cheapest first, price per "
        "model times tokens. Policies are fitted on 40 % of 12,032 questions, their settings are "
        "chosen on 10 % and measured on 50 %. Intervals (95 %) join two errors: over questions, "
        "which all pools share, and over models, by leaving out the pools of one model at a time. "
        "The table holds no texts, so the router is a tree on the category."
    )
    page.heading("Answers: each model gives its own, the policy picks one")
    found = measure(mmlu(), RULES)
    told(page, found)
    budgets_section(page, found, "accuracy")
    page.heading("Classes: each confidence says whether the model's own answer is right")
    page.text(
        "The paper's set-up, as far as these data allow: a confidence of one half or more decides "
        "'right'. In the paper all models judge one outcome; here each judges its own answer."
    )
    found = measure(mmlu(), replace(RULES, decision="class"))
    told(page, found)
    budgets_section(page, found, "right decisions")
    paper_section(page, found)
    page.heading("UCI Adult: two scores of one outcome, on the test split")
    found = measure(adult(), replace(RULES, decision="class"))
    told(page, found)
    budgets_section(page, found, "right decisions")
    paper_section(page, found)
    depth_section(page)
    size_section(page)
    page.write()


if __name__ == "__main__":
    main()
