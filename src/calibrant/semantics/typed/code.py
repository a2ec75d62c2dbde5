"""Pieces of code: the same where they read the same but for blanks, or parse to one tree."""

from __future__ import annotations

import ast
import re

from calibrant.semantics.typed.relation import Relation, Verdict

_LONGEST = 2000
_CODE = re.compile(
    r"[{};]\s{0,3}$|^\s{0,8}(?:def|return|import|for|while|if|function|var|let|const)\b[^\n]{0,80}[=(:]"
    r"|\bprint\(|\blambda\s\w|\bSELECT\s[^\n]{1,80}\sFROM\s|\w\[[^\]\n]{1,40}\]|=>|==|\w\.\w{1,30}\(",
    re.MULTILINE,
)
_TOKEN = re.compile(r"^[ \t]+|\w+|[^\w\s]", re.MULTILINE)
# Reading these makes Python print warnings of its own.
_NOISY = re.compile(r"\\|\d[A-Za-z_]")


def read_code(text: str) -> str | None:
    """Return the code without a fence, or None where the text does not look like code.

    Examples
    --------
    >>> read_code("y = x[0]"), read_code("Paris")
    ('y = x[0]', None)
    """
    plain = text.strip().strip("`").strip().rstrip(";")
    if len(plain) > _LONGEST or not _CODE.search(plain):
        return None
    return plain


def compare_code(a: str, b: str) -> Verdict:
    """Compare two pieces of code; other code may still do the same, so that stays in doubt.

    Examples
    --------
    >>> compare_code("x = [1,2]; y = x[0]", "x = [1, 2]; y = x[0]")[0].value
    'same'
    >>> compare_code("range(1, n) == m", "range(n, 1) == m")[0].value
    'unsure'
    """
    if _TOKEN.findall(a) == _TOKEN.findall(b):
        return Relation.SAME, "code"
    first, second = _tree(a), _tree(b)
    return (Relation.SAME if first and first == second else Relation.UNSURE), "code"


def _tree(text: str) -> str | None:
    if _NOISY.search(text):
        return None
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
