"""How alike answers are: in their words (ROUGE-L), and in graphs and kernels of similarities."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from calibrant.answers.confidence.columns import ratio, sum_by
from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.answers.confidence.frequency import greedy_agreement
from calibrant.answers.confidence.method import Options, register
from calibrant.core.arrays import Floats, Ints
from calibrant.core.errors import InputError

_WORD = re.compile(r"\w+")
_MARKS = re.compile(r"[\W_]+")
_MOST_WORDS = 20_000
"""Words of a text that are compared: time and memory grow with their square."""


@lru_cache(maxsize=1 << 16)
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, up to 20,000."""
    return tuple(_WORD.findall(text.lower())[:_MOST_WORDS])


def rouge_l(a: str, b: str) -> float:
    """Return the F1 form of ROUGE-L, in [0, 1]; two texts without words are the same.

    Examples
    --------
    >>> rouge_l("the cat sat", "the cat ran away")
    0.5714285714285714
    """
    first, second = words(a), words(b)
    return _likeness(_masks(first), first, second)


def _masks(sequence: Sequence[str]) -> dict[str, int]:
    masks: dict[str, int] = {}
    for place, word in enumerate(sequence):
        masks[word] = masks.get(word, 0) | (1 << place)
    return masks


def _likeness(masks: dict[str, int], first: Sequence[str], second: Sequence[str]) -> float:
    """Return ROUGE-L of two lists of words; `masks` are those of the first one."""
    if not first or not second:
        return float(first == second)
    # The length of the longest common subsequence, all places of `masks` at once.
    full = free = (1 << len(first)) - 1
    for word in second:
        hit = free & masks.get(word, 0)
        free = ((free + hit) | (free - hit)) & full
    return 2.0 * (len(first) - free.bit_count()) / (len(first) + len(second))


def texts_of(block: DrawBlock) -> list[str]:
    """Return the answers of a block as texts."""
    return block.answer.fill_null("").to_list()


def texts_by_unit(block: DrawBlock) -> Iterator[tuple[int, list[str]]]:
    """Yield each unit that has draws with their texts."""
    texts = texts_of(block)
    for unit in np.flatnonzero(block.count > 0).tolist():
        start = int(block.first[unit])
        yield unit, texts[start : start + int(block.count[unit])]


def rouge_matrices(block: DrawBlock) -> Iterator[tuple[Ints, Floats]]:
    """Yield each unit with the matrix of ROUGE-L between its draws."""
    for unit, texts in texts_by_unit(block):
        yield np.array([unit]), _matrix(texts)[None]


def _matrix(texts: Sequence[str]) -> Floats:
    codes: dict[tuple[str, ...], int] = {}
    place = np.array([codes.setdefault(words(text), len(codes)) for text in texts])
    kinds = list(codes)
    masks = [_masks(kind) for kind in kinds]
    small = np.eye(len(kinds))
    for i, kind in enumerate(kinds):
        for j in range(i):
            small[i, j] = small[j, i] = _likeness(masks[i], kind, kinds[j])
    return np.asarray(small[np.ix_(place, place)])


def rouge_with(block: DrawBlock, targets: Sequence[str | None]) -> Floats:
    """Return ROUGE-L of each draw with its unit's target text; NaN where there is no target."""
    scores = np.full(len(block), np.nan)
    for row, (unit, text) in enumerate(zip(block.unit, texts_of(block), strict=True)):
        target = targets[unit]
        if target is not None:
            scores[row] = rouge_l(text, target)
    return scores


_FUNCTION_WORDS = frozenset({
    "a", "an", "the", "of", "in", "on", "at", "to", "for", "and", "or", "is",
    "are", "was", "were", "be", "been", "by", "with", "from", "as", "it", "its", "this",
    "that", "he", "she", "they", "his", "her", "their", "i", "you", "we", "my", "our",
    "your", "has", "have", "had", "do", "does", "did", "not", "no", "so", "if", "then",
    "than", "there", "here",
})  # fmt: skip


