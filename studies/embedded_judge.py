"""The embedded judge beside people: grades before and after, wordings, and its own audit.

Its scores are kept in `.cache/judge_study.sqlite`, so that a second run reads nothing again.
"""

from __future__ import annotations

import csv
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import calibrant as cal
from calibrant.answers.semantics import Grader, Group, SemanticsOptions, Settler, agreement
from calibrant.answers.semantics.extract import extract_answer
from calibrant.models.inference.judge import EmbeddedJudge, available
from studies import judge_rows
from studies._page import DATA, ROOT, StudyPage
from studies.judge_rows import Row, words

KEPT = ROOT / ".cache" / "judge_study.sqlite"
WORDINGS = "judge_last.csv"
EACH, PAIRS, TIMED = 8, 120, 150
# What people and a published judge say of 1,486 answers of NQ301: `data/NQ301_gpt-4.tsv` of
# github.com/ehsk/OpenQA-eval (MIT), its column 'Acceptable?' beside people's, by `agreement`.
PUBLISHED = ("GPT-4 (published verdicts)", 1486, "0.849 [0.826, 0.872]", "0.696 [0.651, 0.743]")


class Graded(NamedTuple):
    """Rows with the grades of one grader."""

    right: Any
    verdict: Any
    sure: Any
    chance: Any
    questions: list[str]

    @property
    def cells(self) -> list[str]:
        """Right, kappa, sure, and wrong among the sure; intervals over questions."""
        found = agreement(self.verdict.tolist(), self.right.tolist(), groups=self.questions)
        missed = self.verdict != self.right
        among = missed[self.sure].mean() if self.sure.any() else 0.0
        return [
            str(found["accuracy"]),
            str(found["kappa"]),
            f"{self.sure.mean():.3f}",
            f"{among:.4f} ({int((missed & self.sure).sum())})",
        ]


def graded(rows: Sequence[Row], judge: EmbeddedJudge | None) -> Graded:
    """Grade rows by rules, and by the judge where one is given."""
    found = Grader(judge=judge).grade_all([(r.answer, r.references, r.question) for r in rows])
    return Graded(
        np.array([bool(r.right) for r in rows]),
        np.array([bool(grade.correct) for grade in found]),
        np.array([not grade.doubtful for grade in found]),
        np.array([grade.probability for grade in found], dtype=float),
        [r.question for r in rows],
    )


def row_sets() -> dict[str, list[Row]]:
    """Return the rows by where they come from; what the judge has learned from says so."""
    people, _, _ = judge_rows.people()
    others = {words(r.question) for r in judge_rows.nq301()}
    table = pl.read_parquet(DATA / "scores/open_qa_6_models.parquet")
    others |= set(map(words, table["question"].to_list()))
    aside = pl.read_parquet(DATA / "labels/evouna_nq_human.parquet").filter(
        pl.col("improper") & pl.col("human_correct").is_not_null()
    )
    return {
        "NQ, questions kept from the judge": [r for r in people if r.test == "nqval"],
        "NQ, questions that its authors set aside": [
            Row("nq", x["question"], x["golden_answer"].split("/"), x["answer"] or "",
                int(x["human_correct"]))
            for x in aside.iter_rows(named=True)
            if words(x["question"]) not in others
        ],
        "hard pairs, both orders": pairs(DATA / "semantics/hard_pairs.csv"),
        "pairs written after most rules": pairs(ROOT / "tests/semantics/fresh_pairs.csv"),
    }  # fmt: skip


def pairs(path: Path) -> list[Row]:
    """Return pairs of answers in both orders, as an answer and its reference."""
    return [r for r in judge_rows._pairs(path, "") if r.references]


def worded_rows(name: str) -> tuple[list[Row], list[Row]]:
    """Return wordings around answers to kept questions: those that mean the right one, and others.

    A wording without `{Y}` means nothing that it mentions.
    """
    rng = random.Random(60)
    with (Path(__file__).parent / name).open(encoding="utf-8") as file:
        forms = [x["text"] for x in csv.DictReader(file)]
    kept = [r for r in judge_rows.people()[0] if r.test == "nqval" and r.right]
    usable = [r for r in kept if len(r.references[0].split()) <= 5]
    right: list[Row] = []
    wrong: list[Row] = []
    for form in forms:
        for row in rng.sample(usable, EACH):
            true = row.references[0].strip()
            alike = [r for r in usable if _shape(r.references[0]) == _shape(true)]
            known = set(words(" ".join(row.references)).split())
            others = [
                r.references[0] for r in alike if not known & set(words(r.references[0]).split())
            ]
            if not others:
                continue
            other = rng.choice(others).strip()
            means = "{Y}" in form and "toss" not in form and "no way of telling" not in form
            made = form.format(X=true, Y=other)
            wrong.append(Row("worded", row.question, row.references, made, 0))
            if means:
                made = form.format(X=other, Y=true)
                right.append(Row("worded", row.question, row.references, made, 1))
    return right, wrong


