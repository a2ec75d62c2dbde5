"""Numbers with what they count: eras and centuries, numerals after a name, units.

'44 BC', 'Louis XIV', '$3.5bn', 'two dozen', '25 %', '6 feet', 'half a million'.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from calibrant.answers.semantics.text.numbers import UNIT_WORDS, digits_for_words, join_thousands
from calibrant.answers.semantics.text.words import pairs, table


class Relation(Enum):
    """SAME and DIFFERENT decide.

    LIKELY joins only where it points to one class alone (a surname and one full name).
    UNSURE is left to embeddings or a judge, and means 'not joined' without them.
    """

    SAME = "same"
    LIKELY = "likely"
    UNSURE = "unsure"
    DIFFERENT = "different"


Verdict = tuple[Relation, str]


def decided(same: bool, rule: str) -> Verdict:
    """Return the verdict of a rule that tells same from different."""
    return (Relation.SAME if same else Relation.DIFFERENT), rule


_YEAR = re.compile(
    r"(?:in |about |circa |c )?(?:(?P<front>ad|ce) ?)?(?P<year>\d{1,4}) ?"
    r"(?P<era>bce|bc|ad|ce|before christ|before the common era)?"
)
_CENTURY = re.compile(
    r"(?:in )?(?:the )?(?P<century>\d{1,2})(?:st|nd|rd|th) century ?(?P<era>bce|bc|ad|ce)?"
)
_ROMAN = {
    tens + digits: 10 * ten + digit
    for ten, tens in enumerate(("", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"))
    for digit, digits in enumerate(("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"))
}
_NAMED = re.compile(
    r"(?P<name>(?:[A-Z][\w'-]*\.?\s){1,4})(?:the\s)?"
    r"(?P<numeral>[IVXLC]{1,6}|\d{1,3}(?:st|nd|rd|th)?)(?:\sof\s[A-Z][\w ]{1,30})?\.?"
)
_IN_FRONT = re.compile(r"^(\d{1,2})(?:st|nd|rd|th) ((?:[A-Z][\w'-]*\s?){1,3})$")
_TITLE = re.compile(r"^(?:king|queen|pope|emperor|empress|tsar|kaiser|the)\s+(?=\w)")
_SHORT = re.compile(r"^WW\s?(?=[I12])")


def read_era(text: str) -> tuple[str, int] | None:
    """Read a year with an era, or a century: what it is, and its number, negative before Christ."""
    if not re.search(r"[bcBC]|AD|ad", text):
        return None
    plain = digits_for_words(text).lower().replace(".", "").strip()
    for kind, pattern in (("year", _YEAR), ("century", _CENTURY)):
        match = pattern.fullmatch(plain)
        if match and (kind == "century" or match["front"] or match["era"]):
            sign = -1 if (match["era"] or "").startswith("b") else 1
            return kind, sign * int(match[kind])
    return None


def read_numeral(text: str) -> tuple[str, int] | None:
    """Read a name with a numeral, Roman, Arabic or in words: 'Louis XIV', 'Second World War'."""
    plain = digits_for_words(_SHORT.sub("World War ", text.strip()).removeprefix("the "))
    if front := _IN_FRONT.match(plain):
        return front[2].strip().lower(), int(front[1])
    names = _NAMED.fullmatch(plain)
    if names is None:
        return None
    digits = re.sub(r"\D", "", names["numeral"])
    number = int(digits) if digits else _ROMAN.get(names["numeral"])
    return None if number is None else (_TITLE.sub("", names["name"].lower().strip()), number)


# Kind and size of each unit; the first unit of a kind has size 1.
_UNITS = {
    unit: (kind, float(size))
    for kind, sizes in pairs("sizes of units")
    for unit, _, size in (each.partition(" ") for each in sizes.split(", "))
}
_SPELLINGS = UNIT_WORDS | table("further units")
_CELSIUS: dict[str, Callable[[float], float]] = {
    "celsius": lambda value: value,
    "fahrenheit": lambda value: (value - 32.0) / 1.8,
    "kelvin": lambda value: value - 273.15,
}
_SCALES = {word: float(value) for word, value in table("scales").items()}
_PARTS = {word: int(value) for word, value in table("parts").items()}
_QUANTITY = re.compile(
    r"(?:about|around|approximately|approx\.?|roughly|nearly|almost|over|exactly|some|circa|ca?\."
    r"|there (?:are|were)|a total of|~|≈|=)?\s?(?P<front>us\$|[$€£])?\s?"
    r"(?P<number>[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?)\s?"
    r"(?:(?P<scale>hundred|thousand|million|billion|trillion|bn|mn|tn|dozen|score|gross"
    r"|(?<=\d)[kmb](?=[\s$€£]|$))(?![a-z])\s?)?"
    r"(?P<unit>%|°\s?[cf]?|km/h|m/s|us\$|[$€£]|[a-z][a-z ]{0,24})?\s?[.!]?",
)
_FRACTION = re.compile(r"([-+]?\d+)\s?/\s?(\d+)\s?\.?")
_PART = re.compile(
    r"(?:(?P<count>an?|\d{1,3})[\s-])?(?P<part>" + "|".join(_PARTS) + r")s?"
    r"(?:\s(?:of\s)?an?\s(?P<whole>[a-z]+)|\sof\s.{1,40})?\.?"
)
_ONE_OF = re.compile(r"^an? (?=hundred|thousand|million|billion|trillion|dozen|score|gross)")
_NEAR = 0.05


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, its unit (empty for none) and how many digits were given.

    `places` is None where nothing was rounded: words and fractions.
    """

    number: float
    unit: str = ""
    places: int | None = None
    digits: int = 0

    @property
    def value(self) -> float:
        """The number in the first unit of its dimension."""
        return self.number * self.size

    @property
    def size(self) -> float:
        """How large the unit is."""
        return _UNITS.get(self.unit, ("", 1.0))[1]

    @property
    def kind(self) -> str:
        """What is measured; of a counted thing, its name."""
        if self.unit in _CELSIUS:
            return "temperature"
        return _UNITS.get(self.unit, (self.unit, 1.0))[0]


