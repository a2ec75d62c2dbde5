"""Formulas with the same value everywhere, and code that parses to one tree.

'(x+1)^2' and 'x^2+2x+1' are the same, and so are pieces of code that differ in blanks alone.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from calibrant.semantics.typed.relation import Relation, Verdict

_LONGEST, _POINTS, _ENOUGH = 80, 8, 3
_HIGHEST = 12.0
_SIGNS = str.maketrans({"−": "-", "·": "*", "×": "*", "÷": "/", "²": "^2", "³": "^3", " ": ""})
# '2^2 or 3^2' are two answers, not a product of o and r.
_SMALL_WORD = re.compile(r"\b(?:or|is|in|to|by|of|at|on|it|as|if|no|so|an|and)\b", re.I)
_FRAC = re.compile(r"\\d?frac\{([^{}]+)\}\{([^{}]+)\}")
_LEFT_SIDE = re.compile(r"^[a-zA-Z](?:\([a-z]\))?=")
_READABLE = re.compile(r"[a-zA-Z0-9+\-*/^().]+")
_TOKEN = re.compile(r"\d+(?:\.\d+)?|\.\d+|sqrt|sin|cos|tan|log|ln|exp|abs|pi|[a-zA-Z]|[-+*/^()]")
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "log": math.log,
    "ln": math.log, "exp": math.exp, "abs": abs,
}  # fmt: skip
_ROOTS = tuple(map(math.sqrt, (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)))
_Value = Callable[[Mapping[str, float]], float]


@dataclass(frozen=True, slots=True)
class Formula:
    """What a formula is worth for given letters, and its letters."""

    value: _Value
    letters: frozenset[str]


def read_formula(text: str) -> Formula | None:
    r"""Read a formula of letters, numbers and common functions; None where it is none.

    Examples
    --------
    >>> read_formula("y = 3x + 1").value({"x": 2.0}), read_formula(r"\frac{x}{2}").value({"x": 3.0})
    (7.0, 1.5)
    >>> read_formula("well-known") is None, read_formula("x") is None
    (True, True)
    """
    if len(text) > _LONGEST or _SMALL_WORD.search(text):
        return None
    plain = text.strip().strip("$.").translate(_SIGNS)
    plain = _FRAC.sub(r"((\1)/(\2))", plain).replace("\\cdot", "*").replace("\\left", "")
    plain = plain.replace("\\right", "").replace("**", "^").replace("\\", "")
    plain = _LEFT_SIDE.sub("", plain.replace("{", "(").replace("}", ")"))
    if not re.search(r"[-+*/^]|\d[a-zA-Z(]", plain[1:]) or not _READABLE.fullmatch(plain):
        return None
    tokens = _TOKEN.findall(plain)
    letters = frozenset(token for token in tokens if len(token) == 1 and token.isalpha())
    # Words of other texts fall into single letters: a formula has few.
    if not letters or len(letters) > 6 or re.search(r"[a-zA-Z]{3}", _without_functions(plain)):
        return None
    try:
        reader = _Reader(tokens)
        value = reader.sum()
    except (IndexError, ValueError, RecursionError):
        return None
    return Formula(value, letters) if reader.place == len(tokens) else None


def _without_functions(plain: str) -> str:
    return re.sub(r"sqrt|sin|cos|tan|log|ln|exp|abs|pi", "", plain)


class _Reader:
    """A recursive reader of sums, products and powers; letters side by side are multiplied."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.place = 0

    def _next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def _take(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1]

    def sum(self) -> _Value:
        value = self._product()
        while self._next() in ("+", "-"):
            value = _joined(self._take(), value, self._product())
        return value

    def _product(self) -> _Value:
        value = self._signed()
        while self._next() and self._next() not in "+-)":
            sign = self._take() if self._next() in ("*", "/") else "*"
            value = _joined(sign, value, self._signed())
        return value

    def _signed(self) -> _Value:
        if self._next() == "-":
            self._take()
            inner = self._signed()
            return lambda at: -inner(at)
        if self._next() == "+":
            self._take()
        return self._power()

    def _power(self) -> _Value:
        base = self._atom()
        if self._next() != "^":
            return base
        self._take()
        return _joined("^", base, self._signed())

    def _atom(self) -> _Value:
        token = self._take()
        if token == "(":
            value = self.sum()
            if self._take() != ")":
                raise ValueError("a bracket is not closed")
            return value
        if token in _FUNCTIONS:
            inner, function = self._atom(), _FUNCTIONS[token]
            return lambda at: function(inner(at))
        if token == "pi":
            return lambda _: math.pi
        if token.isalpha():
            return lambda at: at[token]
        number = float(token)
        return lambda _: number


def _joined(sign: str, left: _Value, right: _Value) -> _Value:
    def power(at: Mapping[str, float]) -> float:
        exponent = right(at)
        if abs(exponent) > _HIGHEST:
            raise ValueError("the exponent is too large to compare")
        found = left(at) ** exponent
        if isinstance(found, complex):
            raise ValueError("a root of a negative number")
        return float(found)

    signs: dict[str, _Value] = {
        "+": lambda at: left(at) + right(at),
        "-": lambda at: left(at) - right(at),
        "*": lambda at: left(at) * right(at),
        "/": lambda at: left(at) / right(at),
        "^": power,
    }
    return signs[sign]


def compare_formulas(a: Formula, b: Formula) -> Verdict:
    """Compare two formulas at some points; in doubt where too few of them can be worked out.

    Examples
    --------
    >>> compare_formulas(read_formula("(x+1)^2"), read_formula("x^2+2x+1"))[0].value
    'same'
    >>> compare_formulas(read_formula("a-b"), read_formula("b-a"))[0].value
    'different'
    """
    letters = sorted(a.letters | b.letters)
    agreed = 0
    for point in range(1, _POINTS + 1):
        # Multiples of roots of primes, no two of which stand in a simple ratio.
        at = {x: 0.5 + 2.0 * (point * root % 1.0) for x, root in zip(letters, _ROOTS, strict=False)}
        try:
            x, y = a.value(at), b.value(at)
        except (ArithmeticError, ValueError):
            continue
        if not math.isclose(x, y, rel_tol=1e-8, abs_tol=1e-9):
            return Relation.DIFFERENT, "formula"
        agreed += 1
    return (Relation.SAME if agreed >= _ENOUGH else Relation.UNSURE), "formula"


_LONGEST_CODE = 2000
_CODE = re.compile(
    r"[{};]\s{0,3}$|^\s{0,8}(?:def|return|import|for|while|if|function|var|let|const)\b[^\n]{0,80}[=(:]"
    r"|\bprint\(|\blambda\s\w|\bSELECT\s[^\n]{1,80}\sFROM\s|\w\[[^\]\n]{1,40}\]|=>|==|\w\.\w{1,30}\(",
    re.MULTILINE,
)
_CODE_TOKEN = re.compile(r"^[ \t]+|\w+|[^\w\s]", re.MULTILINE)
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
    if len(plain) > _LONGEST_CODE or not _CODE.search(plain):
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
    if _CODE_TOKEN.findall(a) == _CODE_TOKEN.findall(b):
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
