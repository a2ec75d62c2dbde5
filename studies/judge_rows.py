"""Rows that the embedded judge learns from: question, references, answer, right or not.

The rows come from people's verdicts, from the grades and clusters of published studies, and from
wordings around right and wrong answers. Every row names the questions it must be kept apart with.
Data without a licence is not read. Run `python -m studies.judge_rows FOLDER` (see `judge_train`).
"""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from calibrant.models.inference.llama import Tokenizer
from calibrant.models.inference.weights import Gguf

DATA = Path(__file__).parents[2] / "shared" / "data"
SEED = 7
LONGEST = 500
_DIFFERENT_TRIES = 8


class Row(NamedTuple):
    """One row; `source` says where from, `test` which report it is kept for."""

    source: str
    question: str
    references: list[str]
    answer: str
    right: int
    test: str = ""


class Base(NamedTuple):
    """A question whose right answers are known, with answers known to be wrong."""

    source: str
    question: str
    references: list[str]
    wrong: list[str]


def words(text: object) -> str:
    """Return the words of a text, for comparing."""
    return re.sub(r"\W+", " ", str(text).lower()).strip()


def held(key: int, share: float) -> bool:
    """Return whether a question is kept for the report: by its number, the same in every run."""
    return (key * 2654435761) % 100 < share * 100


def people() -> tuple[list[Row], list[Base], set[str]]:
    """Return NQ with people's verdicts: 15 % of the questions are kept for joining and report."""
    table = pl.read_parquet(DATA / "labels/evouna_nq_human.parquet")
    table = table.filter(~pl.col("improper") & pl.col("human_correct").is_not_null())
    rows, bases, kept = [], [], set()
    for (number,), part in table.group_by("question_id", maintain_order=True):
        first = part.row(0, named=True)
        question, refs = first["question"], first["golden_answer"].split("/")
        test = "nqval" if held(int(number), 0.15) else ""
        kept |= {words(question)} if test else set()
        pairs = list(zip(part["answer"], part["human_correct"], strict=True))
        rows += [Row("nq", question, refs, text or "", int(y), test) for text, y in pairs]
        if not test:
            rows += list(_told_apart(question, pairs, random.Random(int(number))))
            wrong = [text for text, y in pairs if not y and text and len(text.split()) <= 5]
            bases.append(Base("nq", question, refs, wrong))
    return rows, bases, kept


def _told_apart(
    question: str, pairs: Sequence[tuple[str, float]], rng: random.Random
) -> Iterator[Row]:
    """Yield two answers to one question: both right are the same, right and wrong are not."""
    right = [text for text, y in pairs if y and text]
    wrong = [text for text, y in pairs if not y and text]
    if len(right) > 1:
        one, two = rng.sample(right, 2)
        yield Row("nq.pair", question, [one], two, 1)
    if right and wrong:
        sides = [rng.choice(right), rng.choice(wrong)]
        rng.shuffle(sides)
        yield Row("nq.pair", question, [sides[0]], sides[1], 0)


def nq301() -> list[Row]:
    """Return the verdicts of people on 301 questions, with aliases."""
    table = pl.read_parquet(DATA / "labels/nq301_human_acceptability.parquet")
    return [
        Row(
            "nq301",
            x["question"],
            list(x["gold_answers"]),
            x["model_answer"] or "",
            int(x["acceptable"].lower().startswith("y")),
            "nq301",
        )
        for x in table.iter_rows(named=True)
        if x["gold_answers"] is not None and x["acceptable"] is not None
    ]