def read_quantity(text: str) -> Quantity | None:
    """Read a text that is a number, with a unit or not, and nothing else.

    Examples
    --------
    >>> [read_quantity(text).value for text in ("two dozen", "a quarter", "25 %", "$3.5bn")]
    [24.0, 0.25, 0.25, 3500000000.0]
    >>> [read_quantity(text).value for text in ("a dozen and a half", "2 and a half", "a week")]
    [18.0, 2.5, 604800.0]
    """
    plain = join_thousands(text.strip().strip("*_").strip()).lower()
    if part := _read_part(plain):
        return part
    if " and a half" in plain:
        # 'two and a half million' is '2.5 million', 'a dozen and a half' is '1.5 dozen'.
        head, _, tail = plain.partition(" and a half")
        number, _, what = digits_for_words(head).partition(" ")
        number = "1" if number in ("a", "an") else number
        plain = f"{number}.5 {what}{tail}" if number.isdigit() else plain
    article, _, unit = plain.partition(" ")
    if article in ("a", "an") and unit in _SPELLINGS:
        plain = f"1 {unit}"
    plain = digits_for_words(_ONE_OF.sub("1 ", plain))
    fraction = _FRACTION.fullmatch(plain)
    if fraction and int(fraction[2]):
        return Quantity(int(fraction[1]) / int(fraction[2]))
    match = _QUANTITY.fullmatch(plain)
    return None if match is None else _measured(match)