def _shape(text: str) -> tuple[bool, int]:
    return any(letter.isdigit() for letter in text), min(len(text.split()), 3)


def asked_for(question: str) -> str:
    """Return what a question asks for, by its first word."""
    plain = words(question)
    for kind in ("how many", "how", "who", "when", "where"):
        if plain.startswith(kind):
            return {"how": "how, other"}.get(kind, kind)
    return "what, which, other"


def length_of(answer: str) -> str:
    """Return how long an answer is."""
    size = len(answer.split())
    return "1 to 3 words" if size <= 3 else "4 to 12 words" if size <= 12 else "13 words or more"


def audits(rows: Sequence[Row], grades: Graded) -> list[list[str]]:
    """Audit the probability 'people accept it' by calibrant, of all rows and of their parts."""
    table = pl.DataFrame(
        {
            "chance": grades.chance,
            "accepted": grades.right.astype(int),
            "question": grades.questions,
            "all": "all",
            "asked": [asked_for(r.question) for r in rows],
            "length": [length_of(r.answer) for r in rows],
        }
    ).drop_nulls("chance")
    found = []
    for part in ("all", "asked", "length"):
        seen = cal.audit(
            table, confidence="chance", correct="accepted", model=part, cluster="question", seed=0
        )
        found += [_audited(result) for result in seen["results"]]
    return found


def _audited(result: dict[str, Any]) -> list[str]:
    metrics = result["metrics"]
    columns = ("accuracy", "mean_confidence", "confidence_gap", "error", "auroc")
    shown = [
        f"{m['value']:.3f} [{m['low']:.3f}, {m['high']:.3f}]"
        if (m := metrics[name])["low"] is not None
        else f"{m['value']:.3f}"
        for name in columns
    ]
    return [result["model"], str(result["n"]), *shown]


def one_meaning(rows: Sequence[Row]) -> list[tuple[str, str, str, bool]]:
    """Return pairs of answers to one question by people's verdicts.

    Two accepted answers are one, an accepted and a rejected one are two.
    """
    by_question: dict[str, list[Row]] = {}
    for row in rows:
        by_question.setdefault(row.question, []).append(row)
    found = []
    for question, given in sorted(by_question.items()):
        distinct = {words(r.answer): r for r in given if words(r.answer)}
        each = [(extract_answer(r.answer).answer or "", r.right) for r in distinct.values()]
        found += [
            (question, a, b, bool(x and y))
            for n, (a, x) in enumerate(each)
            for b, y in each[n + 1 :]
            if a and b and (x or y)
        ]
    return found


