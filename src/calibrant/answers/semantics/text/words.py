"""Single words and known names: plural endings, near spellings, things that go by several names."""

from functools import cache, lru_cache
from importlib import resources


@cache
def _lexicon() -> dict[str, list[str]]:
    """Return the lines of every list of `lexicon.txt`."""
    text = resources.files(__package__).joinpath("lexicon.txt").read_text(encoding="utf-8")
    lists: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            lines = lists.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return lists


def listed(name: str) -> list[str]:
    """Return the words of a list in `lexicon.txt`.

    Examples
    --------
    >>> listed("waters")[:2]
    ['rio', 'riviere']
    """
    return " ".join(_lexicon()[name]).split()


def phrases(name: str) -> str:
    """Return a pattern for any of the phrases of a list in `lexicon.txt`."""
    return "|".join(_lexicon()[name])


def table(name: str) -> dict[str, str]:
    """Return what each word of a table in `lexicon.txt` stands for.

    Examples
    --------
    >>> table("short forms")["bob"], table("units")["miles"]
    ('robert', 'mile')
    """
    return {word: meaning for meaning, words in pairs(name) for word in words.split(", ")}


def pairs(name: str) -> list[tuple[str, str]]:
    """Return both sides of each line of a table in `lexicon.txt`."""
    sides = (line.partition(": ") for line in _lexicon()[name])
    return [(left, right) for left, _, right in sides]


CITY_AND_REGION = table("city and region")


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
    entry = known_names().get(" ".join(text.split()))
    return text if entry is None else entry[1]


def listed_kind(name: str) -> str | None:
    """Return ``country`` or ``language`` for the first name of one, normalised.

    Examples
    --------
    >>> listed_kind("niger"), listed_kind("german"), listed_kind("monet")
    ('country', 'language', None)
    """
    kind, first = known_names().get(name, ("", ""))
    return kind if first == name and kind in ("country", "language") else None


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
    by_name: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            kind, names = line.split("\t")
            each = names.split("|")
            by_name.update(dict.fromkeys(each, (kind, each[0])))
    return by_name


_KEEP_S = frozenset(listed("no plurals"))
# A country is no plural: Laos is not several Lao. By the word and not by its capital letter, since
# answers and references are often written small.
_COUNTRIES = frozenset(
    name
    for name, (kind, _) in read_names("known_names.txt").items()
    if kind == "country" and name.endswith("s")
)
_ENDINGS = frozenset(["", *listed("endings")])

_SALTS = frozenset(["ate", "ite", "ide", "ine", "ane", "ene", "yne"])
_OPPOSITES = (
    ("hyper", "hypo"),
    ("inter", "intra"),
    ("macro", "micro"),
    ("endo", "exo"),
    ("ante", "anti"),
)


@lru_cache(maxsize=100_000)
def singular(word: str) -> str:
    """Return a word without its plural ending, in a way that is the same for both sides.

    Examples
    --------
    >>> [singular(word) for word in ("cities", "boxes", "glass", "Paris", "prophets", "laos")]
    ['city', 'box', 'glass', 'Paris', 'prophet', 'laos']
    """
    if len(word) < 4 or not word.endswith("s") or word in _KEEP_S or word in _COUNTRIES:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    if word.endswith(("ss", "us", "is")) or word[-2].isdigit():
        return word
    return word[:-1]


def within_edits(a: str, b: str, limit: int) -> bool:
    """Return whether at most `limit` letters must be changed, added or dropped.

    Examples
    --------
    >>> within_edits("kitten", "sitten", 1), within_edits("kitten", "sitting", 2)
    (True, False)
    """
    if abs(len(a) - len(b)) > limit:
        return False
    # Only cells near the diagonal can stay within the limit; the others count as too far.
    far = limit + 1
    previous = {column: column for column in range(min(len(b), limit) + 1)}
    for row, letter in enumerate(a, start=1):
        current: dict[int, int] = {}
        for column in range(max(0, row - limit), min(len(b), row + limit) + 1):
            best = previous.get(column, far) + 1
            if column:
                change = previous.get(column - 1, far) + (letter != b[column - 1])
                best = min(best, current.get(column - 1, far) + 1, change)
            current[column] = best
        if min(current.values()) > limit:
            return False
        previous = current
    return previous[len(b)] <= limit


def near_word(word: str, others: list[str]) -> bool:
    """Return whether one of `others` (same first letter) is a spelling or inflection of `word`.

    Examples
    --------
    >>> near_word("america", ["american"]), near_word("1984", ["1985"])
    (True, False)
    >>> near_word("nitrite", ["nitrate"]), near_word("hyperthyroidism", ["hypothyroidism"])
    (False, False)
    >>> near_word("iran", ["iraq"]), near_word("mauritius", ["mauritania"])
    (False, False)
    """
    length = len(word)
    if length < 5 or word[0].isdigit():
        return False
    limit = 1 if length < 10 else 2
    for peer in others:
        if len(peer) < 5 or abs(len(peer) - length) > 4:
            continue
        alike = _same_stem(word, peer) or within_edits(word, peer, limit)
        if alike and not opposed(word, peer):
            return True
    return False


def opposed(a: str, b: str) -> bool:
    """Return whether the few letters that differ are the very point.

    Examples
    --------
    >>> opposed("nitrite", "nitrate"), opposed("hypertension", "hypotension")
    (True, True)
    """
    if len(a) == len(b) and a[:-3] == b[:-3] and a[-3:] in _SALTS and b[-3:] in _SALTS:
        return True
    return any(
        (a.startswith(x) and b.startswith(y)) or (a.startswith(y) and b.startswith(x))
        for x, y in _OPPOSITES
    )


def shared_start(a: str, b: str) -> int:
    """Return how many letters two words share from the start."""
    unlike = (place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    return next(unlike, min(len(a), len(b)))


def _same_stem(a: str, b: str) -> bool:
    """Return whether two words share six letters or more and differ only in known endings."""
    shared = shared_start(a, b)
    return shared >= 6 and a[shared:] in _ENDINGS and b[shared:] in _ENDINGS
