"""Is the better calibrated model only the more accurate one? The paper's experiment, again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from calibrant.answers.candidates import consistency_candidates
from calibrant.answers.confidence import score_table
from calibrant.answers.semantics import annotate
from calibrant.comparison import reversal_summary
from calibrant.core.document import plain
from calibrant.verbs.compare import compare
from studies._comparison_figures import scatter, two_calibrated
from studies._confidence_tables import local_draws
from studies._page import DATA, StudyPage, estimate

CONFIDENCES = ("verbal_numerical_confidence", "logit_perplexity_confidence")
REASONING = ("math", "physics", "chemistry", "engineering", "computer science")
Document = dict[str, Any]


FOOTINGS = {
    "da": "DA",
    "ia": "IA",
    "os_weakest": "odds moved, weaker accuracy",
    "os_strongest": "odds moved, stronger accuracy",
    "sda": "equal shares",
}
LAWS_ALIKE = 0.05
WORDS = ("better", "only more accurate", "reversal", "equivalent", "depends", "undecided")


def agreement(pairs: list[dict[str, Any]]) -> list[list[Any]]:
    """Hold what the distribution-aligned view claims against the verdict."""
    rows: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        aligned, verdict = pair["better"]["da"], pair["verdict"]
        if verdict == "better" and aligned is not None:
            verdict = "better: the same" if pair["winner"] == aligned else "better: the other"
        rows["names one" if aligned else "names none", verdict] += 1
    return [[*key, count] for key, count in sorted(rows.items(), key=lambda row: -row[1])]


def reversals(summary: dict[str, Any]) -> list[list[Any]]:
    rows = [
        [f"raw winner loses: {name}", summary["cases"], estimate(summary["rates"][view])]
        for view, name in FOOTINGS.items()
    ]
    rows.append(["DA and IA agree", summary["cases"], estimate(summary["agreement"])])
    rows += [
        [f"correlation of accuracy gap and {view} gap", summary["cases"], estimate(value)]
        for view, value in summary["correlation"].items()
    ]
    return rows


def split(page: StudyPage, first: str, rows: list[dict[str, Any]], label: Any) -> None:
    """Write reversal rates on every footing, one line per part of the pairs."""
    page.table(
        [first, "pairs", *FOOTINGS.values()],
        [
            [label(row), row["cases"], *(f"{100 * row[view]['value']:.0f} %" for view in FOOTINGS)]
            for row in rows
            if row["cases"]
        ],
    )


def certain_parts(pairs: list[dict[str, Any]]) -> str:
    """Say how much of the gaps of the better models is sure to be no accuracy."""
    shown = [pair for pair in pairs if pair["verdict"] == "better"]
    half = sum(
        pair["evidence"]["at_least"] < abs(pair["gaps"]["raw"]["ece"]["value"]) / 2
        for pair in shown
    )
    return (
        f"In {half} of {len(shown)} pairs with a better model less than half of its raw lead is "
        "sure to come from how it states its confidence."
    )


def turned(pairs: list[dict[str, Any]]) -> str:
    """Say what becomes of pairs whose order both odds-shifted footings turn round."""
    both = [p for p in pairs if p["reversal"]["os_weakest"] and p["reversal"]["os_strongest"]]
    words = Counter(pair["verdict"] for pair in both)
    told = ", ".join(f"{words[word]} {word}" for word in WORDS if words[word])
    return f"With odds moved, {len(both)} pairs turn round at both accuracies: {told or 'none'}."


def paper_and_verdict(page: StudyPage, document: Document, method: str) -> dict[str, Any]:
    """Write what the paper's views and what the verdict say about one method."""
    pairs = [p for p in document["pairs"] if p["method"] == method and p["group"] is None]
    part = next(s for s in document["summaries"] if s["keys"] == {"method": method, "group": None})
    summary = part["summary"]
    page.text(f"{summary['cases']} pairs. The verdicts:")
    page.table(list(WORDS), [[summary["verdicts"][word] for word in WORDS]])
    for pair in pairs:
        if pair["verdict"] == "reversal":
            page.text(f"- {pair['text']}")
    page.text("How often the order of raw errors turns round, signs alone, as the paper counts:")
    page.table(["what", "pairs", "value"], reversals(summary))
    split(
        page,
        "accuracy gap, points",
        summary["by_accuracy_gap"],
        lambda row: f"{100 * row['low']:g} to {100 * row['high']:g}",
    )
    split(page, "kind of pair", summary["by_kind"], lambda row: row["kind"])
    if summary.get("by_group"):
        split(page, "questions", summary["by_group"], lambda row: ", ".join(row["group"].values()))
    page.text("What DA alone would claim (corrected for all pairs), against the verdict:")
    page.table(["DA", "verdict", "pairs"], agreement(pairs))
    page.text(f"{turned(pairs)} {certain_parts(pairs)}")
    return {"pairs": pairs, "summary": summary}


