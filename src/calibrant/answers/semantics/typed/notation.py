"""Answers in notation: intervals, inequalities, lists, running times, formulas and code."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from calibrant.answers.semantics.typed.quantities import Relation, Verdict, decided

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_ENDS = re.compile(rf"([\[(])({_NUMBER}|-inf),({_NUMBER}|\+?inf)([\])])")
_BETWEEN = re.compile(rf"({_NUMBER})(<=?)[a-z](<=?)({_NUMBER})")
_ONE_SIDED = re.compile(rf"[a-z]([<>]=?)({_NUMBER})")
_RANGE = re.compile(
    r"(?:between|from)?\s?(\d+(?:\.\d+)?)\s?(?:-|to|and)\s?(\d+(?:\.\d+)?)\s?(%|[a-z]*)\.?"
)
_YEAR = re.compile(r"1\d\d\d|20\d\d")
_LISTED = re.compile(r"\s*([\[({])([^\[\](){}]*)([\])}])\s*\.?")
_CLASS = re.compile(r"\s*([OΘΩoω])\s?\((.{1,60})\)\s*\.?")
_ASKS_INTERVAL = re.compile(r"interval|range|between|domain|inequal", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends, whether each belongs to it, and the unit of a range in words."""

    low: float
    closed_low: bool
    high: float
    closed_high: bool
    unit: str = ""
    told_as_range: bool = False


def read_interval(text: str) -> Interval | None:
    """Read '[0, 1)', '0 < x <= 1', 'x > 3', 'between 10 and 12'."""
    plain = text.replace("≤", "<=").replace("≥", ">=").replace("∞", "inf").lower()
    tight = plain.replace("infinity", "inf").replace(" ", "").rstrip(".")
    if match := _ENDS.fullmatch(tight):
        return Interval(float(match[2]), match[1] == "[", float(match[3]), match[4] == "]")
    if match := _BETWEEN.fullmatch(tight):
        return Interval(float(match[1]), match[2] == "<=", float(match[4]), match[3] == "<=")
    if match := _ONE_SIDED.fullmatch(tight):
        end, closed = float(match[2]), match[1].endswith("=")
        if match[1][0] == ">":
            return Interval(end, closed, math.inf, False)
        return Interval(-math.inf, False, end, closed)
    match = _RANGE.fullmatch(plain.strip())
    if match is None or float(match[1]) >= float(match[2]) or _YEAR.fullmatch(match[1]):
        return None
    return Interval(float(match[1]), True, float(match[2]), True, match[3], told_as_range=True)


def compare_intervals(a: Interval, b: Interval, asked: str) -> Verdict | None:
    """Compare two intervals; two numbers in round or square brackets may be a list instead."""
    if a != b and not (a.told_as_range or b.told_as_range) and not _ASKS_INTERVAL.search(asked):
        both_lists = math.isfinite(a.low + a.high) and math.isfinite(b.low + b.high)
        if both_lists and a.closed_low == a.closed_high and b.closed_low == b.closed_high:
            return None
    return decided(a == b, "interval")


def read_listing(text: str) -> tuple[bool, tuple[str, ...]] | None:
    """Read a list in brackets: whether it is a set, and its entries."""
    match = _LISTED.fullmatch(text)
    if match is None or "," not in match[2]:
        return None
    return match[1] == "{", tuple(part.strip().strip("'\"").lower() for part in match[2].split(","))


def read_complexity(text: str) -> tuple[str, str] | None:
    """Read a class of running time: its letter and what is inside."""
    match = _CLASS.fullmatch(text)
    if match is None:
        return None
    inner = match[2].lower().replace("²", "^2").replace("³", "^3").replace("lg", "log")
    tight = re.sub(r"[\s*·{}\\]", "", inner.replace("**", "^"))
    # A constant factor changes no class; '2^n' is none.
    return match[1], re.sub(r"^\d+(?=[a-z])", "", tight)


_POINTS, _ENOUGH = 8, 3
_HIGHEST = 12.0
_SIGNS = str.maketrans({"−": "-", "·": "*", "×": "*", "÷": "/", "²": "^2", "³": "^3", " ": ""})
# '2^2 or 3^2' are two answers, not a product of o and r.
_SMALL_WORD = re.compile(r"\b(?:or|is|in|to|by|of|at|on|it|as|if|no|so|an|and)\b", re.I)
_FRAC = re.compile(r"\\d?frac\{([^{}]+)\}\{([^{}]+)\}")
_LEFT_SIDE = re.compile(r"^[a-zA-Z](?:\([a-z]\))?=")
_READABLE = re.compile(r"[a-zA-Z0-9+\-*/^().]+")
_TOKEN = re.compile(r"\d+(?:\.\d+)?|\.\d+|sqrt|sin|cos|tan|log|ln|exp|abs|pi|[a-zA-Z]|[-+*/^()]")
_NAMES = re.compile("sqrt|sin|cos|tan|log|ln|exp|abs|pi")
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "log": math.log,
    "ln": math.log, "exp": math.exp, "abs": abs,
}  # fmt: skip
_ROOTS = tuple(map(math.sqrt, (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)))


@dataclass(frozen=True, slots=True)
class Formula:
    """What a formula is worth for given letters, and its letters."""

    value: Callable[[Mapping[str, float]], float]
    letters: frozenset[str]