def open_questions(rng: random.Random) -> tuple[list[Row], list[Base]]:
    """Return answers of six models to open questions, graded by a language model."""
    table = pl.read_parquet(DATA / "scores/open_qa_6_models.parquet")
    table = table.filter(pl.col("correct").is_not_null())
    rows, seen, bases = [], set(), {}
    for x in table.iter_rows(named=True):
        short, question = x["extracted_answer"], x["question"]
        key = words(question), words(short)
        base = bases.setdefault(key[0], Base("open", question, [x["target"]], []))
        if not short or key in seen:
            continue
        seen.add(key)
        text = short if rng.random() < 0.7 else x["response"]
        rows.append(Row("open", question, [x["target"]], text, int(x["correct"])))
        if not x["correct"] and len(short.split()) <= 5:
            base.wrong.append(short)
    return rows, list(bases.values())


def mace(rng: random.Random) -> tuple[list[Row], list[Base]]:
    """Return MACE with its authors' grades, and pairs of answers from their clusters."""
    rows, bases = [], []
    for x in pl.read_parquet(DATA / "mace/deepseek_v3.parquet").iter_rows(named=True):
        source, refs = f"mace.{x['domain']}", list(x["references"])
        question = x["question"]
        rows.append(Row(source, question, refs, x["greedy_answer"], int(x["greedy_correct"])))
        texts, groups = x["samples"], x["cluster"]
        pairs = [
            (i, j)
            for i in range(len(texts))
            for j in range(len(texts))
            if words(texts[i]) != words(texts[j]) and groups[i] >= 0
        ]
        for same, most in ((True, 2), (False, 1)):
            fitting = [p for p in pairs if (groups[p[0]] == groups[p[1]]) is same]
            for i, j in rng.sample(fitting, min(most, len(fitting))):
                rows.append(Row(f"{source}.pair", question, [texts[i]], texts[j], int(same)))
        bases.append(Base(source, question, refs, []))
    return rows, bases


def simple() -> list[Base]:
    """Return questions of SimpleQA and WebQuestions with their answers, for wordings."""

    def read(name: str) -> list[dict[str, Any]]:
        with gzip.open(DATA / f"questions/{name}", "rt") as file:
            return [json.loads(line) for line in file]

    simpleqa = [
        Base("simpleqa", x["question"], [x["answer"]], [])
        for x in read("simpleqa_4326.jsonl.gz")
        if "question" in x
    ]
    web = [
        Base("web", x["qText"], [a for a in x["answers"] or () if a], [])
        for x in read("webquestions_test.jsonl.gz")
    ]
    return simpleqa + web


class Wordings:
    """Sentences around a chosen answer and another one, put together from parts.

    Parameters
    ----------
    part
        Which of the parts: `learned`, `kept` or `all`.
    """

    def __init__(self, part: str) -> None:
        self.of: dict[str, list[str]] = defaultdict(list)
        seen: dict[str, int] = defaultdict(int)
        with (Path(__file__).parent / "judge_wordings.csv").open() as file:
            for x in csv.DictReader(file):
                seen[x["kind"]] += 1
                kept = seen[x["kind"]] % 7 == 4
                if part == "all" or kept == (part == "kept"):
                    self.of[x["kind"]].append(x["text"])

    def chosen(self, choice: str, other: str, rng: random.Random) -> str:
        """Return a text that mentions both and means the choice."""
        pick = lambda kind: rng.choice(self.of[kind])  # noqa: E731
        commit = pick("commit").format(X=choice)
        deny = pick("deny").format(X=other)
        form = rng.random()
        if form < 0.22:
            return f"{commit}{rng.choice(['. ', '; ', ' - ', ' ('])}{deny}."
        if form < 0.44:
            return f"{deny}{rng.choice(['. ', '; ', ': ', ', '])}{_low(commit, choice)}."
        if form < 0.72:
            report = pick("report").format(X=other)
            return f"{report}{pick('turn')} {_low(commit, choice)}."
        return pick("relation").format(X=choice, Y=other) + "."

    def other(self, right: str, wrong: str, rng: random.Random) -> str:
        """Return a text that names the right answer and does not mean it."""
        kind = rng.choice(["hedge", "alone", "alone"])
        sides = [right, wrong]
        rng.shuffle(sides)
        if kind == "hedge":
            return rng.choice(self.of[kind]).format(X=sides[0], Y=sides[1]) + "."
        return rng.choice(self.of[kind]).format(X=right if rng.random() < 0.8 else wrong) + "."


