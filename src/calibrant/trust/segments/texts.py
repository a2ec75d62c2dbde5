"""Groups of texts: by closeness of their vectors, named by typical words and by examples."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Array, Floats
from calibrant.core.errors import InputError
from calibrant.trust.linear import directions

_WORD = re.compile(r"[^\W\d_]{3,}")
_TYPICAL = 3
_EXAMPLES = 3
_ROWS_PER_GROUP = 150
_MOST_GROUPS = 16
_COMPONENTS = 20


@dataclass(frozen=True, slots=True)
class TextGroups:
    """Which group each row belongs to, and what the groups are about.

    Parameters
    ----------
    label
        Name of the group per row: its typical words, or its number where there are no texts.
    about
        Per label: typical words, up to three examples and the number of rows.
    """

    label: list[str]
    about: dict[str, dict[str, Any]]


def vector_matrix(column: pl.Series) -> Floats:
    """Return a column of vectors (embeddings, hidden states) as a matrix.

    Examples
    --------
    >>> vector_matrix(pl.Series("v", [[1.0, 2.0], [3.0, 4.0]])).shape
    (2, 2)
    """
    if not isinstance(column.dtype, pl.List | pl.Array):
        raise InputError(f"{column.name!r} holds {column.dtype}, not vectors of numbers")
    lengths = column.list.len() if isinstance(column.dtype, pl.List) else None
    if column.null_count() or (lengths is not None and lengths.n_unique() != 1):
        raise InputError(f"the vectors of {column.name!r} must all be there and of one length")
    matrix = np.asarray(column.to_list(), dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise InputError(f"the vectors of {column.name!r} must hold finite numbers")
    return matrix


def word_vectors(texts: Sequence[str], *, seed: int = 0) -> Floats:
    """Return vectors from the words alone, for tables without an embedding.

    Examples
    --------
    >>> word_vectors(["red green", "red blue", "old town", "new town"]).shape[0]
    4
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = TfidfVectorizer(stop_words="english", min_df=1, sublinear_tf=True).fit_transform(texts)
    width = min(_COMPONENTS, min(table.shape) - 1)
    if width < 1:
        raise InputError("the texts have too few different words to be grouped")
    return np.asarray(TruncatedSVD(width, random_state=seed).fit_transform(table))


def text_groups(
    vectors: Floats, texts: Sequence[str] | None = None, *, count: int | None = None, seed: int = 0
) -> TextGroups:
    """Group rows whose vectors are close; no outcome enters.

    Parameters
    ----------
    vectors
        One vector per row.
    texts
        Text per row, for names and examples.
    count
        Number of groups; by default one per 150 rows, from 2 to 16.
    seed
        Seed of the grouping.

    Examples
    --------
    >>> texts = ["capital of france", "capital of spain"] * 40 + ["seven plus two"] * 40
    >>> found = text_groups(word_vectors(texts), texts, count=2)
    >>> sorted(item["n"] for item in found.about.values())
    [40, 80]
    """
    from sklearn.cluster import KMeans

    points = directions(vectors)
    if count is None:
        count = min(_MOST_GROUPS, max(2, len(points) // _ROWS_PER_GROUP))
    count = min(count, len(np.unique(points.round(6), axis=0)))
    clusters = KMeans(count, n_init=4, random_state=seed).fit(points)
    code = clusters.labels_
    near = np.linalg.norm(points - clusters.cluster_centers_[code], axis=1)
    names = _names(code, texts, count)
    about = {}
    for number, name in enumerate(names):
        rows = np.flatnonzero(code == number)
        closest = rows[np.argsort(near[rows], kind="stable")]
        examples = [] if texts is None else list(dict.fromkeys(texts[row] for row in closest))
        words = [] if texts is None else name.split(", ")
        about[name] = {"words": words, "examples": examples[:_EXAMPLES], "n": len(rows)}
    return TextGroups([names[number] for number in code], about)


def _names(code: Array, texts: Sequence[str] | None, count: int) -> list[str]:
    """Name each group by the words that set it apart from the others."""
    if texts is None:
        return [f"cluster {number + 1}" for number in range(count)]
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    observed: dict[str, Floats] = {}
    sizes = np.bincount(code, minlength=count).astype(np.float64)
    for number, text in zip(code, texts, strict=True):
        for word in set(_WORD.findall(text.lower())) - ENGLISH_STOP_WORDS:
            observed.setdefault(word, np.zeros(count))[number] += 1
    names: list[str] = []
    for number in range(count):
        score = {word: _typical(counts, sizes, number) for word, counts in observed.items()}
        best = sorted(score, key=lambda word: (-score[word], word))[:_TYPICAL]
        name = ", ".join(best) or f"group {number + 1}"
        names.append(name if name not in names else f"{name}, group {number + 1}")
    return names


def _typical(counts: Floats, sizes: Floats, number: int) -> float:
    """Weigh how common a word is in the group by how much rarer it is elsewhere."""
    inside = (counts[number] + 0.5) / (sizes[number] + 1)
    others = (counts.sum() - counts[number] + 0.5) / (sizes.sum() - sizes[number] + 1)
    return float(inside * np.log(inside / others))
