"""Countries and languages that go by several names, as normalised strings.

The English names are below; names in other languages come from `cldr_names.txt` (Unicode CLDR),
which `python -m studies._cldr_names` makes again.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

_GROUPS = (
    "united states|usa|us|united states of america|america|us of a",
    "united kingdom|uk|united kingdom of great britain and northern ireland",
    "myanmar|burma|burma myanmar|myanmar burma",
    "ivory coast|cote d ivoire|cote divoire|republic of cote d ivoire",
    "east timor|timor leste|democratic republic of timor leste",
    "eswatini|swaziland|kingdom of eswatini",
    "democratic republic of congo|dr congo|drc|d r congo|congo kinshasa|zaire|dem rep congo",
    "republic of congo|congo brazzaville",
    "netherlands|holland|kingdom of netherlands",
    "czech republic|czechia",
    "cape verde|cabo verde",
    "north macedonia|macedonia|republic of north macedonia",
    "turkey|turkiye|republic of turkey",
    "united arab emirates|uae|emirates",
    "soviet union|ussr|union of soviet socialist republics",
    "china|prc|people republic of china|peoples republic of china",
    "south korea|republic of korea|korea south",
    "north korea|dprk|democratic people republic of korea|korea north",
    "vatican city|vatican|holy see|vatican city state",
    "russia|russian federation",
    "bosnia and herzegovina|bosnia|bosnia herzegovina",
    "gambia|republic of gambia",
    "sri lanka|ceylon",
    "iran|islamic republic of iran",
    "syria|syrian arab republic",
    "laos|lao people democratic republic",
    "bahamas|commonwealth of bahamas",
    "barbados",
    "comoros|union of comoros|comoro islands",
    "honduras|republic of honduras",
    "maldives|republic of maldives|maldive islands",
    "philippines|republic of philippines|philippine islands",
    "seychelles|republic of seychelles",
    "wales|cymru",
    "moldova|republic of moldova",
    "tanzania|united republic of tanzania",
    "micronesia|federated states of micronesia",
    "south africa|republic of south africa",
    "ireland|republic of ireland|eire",
    "mexico|united mexican states",
    "brunei|brunei darussalam",
    "sao tome and principe|sao tome",
    "trinidad and tobago|trinidad",
    "papua new guinea|png",
    "saudi arabia|kingdom of saudi arabia|ksa",
    "new york city|nyc|new york new york",
    "washington dc|washington d c|district of columbia",
    "los angeles|la los angeles",
    "saint petersburg|st petersburg|leningrad",
    "mumbai|bombay",
    "beijing|peking",
    "istanbul|constantinople",
    "ho chi minh city|saigon",
)
COUNTRY_NAMES: dict[str, str] = {
    name: group.split("|", maxsplit=1)[0] for group in _GROUPS for name in group.split("|")
}

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


def one_country_name(text: str) -> str:
    """Return one name for a country or language, when the whole text is such a name.

    Examples
    --------
    >>> one_country_name("burma"), one_country_name("the road to burma")
    ('myanmar', 'the road to burma')
    >>> one_country_name("deutschland"), one_country_name("allemand")
    ('germany', 'german')
    """
    # Taken-out punctuation leaves spaces behind.
    name = " ".join(text.split())
    return COUNTRY_NAMES.get(name) or names_in_other_languages().get(name, text)


@cache
def names_in_other_languages() -> dict[str, str]:
    """Return the English name of each country or language by its names in other languages.

    Examples
    --------
    >>> names_in_other_languages()["italie"], names_in_other_languages()["日本"]
    ('italy', 'japan')
    """
    table = resources.files(__package__).joinpath("cldr_names.txt").read_text(encoding="utf-8")
    lines = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    return {other: english for english, others in lines for other in others.split("|")}