def league(page: StudyPage, document: Document, method: str) -> None:
    found = next(
        row for row in document["league"] if (row["method"], row["group"]) == (method, None)
    )
    page.table(
        ["model", "tier", "rank", "skill at even odds", "MCB", "DSC", "accuracy", "note"],
        [
            [
                row["model"],
                row["tier"] or "none",
                f"{row['rank']['low']} to {row['rank']['high']}" if row["rank"] else "",
                estimate(row["score"]),
                row["mcb"],
                row["dsc"],
                row["accuracy"],
                ", ".join(mark for mark in ("uninformative", "saturated") if row[mark]),
            ]
            for row in found["entries"]
        ],
    )


def cases_of(document: Document, data: str | None = None) -> list[dict[str, Any]]:
    """Return pairs on whole data sets: all pairs of `data`, or those of every group."""
    return [
        {**pair, "data": data or next(iter(pair["group"].values()))}
        for pair in document["pairs"]
        if (pair["group"] is None) == (data is not None)
    ]


def mmlu(page: StudyPage) -> list[dict[str, Any]]:
    page.heading("MMLU-Pro: 16 models")
    table = pl.read_parquet(DATA / "scores" / "mmlu_pro_16_models.parquet")
    asks = pl.when(pl.col("category").cast(pl.String).is_in(REASONING))
    table = table.with_columns(asks=asks.then(pl.lit("reasoning")).otherwise(pl.lit("knowledge")))
    document = compare(
        table, confidence=",".join(CONFIDENCES), on_invalid="drop", by=["asks"]
    ).to_dict()
    out = {row["model"]: row["reason"] for row in document["not_compared"] if "model" in row}
    page.text(
        "Accuracy counts every graded answer; calibration is compared where both models state a "
        f"confidence. Reasoning: {', '.join(REASONING)}. "
        + " ".join(f"{name} is left out: {reason}." for name, reason in out.items())
    )
    found = []
    for method in CONFIDENCES:
        page.text(f"### {method}")
        found.append(paper_and_verdict(page, document, method))
        league(page, document, method)
        page.figure(
            f"mmlu-{method.split('_')[0]}",
            scatter(found[-1]["pairs"]),
            f"Raw against distribution-aligned gap, {method}. Colour: what the verdict says.",
        )
    found[0]["cases"] = cases_of(document, "MMLU-Pro")
    return found


def mcq(page: StudyPage) -> list[dict[str, Any]]:
    page.heading("Five multiple-choice benchmarks, seven models")
    table = pl.read_parquet(DATA / "scores" / "mcq_5_benchmarks_7_models.parquet")
    first = table.filter(pl.col("prompt") == "first").with_columns(
        pl.concat_str(pl.col("dataset", "question_id").cast(pl.String), separator="-").alias(
            "question_id"
        )
    )
    page.text(
        f"Answers that could not be read have no grade: {first['correct'].null_count():,} of "
        f"{first.height:,} rows are left out. Prompt 'first' only."
    )
    document = compare(first, on_invalid="drop", by=["dataset"]).to_dict()
    found = paper_and_verdict(page, document, "confidence")
    league(page, document, "confidence")
    page.figure("mcq", scatter(found["pairs"]), "Raw against distribution-aligned gap.")
    return [{**found, "cases": cases_of(document)}]


