"""Judge calls under a known error rate, and a storm of strings through every reader."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.core.rng import named_stream
from calibrant.semantics import (
    Docket,
    Grader,
    Normaliser,
    SimulatedJudge,
    cluster_answers,
    extract_answer,
    extract_letter,
    mask_instructions,
    not_attempted,
    pairwise_f1,
    parse_confidence,
    parse_stated,
    parse_top_k,
    parse_vote,
)
from calibrant.semantics.judging.judge import GradeQuery, SameQuery, WhichQuery
from calibrant.semantics.llm_judge import parse_reply
from calibrant.semantics.same.hybrid import Steps, greedy_pairwise, hybrid_steps, run_steps
from calibrant.semantics.text.dates import parse_date
from calibrant.semantics.text.encoding import clean_text
from calibrant.semantics.text.numbers import parse_quantity

METHODS: dict[str, Callable[[list[str]], Steps]] = {
    "greedy pairwise": lambda answers: greedy_pairwise(answers, question="q"),
    "hybrid, pairwise": lambda answers: hybrid_steps(answers, question="q", mode="pairwise"),
    "hybrid, which class": lambda answers: hybrid_steps(answers, question="q", mode="which"),
    "hybrid, confirmed (default)": lambda answers: hybrid_steps(answers, question="q"),
    "hybrid, one grouping call": lambda answers: hybrid_steps(answers, question="q", mode="group"),
}


def one_question(rng: np.random.Generator) -> tuple[list[str], list[int], dict[str, int]]:
    """50 draws of 5 meanings with Zipf frequencies; the 4 forms of a meaning share no word."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    forms = ["".join(rng.choice(letters, 8)) for _ in range(20)]
    frequencies = 1 / np.arange(1, 6)
    meaning = rng.choice(5, 50, p=frequencies / frequencies.sum())
    chosen = 4 * meaning + rng.integers(0, 4, 50)
    truth = {form: place // 4 for place, form in enumerate(forms)}
    return [forms[c] for c in chosen], [int(m) for m in meaning], truth


def compare_judging(
    *,
    questions: int = 500,
    errors: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2),
    compound: bool = True,
) -> list[list[Any]]:
    """Calls and F1 of each method, the judge erring at each rate."""
    rows: list[list[Any]] = []
    for error in errors:
        base = 0.0
        for name, steps in METHODS.items():
            calls, scores = [], []
            for number in range(questions):
                answers, meaning, truth = one_question(named_stream(number, "judging"))
                judge = SimulatedJudge(truth, error_rate=error, compound=compound, seed=number)
                found = run_steps([steps(answers)], Docket(judge))[0]
                calls.append(found.judge_calls)
                scores.append(pairwise_f1(found.ids, meaning))
            mean = float(np.mean(calls))
            base = base or mean
            spread = 1.96 * float(np.std(scores, ddof=1)) / np.sqrt(questions)
            rows.append(
                [
                    error,
                    name,
                    f"{mean:.1f}",
                    f"{mean / base:.3f}",
                    f"{np.mean(scores):.3f} ± {spread:.3f}",
                ]
            )
    return rows


_PIECES = [
    "\\boxed{", "}", "{", "<answer>", "</answer>", "Answer:", "answer is", "|", "0.92", "85%", "%",
    "Confidence:", "G1:", "P1:", "1.", "(B)", "A", "\n", "\t", "  ", "\u200b", "\ufeff", "\ud800",
    "\x00", "é", "ß", "İ", "ﬁ", "٣", "½", "²", "１２", "1,000", "1e999", "-", "−", "July 20, 1969",
    "99/99/9999", "one hundred and", "twenty-", "million", "th", "```json", "{\"answer\": ", "[1,",
    "null", "NaN", "inf", "I don't know", "CORRECT", "INCORRECT", "Ignore the above", "'", '"',
    "\\", "🙂", "\U0010ffff", "a" * 50, " " * 50, "((((", "))))", "*" * 20, "ÂÃâ€™", "0" * 30, ".",
    ",", ";",
]  # fmt: skip


# Pieces that, said often, made some pattern look at every part of the text again and again.
PUMPS = [
    "\n", " ", "\t", "A.", "A. ", "a", "A", "1", "1,000,", "1.", "(", "[", "{", "|", "-", ":", "*",
    '"', "<think>", "<thinking> ", "<answer>", "< ", "Answer: ", "answer is\n", "\nAnswer:",
    "confidence ", "confidence (", "| 0.9 ", "one ", "one hundred and ", "hundred ", "second ",
    "twenty-", "ignore ", "say ", "correct ", "you are ", "### ", "<|", "\\boxed{ ", "```json {",
    "```", "G1: 1 ", "1) ", "dr. ", "it is ", "the ", "july 20 ", "20 july ", "1969-", "1979-80 ",
    "12/12/", "1 000 ", "$1 ", "1e5", "not ", "republic of ", "united ", ". ", "!\n", "so, ",
    "option ", "about ", "in ", "0.", "and ", "& ", "ab ", "Ab ", "Ab, ", "é", "I ", "'s ",
    "\u00a0", "x=2 ", "\\frac{1}{2}", "50% ", "(a) ", "million ", "a|b ", "Jr., ",
]  # fmt: skip


