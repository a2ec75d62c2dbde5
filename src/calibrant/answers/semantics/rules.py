"""Lexical and numeric rules: the same, different, or not for rules to decide."""

import re

from calibrant.answers.semantics.forms import Cues, Form, FormReader, read_cues
from calibrant.answers.semantics.mathematics import same_formula
from calibrant.answers.semantics.text.names import KINDS, another_member, same_name, told_apart
from calibrant.answers.semantics.text.words import listed, opposed, read_names
from calibrant.answers.semantics.typed import Relation, Verdict, compare_types
from calibrant.answers.semantics.typed.wording import compare_words, decided

_NAME_WORDS = 9
# 'San Marino' is not 'Marino', but 'River Colne' is 'Colne'.
_FRONTS = frozenset(["saint", "san", "santa", "fort", "port", "cape", "isle", "bay", "united"])
_LIST_NUMBER = re.compile(r"\s*\d+[.)]\s")
# 'Nigeria. Mexico.' are two names; 'St. Lucia' is one.
_SENTENCE = re.compile(r"\w{3}[.!?:;]\s+\w")
_COUNTS = frozenset(listed("counts"))


def relate(
    a: Form, b: Form, cues: Cues | None = None, *, tolerance: float = 1e-9, math: bool = False
) -> Verdict:
    """Compare two answers to one question.

    Parameters
    ----------
    a, b
        The answers, read.
    cues
        What the question says about its answers.
    tolerance
        Relative tolerance of numbers.
    math
        Whether formulas are compared by computer algebra (extra ``math``).

    Returns
    -------
    relation, rule
        The verdict (symmetric in `a` and `b`) and the rule that gave it.

    Examples
    --------
    >>> from calibrant.answers.semantics.forms import FormReader
    >>> read = FormReader()
    >>> relate(read("1,000"), read("one thousand"))[0].value
    'same'
    >>> relate(read("13"), read("17"))[0].value
    'different'
    >>> relate(read("Shakespeare"), read("Marlowe"))[0].value
    'unsure'
    """
    cues = cues or Cues()
    verdict = (
        _by_yes_or_no(a, b)
        or (_by_algebra(a, b) if math else None)
        or _by_type(a, b, cues, tolerance)
        or ((Relation.SAME, "exact") if a.key == b.key else None)
        or _by_date(a, b, cues)
        or _by_figures(a, b)
    )
    if verdict is not None:
        return verdict
    why = _tell_apart(a, b, cues)
    verdict = _by_words(a, b, cues, why)
    if verdict is not None:
        return verdict
    if why == "clash":
        return Relation.UNSURE, "clash"
    return Relation.UNSURE, "unrelated" if set(a.content).isdisjoint(b.content) else "overlap"


def why_same(a: str, b: str, question: str | None = None) -> dict[str, str | None]:
    """Say whether two answers mean the same, by which rule, and which table of names knows them.

    Examples
    --------
    >>> why_same("Burma", "Myanmar")
    {'relation': 'same', 'rule': 'exact', 'known_as': 'country: myanmar (known_names.txt)'}
    >>> why_same("13", "17")
    {'relation': 'different', 'rule': 'number', 'known_as': None}
    """
    read = FormReader()
    first, second = read(a), read(b)
    relation, rule = relate(first, second, read_cues(question))
    known_as = None
    for table in ("known_names.txt", "cldr_names.txt"):
        names = read_names(table)
        # The tables hold names as every step but the look-up itself writes them.
        plain = read.normaliser.without("places", "plurals")
        entries = [names.get(" ".join(plain(text).split())) for text in (a, b)]
        if entries[0] is not None and entries[0] == entries[1]:
            known_as = f"{': '.join(entries[0])} ({table})"
    return {"relation": relation.value, "rule": rule, "known_as": known_as}


def _tell_apart(a: Form, b: Form, cues: Cues) -> str | None:
    """Return why two short names cannot mean the same, see `told_apart` and `another_member`."""
    # 'Trinidad and Tobago Region' is one place, no list.
    one_kind = a.words[-1:] == b.words[-1:] and not KINDS.isdisjoint(a.words[-1:])
    lists = (a.listing or b.listing) and not one_kind
    if not (a.named or b.named) or lists or a.date or b.date:
        return None
    if _LIST_NUMBER.match(a.raw) or _LIST_NUMBER.match(b.raw):
        return None
    # A name may come without any capital letter.
    names = all(form.named or form.raw.islower() for form in (a, b))
    if max(len(a.words), len(b.words)) > _NAME_WORDS or not names:
        return None
    for short, long in ((a, b), (b, a)):
        if short.words == long.words[1:] and long.words[0] in _FRONTS:
            return "clash"
    why = told_apart(a.words, b.words)
    if cues.one_of_many and not cues.person and _two_members(a, b, cues):
        return "kind"
    # Without capital letters it may be a description ('a high school'), which denies nothing.
    return why if why != "clash" or (a.named and b.named) else None