def open_questions() -> list[dict[str, Any]]:
    """Compare six models on two sets of open questions, by two methods."""
    table = pl.read_parquet(DATA / "scores" / "open_qa_6_models.parquet")
    document = compare(
        table.filter(pl.col("prompt") == "verb"),
        confidence="repo_seq_confidence,verbalized",
        question="dataset,question_id",
        on_invalid="drop",
        by=["dataset"],
    ).to_dict()
    return cases_of(document)


def pooled(page: StudyPage, cases: list[dict[str, Any]]) -> None:
    """Write patterns of reversal over all methods and data sets, and what Proposition 1 leaves."""
    page.heading("All methods and data sets together")
    views = ("raw", "da", "ia")
    cases = [case for case in cases if None not in (case["gaps"][v]["ece"]["value"] for v in views)]

    def summary(some: list[dict[str, Any]]) -> dict[str, Any]:
        gaps = {view: [case["gaps"][view]["ece"]["value"] for case in some] for view in views}
        return plain(reversal_summary(gaps))

    whole = summary(cases)
    page.text(
        f"The paper's Figure 4 with {whole['cases']:,} cases: pair, data set and method. Signs "
        "alone, as it counts; without the candidate-aligned view, which these data lack. Pairs "
        "share models, so that the intervals are too short."
    )
    page.table(
        ["pattern", "cases", "share"],
        [[name, row["count"], estimate(row["share"])] for name, row in whole["patterns"].items()],
    )
    kinds = sorted({(case["data"], case["method"]) for case in cases})
    parts = {kind: [c for c in cases if (c["data"], c["method"]) == kind] for kind in kinds}
    page.table(
        ["data", "method", "cases", "DA turns", "IA turns", "DA and IA agree"],
        [
            [*kind, found["cases"]]
            + [estimate(found["rates"][view]) for view in ("da", "ia")]
            + [estimate(found["agreement"])]
            for kind, found in [
                *((kind, summary(some)) for kind, some in parts.items()),
                (("all", "all"), whole),
            ]
        ],
    )
    page.text(
        "Proposition 1 as a check: where both models state their confidence alike given right or "
        "wrong, the Brier score is linear in accuracy, so that nothing of its gap is left at equal "
        "accuracy (DA). Mean absolute Brier gaps in points:"
    )
    alike = [max(case["evidence"]["laws"].values()) < LAWS_ALIKE for case in cases]
    page.table(
        ["laws of confidence", "cases", "accuracy gap", "raw Brier gap", "left at equal accuracy"],
        [
            [name, len(some), *(f"{100 * mean:.1f}" for mean in brier_gaps(some))]
            for name, some in (
                (
                    "alike within 5 points",
                    [c for c, same in zip(cases, alike, strict=True) if same],
                ),
                ("not shown to be", [c for c, same in zip(cases, alike, strict=True) if not same]),
            )
        ],
    )


def brier_gaps(cases: list[dict[str, Any]]) -> list[float]:
    """Return mean sizes of the gaps in accuracy, in Brier score, and in DA-Brier."""
    gaps = [
        (
            case["accuracy_gap"]["value"],
            case["gaps"]["raw"]["brier"]["value"],
            case["gaps"]["da"]["brier"]["value"],
        )
        for case in cases
    ]
    return [float(mean) for mean in np.abs(gaps).mean(axis=0)]


def local_scores() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Scores of the three small models by three methods, and every model's view of every answer."""
    draws, questions = local_draws(DATA)
    filled, semantics = annotate(draws, questions)
    scored = score_table(
        filled, semantics, questions, methods=["verb", "p_true_ratio", "consistency"]
    ).scores
    table = pl.read_parquet(DATA / "local_models" / "p_true.parquet")
    # The mass on 'True' among 'True' and 'False'; the rest of the mass says nothing.
    share = pl.col("p_true_mass") / (pl.col("p_true_mass") + pl.col("p_false_mass"))
    asked = table.with_columns(confidence=share, method=pl.lit("p_true_ratio"))
    columns = ["question_id", "judge", "author", "answer", "confidence", "method"]
    drawn = consistency_candidates(filled, scored)
    pools = [asked.select(columns)] + ([] if drawn is None else [drawn.select(columns)])
    return scored, pl.concat(pools, how="vertical_relaxed")


