"""Countries, languages, cities, people and substances that go by several names.

The names are two tables of text: `known_names.txt` is our own, `cldr_names.txt` has countries and
languages in other languages (Unicode CLDR), and `python -m studies._cldr_names` makes it again.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

# Cities that are a division of their own beside a division of the same name around them, with the
# ISO 3166-2 codes of both.
CITY_AND_REGION: dict[str, tuple[str, str]] = {
    "almaty": ("KZ-75", "KZ-19"),
    "buenos aires": ("AR-C", "AR-B"),
    "chiayi": ("TW-CYI", "TW-CYQ"),
    "hsinchu": ("TW-HSZ", "TW-HSQ"),
    "kiev": ("UA-30", "UA-32"),
    "kyiv": ("UA-30", "UA-32"),
    "lankaran": ("AZ-LA", "AZ-LAN"),
    "lima": ("PE-LMA", "PE-LIM"),
    "maputo": ("MZ-MPM", "MZ-L"),
    "minsk": ("BY-HM", "BY-MI"),
    "moscow": ("RU-MOW", "RU-MOS"),
    "osh": ("KG-GO", "KG-O"),
    "shaki": ("AZ-SA", "AZ-SAK"),
    "sofia": ("BG-22", "BG-23"),
    "tashkent": ("UZ-TK", "UZ-TO"),
    "toshkent": ("UZ-TK", "UZ-TO"),
    "veszprem": ("HU-VM", "HU-VE"),
    "viangchan": ("LA-VT", "LA-VI"),
    "vientiane": ("LA-VT", "LA-VI"),
    "yevlakh": ("AZ-YE", "AZ-YEV"),
    "zagreb": ("HR-21", "HR-01"),
}


def one_known_name(text: str) -> str:
    """Return one name for a thing of the tables, when the whole text is such a name.

    Examples
    --------
    >>> one_known_name("burma"), one_known_name("the road to burma")
    ('myanmar', 'the road to burma')
    >>> one_known_name("deutschland"), one_known_name("samuel clemens")
    ('germany', 'mark twain')
    """
    # Taken-out punctuation leaves spaces behind.
    found = known_names().get(" ".join(text.split()))
    return text if found is None else found[1]


def is_country(name: str) -> bool:
    """Return whether a normalised name is the first name of a country.

    Examples
    --------
    >>> is_country("niger"), is_country("german")
    (True, False)
    """
    return known_names().get(name) == ("country", name)


@cache
def known_names() -> dict[str, tuple[str, str]]:
    """Return kind and first name of everything in the tables, by each of its names.

    Examples
    --------
    >>> known_names()["italie"], known_names()["paracetamol"]
    (('country', 'italy'), ('substance', 'paracetamol'))
    """
    return read_names("cldr_names.txt") | read_names("known_names.txt")


def read_names(table: str) -> dict[str, tuple[str, str]]:
    """Return kind and first name by each name of one table."""
    text = resources.files(__package__).joinpath(table).read_text(encoding="utf-8")
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            kind, names = line.split("\t")
            each = names.split("|")
            found.update(dict.fromkeys(each, (kind, each[0])))
    return found
