"""The embedded judge beside people: grades before and after, wordings, and its own audit.

Its scores are kept in `.cache/judge_study.sqlite`, so that a second run reads nothing again.
"""

from __future__ import annotations

import csv
import os
import random
import subprocess
import sys
import tempfile
import zlib
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
from studies._page import DATA, ROOT, StudyPage, estimate
from studies.judge_rows import Row, words

KEPT = ROOT / ".cache" / "judge_study.sqlite"
WORDINGS = "judge_last.csv"
# So many of the questions that the judge has not learned from, and of pairs and answers to time.
QUESTIONS, EACH, PAIRS, TIMED = 130, 8, 40, 40
# What people and a published judge say of 1,486 answers of NQ301: `data/NQ301_gpt-4.tsv` of
# github.com/ehsk/OpenQA-eval (MIT), its column 'Acceptable?' beside people's, by `agreement`.
PUBLISHED = ("GPT-4 (published verdicts)", 1486, "0.849 [0.826, 0.872]", "0.696 [0.651, 0.743]")


# Rules switched off one by one (rules alone, without the judge): share right of 2,295 answers to
# the kept questions, of NQ301, of 1,000 answers of MACE; of both sets of pairs right and sure.
RULES_OFF = (
    ("none", ".938", ".816", ".993", ".949 / .722", ".871 / .653"),
    ("names with a mark of their own", ".937", ".815", ".979", ".949 / .722", ".871 / .644"),
    ("leftover words and middle names", ".938", ".816", ".993", ".949 / .766", ".871 / .668"),
    ("answers beside the question", ".938", ".816", ".993", ".949 / .722", ".871 / .663"),
    ("parts of personal names", ".938", ".816", ".992", ".949 / .709", ".871 / .619"),
    ("short forms of given names", ".937", ".815", ".992", ".949 / .722", ".871 / .653"),
    ("acronyms", ".938", ".816", ".993", ".949 / .722", ".861 / .644"),
    ("near spellings", ".932", ".815", ".994", ".937 / .709", ".851 / .634"),
    ("names by sound", ".938", ".816", ".993", ".937 / .709", ".871 / .634"),
    ("look-alike names", ".938", ".817", ".993", ".937 / .734", ".871 / .653"),
    ("countries and languages of the tables", ".938", ".816", ".993", ".924 / .671", ".861 / .624"),
)  # fmt: skip


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


def kept_rows() -> list[Row]:
    """Return answers to questions that the judge has not learned from, chosen by a checksum."""
    rows = [r for r in judge_rows.people()[0] if r.test == "nqval"]
    questions = sorted({r.question for r in rows}, key=lambda text: zlib.crc32(text.encode()))
    chosen = set(questions[:QUESTIONS])
    return [r for r in rows if r.question in chosen]


def row_sets() -> dict[str, list[Row]]:
    """Return the rows by where they come from; the judge has learned from none of them."""
    return {
        "NQ, questions kept from the judge": kept_rows(),
        "hard pairs, both orders": pairs(DATA / "semantics/hard_pairs.csv"),
        "pairs written after most rules": pairs(ROOT / "tests/semantics/fresh_pairs.csv"),
    }


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


def audits(rows: Sequence[Row], grades: Graded, parts: Sequence[str]) -> list[list[str]]:
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
    for part in parts:
        seen = cal.audit(
            table, confidence="chance", correct="accepted", model=part, cluster="question", seed=0
        )
        found += [_audited(result) for result in seen["results"]]
    return found


