"""Numbers with what they count: eras and centuries, numerals after a name, units.

'44 BC', 'Louis XIV', '$3.5bn', 'two dozen', '25 %', '6 feet', 'half a million'.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from calibrant.answers.semantics.text.numbers import UNIT_WORDS, digits_for_words, join_thousands
from calibrant.answers.semantics.text.words import table
from calibrant.answers.semantics.typed.wording import Relation, Verdict, decided

_YEAR = re.compile(
    r"(?:in |about |circa |c )?(?:(?P<front>ad|ce) ?)?(?P<year>\d{1,4}) ?"
    r"(?P<era>bce|bc|ad|ce|before christ|before the common era)?"
)
_CENTURY = re.compile(
    r"(?:in )?(?:the )?(?P<number>\d{1,2})(?:st|nd|rd|th) century ?(?P<era>bce|bc|ad|ce)?"
)
_ROMAN = re.compile(r"(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_NAMED = re.compile(
    r"(?P<name>(?:[A-Z][\w'-]*\.?\s){1,4})(?P<the>the\s)?"
    r"(?P<numeral>[IVXLC]{1,6}|\d{1,3}(?:st|nd|rd|th)?)(?:\sof\s[A-Z][\w ]{1,30})?\.?"
)
_IN_FRONT = re.compile(r"^(\d{1,2})(?:st|nd|rd|th) ((?:[A-Z][\w'-]*\s?){1,3})$")
_TITLE = re.compile(r"^(?:king|queen|pope|emperor|empress|tsar|kaiser|the)\s+(?=\w)")
_SHORT = re.compile(r"^WW\s?(?=[I12])")


def read_era(text: str) -> tuple[str, int] | None:
    """Read a year with an era, or a century: what it is, and its number, negative before Christ.

    Examples
    --------
    >>> read_era("44 BCE"), read_era("AD 79"), read_era("the fifth century BC"), read_era("79")
    (('year', -44), ('year', 79), ('century', -5), None)
    """
    if not re.search(r"[bcBC]|AD|ad", text):
        return None
    plain = digits_for_words(text).lower().replace(".", "").strip()
    match = _YEAR.fullmatch(plain)
    if match and (match["front"] or match["era"]):
        return "year", _signed(match["year"], match["era"])
    match = _CENTURY.fullmatch(plain)
    return None if match is None else ("century", _signed(match["number"], match["era"]))


def _signed(number: str, era: str | None) -> int:
    return -int(number) if era and era.startswith("b") else int(number)


def compare_eras(a: tuple[str, int], b: tuple[str, int]) -> Verdict:
    """Compare two years or centuries that name their era."""
    return decided(a == b, "era")


def year_without_era(era: tuple[str, int], year: int) -> Verdict:
    """Compare a year that names its era with one that does not."""
    if abs(era[1]) != year or era[0] != "year":
        return Relation.DIFFERENT, "era"
    return (Relation.SAME if era[1] > 0 else Relation.UNSURE), "era"


def read_numeral(text: str) -> tuple[str, int] | None:
    """Read a name with a numeral at its end, Roman, Arabic or in words.

    Examples
    --------
    >>> read_numeral("Louis XIV"), read_numeral("Queen Elizabeth the Second")
    (('louis', 14), ('elizabeth', 2))
    >>> read_numeral("the Second World War") == read_numeral("WWII")
    True
    """
    plain = digits_for_words(_SHORT.sub("World War ", text.strip()).removeprefix("the "))
    front = _IN_FRONT.match(plain)
    if front:
        return front[2].strip().lower(), int(front[1])
    names = _NAMED.fullmatch(plain)
    if names is None:
        return None
    numeral = names["numeral"]
    if numeral[0].isdigit():
        number = int(re.sub(r"\D", "", numeral))
    elif _ROMAN.fullmatch(numeral):
        number = _roman(numeral)
    else:
        return None
    return _TITLE.sub("", names["name"].lower().strip()), number


def _roman(numeral: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in numeral]
    return sum(-x if x < after else x for x, after in zip(values, [*values[1:], 0], strict=True))


def compare_numerals(a: tuple[str, int], b: tuple[str, int]) -> Verdict | None:
    """Compare two names with a numeral; other names are left to the rules of names."""
    return decided(a[1] == b[1], "numeral") if a[0] == b[0] else None


# Units by dimension, each with its size; the first unit of a dimension has size 1.
_SIZES: dict[str, dict[str, float]] = {
    "length": {
        "m": 1.0, "km": 1000.0, "cm": 0.01, "mm": 0.001, "mile": 1609.344, "yard": 0.9144,
        "ft": 0.3048, "inch": 0.0254,
    },
    "mass": {
        "kg": 1.0, "g": 0.001, "mg": 1e-6, "lb": 0.45359237, "ounce": 0.028349523125,
        "tonne": 1000.0,
    },
    "time": {
        "s": 1.0, "ms": 0.001, "min": 60.0, "h": 3600.0, "day": 86400.0, "week": 604800.0,
        "fortnight": 1209600.0, "month": 2629800.0, "year": 31557600.0,
    },
    "volume": {"litre": 1.0, "ml": 0.001, "gallon": 3.785411784},
    "speed": {"m/s": 1.0, "km/h": 1 / 3.6, "mph": 0.44704},
    "data": {"byte": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12},
    "share": {"": 1.0, "percent": 0.01},
}  # fmt: skip
_UNITS = {unit: (kind, size) for kind, units in _SIZES.items() for unit, size in units.items()}
_SPELLINGS = UNIT_WORDS | table("further units")
_CELSIUS: dict[str, Callable[[float], float]] = {
    "celsius": lambda value: value,
    "fahrenheit": lambda value: (value - 32.0) / 1.8,
    "kelvin": lambda value: value - 273.15,
}
_SCALES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9,
    "bn": 1e9, "b": 1e9, "trillion": 1e12, "tn": 1e12, "dozen": 12.0, "score": 20.0, "gross": 144.0,
}  # fmt: skip
_PARTS = {
    "half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6,
    "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip
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
    >>> read_quantity("1,000 km").value, read_quantity("about two million dollars").unit
    (1000000.0, 'dollar')
    >>> [read_quantity(text).value for text in ("two dozen", "a quarter", "25 %", "$3.5bn")]
    [24.0, 0.25, 0.25, 3500000000.0]
    >>> [read_quantity(text).value for text in ("a dozen and a half", "2 and a half", "a week")]
    [18.0, 2.5, 604800.0]
    >>> read_quantity("the year 2000") is None
    True
    """
    plain = join_thousands(text.strip().strip("*_").strip()).lower()
    part = _read_part(plain)
    if part is not None:
        return part
    if " and a half" in plain:
        plain = _half_more(plain)
    article, _, unit = plain.partition(" ")
    if article in ("a", "an") and unit in _SPELLINGS:
        plain = f"1 {unit}"
    plain = digits_for_words(_ONE_OF.sub("1 ", plain))
    fraction = _FRACTION.fullmatch(plain)
    if fraction and int(fraction[2]):
        return Quantity(int(fraction[1]) / int(fraction[2]))
    match = _QUANTITY.fullmatch(plain)
    return None if match is None else _measured(match)


