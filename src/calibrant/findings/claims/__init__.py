"""Every sentence about data: the hypothesis, the test, the correction for number, the words.

A file per verb. `declared` lists all rules once `calibrant.findings.claims.checks` is loaded.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from operator import getitem
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from calibrant.core.names import data_beside, method_name
from calibrant.findings.documents.entries import OUTCOMES as OUTCOMES
from calibrant.findings.documents.entries import Claim as Claim
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.entries import Outcome as Outcome

# The most often that any one sentence may be false.
ALPHA = 0.05

# What a sentence is made of: numbers and names of the document, nothing else.
Facts: TypeAlias = Mapping[str, Any]
# Whose claim it is: model and method, a group, a pair, a policy.
Subject: TypeAlias = Mapping[str, object]
Sentence: TypeAlias = Callable[[Facts], str]


class About(Struct, frozen=True):
    """What claims are about, with the facts that their sentences share."""

    subject: Subject
    facts: Facts = {}


class ClaimRule(Struct, frozen=True):
    """A declared kind of claim.

    Parameters
    ----------
    id
        Verb and name, ``audit.over_confident``.
    question
        What a reader asks, in plain words.
    hypothesis
        What the claim says when it is shown, in symbols.
    test
        How that is decided.
    correction
        What is done about many claims of this kind in one document.
    sentences
        A sentence per outcome, made from the facts of the document.
    margin
        Default margin, where the rule has one.
    opposite
        Rule that is told in its place where the data point the other way: one test, two names.
    """

    id: str
    question: str
    hypothesis: str
    test: str
    correction: str
    sentences: Mapping[Outcome, Sentence]
    margin: float | None = None
    opposite: str | None = None

    def claim(
        self,
        outcome: Outcome | bool,
        about: About,
        facts: Facts | None = None,
        *,
        estimate: Mapping[str, Any] | EstimateEntry | None = None,
        p_adjusted: float | None = None,
        margin: float | None = None,
        n: float | None = None,
    ) -> Claim:
        """Return a claim of this kind with its sentence.

        Parameters
        ----------
        outcome
            What the test said; for one that may only show: whether it did.
        about
            What it is about.
        facts
            What the sentence is made of, beside the estimate, the margin and the shared facts.
        estimate
            ``value``, ``low``, ``high`` and ``n`` of the quantity.
        p_adjusted, margin, n
            As in `Claim`; the margin is that of the rule and n that of the estimate unless given.
        """
        if not isinstance(outcome, str):
            outcome = "shown" if outcome else "undecided"
        if outcome not in self.sentences:
            raise KeyError(f"{self.id} has no sentence for the outcome {outcome!r}")
        sizes = asdict(estimate) if isinstance(estimate, EstimateEntry) else estimate or {}
        margin = self.margin if margin is None else margin
        all_facts = {**about.facts, **sizes, "margin": margin, **(facts or {})}
        return Claim(
            self.id,
            about.subject,
            outcome,
            " ".join(self.sentences[outcome](all_facts).split()),
            sizes.get("value"),
            sizes.get("low"),
            sizes.get("high"),
            p_adjusted,
            margin,
            sizes.get("n") if n is None else n,
        )


_RULES: dict[str, ClaimRule] = {}


def declare(rule: ClaimRule) -> ClaimRule:
    """Add a rule to the list of everything that calibrant may say.

    Examples
    --------
    >>> from calibrant.findings.claims import audit, declared
    >>> "audit.over_confident" in {rule.id for rule in declared()}
    True
    """
    if rule.id in _RULES:
        raise ValueError(f"the claim {rule.id} is declared twice")
    _RULES[rule.id] = rule
    return rule


def declared() -> Iterator[ClaimRule]:
    """Yield every rule that is loaded, in order of its id."""
    yield from (_RULES[name] for name in sorted(_RULES))


def percent(share: float) -> str:
    """Return a share as percent: whole numbers, and one digit where a whole one would say all.

    Examples
    --------
    >>> percent(0.7651), percent(0.996), percent(0.003), percent(1 - 1e-16), percent(-1e-17)
    ('77 %', '99.6 %', '0.3 %', '100 %', '0 %')
    """
    # Rounding in a sum may leave 1e-15 of 0 or of 100: those are the ends.
    value = 100 * share
    value = next((end for end in (0.0, 100.0) if abs(value - end) < 1e-9), value)
    near_end = 0 < value < 1 or 99 < value < 100
    digits = 1 if near_end and value != round(value) else 0
    text = f"{value:.{digits}f}"
    if near_end and text in ("0.0", "100.0"):
        text = "less than 0.1" if value < 1 else "more than 99.9"
    return f"{text} %"


def points(difference: float, *, sign: bool = False) -> str:
    """Return a difference of two shares in percentage points.

    Examples
    --------
    >>> points(0.1042), points(0.012), points(0.0004), points(-0.2, sign=True), points(0.01)
    ('10 points', '1.2 points', 'less than 0.1 points', '-20 points', '1 point')
    """
    text = point_number(abs(difference))
    unit = "point" if text == "1" else "points"
    if text == "0" and difference != 0:
        return "less than 0.1 points"
    mark = ("-" if difference < 0 else "+") if sign and text != "0" else ""
    return f"{mark}{text} {unit}"


def point_number(size: float, *, digits: int | None = None) -> str:
    """Return the bare number of points: one digit below ten points, none above.

    Examples
    --------
    >>> point_number(0.1042), point_number(0.0121), point_number(0.02)
    ('10', '1.2', '2')
    """
    value = 100 * size
    places = (0 if abs(value) >= 9.95 else 1) if digits is None else digits
    text = f"{value:.{places}f}"
    text = text.removesuffix(".0") if "." in text else text
    return "0" if text == "-0" else text


def points_range(low: float | None, high: float | None) -> str:
    """Return an interval of a difference: '6 to 14'.

    Examples
    --------
    >>> points_range(0.061, 0.139), points_range(-0.012, 0.031), points_range(None, 0.1)
    ('6.1 to 14', '-1.2 to 3.1', 'not known')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "not known"
    return f"{point_number(low)} to {point_number(high)}"