def bare_word(token: str | None) -> str:
    """Return the letters of a token in lower case, without marks and blanks."""
    return _MARKS.sub("", (token or "").replace("▁", "").lower())


def is_function_word(word: str) -> bool:
    """Return whether a word (lower case, without marks) only ties others together.

    Examples
    --------
    >>> is_function_word("the"), is_function_word("lima")
    (True, False)
    """
    return word in _FUNCTION_WORDS


def mean_by_unit(block: DrawBlock, values: Floats) -> Floats:
    """Return the mean of the draws' values per unit; a NaN makes its unit NaN."""
    return ratio(sum_by(block.unit, values, block.n_units), block.count)


def greedy_texts(table: DrawTable) -> list[str | None]:
    """Return the greedy answer of each unit, None where there is none."""
    texts = texts_of(table.greedy)
    return [texts[row] if row >= 0 else None for row in table.greedy.first]


@register
def lexical_similarity(table: DrawTable, _: Options) -> Floats:
    """Mean over pairs of different draws; undefined for one draw."""
    block = table.samples
    value = np.full(len(table), np.nan)
    for units, stack in rouge_matrices(block):
        size = stack.shape[1]
        if size > 1:
            value[units] = (stack.sum(axis=(1, 2)) - size) / (size * (size - 1))
    return value


@register
def lexical_similarity_greedy(table: DrawTable, _: Options) -> Floats:
    """Mean lexical similarity with the greedy answer, about the greedy answer."""
    values = rouge_with(table.samples, greedy_texts(table))
    return mean_by_unit(table.samples, values)


@register
def exact_match_greedy(table: DrawTable, _: Options) -> Floats:
    """Share of draws that have the greedy answer's words, case and marks aside."""
    block, targets = table.samples, greedy_texts(table)
    pairs = zip(block.unit, texts_of(block), strict=True)
    equal = [float(words(text) == words(targets[unit] or "")) for unit, text in pairs]
    return mean_by_unit(block, np.array(equal, dtype=np.float64))


@register
def consistency_greedy(table: DrawTable, _: Options) -> Floats:
    """Agreement of the samples with the greedy answer, about the greedy answer."""
    return greedy_agreement(table)


# Eigenvectors of the graph Laplacian with eigenvalues below this are kept.
_ECCENTRICITY_CUT = 0.9
_BATCH_CELLS = 4_000_000  # cells of the matrices decomposed at once: 32 MB


@register
def degree_matrix(table: DrawTable, options: Options) -> Floats:
    """Trace of the degree matrix over the squared number of draws.

    With similarities from classes this is the chance that two draws, taken with replacement,
    mean the same.
    """
    block = table.samples
    if options.similarity == "classes":
        classes = block.classes
        share = classes.count / classes.total[classes.unit]
        return sum_by(classes.unit, share**2, len(table))
    return _reduce(table, similarity_stacks(table, options), lambda stack: stack.mean(axis=(1, 2)))


@register
def eccentricity(table: DrawTable, options: Options) -> Floats:
    """Minus the norm of the centred eigenvectors of the graph Laplacian below the cut.

    With similarities from K classes the graph has K components and the norm is exactly
    sqrt(K - 1), however the draws are shared out.
    """
    if options.similarity == "classes":
        counts = np.bincount(table.samples.classes.unit, minlength=len(table))
        return np.asarray(-np.sqrt(np.maximum(counts - 1.0, 0.0)))
    return _reduce(table, similarity_stacks(table, options), _spread)


@register
def kernel_language_entropy(table: DrawTable, _: Options) -> Floats:
    """Von Neumann entropy of the unit-trace linear kernel of unit-length embeddings, as exp(-H).

    One-hot embeddings give the discrete semantic entropy.
    """

    def entropy(stack: Floats) -> Floats:
        values = np.linalg.eigvalsh(stack / np.trace(stack, axis1=1, axis2=2)[:, None, None])
        positive = np.where(values > 0, values, 1.0)
        exponent: Floats = np.sum(positive * np.log(positive), axis=1)
        return np.exp(exponent)

    return np.minimum(_reduce(table, _cosines(table.samples, floor=False), entropy), 1.0)