def storm(count: int, seed: int = 0) -> list[str | bytes]:
    """Random and adversarial texts: pieces of every grammar, any characters, raw bytes."""
    rng = named_stream(seed, "storm")
    texts: list[str | bytes] = []
    for number in range(count):
        # Long texts of one piece are the dearest: one in forty.
        kind = number % 3 if number % 40 else 3
        if kind == 0:
            texts.append("".join(rng.choice(_PIECES, int(rng.integers(0, 12)))))
        elif kind == 1:
            points = rng.integers(0, 0x110000, int(rng.integers(0, 60)))
            texts.append("".join(map(chr, points)))
        elif kind == 2:
            texts.append(rng.integers(0, 256, int(rng.integers(0, 80)), dtype=np.uint8).tobytes())
        else:
            piece = str(rng.choice(_PIECES))
            texts.append(piece * int(rng.integers(1, 400)))
    return texts


def readers() -> dict[str, Callable[[str | bytes], Any]]:
    """Every function that meets raw text."""
    grader, plain = Grader(), Normaliser()
    code = "0" * 12

    def as_text(value: str | bytes) -> str:
        return clean_text(value)[0]

    return {
        "clean_text": clean_text,
        "extract_answer": extract_answer,
        "extract_answer, stated": lambda t: extract_answer(t, stated=True),
        "extract_answer, choice": lambda t: extract_answer(t, choices=["Rome", "Paris"]),
        "extract_letter": lambda t: extract_letter(as_text(t), ["a", "b"]),
        "parse_vote": parse_vote,
        "parse_stated": lambda t: parse_stated(as_text(t)),
        "parse_confidence": lambda t: parse_confidence(as_text(t)),
        "parse_top_k": lambda t: parse_top_k(as_text(t)),
        "not_attempted": lambda t: not_attempted(as_text(t)),
        "parse_quantity": lambda t: parse_quantity(as_text(t)),
        "parse_date": lambda t: parse_date(as_text(t)),
        "normalise": lambda t: plain(as_text(t)),
        "mask_instructions": lambda t: mask_instructions(as_text(t)),
        "parse_reply, grade": lambda t: parse_reply(GradeQuery("q", ("r",), "a"), as_text(t), code),
        "parse_reply, same": lambda t: parse_reply(SameQuery("q", "a", "b"), as_text(t), code),
        "parse_reply, which": lambda t: parse_reply(WhichQuery("q", "a", ("b",)), as_text(t), code),
        "grade": lambda t: grader.grade(t, ["Paris", "1,000", "July 20, 1969"]),
        "cluster_answers": lambda t: cluster_answers([as_text(t), "Paris", "1000"]),
    }


# A call costs this much whatever the text is; the limit per character counts what is above it.
FIXED_S = 1e-3


def run_storm(count: int, seed: int = 0, *, part: int = 50_000) -> list[list[Any]]:
    """Send the storm through every reader; any exception ends it.

    Returns rows of reader, texts, seconds, slowest text in ms, and the most microseconds per
    character that any text took beyond the fixed cost of a call.
    """
    totals = {name: [0.0, 0.0, 0.0] for name in readers()}
    for begin in range(0, count, part):
        texts = storm(min(part, count - begin), seed + begin)
        # New readers for each part: what they remember would hide their work.
        for name, read in readers().items():
            for text in texts:
                taken = _seconds(read, text)
                if taken > FIXED_S:
                    # Once more, with a reader that remembers nothing: a pause may not be its own.
                    taken = min(taken, _seconds(readers()[name], text))
                found = totals[name]
                found[0] += taken
                found[1] = max(found[1], taken)
                found[2] = max(found[2], (taken - FIXED_S) / max(1, len(text)))
    return [
        [name, count, f"{spent:.1f} s", f"{1e3 * slowest:.1f} ms", f"{1e6 * each:.1f} us"]
        for name, (spent, slowest, each) in totals.items()
    ]


def _seconds(read: Callable[[str | bytes], Any], text: str | bytes) -> float:
    begin = time.thread_time()
    read(text)
    return time.thread_time() - begin


def main() -> None:
    print("judge calls: error rate, method, calls, share of greedy, pairwise F1")
    for row in compare_judging():
        print("  ", *row)
    print("storm: reader, texts, time, slowest, most per character")
    for row in run_storm(100_000):
        print("  ", *row)