def count(number: int, noun: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count(1, "question"), count(12032, "question")
    ('1 question', '12,032 questions')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def labels_text(more: float | None, what: str = "labels") -> str:
    """Return how many more labels would decide, rounded as such a forecast deserves.

    Examples
    --------
    >>> labels_text(387), labels_text(12_340), labels_text(None, "questions")
    ('about 400 more labels', 'about 12,000 more labels', 'more questions')
    """
    if more is None or not math.isfinite(more):
        return f"more {what}"
    if more > 1e7:
        return f"more {what} than is practical"
    size = max(math.ceil(more), 10)
    unit = 10 ** max(len(str(size)) - (1 if size < 1000 else 2), 1)
    rounded = max(round(size / unit) * unit, unit)
    return f"about {rounded:,} more {what}"


def joined(names: Sequence[str], *, most: int = 3) -> str:
    """Return names as a list in a sentence, the first ones where there are many.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    visible = list(names[:most])
    if len(names) > most:
        return f"{', '.join(visible)} and {len(names) - most} more"
    if len(visible) < 2:
        return "".join(visible)
    return f"{', '.join(visible[:-1])} and {visible[-1]}"


def subject_name(subject: Mapping[str, Any]) -> str:
    """Return how a sentence calls its subject: model, method where it says more, group.

    Examples
    --------
    >>> subject_name({"model": "small", "method": "verb", "group": {"topic": "law"}})
    'small (verb: stated confidence, topic law)'
    >>> subject_name({"model": "model", "method": "confidence"})
    'The confidence'
    """
    model, method = subject.get("model"), subject.get("method")
    group = subject.get("group") or {}
    more = [method_name(str(method), aside=True)] if method not in (None, "confidence") else []
    more += [f"{name} {value}" for name, value in group.items()]
    name = "The confidence" if model in (None, "model") else str(model)
    return f"{name} ({', '.join(more)})" if more else name


def about_model(model: str, method: str | None, *, named: bool, **facts: Any) -> About:
    """Return a model with its confidence, and how sentences call it, where they name it."""
    subject = {"model": model, "method": method}
    return About(subject, {"name": subject_name(subject), "named": named, **facts})


_ABOUT = ("question", "hypothesis", "test", "correction")
_PLACE = re.compile(r"\{([\w.]+)(?::([^}]+))?\}")
# How a fact is written, by the word behind its name; other words are format specifications.
_WRITTEN: dict[str, Callable[[Any], str]] = {
    "percent": percent,
    "points": points,
    "size": lambda value: points(abs(value)),
    # A squared error, as the size of error it stands for.
    "typical": lambda square: points(max(square, 0.0) ** 0.5),
    "number": point_number,
    "range": lambda ends: points_range(*ends),
    "list": joined,
    "Labels": lambda more: labels_text(more).capitalize(),
}
_PARTS: dict[str, Sentence] = {
    "lead": lambda facts: f"{facts['name']}: " if facts["named"] else "",
    "from_to": lambda facts: points_range(facts["low"], facts["high"]),
}


def rule(
    name: str, *, margin: float | None = None, opposite: str | None = None, **words: Sentence
) -> ClaimRule:
    """Declare a rule whose words stand in the file of its verb.

    Parameters
    ----------
    name
        Id of the rule: verb, and name in the verb's file.
    margin, opposite
        As in `ClaimRule`.
    **words
        What fills a place of a sentence, by the name of the place; of a place that has several
        wordings in the file, which of them. Outcomes are places too.
    """
    verb, _, entry = name.partition(".")
    output = dict(_written(verb)[entry])
    about = {key: _line(output.pop(key)) for key in _ABOUT}
    parts = {**_PARTS, **words}
    for key, text in output.items():
        parts[key] = _part(text, words.get(key), parts)
    sentences: Any = {outcome: parts[outcome] for outcome in OUTCOMES if outcome in parts}
    return declare(ClaimRule(name, **about, sentences=sentences, margin=margin, opposite=opposite))


@cache
def _written(verb: str) -> dict[str, dict[str, Any]]:
    return data_beside(__file__, f"sentences/{verb}.toml")


def _line(text: str) -> str:
    return " ".join(text.split())


def _part(
    text: str | Mapping[str, str], which: Sentence | None, parts: Mapping[str, Sentence]
) -> Sentence:
    if isinstance(text, str):
        return partial(_filled, _line(text), parts)
    assert which is not None
    return lambda facts: _filled(_line(text[which(facts)]), parts, facts)


def _filled(text: str, parts: Mapping[str, Sentence], facts: Facts) -> str:
    """Return words with their places filled; `{start}` names the subject, or begins a sentence."""

    def place(match: re.Match[str]) -> str:
        name, how = match.groups()
        if how is None and name in parts:
            return parts[name](facts)
        value: Any = reduce(getitem, name.split("."), facts)
        if how is None:
            return str(value)
        if how.startswith("count "):
            return count(value, how.removeprefix("count "))
        if "/" in how:
            return how.split("/")[int(value < 0)]
        return _WRITTEN[how](value) if how in _WRITTEN else format(value, how)

    body = text.removeprefix("{start}")
    filled = _PLACE.sub(place, body)
    if body == text:
        return filled
    return f"{facts['name']}: {filled}" if facts["named"] else filled[0].upper() + filled[1:]
