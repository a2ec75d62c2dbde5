"""New methods against plain implementations of their papers' formulas, on three real models.

The references below know nothing of columns, units and segments: lists, loops and the formula.
The texts of tokens were not recorded, so that a text is cut into as many pieces as it has
log-probs: which pieces carry content does not matter for the comparison.
"""

import functools
import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from studies._confidence_tables import local_draws

from calibrant.answers.confidence import score_table
from calibrant.answers.semantics import annotate

EVERY = 12


def pieces(text: str, count: int) -> list[str]:
    """Cut a text into `count` pieces of nearly equal length."""
    edges = [round(place * len(text) / count) for place in range(count + 1)]
    return [text[a:b] for a, b in pairwise(edges)]


def pool_rows(data: Path) -> pl.DataFrame:
    """Every model's P(True) of every model's greedy answer, as verdicts on a pool."""
    verdicts = pl.read_parquet(data / "local_models" / "p_true.parquet")
    rows = []
    for row in verdicts.iter_rows(named=True):
        listed = [
            {"token": "True", "logprob": math.log(row["p_true_mass"])},
            {"token": "False", "logprob": math.log(row["p_false_mass"])},
        ]
        rows.append(
            {"question_id": row["question_id"], "model": row["judge"], "purpose": "p_true_pool",
             "text": "", "about": row["answer"], "temperature": 1.0,
             "first_token_top_logprobs": listed}
        )  # fmt: skip
    frame = pl.DataFrame(rows)
    return frame.with_columns(
        pl.int_range(pl.len()).over("question_id", "model").cast(pl.Int64).alias("draw")
    )


@pytest.fixture(scope="module")
def world(shared_data: Path):
    draws, questions = local_draws(shared_data)
    few = questions["question_id"].gather_every(EVERY).to_list()
    draws = draws.filter(pl.col("question_id").is_in(few))
    draws, semantics = annotate(draws, questions.filter(pl.col("question_id").is_in(few)))
    texts = [
        None if logs is None or not len(logs) else pieces(text, len(logs))
        for text, logs in draws.select("text", "token_logprobs").iter_rows()
    ]
    draws = draws.with_columns(pl.Series("token_texts", texts, dtype=pl.List(pl.String)))
    pool = pool_rows(shared_data).filter(pl.col("question_id").is_in(few))
    return pl.concat([draws, pool], how="diagonal"), semantics


@pytest.fixture(scope="module")
def units(world) -> dict[tuple[str, str], dict]:
    """Everything drawn for each question and model, as plain lists."""
    draws, semantics = world
    key = ["question_id", "model", "purpose", "draw"]
    rows = draws.join(semantics.select(*key, "class_id", "correct"), on=key, how="left")
    found: dict[tuple[str, str], dict] = {}
    for row in rows.sort(key).iter_rows(named=True):
        unit = found.setdefault(
            (row["question_id"], row["model"]), {"samples": [], "greedy": None, "pool": []}
        )
        if row["purpose"] == "answer":
            unit["samples"].append(row)
        elif row["purpose"] == "greedy":
            unit["greedy"] = row
        elif row["purpose"] == "p_true_pool":
            unit["pool"].append(row)
    return found


def said(row: dict) -> str:
    return row["answer"] if row["answer"] is not None else row["text"]


def lcs(a: list[str], b: list[str]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
            )
    return table[-1][-1]


@functools.cache
def rouge(a: str, b: str) -> float:
    first, second = re.findall(r"\w+", a.lower()), re.findall(r"\w+", b.lower())
    if not first or not second:
        return float(first == second)
    common = lcs(first, second)
    if common == 0:
        return 0.0
    recall, precision = common / len(first), common / len(second)
    return 2 * recall * precision / (recall + precision)


def similarity(unit: dict, kind: str) -> np.ndarray:
    rows = unit["samples"]
    if kind == "lexical":
        known: dict[tuple[str, str], float] = {}

        def alike(a: str, b: str) -> float:
            if (a, b) not in known:
                known[a, b] = known[b, a] = rouge(a, b)
            return known[a, b]

        return np.array([[alike(said(a), said(b)) for b in rows] for a in rows])
    return np.array(
        [[float(i == j or (a["class_id"] is not None and a["class_id"] == b["class_id"]))
          for j, b in enumerate(rows)] for i, a in enumerate(rows)]
    )  # fmt: skip