def _low(text: str, name: str) -> str:
    return text if text.startswith((name, "I ")) else text[:1].lower() + text[1:]


def _form(text: str) -> tuple[bool, int, bool]:
    return any(c.isdigit() for c in text), min(len(text.split()), 3), text[:1].isupper()


def worded(bases: Sequence[Base], parts: Wordings, rng: random.Random, test: str) -> list[Row]:
    """Return wordings around each question's answer and another answer of the same form."""
    alike: dict[Any, list[str]] = defaultdict(list)
    usable = [b for b in bases if b.references and 0 < len(b.references[0].split()) <= 5]
    for base in usable:
        alike[_form(base.references[0])].append(base.references[0].strip())
    rows = []
    for base in usable:
        right = rng.choice([r for r in base.references if 0 < len(r.split()) <= 6]).strip()
        other = _other(base, alike[_form(right)] or [""], rng)
        if other:
            rows += _around(base, right, other, parts, rng, test)
    return rows


def _other(base: Base, alike: Sequence[str], rng: random.Random) -> str:
    known = set(words(" ".join(base.references)).split())
    for n in range(_DIFFERENT_TRIES):
        other = rng.choice(base.wrong if base.wrong and n == 0 else alike).strip().rstrip(".")
        if other and not set(words(other).split()) & known:
            return other
    return ""


def _around(
    base: Base, right: str, other: str, parts: Wordings, rng: random.Random, test: str
) -> Iterator[Row]:
    make: list[tuple[Callable[[], str], int, float]] = [
        (lambda: parts.chosen(right, other, rng), 1, 1.3),
        (lambda: parts.chosen(other, right, rng), 0, 1.3),
        (lambda: parts.other(right, other, rng), 0, 0.5),
        (lambda: rng.choice(parts.of["plain"]).format(X=right) + ".", 1, 0.6),
        (lambda: rng.choice(parts.of["plain"]).format(X=other) + ".", 0, 0.3),
        (lambda: rng.choice(parts.of["foreign_right"]).format(X=right, Y=other), 1, 0.08),
        (lambda: rng.choice(parts.of["foreign_right"]).format(X=other, Y=right), 0, 0.08),
        (lambda: rng.choice(parts.of["foreign_wrong"]).format(X=right, Y=other), 0, 0.08),
    ]
    for text, y, rate in make:
        if rng.random() < rate % 1 or rate >= 1:
            yield Row(f"{base.source}.worded", base.question, base.references, text(), y, test)
        if rate > 1 and rng.random() < rate - 1:
            yield Row(f"{base.source}.worded", base.question, base.references, text(), y, test)


def moved(bases: Sequence[Base], rng: random.Random) -> list[Row]:
    """Return numbers and years moved a little, beside the true ones."""
    frames = ["{}", "It was {}.", "The answer is {}.", "About {}.", "In {}", "{} in total"]
    rows = []
    for base in bases:
        text = base.references[0] if base.references else ""
        found = re.search(r"\d{1,9}", text)
        if not found or rng.random() > 0.7:
            continue
        step = rng.choice([-100, -10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 100])
        other = text[: found.start()] + str(abs(int(found[0]) + step)) + text[found.end() :]
        if words(other) in {words(r) for r in base.references}:
            continue
        for answer, y in ((other, 0), (text, 1)):
            said = rng.choice(frames).format(answer)
            rows.append(Row(f"{base.source}.moved", base.question, base.references, said, y))
    return rows


