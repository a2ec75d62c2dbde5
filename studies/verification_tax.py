"""The Verification Tax on its author's own data: who could be read, which pairs differ, Table 4."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import altair as alt
import numpy as np
import polars as pl
from scipy import stats

from calibrant.labels import accuracy_floor, passive_floor, published_difference
from calibrant.labels.theory import published_steepness
from studies._page import DATA, StudyPage

FOLDER = DATA / "verification_tax"
# A clone of the author's repository: Table 4 was made of answers that later commits replaced.
HISTORY = os.environ.get("VERIFICATION_TAX_HISTORY")
NAMES = {
    "Llama-3.1-405B": "llama-3.1-405b-instruct",
    "Llama-4-Maverick": "llama-4-maverick",
    "Qwen3-Next-80B": "qwen3-next-80b",
}
CHANCE, LEAST = 0.25, 100
NOBODY = "?"


def answers() -> pl.DataFrame:
    """Return one graded answer per question, with the right letter by the options' odds."""
    table = pl.read_parquet(FOLDER / "answers.parquet")
    table = table.with_columns(pl.col("benchmark", "model").cast(pl.String))
    graded = table.filter(pl.col("is_correct").is_not_null())
    once = graded.unique(["benchmark", "model", "question_id"], keep="first", maintain_order=True)
    letters = {letter: place for place, letter in enumerate("ABCDEFGHIJKL")}
    right = pl.col("correct_letter").replace_strict(letters, default=None)
    odds = pl.col("options")
    best = pl.when(odds.list.len() > 1).then(odds.list.arg_max().cast(pl.Int64) == right)
    return once.with_columns(read=pl.col("first_letter") != NOBODY, by_odds=best)


def _percent(value: float | None) -> str:
    return "none recorded" if value is None else f"{100 * value:.1f} %"


def reading(page: StudyPage, table: pl.DataFrame) -> None:
    """Write where no answer was read, and what the options' odds say of the same answers."""
    page.heading("Answers that nobody could read")
    parts = table.group_by("benchmark", "model").agg(
        rows=pl.len(),
        unread=1 - pl.col("read").mean(),
        graded=pl.col("is_correct").mean(),
        among=pl.col("is_correct").filter(pl.col("read")).mean(),
        odds=pl.col("by_odds").mean(),
        first=(pl.col("first_letter") == "A").mean(),
    )
    strange = (pl.col("unread") > 0.01) | (pl.col("first") > 0.9)
    rows = parts.filter(strange).sort("benchmark", "model").to_dicts()
    void = parts.filter(pl.col("unread") == 1)
    silent = void["model"].value_counts().filter(pl.col("count") == 5)["model"].sort().to_list()
    one_letter = parts.filter(pl.col("first") > 0.9, pl.col("benchmark") != "truthfulqa")
    lost = table.filter(
        (pl.col("benchmark") == "truthfulqa") & (pl.col("model") == "llama-4-maverick"),
        ~pl.col("is_correct"),
    )
    maverick = next(
        row
        for row in rows
        if (row["benchmark"], row["model"]) == ("winogrande", "llama-4-maverick")
    )
    page.text(
        f"{void.height} of {parts.height} sets of answers hold no letter that could be read, and "
        f"are graded 0 %: {', '.join(silent)} on all five benchmarks, and llama-4-maverick on "
        f"WinoGrande, which Table 4 prints as 'error 1.000'. By its option probabilities it is "
        f"right in {_percent(maverick['odds'])} of those {maverick['rows']} questions. "
        f"On TruthfulQA {int(lost['by_odds'].sum())} of its {lost.height} wrong answers have the "
        "right letter by probability. "
        f"{', '.join(one_letter['model'].unique().to_list())} is read as 'A' in more than 90 % of "
        f"the rows of {one_letter.height} benchmarks, and on TruthfulQA 'A' is always the right "
        "letter. `audit` says of such rows that no answer could be read."
    )
    page.table(
        ["benchmark", "model", "rows", "not read", "right, as graded", "right, of those read",
         "right, by option probabilities", "read as A"],
        [
            [row["benchmark"], row["model"], row["rows"],
             *(_percent(row[name]) for name in ("unread", "graded", "among", "odds", "first"))]
            for row in rows
        ],
    )  # fmt: skip