def likelihood(row: dict) -> float:
    return math.exp(sum(row["token_logprobs"]))


def ref_eigv(unit: dict) -> float:
    weights = similarity(unit, "lexical")
    degree = np.diag(weights.sum(axis=1) ** -0.5)
    laplacian = np.eye(len(weights)) - degree @ weights @ degree
    return -sum(max(0.0, 1.0 - value) for value in np.linalg.eigvalsh(laplacian))


def ref_lexical_similarity(unit: dict) -> float:
    matrix = similarity(unit, "lexical")
    size = len(matrix)
    return sum(matrix[i][j] for i in range(size) for j in range(i)) / (size * (size - 1) / 2)


def ref_lexical_similarity_greedy(unit: dict) -> float:
    return sum(rouge(said(r), said(unit["greedy"])) for r in unit["samples"]) / len(unit["samples"])


def ref_exact_match_greedy(unit: dict) -> float:
    own = re.findall(r"\w+", said(unit["greedy"]).lower())
    same = [re.findall(r"\w+", said(row).lower()) == own for row in unit["samples"]]
    return sum(same) / len(same)


def agrees(unit: dict) -> list[float]:
    own = unit["greedy"]["class_id"]
    return [float(row["class_id"] == own and own is not None) for row in unit["samples"]]


def ref_consistency_greedy(unit: dict) -> float:
    if unit["greedy"]["class_id"] is None:
        return math.nan
    return sum(agrees(unit)) / len(unit["samples"])


def supported(unit: dict, probability: list[float]) -> float:
    matrix = similarity(unit, "classes")
    logs = []
    for i, own in enumerate(probability):
        others = sum(matrix[i][j] * p for j, p in enumerate(probability) if j != i)
        logs.append(math.log(own + others / 0.001))
    return sum(logs) / len(logs)


def ref_sent_sar(unit: dict) -> float:
    return supported(unit, [likelihood(row) for row in unit["samples"]])


FUNCTION_WORDS = """
a an the of in on at to for and or is are was were be been by with from as it its this
that he she they his her their i you we my our your has have had do does did not no so if
then than there here
"""
SMALL = set(FUNCTION_WORDS.split())


def token_loss(row: dict) -> float:
    bare = [re.sub(r"[\W_]", "", token.lower()) for token in row["token_texts"]]
    kept = [p for word, p in zip(bare, row["token_logprobs"], strict=True)
            if word and word not in SMALL]  # fmt: skip
    kept = kept or list(row["token_logprobs"])
    return -sum(kept) / len(kept)


def ref_token_sar(unit: dict) -> float:
    return -sum(token_loss(row) for row in unit["samples"]) / len(unit["samples"])


def ref_sar(unit: dict) -> float:
    return supported(unit, [math.exp(-token_loss(row)) for row in unit["samples"]])


def cocoa(unit: dict, loss: float) -> float:
    if unit["greedy"]["class_id"] is None:
        return math.nan
    hits = agrees(unit)
    return -loss * sum(1.0 - hit for hit in hits) / len(hits)


def ref_cocoa_msp(unit: dict) -> float:
    return cocoa(unit, -sum(unit["greedy"]["token_logprobs"]))


def ref_cocoa_ppl(unit: dict) -> float:
    logs = unit["greedy"]["token_logprobs"]
    return cocoa(unit, -sum(logs) / len(logs))


def ref_semantic_density(unit: dict) -> float:
    if unit["greedy"]["class_id"] is None:
        return math.nan
    seen, near, total = set(), 0.0, 0.0
    for row, hit in zip(unit["samples"], agrees(unit), strict=True):
        if row["text"] in seen:
            continue
        seen.add(row["text"])
        weight = likelihood(row) ** (1 / len(row["token_logprobs"]))
        total += weight
        near += weight * hit
    return near / total


def ref_good_turing(unit: dict) -> float:
    counts = Counter(row["class_id"] for row in unit["samples"])
    return 1.0 - sum(count == 1 for count in counts.values()) / len(unit["samples"])