def named(bases: Sequence[Base], rng: random.Random) -> list[Row]:
    """Return names of people shortened, misspelt, or with another first name."""
    people = re.compile(r"[A-Z][a-zé-]{2,} (?:[A-Z]\.? |[A-Z][a-z]+ )?[A-Z][a-z-]{3,}")
    asked = [
        b
        for b in bases
        if re.match(r"(?i)who|name one person", b.question)
        and b.references
        and people.fullmatch(b.references[0])
    ]
    firsts = [b.references[0].split()[0] for b in asked]
    lasts = [b.references[0].split()[-1] for b in asked]
    rows = []
    for base in asked:
        parts = base.references[0].split()
        first, last = parts[0], parts[-1]
        at = rng.randrange(1, len(last) - 1)
        forms = [
            (last, 1),
            (f"{first[0]}. {last}", 1),
            (f"{last}, {first}", 1),
            (f"{first} {last[:at]}{last[at + 1 :]}", 1),
            (f"{rng.choice(firsts)} {last}", 0),
            (f"{first} {rng.choice(lasts)}", 0),
        ]
        for text, y in rng.sample(forms, 3):
            if not y and words(text) in {words(r) for r in base.references}:
                continue
            rows.append(Row(f"{base.source}.named", base.question, base.references, text, y))
    return rows


def _pairs(path: Path, test: str) -> list[Row]:
    with path.open() as file:
        table = list(csv.DictReader(file))
    return [
        Row(test, x["question"], [one], two, int(x["same"]), test)
        for x in table
        for one, two in ((x["a"], x["b"]), (x["b"], x["a"]))
    ]


def rows() -> list[Row]:
    """Return all rows, in a fixed order; questions kept for the report are in no other row."""
    rng = random.Random(SEED)
    nq, bases, kept = people()
    found, open_bases = open_questions(rng)
    graded, mace_bases = mace(rng)
    bases = [*bases, *open_bases, *rng.sample(mace_bases, 2400), *simple()]
    bases = [b for b in bases if words(b.question) not in kept]
    bases = [b._replace(references=[r for r in b.references if r and r.strip()]) for b in bases]
    made = worded(bases, Wordings("learned"), rng, "")
    made += worded(rng.sample(bases, 1500), Wordings("kept"), rng, "worded")
    made += worded(rng.sample(bases, 4000), Wordings("all"), rng, "all")
    made += moved(bases, rng) + named(bases, rng)
    others = [r for r in (*found, *graded, *nq301()) if words(r.question) not in kept]
    hard = _pairs(DATA / "semantics/hard_pairs.csv", "hard")
    hard += _pairs(Path(__file__).parents[1] / "tests/semantics/fresh_pairs.csv", "fresh")
    every = (
        r._replace(references=[x for x in r.references if x and x.strip()], answer=r.answer or "")
        for r in (*nq, *others, *made, *hard)
    )
    return [r for r in every if r.references]


def prompt(question: str, references: Sequence[str], answer: str) -> str:
    """Return what the judge reads; the last token's state is its verdict."""
    right = " | ".join(r.strip() for r in references if r.strip())
    return (
        f"Question: {question.strip()}\nRight: {right}\n"
        f"Given: {answer.strip()[:LONGEST]}\nSame meaning?"
    )


def main() -> None:
    """Write the rows and their tokens."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    settings = Gguf(Path(sys.argv[2])).settings
    read = Tokenizer(settings["tokenizer.ggml.tokens"], settings["tokenizer.ggml.merges"])
    counts: dict[tuple[str, str], list[int]] = defaultdict(list)
    with gzip.open(folder / "rows.jsonl.gz", "wt") as file:
        for row in rows():
            tokens = read(prompt(row.question, row.references[:8], row.answer))
            counts[row.source, row.test].append(row.right)
            file.write(json.dumps([*row, tokens]) + "\n")
    for (source, test), marks in sorted(counts.items()):
        print(f"{source:22}{test:8}{len(marks):7}{sum(marks) / len(marks):6.2f}")
    print(sum(map(len, counts.values())))


if __name__ == "__main__":
    main()