def _verifiable(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return the verdict of the paper: at least two floors apart."""
    error = 1 - (one["right"] + other["right"]) / 2
    if not 0 < error < 1:
        return False
    floor = accuracy_floor(error_rate=error, labels=min(one["n"], other["n"]))
    return abs(one["right"] - other["right"]) >= 2 * floor


def _pairs(parts: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], bool]:
    return {
        (one["model"], other["model"]): _verifiable(one, other)
        for one, other in combinations(parts, 2)
    }


def pairs(page: StudyPage, table: pl.DataFrame) -> None:
    """Write how many 'verifiable' pairs of models are left where unread answers are missing."""
    page.heading("Pairs of models that are verifiable")
    rows, total = [], np.zeros(4, int)
    for (name,), part in table.group_by("benchmark", maintain_order=True):
        graded = _shares(part)
        read = {row["model"]: row for row in _shares(part.filter("read"))}
        before = _pairs(graded)
        kept = [read[row["model"]] for row in graded if row["model"] in read]
        after = _pairs(row for row in kept if row["n"] >= LEAST)
        left = [pair for pair, shown in before.items() if shown and after.get(pair)]
        counts = np.array([len(before), sum(before.values()), len(after), len(left)])
        total += counts
        rows.append([name, *map(int, counts)])
    rows.append(["all", *map(int, total)])
    page.text(
        f"By the paper's rule (a gap of two floors or more) {total[1]} of {total[0]} pairs with "
        f"{LEAST} answers each are verifiable as graded. Where unread answers are missing, "
        f"{total[3]} of these {total[1]} are left."
    )
    page.table(
        ["benchmark", "pairs", "verifiable as graded", "pairs of models that were read",
         "still verifiable"], rows,
    )  # fmt: skip


def _shares(part: pl.DataFrame) -> list[dict[str, Any]]:
    counted = part.group_by("model", maintain_order=True).agg(
        n=pl.len(), right=pl.col("is_correct").mean()
    )
    return counted.filter(pl.col("n") >= LEAST).sort("model").to_dicts()


def published(page: StudyPage, table: pl.DataFrame) -> None:
    """Write what an interval says of the 64 published pairs, and what hangs on one parser."""
    page.heading("The 64 published pairs")
    given = json.loads((FOLDER / "named_model_comparison.json").read_text())["all_comparisons"]
    counts: dict[tuple[str, str], int] = {}
    for pair in given:
        found = published_difference(pair["acc_a"], pair["acc_b"], labels=pair["n"])["outcome"]
        counts[pair["verdict"], found] = counts.get((pair["verdict"], found), 0) + 1
    maverick = [p for p in given if "Llama-4-Maverick" in (p["model_a"], p["model_b"])]
    odds = table.filter(pl.col("benchmark") == "truthfulqa", pl.col("model") == "llama-4-maverick")[
        "by_odds"
    ].mean()
    turned = 0
    for pair in maverick:
        if pair["benchmark"] == "TruthfulQA":
            other = pair["acc_b"] if pair["model_a"] == "Llama-4-Maverick" else pair["acc_a"]
            two = [{"right": right, "n": pair["n"]} for right in (odds, other)]
            turned += not _verifiable(*two)
    shown = sum(p["verdict"] == "YES" for p in maverick)
    page.text(
        f"`plan --published` on a table of the scores gives the same {len(given)} pairs. "
        f"{shown} of the {counts['YES', 'shown']} verifiable pairs have Llama-4-Maverick on one "
        f"side. At the {_percent(odds)} that its option probabilities give on TruthfulQA, "
        f"{turned} of its {sum(p['benchmark'] == 'TruthfulQA' for p in maverick)} pairs there are "
        "no longer verifiable."
    )
    page.table(
        ["the paper's verdict", "95 % interval", "pairs"],
        [[*key, count] for key, count in sorted(counts.items())],
    )


def subjects(page: StudyPage) -> None:
    """Write in how many subjects of MMLU a model is far below chance, and what that decides."""
    page.heading("57 subjects of MMLU")
    given = json.loads((FOLDER / "leaderboard_noise.json").read_text())["subjects"]
    below, shown, kept, rest = 0, 0, 0, 0
    least = []
    for name, subject in given.items():
        n = round(subject["n_items_avg"])
        right = subject["model_accuracy"]["Llama-4-Maverick"]
        lost = stats.binom.cdf(round(right * n), n, CHANCE) < 0.001
        below += lost
        least.append((right, name))
        for pair, verdict in subject["pairwise"].items():
            shown += verdict["verifiable"]
            with_it = "Llama-4-Maverick" in pair
            kept += verdict["verifiable"] and not (with_it and lost)
            rest += verdict["verifiable"] and not with_it
    none = [name for right, name in least if right == 0]
    page.text(
        f"{shown} of 171 pairs are printed as verifiable. In {below} of 57 subjects "
        f"Llama-4-Maverick is far below chance ({CHANCE:.0%}, p < 0.001), in {len(none)} it is "
        f"never right ({', '.join(none[:3])}), which a parser can do and a model hardly. Without "
        f"it in those subjects {kept} verifiable pairs are left, and {rest} between the two other "
        "models. Its answers on MMLU are not among the data here, so their share that was "
        "read is not known."
    )


def active(page: StudyPage) -> None:
    """Write active against passive labels, from the author's own file."""
    page.heading("Active against passive labels")
    given = json.loads((FOLDER / "active_real_results.json").read_text())
    sizes = [str(m) for m in given["m_values"]]
    rows, drawn = [], []
    for name, found in given["models"].items():
        ratios = [found["active"][m]["mean"] / found["passive"][m]["mean"] for m in sizes]
        rows.append([name, *(f"{ratio:.2f}" for ratio in ratios)])
        drawn += [
            {"model": name, "labels": int(m), "ratio": ratio}
            for m, ratio in zip(sizes, ratios, strict=True)
        ]
    at_500 = " , ".join(row[1 + sizes.index("500")] for row in rows).replace(" ,", ",")
    page.text(
        "The paper says that active labels are the better ones. In the file behind its Figure 3 "
        f"the active error is {at_500} times the passive one at 500 labels. It is below the "
        "passive one only at 5,000 and at 10,000 labels of 14,042, for two of three models each. "
        "The paper compares slopes: the active curve starts higher and falls faster."
    )
    page.table(["model", *(f"{int(m):,} labels" for m in sizes)], rows)
    line = (
        alt.Chart(pl.DataFrame(drawn))
        .mark_line(point=True)
        .encode(
            x=alt.X("labels:Q", scale=alt.Scale(type="log"), title="labels"),
            y=alt.Y("ratio:Q", title="active error over passive error"),
            color=alt.Color("model:N", title=None),
        )
    )
    one = alt.Chart(pl.DataFrame({"y": [1.0]})).mark_rule(strokeDash=[4, 3]).encode(y="y:Q")
    chart = (line + one).properties(width=420, height=200)
    page.figure("active", chart, "Above 1, active labels are the worse ones.")


def table_4(page: StudyPage, table: pl.DataFrame) -> None:
    """Write Table 4 again, by the rule of the author's script."""
    page.heading("Table 4 again")
    given = json.loads((FOLDER / "all_benchmarks_summary.json").read_text())["per_pair_results"]
    rows, exact, old = [], 0, 0
    for printed in given:
        part = table.filter(
            pl.col("benchmark") == printed["benchmark"], pl.col("model") == NAMES[printed["model"]]
        )
        found = _measured(part["max_conf"], part["is_correct"])
        past = _from_history(printed)
        wanted = _digits([printed[k] for k in ("N", "eps", "ece", "L_hat", "delta_floor")])
        exact += found is not None and _alike(found, wanted)
        old += past is not None
        rows.append([printed["benchmark"], printed["model"], wanted, found or "not here",
                     past or "not there"])  # fmt: skip
    page.text(
        "`plan --lipschitz-rule paper` takes the bins of the author's script (10 labels or 1 % of "
        "them; the text says 30). Each cell: labels, error rate, ECE, L, floor. On the answers as "
        f"they are today {exact} of 14 rows come out as printed. Later commits replaced answers "
        f"(ARC-Challenge, Maverick: error 0.477 printed, 0.047 since). In the history of the "
        f"author's repository {old} rows come out as printed; the other files are too large for "
        "the copy at hand. ECE on the answers of today is of 32-bit confidences."
    )
    page.table(["benchmark", "model", "printed", "answers of today", "answers of then"], rows)


def _measured(said: pl.Series, right: pl.Series) -> str | None:
    if not said.len():
        return None
    found = published_steepness(said.cast(pl.Float64), right)
    error = 1 - float(right.mean())
    floor = passive_floor(error_rate=error, labels=said.len(), lipschitz=found.value)
    return _digits([said.len(), error, found.ece, found.value, floor])


def _digits(values: list[Any]) -> str:
    labels, error, ece, steep, floor = values
    return f"{labels:,} {error:.3f} {ece:.4f} {steep:.2f} {floor:.4f}"


def _alike(one: str, other: str) -> bool:
    """Return whether all agree; the ECE within what 32-bit confidences at an edge can change."""
    pairs = zip(one.split(), other.split(), strict=True)
    return all(a == b or (place == 2 and abs(float(a) - float(b)) < 3e-4)
               for place, (a, b) in enumerate(pairs))  # fmt: skip


def _from_history(printed: Mapping[str, Any]) -> str | None:
    """Return the row as an earlier commit of the author's repository gives it, with the commit."""
    if HISTORY is None:
        return None
    path = f"data/{printed['benchmark']}/results_{NAMES[printed['model']]}.jsonl"
    wanted = _digits([printed[k] for k in ("N", "eps", "ece", "L_hat", "delta_floor")])
    for commit in _git("log", "--format=%h", "--all", "--", path).split():
        lines = [json.loads(line) for line in _git("show", f"{commit}:{path}").splitlines() if line]
        rows = [row for row in lines if row.get("max_conf") and row.get("is_correct") is not None]
        columns = [pl.Series([row[k] for row in rows]) for k in ("max_conf", "is_correct")]
        if rows and _measured(columns[0].clip(0, 1), columns[1].cast(pl.Boolean)) == wanted:
            return f"as printed ({commit})"
    return None


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(HISTORY), *words], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace")


def main() -> None:
    page = StudyPage("verification_tax", "The Verification Tax on its author's data")
    page.text(
        "The author of the paper published answers and computed numbers. They carry no licence: "
        "nothing of them ships with calibrant, and this page holds counts only. Failed calls have "
        "no grade and are left out; of repeated questions the first answer counts."
    )
    table = answers()
    reading(page, table)
    pairs(page, table)
    published(page, table)
    subjects(page)
    active(page)
    table_4(page, table)
    page.write()
