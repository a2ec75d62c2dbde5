"""Words of answers: which carry a claim, and how alike answers are in them (ROUGE-L)."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from calibrant.answers.confidence.compact import DrawBlock, DrawTable
from calibrant.answers.confidence.frequency import greedy_agreement
from calibrant.answers.confidence.method import Options, register
from calibrant.answers.confidence.segments import ratio, sum_by
from calibrant.core.arrays import Floats, Ints

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