def _audited(result: dict[str, Any]) -> list[str]:
    metrics = result["metrics"]
    columns = ("accuracy", "mean_confidence", "confidence_gap", "error", "auroc")
    shown = [estimate(metrics[name]) for name in columns]
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
        " (`studies/judge_train.py`). None of the questions below were in its training."
        " Intervals: 95 %, bootstrap over questions. 'Sure' is the share of grades that are not"
        " doubtful; the last column counts wrong grades among those. The three numbers that join"
        " rules and judge were fitted to the kept rows, these among them. On all 459 kept"
        " questions (2,295 answers) rules alone are right in 0.938 and sure in 0.600."
    )
    page.heading("Before and after")
    sets = row_sets()
    both = {name: (graded(rows, None), graded(rows, judge)) for name, rows in sets.items()}
    columns = ["rows", "n", "grader", "right", "kappa", "sure", "wrong among the sure"]
    lines = [
        [name, len(sets[name]), grader, *found.cells]
        for name, pair in both.items()
        for grader, found in zip(("rules", "rules and judge"), pair, strict=True)
    ]
    asked = judge_rows.nq301()
    of_people = [
        *lines[:2],
        ["NQ301", len(asked), "rules", *graded(asked, None).cells],
        ["NQ301", PUBLISHED[1], PUBLISHED[0], *PUBLISHED[2:], "all", "-"],
    ]
    page.table(columns, of_people)
    page.table(columns, lines[2:])
    page.text(
        "The judge has learned from NQ301, so that its own grades of these rows would say nothing:"
        " GPT-4, asked by the authors of that set, stands beside the rules alone. A large language"
        " model is the better judge where one is to be had (`--judge`)."
    )
    page.heading("Left out of the training")
    page.text(
        "The shipped judge has learned from NQ301 and MACE. Four others were trained in the same"
        " way, each without one of these sets and its questions, to grade it unseen."
    )
    with (Path(__file__).parent / "judge_left_out.csv").open(encoding="utf-8") as file:
        page.table(columns, list(csv.reader(file)))
    page.text(
        "In NQ301 people looked the answers up: 80 of the 108 wrong sure grades refuse an answer"
        " that differs from every reference and is right (Jicheng for Peking), 28 accept one that"
        " agrees with a reference which is itself wrong. A judge reads references; it cannot know"
        " that they are incomplete. Where they may be, look at some grades yourself."
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
    columns = ["part", "n", "accepted", "stated", "gap", "calibration error", "AUROC"]
    for parts in (("all", "asked"), ("length",)):
        page.table(columns, audits(sets[name], both[name][1], parts))
    page.write()
    page.heading("Which answers are one")
    page.text(
        f"{PAIRS} pairs of answers to the kept questions. Two answers that people accept are one,"
        " an accepted and a rejected one are two."
    )
    page.table(["pairs joined by", "right", "joined among one", "joined among two"], joins(judge))
    page.heading("Rules that went, and rules that stay")
    page.text(
        "Six rules went with the judge: figures repeated from the question, answers that echo it,"
        " places behind a comma, official names of states, descriptions before a name, and"
        " spellings of one word. Together they changed the share right of the 2,295 answers from"
        " 0.936 to 0.938, MACE from 0.991 to 0.994, and of no other rows; identical partitions of"
        " MACE fell from 0.982 to 0.981."
    )
    page.text(
        "Then two more: fronts of places ('San Marino' and 'Marino'); and other members of a list"
        " are told without lists of cities. With rules and judge nothing changed on people's"
        " verdicts and on the hard pairs. What is lost: by rules alone 'Minsk' for 'Minsk Region'"
        " is right and doubtful: of the 200 most alike pairs of names of one kind 5 are accepted,"
        " 2 before. Whoever knows the other names gives them as `siblings`. British spellings and"
        " denials before a mention cost nothing by these measures and stay: nobody trusts a grader"
        " that takes 'not Paris' for Paris."
    )
    page.text(
        "One rule came. An answer is doubtful that denies something, or that takes up less than a"
        " third of its question's words and says two or more of its own. By rules alone it takes"
        " the sure share of the 2,295 answers from 0.633 to 0.600, and the wrong ones among them"
        " from 20 to 13; of the wordings that mention the right answer and mean another, 0.004 are"
        " wrong and sure (0.971). These wordings do not repeat the question: one that does is not"
        " seen by it."
    )
    page.text(
        "The rules below stay: each costs more than 0.2 points somewhere, or makes a wrong grade a"
        " sure one. Without leftover words 4 of the hard pairs are, without answers beside the"
        " question 7 of the 2,295 and 232 of 240 wordings. The rule on personal names is sure and"
        " was wrong in 3 of 16: doubted, it would cost 0.3 points of the sure grades of the first"
        " rows and 1.3 of the hard pairs, for two wrong sure grades fewer in NQ301."
    )
    columns = ["switched off", "NQ", "NQ301", "MACE", "hard pairs", "later pairs"]
    page.table(columns, RULES_OFF)
    page.heading("Time")
    page.text(
        f"`calibrant grade` of one answer and of {TIMED} that only words decide, each the only one"
        " to its question and model, in seconds of one core: other work on the machine changes it"
        " little. Two cores take half of it."
    )
    page.table(["grader", "the first answer", "1,000 more", "memory, MB"], times())
    page.write()


def joins(judge: EmbeddedJudge) -> list[list[Any]]:
    """Return how pairs are joined by rules alone, and by rules and judge."""
    pairs = random.Random(60).sample(one_meaning(kept_rows()), PAIRS)
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
    """Return core seconds of a run and of 1,000 answers, and memory, without and with the judge."""
    rules = Grader(judge=None)
    rows = [r for r in kept_rows() if rules.grade(r.answer, r.references).by_words]
    rows = random.Random(60).sample(rows, TIMED)
    found = []
    for name, judge in (("rules", "none"), ("rules and judge", "")):
        (few, _), (many, memory) = (_graded_alone(part, judge) for part in (rows[:1], rows))
        found.append([name, f"{few:.1f}", f"{max(many - few, 0) / (TIMED - 1) * 1000:.0f}", memory])
    return found


_COMMAND = """
import atexit, resource, runpy, sys
def tell():
    used = resource.getrusage(resource.RUSAGE_SELF)
    memory = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    sys.stderr.write(f"\\n{used.ru_utime + used.ru_stime} {int(memory.split()[1]) // 1024}")
atexit.register(tell)
sys.argv[0] = "calibrant"
runpy.run_module("calibrant", run_name="__main__")
"""


def _graded_alone(rows: Sequence[Row], judge: str) -> tuple[float, int]:
    """Return core seconds and megabytes of `calibrant grade` of these rows."""
    table = pl.DataFrame(
        {
            "question": [r.question for r in rows],
            "gold": [r.references for r in rows],
            "model": [f"m{n % 5}" for n in range(len(rows))],
            "answers": [[r.answer] for r in rows],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        table.write_ndjson(path)
        arguments = ["grade", str(path), "--samples", "answers", "--reference", "gold"]
        done = subprocess.run(
            [sys.executable, "-c", _COMMAND, *arguments],
            env={**os.environ, "CALIBRANT_JUDGE": judge},
            check=True,
            capture_output=True,
            text=True,
        )
    seconds, memory = done.stderr.splitlines()[-1].split()
    return float(seconds), int(memory)


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
