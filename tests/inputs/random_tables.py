"""Tables with neutral, reversed and misleading names: how often are they read wrong in silence?

`python -m tests.inputs.random_tables 1000` prints how tables fare through the product.
"""

import sys
from collections import Counter

import numpy as np
import polars as pl

from calibrant.core.errors import InputError, QuestionError
from calibrant.data import load_scores

N = 540
SAID = {
    "share": "confidence conf prob p_correct verbalized_confidence certainty model_conf score "
    "self_rating likelihood probability Sicherheit msp answer_confidence p_true conf_score",
    "percent": "confidence confidence_pct conf_percent certainty how_confident said",
    "unsure": "uncertainty doubt",
    "sign": "confidence stated conf",
    "neutral": "score signal value",
}
GRADED = {
    "right": "correct is_correct right passed label score01 acc outcome em match judgement y "
    "graded_ok result success win",
    "wrong": "error is_wrong hallucinated failed incorrect has_error",
    "neutral": "label flag status y target class result",
}
WORDS = [("CORRECT", "INCORRECT"), ("pass", "fail"), ("right", "wrong")]
OTHERS = {
    "latency_s": lambda r, p, a, g: r.random(N) * 5,
    "temperature": lambda r, p, a, g: np.full(N, 0.3),
    "top_p": lambda r, p, a, g: np.full(N, 0.9),
    "retrieval_score": lambda r, p, a, g: r.random(N).round(3),
    "is_multihop": lambda r, p, a, g: (r.random(N) < 0.4).astype(int),
    "cached": lambda r, p, a, g: r.random(N) < 0.2,
    "parse_ok": lambda r, p, a, g: r.random(N) < 0.97,
    "tokens": lambda r, p, a, g: r.integers(10, 900, N),
    "difficulty": lambda r, p, a, g: r.choice(["easy", "hard"], N),
    "num_choices": lambda r, p, a, g: r.integers(4, 6, N),
    "year": lambda r, p, a, g: r.integers(2020, 2026, N),
    "similarity": lambda r, p, a, g: r.random(N).round(4),
    "has_image": lambda r, p, a, g: r.random(N) < 0.5,
    "cost": lambda r, p, a, g: r.random(N) / 100,
    "abstained": lambda r, p, a, g: r.random(N) < 0.05,
    "auto_accepted": lambda r, p, a, g: p > 0.85,
    "judge_confidence": lambda r, p, a, g: r.choice([0.8, 0.9, 1.0], N),
    "seed": lambda r, p, a, g: np.full(N, 7),
    "answer": lambda r, p, a, g: a,
    "gold": lambda r, p, a, g: g,
    "predicted": lambda r, p, a, g: a,
    "correct_answer": lambda r, p, a, g: g,
    "format_ok": lambda r, p, a, g: r.random(N) < 0.9,
    "topic": lambda r, p, a, g: r.choice(list("xyz"), N),
    "verified": lambda r, p, a, g: r.random(N) < 0.3,
    "valid": lambda r, p, a, g: r.random(N) < 0.95,
    "relevance": lambda r, p, a, g: r.random(N).round(2),
}


def random_table(rng):
    """Return a table, whether it can be read at all, and the right share and mean confidence."""
    said = rng.choice([0.35, 0.55, 0.7, 0.8, 0.85, 0.9, 0.92, 0.95, 0.98, 0.99], N)
    right = rng.random(N) < np.clip(said + 0.02, 0, 1)
    answer = rng.choice(list("ABCD"), N)
    other = np.array([rng.choice([c for c in "ABCD" if c != a]) for a in answer])
    gold = np.where(right, answer, other)
    kind, sense = rng.choice(list(SAID)), rng.choice(list(GRADED))
    drop = rng.random()
    columns = {"id": np.arange(N)} if rng.random() < 0.8 else {}
    if drop > 0.08:
        columns[rng.choice(SAID[kind].split())] = _said(kind, said)
    if drop < 0.92:
        columns[rng.choice(GRADED[sense].split())] = _graded(rng, sense, right)
    for name in rng.choice(list(OTHERS), rng.integers(0, 8), replace=False):
        columns.setdefault(name, OTHERS[name](rng, said, answer, gold))
    pair = {"answer", "predicted"} & {*columns} and {"gold", "correct_answer"} & {*columns}
    readable = drop > 0.08 and (drop < 0.92 or bool(pair))
    order = rng.permutation(list(columns))
    return pl.DataFrame({name: columns[name] for name in order}), readable, right, said


def _said(kind, said):
    return {
        "share": said,
        "percent": (said * 100).round().astype(int),
        "sign": np.array([f"{x * 100:.0f}%" for x in said]),
    }.get(kind, (1 - said).round(3))


def _graded(rng, sense, right):
    out = right if sense == "right" else ~right
    form = rng.choice(["01", "truth", "yes", "words"])
    if form == "words" and sense == "right":
        return np.where(out, *WORDS[rng.integers(3)])
    if form == "truth":
        return out
    return np.where(out, "yes", "no") if form == "yes" else out.astype(int)


def _is_right(frame, options, right, said):
    scores = load_scores(frame, **options, ranks=True).frame
    ranked = options.get("scale", "").startswith("rank")
    return all(
        abs(part["correct"].mean() - right.mean()) < 0.01
        and (ranked or abs(part["confidence"].mean() - said.mean()) < 0.02)
        for part in scores.partition_by("method")
    )


def fared(frame, readable, right, said):
    """Return how a table fares, and the reading or the question."""
    try:
        good = _is_right(frame, {}, right, said) and readable
    except QuestionError as question:
        ways = [dict(way.options) for way in question.readings]
        first = _is_right(frame, ways[0], right, said)
        if not readable:
            return "needless question", str(question)
        if first:
            return "good question", ""
        good = any(_is_right(frame, way, right, said) for way in ways[1:])
        return "second of a question" if good else "bad question", str(question)
    except InputError as error:
        return ("refused wrongly" if readable else "refused rightly"), str(error)
    return ("right at once", "") if good else ("WRONG SILENTLY", "")


def count(tables, seed=0):
    """Return how many tables fare how, and the columns of those that fare badly."""
    kinds, bad = Counter(), []
    for run in range(tables):
        table = random_table(np.random.default_rng([seed, run]))
        kind, why = fared(*table)
        kinds[kind] += 1
        if kind in ("WRONG SILENTLY", "refused wrongly", "bad question"):
            bad.append((run, kind, table[0].columns, why))
    return kinds, bad


if __name__ == "__main__":
    how, badly = count(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(dict(how))  # noqa: T201
    for line in badly[:40]:
        print(*line)  # noqa: T201