def _read_part(plain: str) -> Quantity | None:
    """Read 'a quarter', 'two thirds of them', 'half a million', 'half an hour'."""
    head, _, tail = plain.partition(" ")
    match = _PART.fullmatch(f"{digits_for_words(head)} {tail}" if tail else plain)
    if match is None or (match["count"] is None and match["part"] not in ("half", "quarter")):
        return None
    count, whole = match["count"] or "1", match["whole"]
    value = (1 if count in ("a", "an") else int(count)) / _PARTS[match["part"]]
    if whole is None or whole in _SCALES:
        return Quantity(value * _SCALES.get(whole or "", 1.0))
    return Quantity(value, _SPELLINGS[whole]) if whole in _SPELLINGS else None


def _measured(match: re.Match[str]) -> Quantity | None:
    number, front, scale = match["number"], match["front"], match["scale"]
    unit = (match["unit"] or "").replace(" ", "")
    if scale in ("m", "b") and not front and not unit:
        # '5 m' are metres; '5k' is a number of its own.
        scale, unit = None, scale
    value = float(number) * _SCALES.get(scale or "", 1.0)
    canonical = _SPELLINGS.get(front or unit, "")
    if unit and not front and not canonical:
        # A counted thing ('360 members'): the noun is the unit, singular.
        canonical = unit.removesuffix("s") if len(unit) > 2 else ""
        if not canonical:
            return None
    whole, _, decimals = number.lstrip("+-").split("e")[0].partition(".")
    figures = (whole + decimals).lstrip("0") if decimals else whole.strip("0")
    digits = len(figures) or 1
    if not math.isfinite(value):
        return None
    return Quantity(value, canonical, None if scale else len(decimals), digits)


def compare_quantities(a: Quantity, b: Quantity, asked: str, tolerance: float) -> Verdict:
    """Compare two quantities; units of one kind are converted, a missing unit stays in doubt."""
    if a.unit == b.unit:
        return decided(_close(a.number, b.number, tolerance) or _rounded(a, b), "number")
    if not a.unit or not b.unit:
        return _without_unit(a, b, asked, tolerance)
    if a.kind == b.kind == "temperature":
        return decided(abs(_CELSIUS[a.unit](a.number) - _CELSIUS[b.unit](b.number)) < 0.6, "unit")
    if a.kind != b.kind:
        counts = a.unit in b.unit or b.unit in a.unit
        return decided(counts and a.number == b.number, "number")
    if _close(a.value, b.value, max(tolerance, 1e-6)) or _converted(a, b) or _converted(b, a):
        return Relation.SAME, "unit"
    near = abs(a.value - b.value) <= _NEAR * max(abs(a.value), abs(b.value))
    return (Relation.UNSURE, "nearly equal") if near else (Relation.DIFFERENT, "unit")


def _without_unit(a: Quantity, b: Quantity, request: str, tolerance: float) -> Verdict:
    bare, peer = (a, b) if not a.unit else (b, a)
    equal = _close(bare.number, peer.number, tolerance)
    if peer.unit != "percent":
        missing = equal and peer.unit in _UNITS
        return decided(equal, "missing unit" if missing else "number")
    if 0 < abs(bare.number) < 1 and _close(bare.number, peer.value, max(tolerance, 1e-9)):
        return Relation.SAME, "number"
    asked_for = equal and re.search(r"per\s?cent|%", request, re.IGNORECASE)
    return decided(bool(asked_for), "missing unit" if equal and not asked_for else "number")


def _close(x: float, y: float, tolerance: float) -> bool:
    return math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance * 1e-3)


def _rounded(a: Quantity, b: Quantity) -> bool:
    """Return whether a decimal of three digits or more is the longer one, rounded."""
    short, long = sorted((a, b), key=lambda each: each.places or 0)
    if not short.places or short.places == long.places or short.digits < 3:
        return False
    return abs(round(long.number, short.places) - short.number) < 1e-9


def _converted(a: Quantity, b: Quantity) -> bool:
    """Return whether `a`, told in the unit of `b` and rounded as `b` is, is `b`."""
    if b.places is None or b.digits < 2:
        return False
    return abs(a.value / b.size - b.number) <= 0.5 * 10.0**-b.places + 1e-9
