"""Words that carry no claim of their own."""

from __future__ import annotations

_FUNCTION_WORDS = frozenset({
    "a", "an", "the", "of", "in", "on", "at", "to", "for", "and", "or", "is",
    "are", "was", "were", "be", "been", "by", "with", "from", "as", "it", "its", "this",
    "that", "he", "she", "they", "his", "her", "their", "i", "you", "we", "my", "our",
    "your", "has", "have", "had", "do", "does", "did", "not", "no", "so", "if", "then",
    "than", "there", "here",
})  # fmt: skip


def is_function_word(word: str) -> bool:
    """Return whether a word (lower case, without marks) only ties others together.

    Examples
    --------
    >>> is_function_word("the"), is_function_word("lima")
    (True, False)
    """
    return word in _FUNCTION_WORDS
