"""A second look: sources and rules that the questions were not made from."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import isqrt
from typing import Any

from calibrant.answers.semantics.text.normalise import strip_accents
from calibrant.bench.questions.facts import FactSet
from calibrant.bench.questions.question import WORDS, BenchQuestion, named_answer, normalised
from calibrant.bench.questions.shipped_facts import (
    cldr_official,
    language_names,
    listed_divisions,
    official_languages,
    state_names,
)
from calibrant.core.errors import MissingDependencyError

_EMPTY_LAND = frozenset(normalised(name) for name in WORDS["uninhabited"])
_UNKNOWN = re.compile(
    r"\b(?:unknown|undetermined|unspecified|n/?a|none|null|nan|tbd|test)\b(?: language| region)?",
    flags=re.IGNORECASE,
)
_BARE_ID = re.compile(r"\b[QLP]\d{2,}\b")
_LONGEST_NAME = 120


def implausible(question: BenchQuestion) -> Iterator[str]:
    """Yield what is implausible about a question, nothing where all is well.

    Examples
    --------
    >>> text = "Name one country where Unknown language is spoken."
    >>> bad = BenchQuestion(text, (("Antarctica",),), "language", "", "test")
    >>> list(implausible(bad))
    ['the question asks about something unknown', 'nobody lives in Antarctica']
    """
    if _UNKNOWN.search(question.text) and question.domain != "math":
        yield "the question asks about something unknown"
    if _BARE_ID.search(question.text):
        yield "the question holds a bare id"
    if not question.references:
        yield "there is no right answer"
    if name := named_answer(question):
        yield f"the question names its answer: {name}"
    yield from _names(question)
    yield from _twice(question)
    wrong = {normalised(name) for name in question.siblings}
    right = {normalised(name) for names in question.references for name in names}
    if wrong & right:
        yield f"both right and known to be wrong: {', '.join(sorted(wrong & right))}"


def _names(question: BenchQuestion) -> Iterator[str]:
    for names in question.references:
        name = names[0].strip() if names else ""
        if not name:
            yield "a right answer has no name"
        elif normalised(name) in _EMPTY_LAND:
            yield f"nobody lives in {name}"
        elif _BARE_ID.fullmatch(name) or _UNKNOWN.fullmatch(name):
            yield f"a right answer is no name: {name}"
        elif len(name) > _LONGEST_NAME:
            yield f"a right answer is longer than a name: {name[:40]}.."


def _twice(question: BenchQuestion) -> Iterator[str]:
    """Yield answers that share a name: k counts them twice."""
    owners: dict[str, int] = {}
    for place, names in enumerate(question.references):
        for name in {normalised(text) for text in names}:
            if owners.setdefault(name, place) != place:
                yield f"two right answers share the name {name!r}"
                return


UNSEEN = "not covered"
_OF = re.compile(r"^Name one (?:spoken )?language that is official[^.]*? in (?P<names>[^.]+?)"
                 r"(?:, by law.*)?\.$")  # fmt: skip
_IN = re.compile(r"^Name one (?:country|member state|state)[^.]* where (?P<names>[^.]+?) is an? "
                 r"official language.*\.$")  # fmt: skip
_LETTERS = re.compile(r"^Name one (?P<kind>.+?) of (?P<country>.+?) whose name in ISO 3166-2 "
                      r"begins with (?:the letter (?P<one>[A-Z])|a letter from (?P<low>[A-Z]) to "
                      r"(?P<high>[A-Z]))\.$")  # fmt: skip
_SPAN = re.compile(r"(\d+)\D+(\d+)")


def look_at_languages(question: BenchQuestion) -> str | None:
    """Compare with Unicode CLDR and with the list by hand: both must have every right answer."""
    if match := _OF.match(question.text):
        states = _codes_of_names(match["names"], _state_keys())
        if not states:
            return UNSEEN
        listed = official_languages()
        if out := [code for code in states if code in listed.left_out]:
            return f"the official languages of {state_names()[out[0]][0]} are not certain"
        lists = [
            frozenset().union(*(official.get(code, frozenset()) for code in states))
            for official in (listed.states, cldr_official())
        ]
        return _first_difference(question, lists, _language_keys(), language_names())
    if match := _IN.match(question.text):
        tongues = set(_codes_of_names(match["names"], _language_keys()))
        if not tongues:
            return UNSEEN
        listed = official_languages()
        if out := sorted(c for c, spoken in listed.left_out.items() if spoken & tongues):
            return f"not certain whether it is official in {state_names()[out[0]][0]}"
        lists = [
            frozenset(code for code in listed.states if official.get(code, frozenset()) & tongues)
            for official in (listed.states, cldr_official())
        ]
        names = {code: called[0] for code, called in state_names().items()}
        return _first_difference(question, lists, _state_keys(), names)
    return UNSEEN


def _first_difference(
    question: BenchQuestion,
    lists: Sequence[frozenset[str]],
    keys: dict[str, str],
    names: dict[str, str],
) -> str | None:
    """Return how the right answers differ from one of the lists of codes; None where they do not.

    `keys` has the code of every name, `names` the name of every code.
    """
    answers = {keys.get(normalised(name), "") for ref in question.references for name in ref} - {""}
    return next(filter(None, (_differ(answers, expected, names) for expected in lists)), None)


def _differ(answers: set[str], expected: frozenset[str], names: dict[str, str]) -> str | None:
    wrong, missing = sorted(answers - expected), sorted(expected - answers)
    return _difference_in_words(
        *([names.get(code, code) for code in codes] for codes in (wrong, missing))
    )


def _difference_in_words(wrong: Sequence[str], missing: Sequence[str]) -> str | None:
    parts = (("another source does not have", wrong), ("it also has", missing))
    return "; ".join(f"{word} {', '.join(names)}" for word, names in parts if names) or None


def _codes_of_names(text: str, keys: dict[str, str]) -> list[str]:
    """Return the codes of the names that 'A, B or C' consists of; all must be known."""
    whole = keys.get(normalised(text))
    if whole is not None:
        return [whole]
    codes = [keys.get(normalised(part), "") for part in re.split(r", | or ", text)]
    return codes if all(codes) else []


@lru_cache(maxsize=1)
def _state_keys() -> dict[str, str]:
    return {normalised(name): code for code, names in state_names().items() for name in names}


@lru_cache(maxsize=1)
def _language_keys() -> dict[str, str]:
    names = {normalised(name): code for code, name in language_names().items() if "_" not in code}
    for code, peers in official_languages().also_called.items():
        names.update({normalised(name): code for name in peers})
    return names


def look_at_divisions(question: BenchQuestion) -> str | None:
    """Compare with the divisions that were written down by hand."""
    match = _LETTERS.match(question.text)
    if match is None:
        return UNSEEN
    lists = {(item.country, item.kind): item.names for item in listed_divisions()[1]}
    names = lists.get((match["country"].removeprefix("the "), match["kind"].lower()))
    if names is None:
        return UNSEEN
    low, high = (match["one"], match["one"]) if match["one"] else (match["low"], match["high"])
    answers = {normalised(name) for reference in question.references for name in reference}
    inside = [entity for entity in names if low <= strip_accents(entity[0])[0].upper() <= high]
    missing = [e[0] for e in inside if not {normalised(name) for name in e} & answers]
    right = {normalised(name) for entity in inside for name in entity}
    wrong = [r[0] for r in question.references if not {normalised(n) for n in r} & right]
    return _difference_in_words(wrong, missing)


def look_at_numbers(question: BenchQuestion) -> str | None:
    """Test every number of a Math question by the definition of its kind, one by one."""
    span = _SPAN.search(question.text)
    kind = next((name for name in _DEFINITIONS if name in question.text.lower()), None)
    if span is None or kind is None or int(span[2]) - int(span[1]) > _LONGEST_SPAN:
        return UNSEEN
    holds = _DEFINITIONS[kind]
    expected = {n for n in range(int(span[1]), int(span[2]) + 1) if holds(n)}
    answers = {int(names[0]) for names in question.references if names[0].isdecimal()}
    if answers != expected or len(answers) != question.k:
        return f"by definition the answers are {sorted(expected)}"
    return None


def _square(number: int) -> bool:
    return number >= 0 and isqrt(number) ** 2 == number


def _cube(number: int) -> bool:
    near = round(number ** (1 / 3))
    return number in ((near - 1) ** 3, near**3, (near + 1) ** 3)


def _prime(number: int) -> bool:
    return number > 1 and all(number % part for part in range(2, int(number**0.5) + 1))


_LONGEST_SPAN = 20_000
_DEFINITIONS: dict[str, Callable[[int], bool]] = {
    "prime": _prime,
    "square": _square,
    "cube": _cube,
    "fibonacci": lambda n: _square(5 * n * n + 4) or _square(5 * n * n - 4),
    "triangular": lambda n: _square(8 * n + 1),
}


_LOOKS: dict[str, Callable[[BenchQuestion], str | None]] = {
    "language": look_at_languages,
    "region": look_at_divisions,
    "math": look_at_numbers,
}


def second_look(
    questions: Sequence[BenchQuestion], own: Mapping[str, FactSet] | None = None
) -> dict[str, Any]:
    """Return what other sources say about the questions.

    Parameters
    ----------
    questions
        Questions to look at.
    own
        Facts by relation that may bring a second list of their own, or be symmetric.

    Returns
    -------
    dict
        ``looked_at``: questions that another source covers; ``not_covered``; ``findings``: one
        entry per contradiction, with the question, the rule or source and the detail;
        ``only_listed``: questions that nothing but the list behind them speaks for. Math is true
        by rule and never among them.
    """
    findings: list[dict[str, Any]] = []
    observed: Counter[str] = Counter()
    for question in questions:
        problems = [("plausibility", text) for text in implausible(question)]
        facts = (own or {}).get(question.subtype)
        if facts is not None and facts.symmetric:
            problems += [("symmetry", text) for text in one_sided(question, facts)]
        contradiction = _contradiction(question, facts)
        observed["not_covered" if contradiction == UNSEEN else "looked_at"] += 1
        observed["only_listed"] += contradiction == UNSEEN and question.domain != "math"
        if contradiction not in (None, UNSEEN):
            problems.append(("another source", str(contradiction)))
        about = {name: getattr(question, name) for name in ("question_id", "domain", "text")}
        findings += [{**about, "rule": rule, "detail": detail} for rule, detail in problems]
    counts = {name: observed[name] for name in ("looked_at", "not_covered", "only_listed")}
    return {**counts, "findings": findings}


def look_at_second_list(question: BenchQuestion, facts: FactSet) -> str | None:
    """Compare with the second list that a domain of one's own brings."""
    parsed = facts.wording.read(question.text, facts.facts)
    if parsed is None or parsed.bounds is not None:
        return UNSEEN
    lists = [facts.second.get(normalised(subject)) for subject in parsed.subjects]
    if not all(lists):
        return UNSEEN
    expected = frozenset().union(*(objects for objects in lists if objects))
    answers, called = set(), {}
    for names in question.references:
        forms = {normalised(name) for name in names}
        key = next(iter(sorted(forms & expected)), normalised(names[0]))
        answers.add(key)
        called[key] = names[0]
    return _differ(answers, expected, called)


def one_sided(question: BenchQuestion, facts: FactSet) -> Iterator[str]:
    """Yield where a symmetric list has one direction only: A has B, but B does not have A."""
    parsed = facts.wording.read(question.text, facts.facts)
    for subject in parsed.subjects if parsed is not None else ():
        for fact in facts.facts.get(subject, ()):
            back = facts.facts.get(fact.obj)
            if back is not None and normalised(subject) not in {peer.key for peer in back}:
                yield f"{subject} has {fact.obj}, but {fact.obj} does not have {subject}"
        for peer, theirs in facts.facts.items():
            missing = any(fact.key == normalised(subject) for fact in theirs)
            if missing and normalised(peer) not in {fact.key for fact in facts.facts[subject]}:
                yield f"{peer} has {subject}, but {subject} does not have {peer}"


def _contradiction(question: BenchQuestion, facts: FactSet | None) -> str | None:
    if facts is not None and facts.second:
        return look_at_second_list(question, facts)
    look = _LOOKS.get(question.domain)
    if look is None:
        return UNSEEN
    try:
        return look(question)
    except MissingDependencyError:
        return UNSEEN  # the package with the other source is not installed
