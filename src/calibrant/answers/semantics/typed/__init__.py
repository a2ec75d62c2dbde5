"""Answers of a type that says by itself what is equal: numbers, eras, lists, formulas, code, ...

`read_types` reads a text once, `compare_types` compares two readings by the first type that both
have. Classes and grades use the same comparison. Where a type does not decide, the relation is
UNSURE and the grade doubtful.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calibrant.answers.semantics.typed.notation import (
    Interval,
    compare_code,
    compare_complexities,
    compare_formulas,
    compare_intervals,
    compare_listings,
    inside,
    read_code,
    read_complexity,
    read_formula,
    read_interval,
    read_listing,
)
from calibrant.answers.semantics.typed.quantities import (
    Quantity,
    compare_eras,
    compare_numerals,
    compare_quantities,
    read_era,
    read_numeral,
    read_quantity,
    year_without_era,
)
from calibrant.answers.semantics.typed.wording import Relation as Relation
from calibrant.answers.semantics.typed.wording import Verdict as Verdict
from calibrant.answers.semantics.typed.wording import (
    compare_sentences,
    compare_things,
    read_sentence,
    read_things,
)

Types = dict[str, Any]
LONGEST = 400
_DIGIT = re.compile(r"\d")
# Each type is tried only on texts that hold a sign of it.
_NUMBER = re.compile(
    r"\d|^an?\s|one|two|three|four|five|six|seven|eight|nin|ten|elev|twel|twent|thirt|fift|hundred"
    r"|thousand|illion|dozen|score|gross|hal[fv]|quarter|third",
    re.IGNORECASE,
)
_NUMERAL = re.compile(r"\d|\b[IVXLC]{1,6}\b|\bWW|th\b|(?:first|second|third)\b", re.IGNORECASE)
_ERA = re.compile(r"\b(?:bc|bce|ad|ce|b\.c|a\.d|c\.e|century|before)\b", re.IGNORECASE)
_CODE = re.compile(r"[\[({};=:]|lambda|SELECT")
_SYMBOL = re.compile(r"[\[({<>≤≥=^*/+\\;`.]|\d[a-z(]|[a-z]-[a-z]\b|\d-")


@dataclass(frozen=True, slots=True)
class _Type:
    """One type: how a text up to so long is read as it, when to try, how two readings compare.

    `further` says how much more the comparison takes: the question, the tolerance of numbers.
    """

    longest: int
    read: Callable[[str], Any]
    worth_trying: Callable[[str], object]
    compare: Callable[..., Verdict | None]
    further: int = 0


# In the order in which they decide: '[0, 1)' is an interval before it is a list.
_TYPES: dict[str, _Type] = {
    "complexity": _Type(70, read_complexity, lambda text: "(" in text, compare_complexities),
    "interval": _Type(60, read_interval, _DIGIT.search, compare_intervals, 1),
    "listing": _Type(LONGEST, read_listing, lambda text: text[:1] in "[({ ", compare_listings),
    "era": _Type(40, read_era, _ERA.search, compare_eras),
    "quantity": _Type(80, read_quantity, _NUMBER.search, compare_quantities, 2),
    "code": _Type(
        LONGEST, read_code, lambda text: _CODE.search(text) and _SYMBOL.search(text), compare_code
    ),
    "formula": _Type(80, read_formula, _SYMBOL.search, compare_formulas),
    "numeral": _Type(60, read_numeral, _NUMERAL.search, compare_numerals),
    "sentence": _Type(160, read_sentence, bool, compare_sentences),
    "things": _Type(300, read_things, re.compile(r"[,;&\n]| and ").search, compare_things, 1),
}
# Types of which any two texts may be the same without a common word.
UNWORDED = ("complexity", "interval", "listing", "era", "quantity", "code", "formula", "numeral")


def read_types(text: str) -> Types:
    """Return what a text is, by the name of each type that it can be read as.

    Examples
    --------
    >>> list(read_types("[0, 1)")), list(read_types("44 BC")), list(read_types("Paris"))
    (['interval', 'listing'], ['era'], [])
    """
    return {
        name: reading
        for name, each in _TYPES.items()
        if len(text) <= each.longest and each.worth_trying(text)
        if (reading := each.read(text)) is not None
    }


def compare_types(
    a: Types, b: Types, asked: str = "", *, tolerance: float = 1e-9
) -> Verdict | None:
    """Compare two texts by the first type that both have and that tells.

    Examples
    --------
    >>> def told(a, b, asked=""):
    ...     found = compare_types(read_types(a), read_types(b), asked)
    ...     return found and (found[0].value, found[1])
    >>> told("44 BCE", "44 BC"), told("[1,2,3]", "[3,2,1]"), told("O(n)", "O(n log n)")
    (('same', 'era'), ('different', 'sequence'), ('different', 'complexity'))
    >>> told("Louis XIV", "Louis 14"), told("oxygen and hydrogen", "hydrogen and oxygen")
    (('same', 'numeral'), ('same', 'list'))
    >>> told("Paris", "Rome") is None, told("11", "10-12")
    (True, ('unsure', 'range'))
    """
    if not a or not b:
        return None
    for name, each in _TYPES.items():
        verdict = None
        if name in a and name in b:
            further = (asked, tolerance)[: each.further]
            verdict = each.compare(a[name], b[name], *further)
        elif name in a or name in b:
            verdict = _other_type(name, *((a, b) if name in a else (b, a)))
        if verdict is not None:
            return verdict
    return None


def _other_type(name: str, has: Types, lacks: Types) -> Verdict | None:
    """Compare a range with a figure, and a year that names its era with one that does not."""
    figure: Quantity | None = lacks.get("quantity")
    if figure is None:
        return None
    if name == "era" and not figure.unit and figure.number.is_integer():
        return year_without_era(has[name], int(figure.number))
    interval: Interval | None = has.get("interval") if name == "interval" else None
    if interval is not None and interval.told_as_range:
        return inside(figure.number, interval)
    return None
