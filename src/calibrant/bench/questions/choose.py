"""Which of the candidates become questions: no duplicates, spread over what there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.bench.questions.question import Question, normalised
from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean

STRATA = ("ngrams", "sentence", "random")
Embed = Callable[[Sequence[str]], npt.NDArray[Any]]


def without_duplicates(questions: Sequence[Question]) -> tuple[list[Question], dict[str, int]]:
    """Return the questions without repetitions, and how many were exact or near duplicates.

    Near duplicates differ only in case, accents, punctuation or a leading article.
    """
    texts: set[str] = set()
    forms: set[str] = set()
    kept = []
    dropped = {"exact duplicate": 0, "near duplicate": 0}
    for question in questions:
        form = normalised(question.text)
        if question.text in texts:
            dropped["exact duplicate"] += 1
        elif form in forms:
            dropped["near duplicate"] += 1
        else:
            kept.append(question)
        texts.add(question.text)
        forms.add(form)
    return kept, {reason: count for reason, count in dropped.items() if count}


def choose(
    candidates: Sequence[Question],
    count: int,
    *,
    strata: str,
    embed: Embed | None = None,
    rng: np.random.Generator,
) -> list[Question]:
    """Return `count` of the candidates, or all when there are no more.

    Parameters
    ----------
    candidates
        Questions of one domain and k.
    count
        How many to keep.
    strata
        ``sentence``: k-means with `count` clusters over sentence embeddings, the candidate
        nearest to each centre. ``ngrams``: the same over character n-grams, which needs no
        further package. ``random``: a simple random sample.
    embed
        Texts to unit vectors, for ``sentence``.
    rng
        Source of randomness.
    """
    if strata not in STRATA:
        raise InputError(f"unknown strata {strata!r}", hint=did_you_mean(strata, list(STRATA)))
    if len(candidates) <= count:
        return list(candidates)
    if strata == "random":
        kept = np.sort(rng.choice(len(candidates), size=count, replace=False))
    else:
        texts = [question.text for question in candidates]
        if strata == "sentence":
            if embed is None:
                raise InputError("strata 'sentence' needs an embedder")
            vectors = embed(texts)
        else:
            vectors = _ngram_vectors(texts)
        kept = _nearest_to_centres(np.asarray(vectors, dtype=np.float64), count, rng)
    return [candidates[index] for index in kept]


def _ngram_vectors(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    from sklearn.feature_extraction.text import HashingVectorizer

    counts = HashingVectorizer(n_features=256, analyzer="char_wb", ngram_range=(3, 3))
    vectors: npt.NDArray[np.float64] = counts.transform(texts).toarray()
    return vectors


def _nearest_to_centres(
    vectors: npt.NDArray[np.float64], count: int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Return `count` distinct rows: for every cluster the row nearest to its centre."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import pairwise_distances
    from threadpoolctl import threadpool_limits

    seed = int(rng.integers(2**31))
    clusters = min(count, len(np.unique(vectors.round(9), axis=0)))
    # One thread: sums in another order would make other clusters of the same seed.
    with threadpool_limits(limits=1):
        model = KMeans(clusters, init="random", n_init=1, max_iter=50, random_state=seed)
        model.fit(vectors)
        distance = pairwise_distances(vectors, model.cluster_centers_)
    own = distance[np.arange(len(vectors)), model.labels_]
    order = np.lexsort((np.arange(len(vectors)), own))
    _, first = np.unique(model.labels_[order], return_index=True)
    nearest = order[first]
    # Fewer clusters than questions (candidates with equal vectors): fill by distance.
    rest = order[~np.isin(order, nearest)][: count - len(nearest)]
    return np.sort(np.concatenate([nearest, rest]))
