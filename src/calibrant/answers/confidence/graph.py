"""Scores from a graph or kernel of similarities between sampled answers."""

from collections.abc import Callable, Iterator

import numpy as np

from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.answers.confidence.method import Options, register
from calibrant.answers.confidence.segments import sum_by
from calibrant.answers.confidence.text_words import rouge_matrices
from calibrant.core.arrays import Floats, Ints
from calibrant.core.errors import InputError

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
        value = _reduce(table, similarity_stacks(table, options), _small_eigenvalues)
    return np.minimum(value, -1.0)


def _small_eigenvalues(stack: Floats) -> Floats:
    values = np.linalg.eigvalsh(_laplacian(stack))
    return np.asarray(-np.maximum(0.0, 1.0 - values).sum(axis=1))


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
