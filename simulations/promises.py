"""Promises on the road, on real models: how often they break, how much is answered.

`CALIBRANT_PARTS=decide,shifts python -m simulations promises` runs some parts; the page is written
from all that were ever run. Labels are drawn with replacement, so that the table is the truth.
"""

from __future__ import annotations

import os

import numpy as np
import polars as pl

from calibrant.trust.selective import fit
from calibrant.trust.selective.certify import certify, chance_of_so_few, error_curve, threshold_grid
from calibrant.trust.selective.fit import Selective
from calibrant.trust.traffic_shift import Profile
from simulations._cascade_pools import Pools, one_pool
from simulations._epistemic_real import PATH
from simulations._epistemic_reference import reference_threshold
from simulations._monitor_years import CHANGE, DAYS, Rows, real_year, watched_together
from simulations._pieces import markdown_table, resumed, share_interval, write_page

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "12"))
FITS = int(os.environ.get("CALIBRANT_FITS", "300"))
"""Fits of a cell at least: more seeds where few models can be certified at all."""
SCORES = PATH.parent
DELTA = 0.1
SEED = 12
LIMITS = (0.05, 0.1, 0.2)
SIZES = (200, 500, 1000, 2000, 5000)


def _streams():
    """Yield set, score, error and group of every model and confidence that says something."""
    mmlu = pl.read_parquet(SCORES / "mmlu_pro_16_models.parquet")
    for column in ("verbal_numerical_confidence", "logit_perplexity_confidence"):
        yield from _parts(mmlu, "mmlu_pro_16", column, ["model"], "category")
    mcq = pl.read_parquet(SCORES / "mcq_5_benchmarks_7_models.parquet")
    yield from _parts(mcq, "mcq", "confidence", ["model", "prompt"], "dataset")
    qa = pl.read_parquet(SCORES / "open_qa_6_models.parquet")
    for column in ("repo_seq_confidence", "verbalized"):
        yield from _parts(qa, "open QA", column, ["model", "prompt"], "dataset")


def _parts(table, name, column, keys, group):
    rows = table.filter(pl.col(column).is_between(0, 1) & pl.col("correct").is_not_null())
    for _, part in sorted(rows.group_by(keys), key=lambda item: str(item[0])):
        score = part[column].cast(pl.Float64).to_numpy()
        if part.height > 900 and len(np.unique(score)) >= 5:
            codes = part[group].cast(pl.String).to_numpy()
            yield name, score, 1 - part["correct"].cast(pl.Float64).to_numpy(), codes


def _strictest(score, wrong, limit):
    """Plain Learn-then-Test: a hundred even steps from the strictest threshold that can pass."""
    grid = threshold_grid(score)
    rows, errors = error_curve(score, wrong, grid)
    enough = rows >= np.ceil(np.log(DELTA) / np.log1p(-limit))
    grid, rows, errors = grid[enough], rows[enough], errors[enough]
    failed = np.flatnonzero(chance_of_so_few(errors, rows, limit) > DELTA)
    end = failed[0] if len(failed) else len(grid)
    return grid[end - 1] if end else np.inf


def _several_starts(score, wrong, limit):
    """What `decide` does: all labels, one chain of tests with four starts."""
    at = certify(score, wrong, max_error=limit, delta=DELTA).threshold
    return np.inf if at is None else at


def _third(score, wrong, limit):
    """The rule before: a third of the labels chooses where to start."""
    cut = len(score) // 3
    return reference_threshold(
        score[:cut], wrong[:cut], score[cut:], wrong[cut:], max_error=limit, delta=DELTA
    )


RULES = {
    "a third finds a start": _third,
    "strictest first": _strictest,
    "several starts": _several_starts,
}


