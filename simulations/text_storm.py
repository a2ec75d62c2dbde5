"""A storm of strings through every function that meets raw text: no crash, no slow input.

`CALIBRANT_REPEATS` says how many strings, `CALIBRANT_SEED` which. Results are kept by seed, and the
page is written from all of them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np
from benchmarks.harness import ROOT, machine, versions

from calibrant.answers.semantics import (
    Grader,
    Normaliser,
    cluster_answers,
    extract_answer,
    extract_letter,
    mask_instructions,
    not_attempted,
    parse_confidence,
    parse_stated,
    parse_top_k,
    parse_vote,
)
from calibrant.answers.semantics.judge import GradeQuery, Query, SameQuery, WhichQuery
from calibrant.answers.semantics.llm_judge import parse_replies
from calibrant.answers.semantics.text.normalise import clean_text
from calibrant.answers.semantics.text.numbers import parse_date
from calibrant.answers.semantics.typed import read_types
from calibrant.core.arrays import named_stream

RESULTS = ROOT / "simulations" / "storm_results"
# A call costs this much whatever the text is; the limit per character counts what is above it.
FIXED_S = 1e-3
LIMIT_S = 50e-6
"""Seconds per character that no text may take."""

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

    def reply_to(query: Query) -> Callable[[str | bytes], Any]:
        return lambda text: parse_replies([query], as_text(text), code)

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
        "read_types": lambda t: read_types(as_text(t)),
        "parse_date": lambda t: parse_date(as_text(t)),
        "normalise": lambda t: plain(as_text(t)),
        "mask_instructions": lambda t: mask_instructions(as_text(t)),
        "parse_reply, grade": reply_to(GradeQuery("q", ("r",), "a")),
        "parse_reply, same": reply_to(SameQuery("q", "a", "b")),
        "parse_reply, which": reply_to(WhichQuery("q", "a", ("b",))),
        "grade": lambda t: grader.grade(t, ["Paris", "1,000", "July 20, 1969"]),
        "cluster_answers": lambda t: cluster_answers([as_text(t), "Paris", "1000"]),
    }


class Found(TypedDict):
    """What one reader took for all texts."""

    texts: int
    seconds: float
    slowest_s: float
    per_character_s: float
    slowest_text: str


def run_storm(count: int, seed: int = 0, *, part: int = 50_000) -> dict[str, Found]:
    """Send the storm through every reader and return what each took; any exception ends it."""
    found = {
        name: Found(texts=0, seconds=0.0, slowest_s=0.0, per_character_s=0.0, slowest_text="")
        for name in readers()
    }
    for begin in range(0, count, part):
        texts = storm(min(part, count - begin), seed + begin)
        # New readers for each part: what they remember would hide their work.
        for name, read in readers().items():
            for text in texts:
                _add(found[name], text, _least_seconds(name, read, text))
    return found


def _add(found: Found, text: str | bytes, taken: float) -> None:
    found["texts"] += 1
    found["seconds"] += taken
    found["slowest_s"] = max(found["slowest_s"], taken)
    each = (taken - FIXED_S) / max(1, len(text))
    if each > found["per_character_s"]:
        found["per_character_s"], found["slowest_text"] = each, repr(text[:60])


def _least_seconds(name: str, read: Callable[[str | bytes], Any], text: str | bytes) -> float:
    """Return what a text takes; a pause of the machine or the collector is not its own."""
    taken = _seconds(read, text)
    tries = 0
    while taken > FIXED_S and tries < (5 if taken - FIXED_S > LIMIT_S * len(text) else 1):
        taken = min(taken, _seconds(readers()[name], text))
        tries += 1
    return taken


def _seconds(read: Callable[[str | bytes], Any], text: str | bytes) -> float:
    begin = time.thread_time()
    read(text)
    return time.thread_time() - begin


def merged() -> tuple[dict[str, Found], int]:
    """Return the results of all seeds together, and how many texts they hold."""
    total: dict[str, Found] = {}
    for path in sorted(RESULTS.glob("*.json")):
        for name, one in json.loads(path.read_text(encoding="utf-8")).items():
            held = total.setdefault(name, {**one, "texts": 0, "seconds": 0.0})
            held["texts"] += one["texts"]
            held["seconds"] += one["seconds"]
            held["slowest_s"] = max(held["slowest_s"], one["slowest_s"])
            if one["per_character_s"] > held["per_character_s"]:
                held["per_character_s"] = one["per_character_s"]
                held["slowest_text"] = one["slowest_text"]
    return total, min((one["texts"] for one in total.values()), default=0)


def main() -> None:
    count, seed = (
        int(os.environ.get("CALIBRANT_REPEATS", "20000")),
        os.environ.get("CALIBRANT_SEED"),
    )
    RESULTS.mkdir(exist_ok=True)
    start = int(seed or 0)
    path = RESULTS / f"{start}.json"
    path.write_text(json.dumps(run_storm(count, start), indent=1) + "\n", encoding="utf-8")
    total, texts = merged()
    lines = [
        "# A storm of strings",
        "",
        f"Written by `python -m simulations text_storm` on {machine()}; {versions(['numpy'])}. "
        f"{texts:,} random and adversarial texts (pieces of every grammar, any characters, raw "
        "bytes, one piece said up to 400 times) went through every function that meets raw text. "
        "None raised anything. The last column is the most that any text took per character, "
        f"beyond {1e3 * FIXED_S:g} ms for the call itself; the limit is {1e6 * LIMIT_S:g} us.",
        "",
        "| reader | texts | seconds | slowest text, ms | most per character, us |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, one in total.items():
        each = f"{1e6 * one['per_character_s']:.1f}"
        lines.append(
            f"| {name} | {one['texts']:,} | {one['seconds']:.0f} | "
            f"{1e3 * one['slowest_s']:.1f} | {each} |"
        )
        print(lines[-1], one["slowest_text"], flush=True)
    page = ROOT / "docs" / "simulations" / "text_storm.md"
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
