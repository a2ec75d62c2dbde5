"""The same tables audited by the code of a commit before and by this, beside Spiegelhalter's test.

`python -m simulations.claims.before` writes `before.json`, and `python -m simulations claims` the
page. CALIBRANT_BEFORE names the commit. Both are called as a user calls them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from simulations.claims.audit_worlds import MARGIN_OR_MORE, OFF

COMMIT = os.environ.get("CALIBRANT_BEFORE", "f2aa1e6")
RUNS = int(os.environ.get("CALIBRANT_REPEATS", "400"))
STORED = Path(__file__).parent / "before.json"
ROOT = Path(__file__).parents[2]
DIRECTIONS = ("audit.over_confident", "audit.under_confident")


def drawn(rng, *, world, n):
    c, y = world.rows(rng, n)
    return {"confidence": c, "correct": y.astype(int)}, {}


def topics(rng, *, n, count, effect):
    own = effect * rng.choice([-1.0, 1.0], count)
    topic, c = rng.integers(0, count, n), rng.choice([0.5, 0.6, 0.7, 0.8, 0.85], n)
    right = (rng.random(n) < c + own[topic]).astype(int)
    return {"confidence": c, "correct": right, "topic": topic}, {"cluster": "topic"}


def without(rng, *, n):
    """Confidences are missing in 60 % of the wrong answers; calibrated over all."""
    c = rng.uniform(0.5, 1, n)
    right = (rng.random(n) < c).astype(int)
    gone = (right == 0) & (rng.random(n) < 0.6)
    said = [None if lost else float(value) for value, lost in zip(c, gone, strict=True)]
    return {"confidence": said, "correct": right}, {}


def never_right(_, *, n):
    return {"confidence": np.full(n, 0.95), "correct": np.zeros(n, int)}, {}


# What is counted: the claim, the outcome, and whether it is true in this world.
SHOWN = ("audit.miscalibrated", "shown")
WITHIN = ("audit.miscalibrated", "equivalent")
WORLDS = {
    ".95/1.0 crossed by 5, n = 2,000": (
        partial(drawn, world=MARGIN_OR_MORE[".95/1.0 crossed by 5"], n=2_000),
        {"called calibrated": ("false", WITHIN)},
    ),
    "15 topics, effects of 10 points, n = 1,500": (
        partial(topics, n=1_500, count=15, effect=0.1),
        {"a direction is shown": ("false", *((name, "shown") for name in DIRECTIONS))},
    ),
    "no confidence in 60 % of the wrong, n = 500": (
        partial(without, n=500),
        {"a direction is shown": ("false", *((name, "shown") for name in DIRECTIONS))},
    ),
    "says 95 %, right in 0 of 400": (
        partial(never_right, n=400),
        {"over-confident": ("true", (DIRECTIONS[0], "shown"))},
    ),
}
for name, n in (
    ("over by 4, nine values", 500),
    ("over by 4, continuous", 500),
    ("too extreme, logit / 1.5", 200),
    ("wavy by 8", 500),
    ("rare errors, over by 2", 500),
):
    counted = {"error shown": ("true", SHOWN)}
    if name != "wavy by 8":
        counted["over-confident"] = ("true", (DIRECTIONS[0], "shown"))
    WORLDS[f"{name}, n = {n}"] = (partial(drawn, world=OFF[name], n=n), counted)


def spiegelhalter(c, y):
    """Return whether Spiegelhalter's test (1986) alone rejects perfect calibration at 5 %."""
    score = float(((y - c) * (1 - 2 * c)).sum())
    variance = float(((1 - 2 * c) ** 2 * c * (1 - c)).sum())
    return abs(score) > 1.959964 * variance**0.5


def said():
    """Return, by world, in how many runs each thing was said, by the code that is loaded."""
    import calibrant as cal
    from calibrant.core.errors import InputError

    found = {}
    for number, (name, (world, counted)) in enumerate(WORLDS.items()):
        counts = dict.fromkeys([*counted, "spiegelhalter"], 0)
        for run in range(RUNS):
            table, options = world(np.random.default_rng([11, number, run]))
            try:
                document = cal.audit(table, resamples=20, **options)
            except (InputError, TypeError):
                # Before, clusters could not be named, and a missing value stopped everything.
                table = {column: table[column] for column in ("confidence", "correct")}
                document = cal.audit(table, resamples=20, on_invalid="drop")
            made = {(claim["id"], claim["outcome"]) for claim in document["claims"]}
            for what, (_, *wanted) in counted.items():
                counts[what] += bool(made & set(wanted))
            if "error shown" in counted:
                counts["spiegelhalter"] += spiegelhalter(table["confidence"], table["correct"])
        found[name] = counts
        print(name, counts, file=sys.stderr, flush=True)
    return found


def by_code_in(source):
    """Return what the code in a folder says; in a process of its own."""
    command = [sys.executable, "-m", "simulations.claims.before", "said"]
    paths = os.pathsep.join([str(source), str(ROOT)])
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["git", "archive", COMMIT, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
        ).stdout
        subprocess.run(["tar", "x", "-C", folder], input=packed, check=True)
        before, now = by_code_in(Path(folder) / "src"), by_code_in(ROOT / "src")
    rows = [
        {
            "world": name,
            "said": what,
            "which": which,
            "before": before[name][what],
            "now": now[name][what],
            "spiegelhalter": now[name]["spiegelhalter"] if what == "error shown" else None,
        }
        for name, (_, counted) in WORLDS.items()
        for what, (which, *_) in counted.items()
    ]
    found = {"commit": COMMIT, "runs": RUNS, "rows": rows}
    STORED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["said"]:
        print(json.dumps(said()))
    else:
        main()
