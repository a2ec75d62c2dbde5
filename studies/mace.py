"""Questions with exactly k right answers: what is generated, what is published, what models do.

Builds the benchmark from the published facts and out of the box, derives every answer set again,
and evaluates DeepSeek-V3's recorded answers and three small local models by k and on mixes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from calibrant.answers.confidence import score_table
from calibrant.answers.semantics import annotate
from calibrant.bench.evaluate import bench_evaluate
from calibrant.bench.make import bench_check, bench_mace
from studies._confidence_tables import deepseek_tables, local_draws, read_deepseek
from studies._page import DATA, StudyPage, estimate

MACE = DATA / "mace"
CONSISTENCY = ("consistency", "discrete_semantic_entropy", "consistency_verb",
               "consistency_verb_topk", "verb", "verb_topk", "p_true_consistency",
               "p_true_consistency_cand", "self_ask", "sfca")  # fmt: skip
LOCAL = ("sca", "sca_distinct", "snca", "sfca", "consistency", "perplexity", "semantic_entropy",
         "prob_entropy", "norm_prob_entropy", "p_true_prob", "verb")  # fmt: skip
# Table of DeepSeek-V3 in Wang et al., mean confidence by k over all six domains.
PUBLISHED = {"consistency": (81.1, 79.1, 76.7, 73.2), "verb": (85.3, 85.5, 85.8, 86.0)}
# Numbers of subjects and questions in their Table 1.
TABLE_1 = {"award": (175, 1_634, 9_384), "office": (159, 1_706, 6_177),
           "region": (99, 1_074, 5_120), "math": (5, 2_957, 10_000),
           "river": (781, 114, 10_000), "language": (847, 141, 10_000)}  # fmt: skip


def main() -> None:
    page = StudyPage("mace", "Questions with several right answers")
    top = len(page.lines)
    generated(page)
    published(page)
    answers = [*deepseek(page), *local_models(page)]
    page.lines[top:top] = ["## What this says", "", *(f"- {text}" for text in answers), ""]
    page.write()


def generated(page: StudyPage) -> None:
    page.heading("Generated questions")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mace.jsonl"
        built = bench_mace(
            file,
            domains=list(TABLE_1),
            triples=[MACE / "triples"],
            popularity=None,
        )
        checked = bench_check(file, triples=[MACE / "triples"])
        shipped = bench_mace(file, domains=["math", "language", "region"])
        shipped_check = bench_check(file)
    page.text(
        "500 questions per domain and k from the published facts, with one domain per answer "
        "entity. 'Built' counts candidates (at most 10,000 per domain)."
    )
    statistics(page, built["results"])
    page.text(f"Check: {verdict(checked)}")
    page.text(
        "River and Language both answer with countries. With every country in one domain only, "
        "the facts do not give both of them 500 questions with one answer; with "
        "`--no-split-entities` they do."
    )
    page.table(
        ["domain", "subjects: raw > after each filter", "dropped because", "number"],
        [
            (entry["domain"], " > ".join(map(str, entry["subjects"].values())), item["reason"],
             item["number"])
            for entry in built["filters"]
            for item in entry["dropped"] or [{"reason": "nothing dropped", "number": 0}]
        ],
    )  # fmt: skip
    page.heading("Out of the box")
    statistics(page, shipped["results"])
    page.text(f"Check: {verdict(shipped_check)}")


def statistics(page: StudyPage, rows: Iterable[Mapping[str, Any]]) -> None:
    page.table(
        ["domain", "subjects", "answers", "answer sets", "built", "used", "by k",
         "paper: subjects, answers, built", "source"],
        [
            (row["domain"], row["subjects"], row["objects"], row["answer_sets"], row["candidates"],
             row["questions"], ", ".join(f"{p['k']}: {p['questions']}" for p in row["by_k"]),
             ", ".join(map(str, TABLE_1[row["domain"]])), row["source"])
            for row in rows
        ],
    )  # fmt: skip


def verdict(checked: Any) -> str:
    exact = sum(row["exact"] for row in checked["results"])
    shared = sum(pair["number"] for pair in checked["shared_entities"])
    return (
        f"{exact:,} of {checked['questions']:,} questions have exactly the references that their "
        f"text and the facts give; {checked['duplicates']['number']} duplicates; {shared} answer "
        "entities in two domains."
    )


def published(page: StudyPage) -> None:
    page.heading("The published questions, checked")
    found = bench_check(MACE / "questions.parquet", triples=[MACE / "triples"])
    page.text(verdict(found))
    page.table(
        ["domain", "questions", "exact", "of these under another name", "subjects that overlap",
         "problems"],
        [
            (row["domain"], row["questions"], row["exact"], row["by_alias"], row["overlapping"],
             "; ".join(f"{name}: {count}" for name, count in row["problems"].items()) or "none")
            for row in found["results"]
        ],
    )  # fmt: skip
    for pair in found["shared_entities"]:
        page.text(
            f"Answers of both {' and '.join(pair['domains'])}: {pair['number']} "
            f"({', '.join(pair['entities'][:6])}{', ..' if pair['number'] > 6 else ''})."
        )
    kinds = pl.DataFrame(found["findings"]["listed"]).unique(
        ["domain", "detail"], keep="first", maintain_order=True
    )
    page.text("Disagreements, one per kind of disagreement:")
    page.table(
        ["question", "finding"],
        kinds.sort("domain", "detail").select("text", "detail").head(25).iter_rows(),
    )


def deepseek(page: StudyPage) -> list[str]:
    page.heading("DeepSeek-V3")
    recorded = read_deepseek(DATA)
    draws, semantics = deepseek_tables(recorded)
    kind = pl.col("question").str.extract(r"Name an? (\w+) number").fill_null("")
    questions = recorded.select(
        pl.col("id").alias("question_id"), "k", "domain", kind.alias("subtype")
    )
    scores = score_table(draws, semantics, questions, methods=CONSISTENCY).scores
    scores = scores.with_columns(pl.col("confidence").round(12))
    shared = draws.join(semantics, on=["question_id", "model", "purpose", "draw"])
    result = bench_evaluate(
        scores, draws=shared, reference="consistency", on_invalid="drop", tune=("sfca",)
    )
    page.text(
        "6,000 recorded questions of award, language and math; every confidence is paired with "
        "the grade of its own answer. Mean over domains, Math over its five kinds first."
    )
    by_k(page, result["results"])
    ours = {entry["method"]: entry for entry in result["results"]}
    page.text("Mean confidence beside the published one (six domains there, three here):")
    page.table(
        ["method", *(f"k={k}" for k in result["k"]), "published"],
        [
            (name, *(f"{100 * p['confidence']['value']:.1f}" for p in ours[name]["by_k"]),
             " / ".join(map(str, row)))
            for name, row in PUBLISHED.items()
        ],
    )  # fmt: skip
    mixes(page, result["results"], reference=None)
    domains(page, result["results"], ["consistency", "verb"])
    coverage(page, result)
    figure(page, "deepseek", result["results"], ["consistency", "verb", "verb_topk"])
    said(page, result, list(CONSISTENCY))
    return [
        f"**DeepSeek-V3.** {claim['text']}"
        for claim in result["claims"]
        if claim["id"] == "bench.best_method"
        or (claim["id"] == "bench.misled_by_k" and claim["subject"]["method"] in PUBLISHED)
    ]


def local_models(page: StudyPage) -> list[str]:
    page.heading("Three small models with token log-probs")
    draws, questions = local_draws(DATA)
    kind = pl.col("text").str.extract(r"^Name one (.+?)(?: number)? between")
    math = pl.col("source") == "math_small"
    questions = questions.filter(pl.col("source") != "webquestions").with_columns(
        domain=pl.when(math).then(pl.lit("math")).otherwise(pl.col("source").str.slice(5)),
        subtype=pl.when(math).then(kind).otherwise(pl.lit("")),
    )
    draws = draws.join(questions.select("question_id"), on="question_id")
    draws, semantics = annotate(draws, questions)
    page.text(
        f"{questions.height} questions (MACE language, river and award with k = 1, 2, 4, 6, and "
        "small Math), 50 draws each at temperature 1, graded and clustered by rule."
    )
    first_tokens(page, score_table(draws, semantics, questions, methods=("first_token_entropy",)),
                 questions)  # fmt: skip
    answers: list[str] = []
    for about in ("modal", "greedy"):
        # About the greedy answer, consistency must be agreement with the greedy answer: the share
        # of the most frequent answer would come with the grade of another answer.
        names = [
            "consistency_greedy" if name == "consistency" and about == "greedy" else name
            for name in LOCAL
        ]
        scores = score_table(draws, semantics, questions, methods=names, about=about).scores
        result = bench_evaluate(
            scores.with_columns(pl.col("confidence").round(12)),
            draws=draws.join(semantics, on=["question_id", "model", "purpose", "draw"]),
            on_invalid="drop",
            tune=("sca", "snca", "sfca") if about == "modal" else (),
        )
        page.text(
            "Question-level scores are about the most frequent answer:"
            if about == "modal"
            else "The same with every score about the greedy answer, as in the paper. Consistency "
            "is then agreement with the greedy answer, so that all rows share one grade:"
        )
        if about == "modal":
            by_k(page, result["results"])
            between(page, result)
        mixes(page, result["results"], reference="sca")
        said(page, result, ["consistency", "consistency_greedy", "perplexity", "semantic_entropy"])
        answers.append(f"**Every score about the {about} answer.** {against_consistency(result)}")
        if about == "modal":
            coverage(page, result)
            tuning(page, result["tuning"])
            figure(page, "local", result["results"], ["consistency"])
    return answers


def first_tokens(page: StudyPage, scored: Any, questions: pl.DataFrame) -> None:
    """Write the entropy of the first token by k (Table 9), mean over domains."""
    entropy = -pl.col("confidence").log()
    table = (
        scored.scores.join(questions.select("question_id", "k", "domain"), on="question_id")
        .filter(pl.col("confidence").is_not_null())
        .group_by("model", "k", "domain")
        .agg(entropy.mean().alias("mean"), (entropy.var() / pl.len()).alias("error"))
        .group_by("model", "k")
        .agg(pl.col("mean").mean(), pl.col("error").sum().sqrt() / pl.len())
        .sort("model", "k")
    )
    page.text(
        "Entropy of the listed first tokens of the greedy answer, in nats (Table 9 of the paper, "
        "there of Llama 70B): does the first token know of several right answers? With a standard "
        "error."
    )
    page.table(
        ["model", "k", "entropy"],
        [(model, k, f"{mean:.2f} ({error:.2f})") for model, k, mean, error in table.iter_rows()],
    )


def by_k(page: StudyPage, entries: Sequence[Mapping[str, Any]]) -> None:
    ks = [part["k"] for part in entries[0]["by_k"]]
    page.table(
        ["model", "method", "mean", *(f"k={k}" for k in ks), f"change k={ks[0]} to {ks[-1]}"],
        [
            (entry["model"], entry["method"], name,
             *(estimate(part[name]) for part in entry["by_k"]), estimate(entry["change"][name]))
            for entry in entries
            for name in ("accuracy", "confidence")
        ],
    )  # fmt: skip


def mixes(page: StudyPage, entries: Sequence[Mapping[str, Any]], *, reference: str | None) -> None:
    names = [str(part["mix"]).replace(" ", "") for part in entries[0]["mixes"]]
    rows = []
    for entry in entries:
        tests = [test["p"] for test in entry["significance"]] or [None] * len(names)
        cells = [
            estimate(part["auroc"])
            + (f", p = {p:.3f}" if p is not None and reference is not None else "")
            for part, p in zip(entry["mixes"], tests, strict=True)
        ]
        rows.append((entry["model"], entry["method"], *cells))
    words = f"; p: bootstrap test of the difference to {reference}" if reference else ""
    page.text(f"AUROC on mixes, mean over domains{words}:")
    page.table(["model", "method", *names], rows)


def domains(page: StudyPage, entries: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> None:
    page.text("AUROC within each domain:")
    names = [str(part["mix"]).replace(" ", "") for part in entries[0]["mixes"]]
    chosen = [entry for entry in entries if entry["method"] in methods]
    page.table(
        ["method", "domain", *names],
        [
            (entry["method"], where["domain"],
             *(estimate(part["domains"][place]["auroc"]) for part in entry["mixes"]))
            for entry in chosen
            for place, where in enumerate(entry["mixes"][-1]["domains"])
        ],
    )  # fmt: skip


def between(page: StudyPage, result: Any) -> None:
    """Write whether models differ in what more right answers do to them (Figs. 4 and 5)."""
    page.text(
        "Do larger models lose more confidence (Fig. 4), and know more answers (Fig. 5)? Change "
        f"from k={result['k'][0]} to {result['k'][-1]}, model against model, question by question; "
        f"p corrected for {len(result['between_models'])} tests by Holm's rule:"
    )
    page.table(
        ["of", "model", "other", "change", "other's", "difference", "p"],
        [
            (test["method"] or test["quantity"], test["a"], test["b"], test["change_a"],
             test["change_b"], estimate(test["difference"]), f"{test['p_adjusted']:.2f}")
            for test in result["between_models"]
        ],
    )  # fmt: skip


def against_consistency(result: Any) -> str:
    """Say plainly whether SCA beats consistency with all k pooled."""
    found = [
        claim
        for claim in result["claims"]
        if claim["id"] == "bench.against_reference"
        and claim["subject"]["method"].startswith("consistency")
    ]
    won = sum(claim["outcome"] == "shown" and claim["value"] > 0 for claim in found)
    verdict = "SCA does not beat consistency on these models"
    if won:
        verdict = f"SCA beats consistency on {won} of {len(found)} models"
    parts = [
        f"{claim['subject']['model']} {100 * claim['value']:+.1f} points "
        f"({100 * claim['low']:+.1f} to {100 * claim['high']:+.1f}, p = {claim['p_adjusted']:.2f}, "
        f"{claim['outcome']})"
        for claim in found
    ]
    return (
        f"{verdict}. AUROC with all k pooled, SCA minus consistency, both judged on the same "
        f"answer's grade, corrected for the number of tests: {'; '.join(parts)}. {power(result)}"
    )


def power(result: Any) -> str:
    """Say how large a difference would have been shown."""
    found = [
        f"{entry['model']} {100 * entry['significance'][-1]['detectable']:.1f}"
        for entry in result["results"]
        if entry["method"].startswith("consistency") and entry["significance"]
    ]
    return (
        "Four of five such tables would show a difference of this many points, with the same "
        f"correction: {', '.join(found)}."
    )


def said(page: StudyPage, result: Any, names: Sequence[str]) -> None:
    """Write the claims of a document about these methods."""
    chosen = [
        [claim["text"]]
        for claim in result["claims"]
        if claim["id"] == "bench.best_method" or claim["subject"]["method"] in names
    ]
    page.table(["claim"], chosen)


def coverage(page: StudyPage, result: Any) -> None:
    page.text(
        "Knowledge coverage: meanings with at least a tenth of the draws, and how many questions "
        "have 0, 1, .. 6 or more of them (Fig. 10 of the paper)."
    )
    page.table(
        ["model", "k", "known answers", *map(str, range(6)), "6 or more"],
        [
            (row["model"], row["k"], estimate(row["coverage"]), *row["questions"])
            for row in result["coverage"]
        ],
    )
    page.text("Spearman's correlation of coverage and confidence, all questions and by k:")
    page.table(
        ["model", "method", "all", *(f"k={k}" for k in result["k"])],
        [
            (entry["model"], entry["method"], estimate(entry["coverage_correlation"]),
             *(estimate(part["correlation"]) for part in entry["coverage_correlation_by_k"]))
            for entry in result["results"]
        ],
    )  # fmt: skip
    if result["masses"]:
        page.text("Meanings by their mass, summed over draws and not normalised (Fig. 9):")
        edges = result["masses"][0]["edges"]
        page.table(
            ["model", *(f"from {low:.1f}" for low in edges[:-1]), "above 1"],
            [(row["model"], *row["counts"]) for row in result["masses"]],
        )


def tuning(page: StudyPage, found: Sequence[Mapping[str, Any]]) -> None:
    page.text("AUROC against tau on the development part; thresholds fit the masses (Fig. 7):")
    page.table(
        ["model", "method", "tau: AUROC"],
        [
            (row["model"], row["method"],
             ", ".join(f"{p['threshold']:.3g}: {p['auroc']:.3f}" for p in row["curve"]))
            for row in found
        ],
    )  # fmt: skip
    page.text("Thresholds tuned on 20 % of the questions of each domain, reported on the rest:")
    page.table(
        ["model", "method", "tau", "AUROC, tuned", "AUROC, default", "default tau"],
        [
            (row["model"], row["method"], f"{row['threshold']:g}",
             estimate(row["mixes"][-1]["tuned"]), estimate(row["mixes"][-1]["default"]),
             f"{row['default']:g}")
            for row in found
        ],
    )  # fmt: skip


def figure(
    page: StudyPage, name: str, entries: Sequence[Mapping[str, Any]], methods: Sequence[str]
) -> None:
    rows = [
        {"line": f"{entry['model']} {entry['method']}: {what}", "k": part["k"],
         "value": part[what]["value"], "low": part[what]["low"], "high": part[what]["high"]}
        for entry in entries
        if entry["method"] in methods
        for part in entry["by_k"]
        for what in ("accuracy", "confidence")
        if what == "confidence" or entry["method"] == methods[0]
    ]  # fmt: skip
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X("k:O", title="right answers"), color=alt.Color("line:N", title=None)
    )
    lines = base.mark_line(point=True).encode(y=alt.Y("value:Q", title="mean over domains"))
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q")
    caption = "Accuracy and confidence by number of right answers, with 95 % intervals"
    page.figure(name, (lines + bars).properties(width=420, height=260), caption)


if __name__ == "__main__":
    main()
