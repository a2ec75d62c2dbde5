"""Wordings of earlier versions that no list of answers could support."""

from __future__ import annotations

import re

_RETIRED = {
    r"Name one country where native speakers of .+ live\.": (
        "speakers of almost every language live in almost every country"
    ),
    r"Name one country or territory where .+ is an official language, in law or in fact\.": (
        "CLDR does not list all official languages of multilingual countries"
    ),
    r"Name one language that is official, in law or in fact, in .+\.": (
        "CLDR does not list all official languages of multilingual countries"
    ),
    r"Name one country or territory where more than half of the people speak .+\.": (
        "CLDR's shares of speakers are estimates and have gaps"
    ),
}


def retired_wording(text: str) -> str | None:
    """Return why a question of an earlier version has no exact answer set; None for others.

    Examples
    --------
    >>> retired_wording("Name one country where native speakers of Danish live.")
    'speakers of almost every language live in almost every country'
    >>> retired_wording("Name one prime from 8 to 12.") is None
    True
    """
    return next((why for form, why in _RETIRED.items() if re.fullmatch(form, text)), None)