@register
def eigv(table: DrawTable, options: Options) -> Floats:
    """Minus the sum of max(0, 1 - eigenvalue) of the normalised graph Laplacian.

    With similarities from K classes each class is a component with one eigenvalue 0 and the
    others 1, so the sum is exactly K.
    """
    if options.similarity == "classes":
        counts = np.bincount(table.samples.classes.unit, minlength=len(table))
        value = -counts.astype(np.float64)
    else:
        value = _reduce(
            table,
            similarity_stacks(table, options),
            lambda stack: -np.maximum(0.0, 1.0 - np.linalg.eigvalsh(_laplacian(stack))).sum(axis=1),
        )
    return np.minimum(value, -1.0)


def _laplacian(stack: Floats) -> Floats:
    scale = 1.0 / np.sqrt(stack.sum(axis=2))
    return np.asarray(np.eye(stack.shape[1]) - stack * scale[:, :, None] * scale[:, None, :])


def _spread(stack: Floats) -> Floats:
    values, vectors = np.linalg.eigh(_laplacian(stack))
    mask = vectors * (values < _ECCENTRICITY_CUT)[:, None, :]
    centred = mask - mask.mean(axis=1, keepdims=True)
    spread: Floats = np.sqrt(np.sum(centred**2, axis=(1, 2)))
    return -spread


Stacks = Iterator[tuple[Ints, Floats]]


def similarity_stacks(table: DrawTable, options: Options) -> Stacks:
    """Yield units with their (draws, draws) similarities, as the options choose them."""
    if options.similarity == "classes":
        return _equal_classes(table.samples)
    if options.similarity == "embeddings":
        return _cosines(table.samples, floor=True)
    if options.similarity == "lexical":
        return rouge_matrices(table.samples)
    return _given(table)


def _equal_classes(block: DrawBlock) -> Stacks:
    """Yield 1 for draws of one meaning, 0 for others; a draw without an answer equals itself."""
    classes = np.where(block.class_id >= 0, block.class_id, -2 - np.arange(len(block)))
    for units, size in _batches(block.count):
        kinds = classes[block.first[units][:, None] + np.arange(size)]
        yield units, (kinds[:, :, None] == kinds[:, None, :]).astype(np.float64)


def _reduce(table: DrawTable, stacks: Stacks, reduce: Callable[[Floats], Floats]) -> Floats:
    value = np.full(len(table), np.nan)
    for units, stack in stacks:
        value[units] = reduce(stack)
    return value


def _batches(sizes: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield units with equally many draws, and how many these are; units with none are left out."""
    for size in np.unique(sizes[sizes > 0]).tolist():
        units, step = np.flatnonzero(sizes == size), max(1, _BATCH_CELLS // size**2)
        for start in range(0, units.size, step):
            yield units[start : start + step], size


def _cosines(block: DrawBlock, *, floor: bool) -> Stacks:
    """Yield cosine matrices of units with equally many draws, in batches."""
    if block.embedding is None:
        return
    norm = np.linalg.norm(block.embedding, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit_length = block.embedding / norm
    whole = block.complete(unit_length.sum(axis=1))
    for units, size in _batches(np.where(whole, block.count, 0)):
        rows = block.first[units][:, None] + np.arange(size)
        stack = np.einsum("bid,bjd->bij", unit_length[rows], unit_length[rows], optimize=True)
        yield units, np.maximum(stack, 0.0) if floor else stack


def _given(table: DrawTable) -> Stacks:
    """Yield given similarity matrices of equal size, in batches."""
    if table.similarity is None:
        return
    sizes = np.array([0 if matrix is None else len(matrix) for matrix in table.similarity])
    for units, _ in _batches(sizes):
        stack = np.stack([table.similarity[unit] for unit in units])
        if not ((stack >= 0.0) & (stack <= 1.0)).all():
            raise InputError("similarities lie in [0, 1]", source="similarity")
        # Entailment of one answer by another need not hold the other way round.
        yield units, (stack + stack.transpose(0, 2, 1)) / 2.0