def main() -> None:
    if not DATA.is_dir() or not available():
        print("   the shared data or the weights are not there (`calibrant models fetch`)")
        return
    KEPT.parent.mkdir(exist_ok=True)
    judge = EmbeddedJudge(KEPT)
    page = StudyPage("embedded_judge", "The embedded judge beside people")
    page.text(
        "Rules grade what they can: numbers, units, dates, formulas, known names. What only words"
        " have decided is read by a small model that was trained on people's verdicts"
        " (`studies/judge_train.py`). None of the questions below were in its training, unless a"
        " row says so. Intervals: 95 %, bootstrap over questions. 'Sure' is the share of grades"
        " that are not doubtful; the last column counts wrong grades among those."
    )
    page.heading("Before and after")
    sets = row_sets()
    both = {name: (graded(rows, None), graded(rows, judge)) for name, rows in sets.items()}
    columns = ["rows", "n", "grader", "right", "kappa", "sure", "wrong among the sure"]
    table: list[list[Any]] = []
    for name, (rules, joined) in both.items():
        table.append([name, len(sets[name]), "rules", *rules.cells])
        table.append([name, len(sets[name]), "rules and judge", *joined.cells])
    asked = judge_rows.nq301()
    table.append(["NQ301", len(asked), "rules", *graded(asked, None).cells])
    table.append(["NQ301", PUBLISHED[1], PUBLISHED[0], *PUBLISHED[2:], "all", "-"])
    page.table(columns, table)
    page.text(
        "The judge has learned from NQ301, so that its own grades of these rows would say nothing:"
        " GPT-4, asked by the authors of that set, stands beside the rules alone. A large language"
        " model is the better judge where one is to be had (`--judge`)."
    )
    page.heading("Wordings written after the training")
    page.text(
        f"Thirty forms of sentences (`studies/{WORDINGS}`), each around right and other answers to"
        f" {EACH} of the kept questions. They were written when the shipped judge was frozen."
    )
    page.table(
        ["wordings", "n", "grader", "right", "sure", "wrong and sure"],
        worded_lines(judge),
    )
    page.heading("Its own audit")
    name = next(iter(sets))
    page.text(
        "`calibrant audit` of the probability that people accept an answer, on the first rows."
    )
    page.table(
        ["part", "n", "accepted", "stated", "gap", "calibration error", "AUROC"],
        audits(sets[name], both[name][1]),
    )
    page.heading("Which answers are one")
    page.text(
        f"{PAIRS} pairs of answers to the kept questions. Two answers that people accept are one,"
        " an accepted and a rejected one are two."
    )
    page.table(["pairs joined by", "right", "joined among one", "joined among two"], joins(judge))
    page.heading("Time")
    page.text(
        f"`calibrant grade` of {TIMED} answers, each the only one to its question and model, in"
        " seconds of one core: what other work there was on the machine changes it little."
    )
    page.table(["grader", "core seconds", "of 1,000 answers", "memory, MB"], times())
    page.write()


def joins(judge: EmbeddedJudge) -> list[list[Any]]:
    """Return how pairs are joined by rules alone, and by rules and judge."""
    rows = [r for r in judge_rows.people()[0] if r.test == "nqval"]
    pairs = random.Random(60).sample(one_meaning(rows), PAIRS)
    same = np.array([truth for *_, truth in pairs])
    found = []
    for name, reader in (("rules", None), ("rules and judge", judge)):
        options = SemanticsOptions(embedded=reader)
        groups = [Group([a, b], [1, 1], question) for question, a, b, _ in pairs]
        settled = Settler(options).settle(groups)
        joined = np.array([len(set(each.clusters.ids)) == 1 for each in settled])
        shares = [(joined == same).mean(), joined[same].mean(), joined[~same].mean()]
        found.append([name, *map(float, shares)])
    return found


def times() -> list[list[Any]]:
    """Return core seconds and memory of `grade`, without the judge and with it."""
    rows = [r for r in judge_rows.people()[0] if r.test == "nqval"][:TIMED]
    table = pl.DataFrame(
        {
            "question": [r.question for r in rows],
            "gold": [r.references for r in rows],
            "model": [f"m{n % 5}" for n in range(len(rows))],
            "answers": [[r.answer] for r in rows],
        }
    )
    found, before = [], _used()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        table.write_ndjson(path)
        for name, judge in (("rules", "none"), ("rules and judge", "")):
            command = ["-m", "calibrant", "grade", str(path), "--samples", "answers"]
            environment = {**os.environ, "CALIBRANT_JUDGE": judge}
            run = [sys.executable, *command, "--reference", "gold"]
            subprocess.run(run, env=environment, check=True, stdout=subprocess.DEVNULL)
            seconds, before = _used() - before, _used()
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            first = found[0][1] if found else seconds
            every = first + (seconds - first) * 1000 / len(rows)
            found.append([name, round(seconds), round(every), round(memory)])
    return found


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def worded_lines(judge: EmbeddedJudge) -> list[list[Any]]:
    """Return how wordings are graded, by rules alone and with the judge."""
    lines: list[list[Any]] = []
    right, wrong = worded_rows(WORDINGS)
    for kind, rows in (("mean the right answer", right), ("mention it and mean another", wrong)):
        for title, reader in (("rules", None), ("rules and judge", judge)):
            found = graded(rows, reader)
            ok = found.verdict == found.right
            shares = map(float, (ok.mean(), found.sure.mean(), (~ok & found.sure).mean()))
            lines.append([kind, len(rows), title, *shares])
    return lines