def decide():
    """Thresholds: how often broken, how often certified, share of what could be answered."""
    worlds: dict[tuple, list] = {}
    for name, score, wrong, _ in _streams():
        rows, errors = error_curve(score, wrong, np.unique(score)[::-1])
        for limit in LIMITS:
            fine = (errors / rows <= limit) & (rows >= 0.05 * len(score))
            if fine.any():
                best = rows[fine].max() / len(score)
                worlds.setdefault((name, limit), []).append((score, wrong, best))

    def step(seed):
        for (name, limit), streams in worlds.items():
            if seed * len(streams) >= FITS:
                continue
            for number, (score, wrong, best) in enumerate(streams):
                for n in SIZES if len(score) > 3000 else SIZES[:3]:
                    rng = np.random.default_rng([SEED, number, n, seed])
                    drawn = rng.integers(0, len(score), n)
                    for rule, threshold in RULES.items():
                        given = score >= threshold(score[drawn], wrong[drawn], limit)
                        broken = given.any() and wrong[given].mean() > limit
                        share = round(float(given.mean() / best), 4)
                        yield (name, limit, n, rule), (int(broken), int(given.any()), share)

    fewest = min(map(len, worlds.values()))
    counts = resumed("promises", f"decide-{SEED}", -(-FITS // fewest), step)
    lines = []
    for name, limit, n in dict.fromkeys(key[:3] for key in counts):
        every = [np.array(counts[name, limit, n, rule], float) for rule in RULES]
        gain = every[2][:, 2] - max(part[:, 2].mean() for part in every[:2])
        broken = int(every[2][:, 0].sum())
        lines.append((
            name, limit, f"{n:,}", len(gain),
            " / ".join(f"{100 * part[:, 1].mean():.0f}" for part in every),
            " / ".join(f"{100 * part[:, 2].mean():.0f}" for part in every),
            f"{100 * gain.mean():+.1f}",
            _share(broken, len(gain)),
        ))  # fmt: skip
    return [
        "## decide: all labels certify",
        "",
        "Every model and confidence for which 5 % of the questions can be answered at the limit. "
        "Three rules on the same labels: a third of them finds a start and the rest certifies / "
        "plain Learn-then-Test from the strictest threshold on / what `decide` does: all labels, "
        "one chain of tests that starts at the strictest threshold with 70 % of delta and anew at "
        "10, 30 and 60 % of the labels with 10 % each. It was picked from about twenty variants on "
        "these same models, so its share may be flattered; these labels are drawn afresh. Nothing "
        "is best everywhere. Share: of what could be "
        "answered if the truth were known. A promise may be broken in 10 % of the fits.",
        "",
        *markdown_table(
            ["data", "limit", "labels", "fits", "certified, %", "share answered, %",
             "decide against the better of the others, points", "decide: broken, %"],
            lines,
        ),
    ]  # fmt: skip


def _shifts(groups, wrong_by_group, rng):
    """Return by name: the groups that are labelled, and weights of the groups in the traffic."""
    order = rng.permutation(groups)
    half, six, others = order[: len(order) // 2], order[:6], order[6:12]
    hard = sorted(groups, key=lambda name: wrong_by_group[name])[-len(groups) // 3 :]
    ranked = sorted(groups, key=lambda name: wrong_by_group[name])
    yield "as labelled", groups, dict.fromkeys(groups, 1.0)
    yield "half the groups fall to a fifth", groups, {g: 0.2 if g in half else 1.0 for g in groups}
    yield "hard groups rise from 5 to 50 %", (hard, 0.05), (hard, 0.5)
    if len(groups) >= 12:
        yield "six others, never labelled", list(six), dict.fromkeys(others, 1.0)
        easy, worst = ranked[:6], ranked[-6:]
        yield "easiest six to hardest six", list(easy), dict.fromkeys(worst, 1.0)


def _weights(codes, given):
    """Return the weight of each row, from those of groups or the groups that are there.

    A pair is some groups and the share of all rows that is theirs.
    """
    if isinstance(given, tuple):
        inside = np.isin(codes, given[0])
        return np.where(inside, given[1] / inside.sum(), (1 - given[1]) / (~inside).sum())
    shares = given if isinstance(given, dict) else dict.fromkeys(given, None)
    size = {name: int((codes == name).sum()) for name in shares}
    total = dict.fromkeys(shares, 0.0)
    for name, weight in shares.items():
        total[name] = size[name] if weight is None else weight * size[name]
    weight = np.zeros(len(codes))
    for name in shares:
        weight[codes == name] = total[name] / size[name]
    return weight / weight.sum()


def shifts():
    """Traffic that differs from the labels: promises broken, and whether the guard warned."""
    # How many more labels would help is no part of a promise, and most of the time of a fit.
    fit.Outlook = _NoOutlook  # type: ignore[attr-defined]
    streams = [part for part in _streams() if len(set(part[3])) >= 5]
    sizes = {name: sum(part[0] == name for part in streams) for name, *_ in streams}

    def step(seed):
        for number, (name, score, wrong, codes) in enumerate(streams):
            if seed * sizes[name] >= FITS:
                continue
            groups = sorted(set(codes))
            by_group = {g: wrong[codes == g].mean() for g in groups}
            for limit in (0.1, 0.2):
                rng = np.random.default_rng([SEED + 1, number, seed])
                for change, labelled, coming in _shifts(groups, by_group, rng):
                    told = _shifted(score, wrong, codes, labelled, coming, limit, rng)
                    yield (name, limit, change), [float(value) for value in told]

    found = resumed("promises", f"shifts-{SEED}", -(-FITS // min(sizes.values())), step)
    rows = []
    for (name, limit, change), pairs in found.items():
        broken, share, mixed, mixed_share, warned = np.array(pairs, float).T
        rows.append((
            name, limit, change, len(pairs), f"{100 * broken.mean():.1f}", f"{share.mean():.2f}",
            _share(int(mixed.sum()), len(mixed)),
            f"{mixed_share.mean():.2f}", f"{100 * warned.mean():.0f}",
        ))  # fmt: skip
    return [
        "## Traffic that differs from the labels",
        "",
        "2,000 labels, 2,000 unlabelled rows of traffic. 'As labelled' promises for questions "
        "like the labelled ones (`--group`), 'for the traffic' uses `--traffic`. The last column: "
        "the guard warned of the first 700 rows.",
        "",
        *markdown_table(
            ["data", "limit", "change", "fits", "as labelled: broken, %", "answered",
             "for the traffic: broken, %", "answered", "warned, %"],
            rows,
        ),
    ]  # fmt: skip


class _NoOutlook:
    def __init__(self, *args, **options):
        pass

    def labels_needed(self):
        return None

    def more(self):
        return []


def _shifted(score, wrong, codes, labelled, coming, limit, rng):
    before, after = _weights(codes, labelled), _weights(codes, coming)
    drawn = rng.choice(len(score), 2000, p=before)
    live = rng.choice(len(score), 2000, p=after)
    series = pl.Series("group", codes[drawn])
    traffic = pl.DataFrame({"confidence": score[live], "group": codes[live]})
    everything = pl.DataFrame({"confidence": score, "group": codes})
    told = []
    own = Selective(max_error=limit).fit(None, score[drawn], 1 - wrong[drawn], groups=series)
    policies = [own.policy_]
    if set(codes[live]) & set(own.policy_.known["group"]):
        mixed = Selective(max_error=limit)
        mixed.fit(None, score[drawn], 1 - wrong[drawn], groups=series, traffic=traffic)
        policies.append(mixed.policy_)
    else:
        policies.append(own.policy_)
    for policy in policies:
        given = policy.decide_many(everything) & (after > 0)
        mass = after[given].sum()
        told += [mass > 0 and (after * wrong)[given].sum() / mass > limit, mass]
    return [*told, own.policy_.check(traffic[:700]).outcome != "as certified"]


def guard():
    """A year of weeks without a change, and changes that the guard should see in week one."""
    quiet, seen = [], {}
    streams = [part for part in _streams() if len(set(part[3])) >= 5]
    for seed in range(10 * RUNS):
        rng = np.random.default_rng([9, seed])
        _, score, _, codes = streams[rng.integers(len(streams))]
        order = rng.permutation(sorted(set(codes)))
        half = np.isin(codes, order[: len(order) // 2])
        profile = Profile.of(_rows(score, codes, rng.choice(np.flatnonzero(half), 2000)), "group")
        weeks = [
            profile.check(_rows(score, codes, rng.choice(np.flatnonzero(half), 700))).outcome
            for _ in range(52)
        ]
        quiet.append(any(outcome != "as certified" for outcome in weeks))
        for swap in (1.0, 0.5, 0.25, 0.1):
            rows = rng.choice(np.flatnonzero(half), 700)
            new = rng.random(700) < swap
            rows[new] = rng.choice(np.flatnonzero(~half), int(new.sum()))
            week = _rows(score, codes, rows)
            for grouped in (True, False):
                table = week if grouped else week.drop("group")
                outcome = profile.check(table).outcome != "as certified"
                seen.setdefault((swap, grouped), []).append(outcome)
    count, years = int(np.sum(quiet)), len(quiet)
    low, high = share_interval(count, years)
    return [
        "## The guard on unlabelled traffic",
        "",
        f"Weeks of 700 rows against 2,000 of the fit. Years with a false alarm: {count} of {years} "
        f"({100 * low:.1f} to {100 * high:.1f} %).",
        "",
        *markdown_table(
            ["share of the traffic from other groups", "seen in week 1 with groups",
             "without groups (confidence alone)"],
            [
                (swap, f"{np.mean(seen[swap, True]):.2f}", f"{np.mean(seen[swap, False]):.2f}")
                for swap in (1.0, 0.5, 0.25, 0.1)
            ],
        ),
    ]  # fmt: skip


POOLS = int(os.environ.get("CALIBRANT_POOLS", "300"))


def cascade():
    """Cascades of real models: the cost that was said, and budgets, on later questions."""
    pools = Pools(SCORES / "mmlu_pro_16_models.parquet")

    def step(number):
        told = one_pool(np.random.default_rng([SEED + 20, number]), pools, number)
        yield ["saved" if told else "nothing saved"], told

    found = resumed("promises", f"cascade-{SEED}", POOLS, step)
    done, nothing = found[("saved",)], len(found.get(("nothing saved",), []))
    rows = []
    for name, kept in (
        ("all", lambda pool: pool[0] > 0),
        ("500 questions", lambda pool: pool[0] == 500),
        ("1,000 questions", lambda pool: pool[0] == 1000),
        ("3,000 questions", lambda pool: pool[0] == 3000),
        ("a model with long tails", lambda pool: pool[1] > 2),
    ):
        part = [pool for pool in done if kept(pool)]
        inside = sum(low <= later <= high for *_, low, high, later, _, _, _, _ in part)
        over = sum(true > 1.03 * budget for _, _, budget, *_, true, _, _, _ in part)
        under = np.median([true / budget - 1 for _, _, budget, *_, true, _, _, _ in part])
        beaten = sum(pool[-2] for pool in part)
        rows.append((name, len(part), *(_share(count, len(part)) for count in (inside, over)),
                     f"{100 * under:+.1f}", _share(beaten, len(part))))  # fmt: skip
    return [
        "## cascade: what it costs",
        "",
        "Pools of two or three models of mmlu_pro_16 with costs by token; every second pool has a "
        "model whose costs spread over twice their mean. A policy is chosen for a budget of 30 to "
        "90 % of the largest model by its confidence cascade or expected gain. The pool that the "
        "questions were drawn from is the truth. Beaten: a single model is truly no dearer and at "
        "least a point more accurate. In "
        f"{nothing} further pools nothing was saved: no setting was surely in budget.",
        "",
        *markdown_table(
            ["pools", "number", "cost of the next 2,000 questions inside the interval, %",
             "budget exceeded by over 3 %, %", "cost against the budget, median, %", "beaten, %"],
            rows,
        ),
    ]  # fmt: skip


def _share(count, runs):
    low, high = share_interval(count, runs)
    return f"{100 * count / runs:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


YEARS = int(os.environ.get("CALIBRANT_YEARS", "800"))
_TOGETHER = 20
REPLAYS = {
    "nothing changes, 50 labels a day": {},
    "nothing changes, 20 labels a day": {"per_day": 20},
    "nothing changes, 200 labels a day": {"per_day": 200},
    "nothing changes, labels 1 to 30 days late": {"delay": "late"},
    "nothing changes, wrong answers labelled 10 days later": {"delay": "wrong"},
    "mix alone: half of the groups fall to a fifth": {"moved": "fifth"},
    "mix alone: the easiest groups are gone": {"moved": "easiest"},
    "mix alone, wrong answers labelled later": {"moved": "fifth", "delay": "wrong"},
    "5 points fewer right from day 100": {"drop": 0.05},
    "5 points fewer, 20 labels a day": {"drop": 0.05, "per_day": 20},
    "5 points fewer, 200 labels a day": {"drop": 0.05, "per_day": 200},
    "5 points fewer and another mix": {"drop": 0.05, "moved": "fifth"},
    "5 points fewer, labels 1 to 30 days late": {"drop": 0.05, "delay": "late"},
    "5 points fewer, wrong answers labelled later": {"drop": 0.05, "delay": "wrong"},
}


def monitor():
    """Years of real answers through the watch: false alarms, and days until a drop is found."""
    streams = [
        (name, Rows.named(score, 1 - wrong, codes))
        for name, score, wrong, codes in _streams()
        if name != "open QA" and 0.45 < 1 - wrong.mean() < 0.85
    ]
    names = list(REPLAYS)

    def step(number):
        block, at = divmod(number, len(names))
        options = REPLAYS[names[at]]
        if "drop" in options and block * _TOGETHER >= YEARS // 4:
            return
        made = []
        for run in range(block * _TOGETHER, (block + 1) * _TOGETHER):
            rng = np.random.default_rng([SEED + 3, at, run])
            made.append(real_year(rng, streams[rng.integers(len(streams))][1], **options))
        for year in watched_together(made):
            yield [names[at]], year

    found = resumed("promises", f"monitor-{SEED}", YEARS // _TOGETHER * len(names), step)
    rows = [_replayed(name, years) for (name,), years in found.items()]
    return [
        "## monitor: years replayed from real answers",
        "",
        "Every year draws a model and its 2,000 labels of the baseline anew from mmlu_pro_16 and "
        "mcq (accuracy 45 to 85 %, 14 or 5 groups, with replacement), then 365 days of labels. A "
        "change comes on day 100. False: alarms on quality where nothing but the mix changed, or "
        "before the drop; alarms on the mix before it changed. At most 5 % are promised for each. "
        "With late labels the watch runs once a day and waits as it has learnt to.",
        "",
        *markdown_table(
            ["year", "years", "false on quality, %", "false on the mix, %", "found, %",
             "days, median / 90 %", "labels unused"],
            rows,
        ),
    ]  # fmt: skip


def _replayed(name, years):
    options = REPLAYS[name]
    quality = np.array([DAYS if year[0] is None else year[0] for year in years])
    mix = np.array([DAYS if year[1] is None else year[1] for year in years])
    drop, moved = "drop" in options, "moved" in options
    false = [int((quality < (CHANGE if drop else DAYS)).sum())]
    false.append(int((mix < (CHANGE if moved else DAYS)).sum()))
    told = [_share(count, len(years)) for count in false]
    days = np.sort(quality[quality >= CHANGE] - CHANGE + 1)
    seen = f"{100 * (days <= DAYS - CHANGE).mean():.0f}" if drop else "-"
    took = f"{np.median(days):.0f} / {np.quantile(days, 0.9):.0f}" if drop else "-"
    return name, len(years), *told, seen, took, max(abs(year[2]) for year in years)


def _rows(score, codes, rows):
    return pl.DataFrame({"confidence": score[rows], "group": codes[rows]})


PARTS = {"decide": decide, "shifts": shifts, "guard": guard, "monitor": monitor, "cascade": cascade}


def main() -> None:
    if not PATH.exists():
        print(f"   left out: {PATH} is absent", flush=True)
        return
    write_page("promises", "Simulations: promises", PARTS, ["numpy", "scipy"])


if __name__ == "__main__":
    main()