def _half_more(plain: str) -> str:
    """Return 'two and a half million' as '2.5 million', 'a dozen and a half' as '1.5 dozen'."""
    head, _, tail = plain.partition(" and a half")
    number, _, what = digits_for_words(head).partition(" ")
    number = "1" if number in ("a", "an") else number
    return f"{number}.5 {what}{tail}" if number.isdigit() else plain


def _read_part(plain: str) -> Quantity | None:
    """Read 'a quarter', 'two thirds of them', 'half a million', 'half an hour'."""
    if not re.search(r"hal[fv]|third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth", plain):
        return None
    head, _, tail = plain.partition(" ")
    match = _PART.fullmatch(f"{digits_for_words(head)} {tail}".strip() if tail else plain)
    if match is None or (match["count"] is None and match["part"] not in ("half", "quarter")):
        return None
    count = match["count"] or "1"
    value = (1 if count in ("a", "an") else int(count)) / _PARTS[match["part"]]
    whole = match["whole"]
    if whole is None:
        return Quantity(value)
    if whole in _SCALES:
        return Quantity(value * _SCALES[whole])
    return Quantity(value, _SPELLINGS[whole]) if whole in _SPELLINGS else None


def _measured(match: re.Match[str]) -> Quantity | None:
    number, front, scale = match["number"], match["front"], match["scale"]
    unit = (match["unit"] or "").replace(" ", "")
    if scale in ("m", "b", "k") and not front and not unit:
        # '5 m' are metres; '5k' is a number of its own.
        scale, unit = (scale, unit) if scale == "k" else (None, scale)
    value = float(number) * _SCALES.get(scale or "", 1.0)
    if not math.isfinite(value):
        return None
    canonical = _SPELLINGS.get(front or unit, "")
    if unit and not front and not canonical:
        # A counted thing ('360 members'): the noun is the unit, singular.
        canonical = unit.removesuffix("s") if len(unit) > 2 else ""
        if not canonical:
            return None
    plain = number.lstrip("+-").split("e")[0]
    places = len(plain.partition(".")[2])
    figures = plain.replace(".", "").lstrip("0")
    digits = len(figures if places else figures.rstrip("0")) or 1
    return Quantity(value, canonical, None if scale else places, digits)