def _two_members(a: Form, b: Form, cues: Cues) -> bool:
    """Return whether both are single names of a kind, and one has a word more that names."""
    if not (a.named and b.named) or _SENTENCE.search(a.raw) or _SENTENCE.search(b.raw):
        return False
    return another_member(a.words, b.words, cues.asked)


def _by_yes_or_no(a: Form, b: Form) -> Verdict | None:
    if a.yes is None or b.yes is None:
        return None
    return decided(a.yes == b.yes, "yes or no")


def _by_algebra(a: Form, b: Form) -> Verdict | None:
    if not (a.formula or a.quantity) or not (b.formula or b.quantity):
        return None
    equal = same_formula(a.raw, b.raw)
    return None if equal is None else decided(equal, "mathematics")


def _by_type(a: Form, b: Form, cues: Cues, tolerance: float) -> Verdict | None:
    if a.raw == b.raw:
        return Relation.SAME, "exact"
    if a.variable and b.variable and a.variable != b.variable:
        return Relation.DIFFERENT, "number"
    # 'in 1969' and '20 July 1969' are compared as dates; '1969' and '1970' are numbers.
    if a.date and b.date and not (a.quantity and b.quantity) and not {"era"} & a.types.keys():
        return None
    return compare_types(a.types, b.types, cues.question, tolerance=tolerance)


def _by_date(a: Form, b: Form, cues: Cues) -> Verdict | None:
    if a.date is None or b.date is None:
        return None
    if a.date == b.date:
        return Relation.SAME, "date"
    if cues.year and a.date.year is not None and b.date.year is not None:
        return decided(a.date.year == b.date.year, "year")
    return (Relation.UNSURE if a.date.agrees(b.date) else Relation.DIFFERENT), "date"


def _by_figures(a: Form, b: Form) -> Verdict | None:
    """Two texts without a common figure, where figures matter, mean different things."""
    if a.numbers and b.numbers and not a.numbers & b.numbers:
        return Relation.DIFFERENT, "figures"
    for first, peer in ((a, b), (b, a)):
        if first.quantity is not None and not peer.numbers and not _COUNTS & set(peer.words):
            return Relation.DIFFERENT, "figures"
    return None


def _by_words(a: Form, b: Form, cues: Cues, why: str | None) -> Verdict | None:
    if a.bare == b.bare or a.bare == b.key or a.key == b.bare:
        return Relation.SAME, "brackets"
    if a.acronym or b.acronym:
        return _by_acronym(a, b)
    if len(a.words) == len(b.words):
        wrong = [(x, y) for x, y in zip(a.words, b.words, strict=True) if x != y]
        if len(wrong) == 1 and opposed(*wrong[0]):
            return Relation.DIFFERENT, "opposed"
    if not a.listing and not b.listing:
        verdict = compare_words(a.words, b.words, named=a.named and b.named)
        if verdict is not None:
            return verdict
    return _by_names(a, b, cues, why)


def _by_names(a: Form, b: Form, cues: Cues, why: str | None) -> Verdict | None:
    if why in ("mark", "kind"):
        return Relation.DIFFERENT, "mark"
    if not (a.proper and b.proper):
        return None
    if a.numbers != b.numbers:
        return Relation.UNSURE, why or "figures"
    if len(a.content) == len(b.content) <= 4 and sorted(a.content) == sorted(b.content):
        return Relation.SAME, "order"
    if not a.listing and not b.listing and (cues.person or not cues.known):
        return _by_name(a, b, cues)
    return None


def _by_acronym(a: Form, b: Form) -> Verdict | None:
    short, long = (a, b) if a.acronym else (b, a)
    if long.acronym or len(short.acronym) < 2 or len(long.content) < 2:
        return None
    letters = ("".join(word[0] for word in words) for words in (long.content, long.words))
    return (Relation.SAME, "acronym") if short.acronym in letters else None


def _by_name(a: Form, b: Form, cues: Cues) -> Verdict | None:
    if a.place_like or b.place_like or max(len(a.words), len(b.words)) > 6:
        return None
    equal = same_name(a.words, b.words)
    if equal is not None:
        return decided(equal, "name")
    short, long = (a, b) if len(a.words) < len(b.words) else (b, a)
    if cues.person and short.words and long.words[-len(short.words) :] == short.words:
        return Relation.LIKELY, "surname"
    return None
