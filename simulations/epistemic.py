"""What groups, losses, decisions and policies show where the truth is known; writes its page.

`CALIBRANT_PARTS=losses,cascade python -m simulations epistemic` runs some parts; the page is
written from all that were ever run.
"""

from __future__ import annotations

import os

import numpy as np

from calibrant.trust import ConfidenceGroups, CostMatrix, DecisionRisk, GroupingLoss
from calibrant.trust.decision_risk import pointwise_risk
from calibrant.trust.deferral import choice as choosing
from calibrant.trust.deferral.strategies import StrategyOptions, Target
from simulations._cascade_pools import who_answers
from simulations._epistemic_real import PATH, Pools
from simulations._epistemic_worlds import (
    LOSSES,
    NULLS,
    decision_world,
    loss_world,
    people,
)
from simulations._pieces import markdown_table, write_page

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "500"))


def _share(count, runs):
    error = np.sqrt(max(count / runs * (1 - count / runs), 1 / runs) / runs)
    return f"{count / runs:.3f} ± {error:.3f}"


def losses():
    """Grouping loss: claims where there is none, and bounds against the truth."""
    rows = []
    for kind in (*NULLS, *LOSSES):
        runs = RUNS if kind in NULLS[:3] else max(RUNS // 5, 10)
        found = []
        for seed in range(runs):
            x, f, y, exact = loss_world(kind, 1000, np.random.default_rng([1, seed]))
            loss = GroupingLoss(seed=seed).fit(x, f, y)
            found.append((loss.lower_, loss.value_, loss.copy_))
        lower, value, copy = np.array(found).T
        rows.append(
            (
                kind,
                runs,
                f"{exact:.5f}",
                _share(np.sum(lower > 0), runs),
                _share(np.sum(lower > exact), runs),
                f"{value.mean():.5f}",
                f"{lower.mean():.5f}",
                _share(np.sum(copy > 0), runs),
            )
        )
        print("  ", *rows[-1], flush=True)
    return [
        "## Grouping loss",
        "",
        "1,000 rows. 'Claimed': the 95 % lower bound is above 0. 'Above truth': it is above the "
        "true loss. In the first five worlds there is nothing to claim.",
        "",
        *markdown_table(
            ["world", "runs", "truth", "claimed", "above truth", "mean value", "mean bound",
             "copy check failed"],
            rows,
        ),
    ]  # fmt: skip


def groups():
    """Groups: flags where no group differs, and a planted one."""
    rows = []
    worlds = [
        (0.0, 0.0, False, 2000), (0.1, 0.0, False, 2000), (0.0, 0.0, True, 2000),
        (0.1, 0.0, False, 600), (0.1, 0.15, False, 4000), (0.1, 0.25, False, 4000),
        (0.0, 0.15, True, 4000), (0.1, 0.15, False, 12_000),
    ]  # fmt: skip
    for overall, plant, wavy, n in worlds:
        runs = RUNS if n <= 4000 else max(RUNS // 5, 10)
        flagged = first = covered = echoes = 0
        for seed in range(runs):
            rng = np.random.default_rng([2, seed])
            table, f, y, _ = people(n, rng, overall, plant, wavy=wavy)
            made = ConfidenceGroups(seed=seed).fit(table, f, y)
            found = [group for group in made.groups_ if group.flagged]
            flagged += bool(found)
            echoes += len(found)
            if plant and found:
                first += "d3" in found[0].rule
                covered += found[0].beyond.low <= plant <= found[0].beyond.high
        rows.append(
            (
                "wavy" if wavy else f"+{overall:.2f}",
                plant or "-",
                f"{n:,}",
                runs,
                _share(flagged, runs),
                f"{echoes / runs:.2f}",
                _share(first, runs) if plant else "-",
                _share(covered, max(flagged, 1)) if plant else "-",
            )
        )
        print("  ", *rows[-1], flush=True)
    return [
        "## Groups",
        "",
        "Eight departments, two sexes, age; all are over-confident by the overall error, the young "
        "of one department by the planted gap more. 'Any flag' without a plant is a false alarm. "
        "'First': the planted department leads the list; 'covered': the interval that holds for "
        "all rules at once contains the plant.",
        "",
        *markdown_table(
            ["overall error", "planted", "rows", "runs", "any flag", "flags", "first", "covered"],
            rows,
        ),
    ]


def decisions():
    """Decision risk: the one-sided bound against the truth."""
    rows = []
    runs = max(RUNS // 5, 10)
    worlds = [
        ("nothing to save", CostMatrix()),
        ("groups", CostMatrix()),
        ("what matters is not given", CostMatrix()),
        ("rare outcomes", CostMatrix(c10=1, c01=9)),
    ]
    for kind, costs in worlds:
        _, f, p, _ = decision_world(kind, 400_000, np.random.default_rng(99))
        exact = float(pointwise_risk(p, f, costs).mean())
        found = []
        for seed in range(runs):
            x, f, p, y = decision_world(kind, 2000, np.random.default_rng([3, seed]))
            saved = DecisionRisk(costs=costs, seed=seed).fit(x, f, y).saved_
            found.append((saved.low, saved.value, saved.high))
        low, value, high = np.array(found).T
        rows.append(
            (
                kind,
                runs,
                f"{exact:.4f}",
                _share(np.sum(low > max(exact, 0)), runs),
                _share(np.sum(low > 0), runs),
                f"{value.mean():.4f}",
                f"{low.mean():.4f}",
                _share(np.sum(high < exact), runs),
            )
        )
        print("  ", *rows[-1], flush=True)
    return [
        "## Decision risk",
        "",
        "2,000 rows. 'Above truth': the bound exceeds the true excess cost, which must be rare. "
        "'Ceiling too low': the cost of today's decisions is below it, which must not happen.",
        "",
        *markdown_table(
            ["world", "runs", "truth", "above truth", "claimed", "mean saved", "mean bound",
             "ceiling too low"],
            rows,
        ),
    ]  # fmt: skip


def cascade():
    """Cascades on unseen halves: cost against the budget, the winner against the others."""
    if not PATH.exists():
        print(f"   left out: {PATH} is absent", flush=True)
        return []
    pools = Pools()
    order = np.random.default_rng(5).permutation(len(pools.all))
    count = int(os.environ.get("CALIBRANT_POOLS", "60"))
    costs, gains, dominated, names, held, spent = {}, {}, 0, {}, [], []
    tried = 0
    for at in order[:count]:
        answers = pools.answers(pools.all[at])
        rows = np.random.default_rng(int(at)).permutation(len(answers))
        half = len(rows) // 2
        seen, unseen = answers.rows(rows[:half]), answers.rows(rows[half:])
        judged = choosing._judged(seen, [unseen], StrategyOptions(), seed=int(at))
        largest = float(seen.cost[:, -1].mean())
        for budget in (0.25, 0.5, 0.75):
            target = Target(budget=budget)
            found, _ = choosing._reached(judged, seen, target)
            if not found:
                continue
            winner = choosing._winner(found, target)
            one, mix, _ = found[winner]
            curve = one.fitted.curves[0]
            right = choosing.per_question(mix, curve.right)
            paid = choosing.per_question(mix, curve.spent)
            names[winner] = names.get(winner, 0) + 1
            if mix.cost > 0.99 * budget * largest:
                # Two halves of one table differ by chance: the relative error of both means.
                noise = np.sqrt(2 / len(paid)) * paid.std(ddof=1) / paid.mean()
                costs.setdefault(budget, []).append((paid.mean() / (budget * largest), noise))
            tried += 1
            beaten = False
            for name, (other, mixed, _) in found.items():
                theirs = other.fitted.curves[0]
                gap = choosing.per_question(mixed, theirs.right) - right
                extra = choosing.per_question(mixed, theirs.spent).mean() / paid.mean()
                reach = 1.96 * gap.std(ddof=1) / np.sqrt(len(gap))
                gains.setdefault((budget, name), []).append(-gap.mean())
                beaten |= name != winner and gap.mean() > reach and extra <= 1.0
            dominated += beaten
            reference = unseen.correct[:, -1]
            gains.setdefault((budget, "largest"), []).append(right.mean() - reference.mean())
        margin = Target(margin=0.03)
        chosen = choosing.choose_policy(
            seen, StrategyOptions(strategies=("value",)), margin, seed=int(at)
        )
        certified = _on(chosen, unseen)
        held.append(certified[0] >= unseen.correct[:, -1].mean() - 0.03)
        spent.append(certified[1] / unseen.cost[:, -1].mean())
        print("  ", at, tried, dominated, held[-1], flush=True)
    rows = [
        (f"{budget:g}", len(pairs), f"{ratio.mean():.3f}", f"{np.median(ratio):.3f}",
         f"{ratio.std():.3f}", f"{np.sqrt(np.mean(noise**2)):.3f}",
         f"{np.mean(np.abs(ratio - 1) <= 1.96 * noise):.2f}")
        for budget, pairs in sorted(costs.items())
        for ratio, noise in [np.array(pairs).T]
    ]  # fmt: skip
    others = [
        (f"{budget:g}", name, len(values), f"{np.mean(values):+.3f}",
         f"{np.std(values) / np.sqrt(len(values)):.3f}")
        for (budget, name), values in sorted(gains.items())
    ]  # fmt: skip
    return [
        "## Cascades",
        "",
        f"{count} pools of three among 15 models on MMLU-Pro, price per model times tokens; "
        "policies are fitted and chosen on one half and measured on the other.",
        "",
        "Cost on the unseen half over the budget, where the budget binds:",
        "",
        *markdown_table(
            [
                "budget",
                "pools",
                "mean",
                "median",
                "spread over pools",
                "spread by chance alone",
                "inside chance (95 %)",
            ],
            rows,
        ),
        f"Clearly beaten on the unseen half by another strategy of its page that costs no more: "
        f"{dominated} of {tried} chosen policies. Chosen: "
        + ", ".join(f"{name} {n}" for name, n in sorted(names.items(), key=lambda i: -i[1]))
        + ".",
        "",
        "Accuracy of the chosen policy minus each strategy at the same budget, mean over pools "
        "with its standard error ('largest': always the largest model, at its full cost):",
        "",
        *markdown_table(["budget", "against", "pools", "gain", "standard error"], others),
        f"Guarantee 'at most 3 points below the largest model', delta 0.1: kept in "
        f"{np.mean(held):.3f} of {len(held)} pools, at {np.mean(spent):.2f} of its cost.",
        "",
    ]


def _on(chosen, answers):
    """Return accuracy and mean cost of a certified policy on other questions."""
    who, paid = who_answers(chosen.policy.with_dial(chosen.dials[0]), answers)
    return answers.correct[np.arange(len(who)), who].mean(), paid.mean()


PARTS = {
    "losses": losses,
    "groups": groups,
    "decisions": decisions,
    "cascade": cascade,
}


def main() -> None:
    words = "Simulations: groups, losses, decisions"
    write_page("epistemic", words, PARTS, ["numpy", "scikit-learn"])


if __name__ == "__main__":
    main()