def compare_quantities(a: Quantity, b: Quantity, asked: str, tolerance: float) -> Verdict:
    """Compare two quantities; units of one kind are converted, a missing unit stays in doubt.

    Examples
    --------
    >>> def same(a, b, asked=""):
    ...     return compare_quantities(read_quantity(a), read_quantity(b), asked, 1e-9)[0].value
    >>> same("6 feet", "1.83 m"), same("100 km/h", "62 mph"), same("212 °F", "100 °C")
    ('same', 'same', 'same')
    >>> same("5 km", "5 miles"), same("one third", "0.3"), same("3.14", "3.14159")
    ('different', 'different', 'same')
    """
    if a.unit == b.unit:
        return decided(_close(a.number, b.number, tolerance) or _rounded(a, b), "number")
    if not a.unit or not b.unit:
        return _without_unit(a, b, asked, tolerance)
    if a.kind == b.kind == "temperature":
        first, second = (_CELSIUS[each.unit](each.number) for each in (a, b))
        return decided(abs(first - second) < 0.6, "unit")
    if a.kind != b.kind:
        counts = a.unit in b.unit or b.unit in a.unit
        return decided(counts and a.number == b.number, "number")
    if _close(a.value, b.value, max(tolerance, 1e-6)) or _converted(a, b) or _converted(b, a):
        return Relation.SAME, "unit"
    near = abs(a.value - b.value) <= _NEAR * max(abs(a.value), abs(b.value))
    return (Relation.UNSURE, "nearly equal") if near else (Relation.DIFFERENT, "unit")


def _without_unit(a: Quantity, b: Quantity, request: str, tolerance: float) -> Verdict:
    bare, peer = (a, b) if not a.unit else (b, a)
    if peer.unit == "percent":
        if 0 < abs(bare.number) < 1 and _close(bare.number, peer.value, max(tolerance, 1e-9)):
            return Relation.SAME, "number"
        if _close(bare.number, peer.number, tolerance):
            statement = re.search(r"per\s?cent|%", request, re.IGNORECASE)
            return (Relation.SAME, "number") if statement else (Relation.DIFFERENT, "missing unit")
        return Relation.DIFFERENT, "number"
    if not _close(bare.number, peer.number, tolerance):
        return Relation.DIFFERENT, "number"
    return Relation.SAME, "number" if peer.unit not in _UNITS else "missing unit"


def _close(x: float, y: float, tolerance: float) -> bool:
    return math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance * 1e-3)


def _rounded(a: Quantity, b: Quantity) -> bool:
    """Return whether a decimal of three digits or more is the longer one, rounded."""
    short, long = sorted((a, b), key=lambda each: each.places or 0)
    if not short.places or not long.places or short.places == long.places or short.digits < 3:
        return False
    return abs(round(long.number, short.places) - short.number) < 1e-9


def _converted(a: Quantity, b: Quantity) -> bool:
    """Return whether `a`, told in the unit of `b` and rounded as `b` is, is `b`."""
    if b.places is None or b.digits < 2:
        return False
    step = 10.0**-b.places
    return abs(a.value / b.size - b.number) <= 0.5 * step + 1e-9