def ref_effective_answers(unit: dict) -> float:
    counts = Counter(row["class_id"] for row in unit["samples"]).values()
    total = sum(counts)
    return -math.exp(-sum(c / total * math.log(c / total) for c in counts))


def belief(row: dict) -> float:
    mass = {one["token"]: math.exp(one["logprob"]) for one in row["first_token_top_logprobs"]}
    return mass["True"] / (mass["True"] + mass["False"])


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.lower()).strip()


def ref_verified_mass(unit: dict) -> float:
    beliefs: dict[int, list[float]] = {}
    for row in unit["pool"]:
        kinds = {r["class_id"] for r in unit["samples"] if plain(said(r)) == plain(row["about"])}
        kinds.discard(None)
        for kind in kinds:
            beliefs.setdefault(kind, []).append(belief(row))
    counts = Counter(row["class_id"] for row in unit["samples"])
    total = sum(counts[kind] for kind in beliefs)
    if not total:
        return math.nan
    return sum(counts[kind] * np.mean(found) for kind, found in beliefs.items()) / total


QUESTION_LEVEL = {
    "lexical_similarity": ref_lexical_similarity,
    "sent_sar": ref_sent_sar,
    "token_sar": ref_token_sar,
    "sar": ref_sar,
    "good_turing": ref_good_turing,
    "effective_answers": ref_effective_answers,
    "verified_mass": ref_verified_mass,
}
ABOUT_GREEDY = {
    "lexical_similarity_greedy": ref_lexical_similarity_greedy,
    "exact_match_greedy": ref_exact_match_greedy,
    "consistency_greedy": ref_consistency_greedy,
    "cocoa_msp": ref_cocoa_msp,
    "cocoa_ppl": ref_cocoa_ppl,
    "semantic_density": ref_semantic_density,
}
REFERENCES = QUESTION_LEVEL | ABOUT_GREEDY


@pytest.fixture(scope="module")
def scored(world) -> pl.DataFrame:
    return score_table(*world, methods=list(REFERENCES)).scores


def compare(ours: pl.DataFrame, reference, units) -> int:
    found = {(r["question_id"], r["model"]): r["confidence"] for r in ours.iter_rows(named=True)}
    answered = {
        key for key, unit in units.items()
        if any(row["class_id"] is not None for row in unit["samples"])
    }  # fmt: skip
    checked = 0
    for key, unit in units.items():
        expected = reference(unit)
        if key not in found:
            assert math.isnan(expected) or key not in answered, key
            continue
        assert found[key] == pytest.approx(expected, abs=1e-9), key
        checked += 1
    return checked


@pytest.mark.parametrize("method", list(REFERENCES))
def test_row_by_row(method: str, scored: pl.DataFrame, units) -> None:
    ours = scored.filter(pl.col("method") == method)
    checked = compare(ours, REFERENCES[method], units)
    assert checked > (30 if method == "verified_mass" else 150)


def test_eigv_of_lexical_similarity_row_by_row(world, units) -> None:
    ours = score_table(*world, methods=["eigv"], similarity="lexical").scores
    assert compare(ours, ref_eigv, units) > 150


def test_panel_row_by_row(world, shared_data: Path) -> None:
    verdicts = pl.read_parquet(shared_data / "local_models" / "p_true.parquet")
    others = verdicts.filter(pl.col("judge") != pl.col("author")).with_columns(
        (pl.col("p_true_mass") / (pl.col("p_true_mass") + pl.col("p_false_mass"))).alias("p")
    )
    expected = {
        (q, m): (p, v)
        for q, m, p, v in others.group_by("question_id", "author")
        .agg(pl.col("p").mean(), (pl.col("p") > 0.5).mean().alias("v"))
        .iter_rows()
    }
    scores = score_table(*world, methods=["panel_mean", "panel_vote"]).scores
    assert scores.height > 300
    for row in scores.iter_rows(named=True):
        mean, vote = expected[row["question_id"], row["model"]]
        wanted = mean if row["method"] == "panel_mean" else vote
        assert row["confidence"] == pytest.approx(wanted, abs=1e-12)
