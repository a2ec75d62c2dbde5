"""Countries and languages in other languages, taken from CLDR: makes the table that ships.

Run with `python -m studies._cldr_names` where babel is installed; the package itself needs no
babel. A name that means two things after normalisation is left out, and so are short names in
Latin letters ('Fas', 'Nga').
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from benchmarks.harness import ROOT

from calibrant.answers.semantics.text.normalise import Normaliser
from calibrant.answers.semantics.text.words import read_names

TARGET = ROOT / "src" / "calibrant" / "answers" / "semantics" / "text" / "cldr_names.txt"
_SPOKEN = (
    "en de fr es pt it nl sv da nb fi pl cs hu ro bg hr uk ru el tr ar he fa hi bn th vi id ja ko "
    "zh zh_Hant ca"
)
LOCALES = _SPOKEN.split()
# Short names in Latin letters are words of other languages too often.
SHORTEST_LATIN = {"country": 5, "language": 6}
# Names that mean something else in an English answer: a city, a spice, people, a province.
_OTHER = "tunis chili swiss guine corea georgie dominique congo equateur"
OTHER_MEANING = frozenset(_OTHER.split())
HEADER = """\
# Names of countries and languages in {count} languages, each line: kind, tab, English name, others.
# Source: Unicode CLDR, as packaged in babel {babel} (made by studies/_cldr_names.py).
# Licence: Unicode License V3, https://www.unicode.org/license.txt
# Copyright (c) 1991-2026 Unicode, Inc. All rights reserved.
"""


def spoken_names() -> dict[str, dict[str, set[str]]]:
    """English name -> names, for territories and languages apart."""
    from babel import Locale

    locales = [Locale.parse(name) for name in LOCALES]
    english = locales[0]
    found: dict[str, dict[str, set[str]]] = {"country": {}, "language": {}}
    for kind, table in (("country", "territories"), ("language", "languages")):
        codes = [code for code in getattr(english, table) if _wanted(kind, code)]
        for code in codes:
            names = {getattr(locale, table).get(code) for locale in locales}
            found[kind][getattr(english, table)[code]] = {name for name in names if name}
    return found


def _wanted(kind: str, code: str) -> bool:
    if kind == "country":
        return len(code) == 2 and code.isalpha() and code not in {"EU", "EZ", "UN", "ZZ", "QO"}
    # Two letters: the languages that people ask about; three: dialects with names like any word.
    return code.isalpha() and len(code) == 2


def table(found: Mapping[str, Mapping[str, set[str]]]) -> dict[str, tuple[str, list[str]]]:
    """Normalised English name -> its kind, and the other names that mean nothing else."""
    read = Normaliser().without("places", "plurals")
    own = {name: first for name, (_, first) in read_names("known_names.txt").items()}
    meanings: dict[str, dict[str, int]] = {}
    kinds: dict[str, str] = {}
    for kind, names in found.items():
        for english, spoken in names.items():
            key = read(english)
            main = own.get(key, key)
            kinds.setdefault(main, kind)
            for name in map(read, spoken):
                long_enough = not name.isascii() or len(name) >= SHORTEST_LATIN[kind]
                meanings.setdefault(name, {} if long_enough else {"too short": 1})[main] = 1
    mains = {main for each in meanings.values() for main in each}
    lines: dict[str, list[str]] = {}
    for name, each in sorted(meanings.items()):
        known = name in mains or name in own or name in OTHER_MEANING
        if len(each) > 1 or known or min(each).startswith(name):
            continue
        lines.setdefault(min(each), []).append(name)
    return {main: (kinds[main], names) for main, names in sorted(lines.items())}


def main(target: Path = TARGET) -> None:
    lines = table(spoken_names())
    text = HEADER.format(count=len(LOCALES), babel=version("babel"))
    text += "".join(
        f"{kind}\t{'|'.join([main, *names])}\n" for main, (kind, names) in lines.items()
    )
    target.write_text(text, encoding="utf-8")
    print(
        f"{target.name}: {len(lines)} names, "
        f"{sum(len(names) for _, names in lines.values())} other names"
    )


if __name__ == "__main__":
    main()