def local(page: StudyPage) -> None:
    page.heading("Three small local models, with candidates")
    scores, pool = local_scores()
    document = compare(scores, candidates=pool, on_invalid="drop").to_dict()
    page.text(
        "860 questions, graded by rules. Every model scores every model's answer: by the mass on "
        "'True' (p_true_ratio), and by how often it draws that answer itself (consistency, no new "
        "calls). Rows left out: "
        + ", ".join(f"{rule} {count:,}" for rule, count in document["dropped"].items())
        + "."
    )
    page.table(
        ["method", "pair", "questions", "raw gap", "CA gap", "CA questions", "CA side", "verdict"],
        [
            [
                pair["method"],
                f"{pair['a']} - {pair['b']}",
                pair["n"],
                estimate(pair["gaps"]["raw"]["ece"]),
                estimate(pair["gaps"]["ca"]["ece"]) if "ca" in pair["gaps"] else "",
                pair["gaps"]["ca"]["ece"]["n"] if "ca" in pair["gaps"] else "",
                _side(pair),
                pair["verdict"],
            ]
            for pair in document["pairs"]
        ],
    )
    page.text(
        "Self-preference: own answer minus another of the same grade, as this judge scores them, "
        "minus the same as the other judges score it."
    )
    page.table(
        ["method", "judge", "preference", "on right answers", "on wrong answers"],
        [
            [row["method"], row["judge"]]
            + [estimate(row[key]) for key in ("bias", "on_right", "on_wrong")]
            for row in document["self_preference"]
        ],
    )


def _side(pair: dict[str, Any]) -> str:
    judges = pair.get("judges")
    if judges is None:
        return ""
    return {0: "undecided", -1: pair["a"], 1: pair["b"]}[judges["side"] if judges["shown"] else 0]


def conclusion(page: StudyPage, parts: list[dict[str, Any]]) -> None:
    page.heading("What this means")
    pairs = [pair for part in parts for pair in part["pairs"]]
    told = Counter(pair["verdict"] for pair in pairs)
    turned_by_da = sum(pair["reversal"]["da"] for pair in pairs)
    other = sum(
        pair["verdict"] == "better" and pair["better"]["da"] not in (None, pair["winner"])
        for pair in pairs
    )
    lost = sum(pair["better"]["da"] is not None and pair["verdict"] != "better" for pair in pairs)
    page.text(
        f"The paper is right that raw errors follow accuracy: of {len(pairs)} pairs, {turned_by_da}"
        " prefer the other model once DA weighs the outcomes. But DA leaves the confidences where "
        "they are, and a calibrated model of another accuracy then looks miscalibrated. Of the "
        f"pairs where the verdict names a better model, DA names the other one in {other}; in "
        f"{lost} pairs DA names a model and the verdict does not."
    )
    page.text(
        f"The verdict: one model is better calibrated in {told['better']} pairs and only more "
        f"accurate in {told['only more accurate']}. In {told['reversal']} the one that looks "
        f"better is worse at equal accuracy, {told['equivalent']} are alike within 5 points, "
        f"{told['depends']} depend on how one looks, and {told['undecided']} are undecided."
    )


def main() -> None:
    page = StudyPage("comparison", "Better calibrated, or only more accurate?")
    page.text(
        "The paper's claim: a raw calibration error ranks models partly by accuracy, and the order "
        "often turns round once outcomes are matched. Here its experiment runs again on real "
        "models, beside a verdict that was right in simulated worlds "
        "([how often](../simulations/comparison.md))."
    )
    page.figure(
        "two-calibrated",
        two_calibrated(),
        "Two perfectly calibrated models. DA reweights outcomes and leaves the confidences: the "
        "stronger model now looks over-confident. Moving the log-odds along keeps both calibrated.",
    )
    top = len(page.lines)
    parts = [*mmlu(page), *mcq(page)]
    pooled(page, [case for part in parts for case in part.get("cases", ())] + open_questions())
    local(page)
    end = len(page.lines)
    conclusion(page, parts)
    page.move_end(end, top)
    page.write()
