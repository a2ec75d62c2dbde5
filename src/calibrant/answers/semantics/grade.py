"""Grades: which answers are right, by rules and words, and by a judge where one can read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from calibrant.answers.semantics import verdict
from calibrant.answers.semantics.cluster import relate, why_same
from calibrant.answers.semantics.extract import extract_letter, not_attempted
from calibrant.answers.semantics.forms import (
    NO_COMMON_WORD,
    BagReader,
    Cues,
    FormReader,
    evidence,
    other_date,
    phrase_probability,
    read_cues,
    speaks_of_else,
)
from calibrant.answers.semantics.text.normalise import Normaliser, clean_text, strip_lead_in
from calibrant.answers.semantics.typed import unexplained
from calibrant.answers.semantics.typed.quantities import Relation
from calibrant.answers.semantics.verdict import (
    Grade,
    References,
    embedded_judge,
    flatten_references,
    read_again,
)
from calibrant.core import InputError

if TYPE_CHECKING:
    from calibrant.models.inference.judge import EmbeddedJudge

_SHORT, _SHORT_NAME = 6, 9
_DENIAL = r"\b(?:not(?!\sonly)|never|neither|nor|without|except|cannot|[a-z]{2,6}n't|no)\b"
# In the clause of a mention, close before it, and near the beginning.
_DENIED = re.compile(rf"{_DENIAL}[^,.;:!?\n]{{0,40}}$", re.IGNORECASE)
_TRUE_WORDS = frozenset(["true", "yes", "correct", "right", "1"])
_FALSE_WORDS = frozenset(["false", "no", "incorrect", "wrong", "0"])
_FIRM = frozenset(
    (
        "number", "date", "year", "figures", "name", "opposed", "mark", "yes or no", "mathematics",
        "unit", "missing unit", "range", "era", "numeral", "interval", "set", "sequence",
        "complexity", "formula", "list", "negation", "country", "language",
        "look-alike", "code",
    )
)  # fmt: skip


class Grader:
    """Grade answers against references by rules first, then by shared words and the judge.

    Parameters
    ----------
    normaliser
        The steps that make spellings alike.
    tolerance
        Relative tolerance of numbers.
    math
        Whether formulas are compared by computer algebra (extra ``math``).
    judge
        Who reads what words have decided: ``auto`` is the embedded judge where its weights were
        fetched (`calibrant models fetch`), None rules and words alone.

    Examples
    --------
    >>> grader = Grader(judge=None)
    >>> grader.grade("The capital is Paris.", ["Paris"]).correct
    True
    >>> grader.grade("17", ["13"]).grader
    'number'
    >>> grader.grade("I don't know", ["Paris"])
    Grade(correct=None, grader='refusal', reason='refusal', probability=None)
    """

    def __init__(
        self,
        normaliser: Normaliser | None = None,
        *,
        tolerance: float = 1e-9,
        math: bool = False,
        judge: EmbeddedJudge | Literal["auto"] | None = "auto",
    ) -> None:
        if not 0.0 <= tolerance < 1.0:
            raise InputError(f"the tolerance of numbers lies in [0, 1), got {tolerance}")
        self.normaliser = normaliser or Normaliser()
        self.tolerance = tolerance
        self.math = math
        self.reader = FormReader(self.normaliser)
        self.judge = embedded_judge() if judge == "auto" else judge
        self._bag = BagReader(self.normaliser)

    def grade_all(
        self, asked: Sequence[tuple[str | bytes | None, References, str | None]]
    ) -> list[Grade]:
        """Return the grades of many answers: (answer, references, question) of each.

        The judge reads equal texts once, and what texts of one question begin with once.

        Examples
        --------
        >>> [grade.correct for grade in Grader(judge=None).grade_all(
        ...     [("Lima", "Lima", "Capital of Peru?"), ("Quito", "Lima", "Capital of Peru?")])]
        [True, False]
        """
        ruled = [self._by_hand(*each) for each in asked]
        return read_again(self.judge, ruled, asked)

    def grade(
        self,
        answer: str | bytes | None,
        references: References,
        *,
        question: str | None = None,
        kind: str = "open",
        choices: Sequence[str] | None = None,
        siblings: Sequence[str] = (),
    ) -> Grade:
        """Return the grade of one answer.

        `siblings` are names known not to be right, such as the other things of a benchmark's
        list: an answer that is one of them is wrong, however alike it looks.
        """
        grade = self._by_hand(answer, references, question, kind, choices, siblings)
        return read_again(self.judge, [grade], [(answer, references, question)])[0]

    def _by_hand(
        self,
        answer: str | bytes | None,
        references: References,
        question: str | None,
        kind: str = "open",
        choices: Sequence[str] | None = None,
        siblings: Sequence[str] = (),
    ) -> Grade:
        text = clean_text(answer)[0]
        aliases = [clean_text(alias)[0] for alias in flatten_references(references)]
        missing = not_attempted(text)
        if missing == "empty":
            return Grade(None, "empty", "empty")
        aliases = [alias for alias in aliases if alias.strip()]
        if not aliases:
            return Grade(None, "none", missing or "no reference")
        if choices:
            return self._choice(text, aliases, choices)
        if kind == "binary" and (side := self._side(text)) is not None:
            targets = {self._side(alias) for alias in aliases} - {None}
            if targets:
                return verdict.ruled(side in targets, "binary")
        sibling_keys = {self.reader(name).key for name in siblings}
        if self.reader(text).key in sibling_keys - {self.reader(alias).key for alias in aliases}:
            return verdict.ruled(False, "sibling")
        by_rules = self.by_rules(text, aliases, read_cues(question))
        grade = by_rules.grade or self._by_words(text, by_rules, question)
        if missing and not grade.correct:
            return Grade(None, "refusal", "refusal")
        return grade

    def why(
        self, answer: str, references: References, *, question: str | None = None
    ) -> dict[str, Any]:
        """Say what a grade rests on: the nearest reference, its words, the table that knows both.

        Examples
        --------
        >>> found = Grader(judge=None).why("It was Burma.", ["Laos", "Myanmar"])
        >>> found["reference"], found["rule"], found["known_as"]
        ('Myanmar', 'exact', 'country: myanmar (known_names.txt)')
        >>> found = Grader(judge=None).why("Tom Hanks", ["Tom Cruise"])
        >>> found["shared"], found["missing"], found["doubtful"]
        (['tom'], ['cruise'], True)
        """
        grade, bag = self.grade(answer, references, question=question), self._bag(answer)

        def nearness(alias: str) -> tuple[bool, float]:
            alone = self._by_hand(answer, alias, question)
            return bool(alone.correct), alone.probability or 0.0

        reference = max(flatten_references(references), key=nearness, default="")
        words = self._bag(reference).content
        known_as = why_same(strip_lead_in(answer).rstrip("."), reference, question)["known_as"]
        return {
            "correct": grade.correct,
            "rule": grade.grader,
            "chance": grade.probability,
            "doubtful": grade.doubtful,
            "reference": reference,
            "shared": [word for word in words if bag.has(word)],
            "missing": [word for word in words if not bag.has(word)],
            "known_as": known_as,
        }

    def _side(self, text: str) -> bool | None:
        """Return on which side of a question of yes or no a text begins."""
        first = self.normaliser(text).split()[:1]
        return True if _TRUE_WORDS & {*first} else False if _FALSE_WORDS & {*first} else None

    def _choice(self, text: str, aliases: list[str], choices: Sequence[str]) -> Grade:
        letter = extract_letter(text, choices)
        if letter is None:
            return Grade(None, "letter", "unparsed")
        targets = {extract_letter(alias, choices) for alias in aliases} - {None}
        if not targets:
            raise InputError(
                f"the reference {aliases[0]!r} is neither an option letter nor an option's text",
                hint="options: " + "; ".join(choices),
            )
        return verdict.ruled(letter in targets, "letter")

    def by_rules(self, text: str, aliases: Sequence[str], cues: Cues) -> Ruled:
        """Return the grade where rules decide, else the aliases that stay possible."""
        answer = self.reader(text)
        # What has a type is compared by it: '[0, 1)' is not '[0, 1]', though both have one key.
        untyped = not answer.types or text in aliases
        forms = [self.reader(alias) for alias in aliases]
        if untyped and any(answer.key in (form.key, form.bare) for form in forms):
            return Ruled(verdict.ruled(True, "exact"))
        short = len(answer.words) <= (_SHORT_NAME if answer.named else _SHORT)
        possible: list[str] = []
        against: set[str] = set()
        left_open = False
        for alias, form in zip(aliases, forms, strict=True):
            relation, rule = relate(answer, form, cues, tolerance=self.tolerance, math=self.math)
            if relation is Relation.SAME:
                unsure = rule == "name" and unexplained(answer.words, form.words)
                return Ruled(verdict.ruled(True, unsure or rule))
            left_open |= relation is Relation.UNSURE and rule in verdict.OPEN
            # A long answer may hold the right figure or name among others: words decide there.
            different = relation is Relation.DIFFERENT and rule in _FIRM
            if short and (different or rule == "clash"):
                against.add(rule)
            else:
                possible.append(alias)
        if not possible:
            # The least sure of several rules speaks for all.
            rule = min(against, key=lambda rule: (rule not in verdict.DOUBTED, rule))
            return Ruled(verdict.ruled(False, rule))
        return Ruled(None, possible, left_open)

    def _by_words(self, text: str, ruled: Ruled, question: str | None) -> Grade:
        aliases = ruled.possible
        answer, request = self._bag(text), self._bag(question or "")
        # People still accept some answers that share no word with a reference: the base rate.
        best = NO_COMMON_WORD
        for alias in aliases:
            features = evidence(answer, self._bag(alias), request, aliases=len(aliases))
            if features is not None:
                best = max(best, phrase_probability(features))
        if best >= 0.5 and _denies(text, aliases, question):
            return verdict.ruled(False, "denied")
        reply = self.reader(text)
        names = reply.named and any(
            ref.named and unexplained(reply.words, ref.words) for ref in map(self.reader, aliases)
        )
        # 'May 5, 2004' and '2004' are right: 'June 6, 2004' names the year alone.
        other_day = any(other_date(answer, self._bag(alias)) for alias in aliases)
        elsewhere = best >= 0.5 and speaks_of_else(answer, list(map(self._bag, aliases)), request)
        if ruled.left_open or names or other_day or elsewhere:
            best = verdict.kept_open(best)
        return Grade(best >= 0.5, "phrase", probability=best)


def _denies(text: str, aliases: Sequence[str], question: str | None = None) -> bool:
    """Return whether a denial stands before every mention of a reference.

    Examples
    --------
    >>> _denies("It was not Paris, it was Rome.", ["Paris"]), _denies("Not only Rome", ["Rome"])
    (True, False)
    """
    if question and re.search(_DENIAL, question, re.IGNORECASE):
        return False
    words = (r"\W{1,3}".join(map(re.escape, re.findall(r"\w+", alias)[:12])) for alias in aliases)
    mention = rf"\b(?:{'|'.join(filter(None, words)) or '(?!)'})\b"
    starts = [m.start() for m in re.finditer(mention, text[:6000], re.IGNORECASE)]
    return bool(starts) and all(_DENIED.search(text[max(0, x - 80) : x]) for x in starts)


@dataclass(frozen=True, slots=True)
class Ruled:
    """What rules say: a grade, or the aliases left, and whether a type could not decide."""

    grade: Grade | None
    possible: list[str] = field(default_factory=list)
    left_open: bool = False