def read_formula(text: str) -> Formula | None:
    r"""Read a formula of letters, numbers and common functions; None where it is none."""
    if _SMALL_WORD.search(text):
        return None
    plain = text.strip().strip("$.").translate(_SIGNS)
    plain = _FRAC.sub(r"((\1)/(\2))", plain).replace("\\cdot", "*").replace("\\left", "")
    plain = plain.replace("\\right", "").replace("**", "^").replace("\\", "")
    plain = _LEFT_SIDE.sub("", plain.replace("{", "(").replace("}", ")"))
    if not re.search(r"[-+*/^]|\d[a-zA-Z(]|[a-z]\(", plain[1:]) or not _READABLE.fullmatch(plain):
        return None
    tokens = _TOKEN.findall(plain)
    letters = frozenset(token for token in tokens if len(token) == 1 and token.isalpha())
    # Words of other texts fall into single letters: a formula has few.
    # Without letters it may be a score or a range, unless a function is taken.
    if (
        not (letters or _NAMES.search(plain))
        or len(letters) > 6
        or re.search(r"[a-zA-Z]{3}", _NAMES.sub("", plain))
    ):
        return None
    try:
        tree = ast.parse(_as_python(tokens), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Formula(partial(_value, tree), letters)


def _as_python(tokens: list[str]) -> str:
    """Return the formula as Python writes it: what stands side by side is multiplied."""
    pieces: list[str] = []
    for token in tokens:
        before = pieces[-1] if pieces else ""
        if before in _FUNCTIONS and token != "(":
            if token in (*_PYTHON, *_FUNCTIONS, ")"):
                raise ValueError("a function of nothing")
            pieces += ["(", _operand(token), ")"]
            continue
        if before and before not in (*_FUNCTIONS, *_PYTHON, "(") and token not in (*_PYTHON, ")"):
            pieces.append("*")
        pieces.append(_operand(token))
    if tokens[-1] in _FUNCTIONS:
        raise ValueError("a function of nothing")
    return " ".join(_PYTHON.get(token, token) for token in pieces)


def _operand(token: str) -> str:
    return repr(float(token)) if token[0].isdigit() or token[0] == "." else token


def _value(node: ast.AST, place: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=float(number)):
            return number
        case ast.Name(id=name):
            return math.pi if name == "pi" else place[name]
        case ast.UnaryOp(op=op, operand=inner):
            return -_value(inner, place) if isinstance(op, ast.USub) else _value(inner, place)
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            return _FUNCTIONS[name](_value(inner, place))
        case ast.BinOp(left=left, op=op, right=right):
            return _SIGNED[type(op)](_value(left, place), _value(right, place))
    raise ValueError("no formula")


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > _HIGHEST:
        raise ValueError("the exponent is too large to compare")
    power = base**exponent
    if isinstance(power, complex):
        raise ValueError("a root of a negative number")
    return float(power)


_PYTHON = {"+": "+", "-": "-", "*": "*", "/": "/", "^": "**"}
_SIGNED: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}


def compare_formulas(a: Formula, b: Formula) -> Verdict:
    """Compare two formulas at some points; in doubt where too few of them can be worked out."""
    letters = sorted(a.letters | b.letters)
    agreed = 0
    for point in range(1, _POINTS + 1):
        # Multiples of roots of primes, no two of which stand in a simple ratio.
        place = {
            x: 0.5 + 2.0 * (point * root % 1.0) for x, root in zip(letters, _ROOTS, strict=False)
        }
        try:
            x, y = a.value(place), b.value(place)
        except (ArithmeticError, ValueError):
            continue
        if not math.isclose(x, y, rel_tol=1e-8, abs_tol=1e-9):
            return Relation.DIFFERENT, "formula"
        agreed += 1
    return (Relation.SAME if agreed >= _ENOUGH else Relation.UNSURE), "formula"


_CODE = re.compile(
    r"[{};]\s{0,3}$|^\s{0,8}(?:def|return|import|for|while|if|function|var|let|const)\b[^\n]{0,80}[=(:]"
    r"|\w\([^()\n]{0,40}\)\s?(?:[<>]=?|!=)\s?\w|\bprint\(|\blambda\s\w|\bSELECT\s[^\n]{1,80}\sFROM\s|\w\[[^\]\n]{1,40}\]|=>|==|\w\.\w{1,30}\(",
    re.MULTILINE,
)
_CODE_TOKEN = re.compile(r"^[ \t]+|\w+|[^\w\s]", re.MULTILINE)
# Reading these makes Python print warnings of its own.
_NOISY = re.compile(r"\\|\d[A-Za-z_]")


def read_code(text: str) -> str | None:
    """Return the code without a fence, or None where the text does not look like code."""
    plain = text.strip().strip("`").strip().rstrip(";")
    return plain if _CODE.search(plain) else None


def compare_code(a: str, b: str) -> Verdict:
    """Compare two pieces of code; other code may still do the same, so that stays in doubt."""
    both = [_CODE_TOKEN.findall(text) for text in (a, b)]
    if both[0] == both[1]:
        return Relation.SAME, "code"
    first, second = _tree(a), _tree(b)
    if first and first == second:
        return Relation.SAME, "code"
    # The same names with another order, figure or sign: a slip, and seldom another way to say it.
    same_names = [sorted(filter(str.isidentifier, tokens)) for tokens in both]
    return (Relation.DIFFERENT if same_names[0] == same_names[1] else Relation.UNSURE), "code"


def _tree(text: str) -> str | None:
    if _NOISY.search(text):
        return None
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
