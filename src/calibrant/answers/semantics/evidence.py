"""How strongly an answer's words speak for a reference: a few numbers, then one probability."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import orjson

from calibrant.answers.semantics.forms import STOP_WORDS
from calibrant.answers.semantics.text.names import GENERIC
from calibrant.answers.semantics.text.normalise import Normaliser, Once, squeeze
from calibrant.answers.semantics.text.words import listed, near_word, phrases

# The weights of the phrase model; the file says how they were fitted.
_MODEL = orjson.loads(resources.files(__package__).joinpath("phrase_model.json").read_bytes())
INTERCEPT: float = _MODEL["intercept"]
WEIGHTS: dict[str, float] = _MODEL["weights"]
# Share of answers that people accept although they share no word with any reference.
NO_COMMON_WORD: float = _MODEL["no_common_word"]


_TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+(?:\+\+|#)?")
# Dates as the normaliser writes them, 'xx' for a part that is not told.
_DATE = re.compile(r"\b(\d{4}|x{4})_(\d{2}|xx)_(\d{2}|xx)\b")
_ENDINGS = frozenset(("st", "nd", "rd", "th"))
_UNSURE = re.compile(rf"\b(?:{phrases('unsure')})\b", re.IGNORECASE)
_GLUED_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z]{3})")
# A footnote mark is often glued to a year ('20102').
_GLUED_YEAR = re.compile(r"^(?:1[0-9]|20)\d{3}$")
_MAYBE_GLUED = re.compile(r"[a-z\d](?:[A-Z][a-z]|(?<=[a-z])\d|(?<=\d)[a-z]{3})").search
# '950.00' is 950.
_WHOLE = re.compile(r"\.0+$")
_MOST_READ = 6000
_SAYS_MORE = 2
_DENIALS = frozenset(listed("denials"))


@dataclass(frozen=True)
class Bag:
    """The words of a text, in order and as a set, with an index by first letter."""

    raw: str
    key: str
    words: tuple[str, ...]
    known: frozenset[str]
    content: tuple[str, ...]
    dates: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def by_letter(self) -> dict[str, list[str]]:
        """Words long enough to have near spellings, by first letter."""
        index: dict[str, list[str]] = {}
        for word in self.known:
            if len(word) > 4:
                index.setdefault(word[0], []).append(word)
        return index

    def has(self, word: str) -> bool:
        """Return whether the word or a near spelling of it is there."""
        return word in self.known or near_word(word, self.by_letter.get(word[0], []))


class BagReader:
    """Turn texts into bags of words, each distinct text once."""

    def __init__(self, normaliser: Normaliser | None = None) -> None:
        self.normaliser = normaliser or Normaliser()
        self._known = Once(self._read, 200_000)

    def __call__(self, text: str) -> Bag:
        """Return the bag of one text."""
        return self._known[text]

    def _read(self, text: str) -> Bag:
        text = squeeze(text[:_MOST_READ])
        key = self.normaliser(text)
        words = words_of(key)
        vocabulary = set(words) | {w[:4] for w in words if len(w) == 5 and _GLUED_YEAR.match(w)}
        if _MAYBE_GLUED(text):
            # 'wasByron': a missing space hides both words.
            vocabulary.update(_TOKEN.findall(self.normaliser(_GLUED_WORD.sub(" ", text))))
        content = tuple(word for word in words if word not in STOP_WORDS) or tuple(words)
        dates = tuple(match.groups() for match in _DATE.finditer(key)) if "_" in key else ()
        return Bag(text, key, tuple(words), frozenset(vocabulary), content, dates)


def words_of(key: str) -> list[str]:
    """Return the words of a normalised text, endings of figures left out.

    Examples
    --------
    >>> words_of("950.00 men of the 5 th legion")
    ['950', 'men', 'of', 'the', '5', 'legion']
    """
    words: list[str] = []
    for word in _TOKEN.findall(key):
        if not (word in _ENDINGS and words and words[-1].isdigit()):
            words.append(_WHOLE.sub("", word) if "." in word else word)
    return words


def _share(words: Sequence[str], bag: Bag) -> float:
    return sum(map(bag.has, words)) / len(words) if words else 0.0


def other_date(answer: Bag, reference: Bag) -> bool:
    """Return whether the answer tells dates, and none of them can be the reference's."""
    if len(reference.dates) != 1 or not answer.dates:
        return False
    targets = reference.dates[0]
    return not any(
        all(x == y or "x" in x or "x" in y for x, y in zip(date, targets, strict=True))
        for date in answer.dates
    )


def speaks_of_else(answer: Bag, references: Sequence[Bag], question: Bag) -> bool:
    """Return whether an answer may mention a reference and mean something else.

    It denies something, or it leaves the question aside: 'It was long thought to be Rembrandt,
    until Vermeer was shown' takes up less than a third of the question's words, and has two or
    more that neither question nor references have.

    Examples
    --------
    >>> read = BagReader()
    >>> question, right = read("Who painted the Milkmaid?"), [read("Vermeer")]
    >>> speaks_of_else(read("Critics long took Vermeer for Rembrandt"), right, question)
    True
    >>> speaks_of_else(read("The Milkmaid was painted by Vermeer in Delft"), right, question)
    False
    """
    known = (question, *references)
    if _DENIALS & (answer.known - question.known):
        return True
    known = (question, *references)
    topic = set(question.content).difference(*(each.known for each in references))
    # Near spellings are looked for where the words themselves are too few: few answers get there.
    if 3 * len(topic & answer.known) >= len(topic) or 3 * sum(map(answer.has, topic)) >= len(topic):
        return False
    additions = {w for w in answer.content if not any(each.has(w) for each in known)}
    return len(additions) >= _SAYS_MORE


def evidence(
    answer: Bag, reference: Bag, question: Bag, *, aliases: int = 1
) -> dict[str, float] | None:
    """Return what speaks for the answer, each in [0, 1] or a logarithm; None without evidence.

    Words of the question tell nothing: they are left out of `fresh_share` and of what the
    answer adds. `figures_missing` is the share of the reference's figures that the answer
    lacks, `other_date` whether it tells only other dates, `precision` the share of the answer's own
    words that the reference has.

    Examples
    --------
    >>> read = BagReader()
    >>> found = evidence(read("It was Tom Hanks"), read("Tom Hanks"), read("Who was it?"))
    >>> found["fresh_share"], found["contained"]
    (1.0, 1.0)
    """
    gold = tuple(word for word in reference.content if word not in GENERIC) or reference.content
    if not gold:
        return None
    request = question.known
    fresh = [word for word in gold if word not in request] or list(gold)
    share = _share(gold, answer)
    added = [word for word in answer.content if word not in request]
    precision = _share(added, reference)
    if share == 0.0 and precision == 0.0:
        return None
    figures = [word for word in gold if word[0].isdigit()]
    missing = sum(word not in answer.known for word in figures) / len(figures) if figures else 0.0
    other_figures = any(word[0].isdigit() and word not in request for word in answer.known)
    contained = f" {' '.join(reference.words)} " in f" {' '.join(answer.words)} "
    return {
        "fresh_share": _share(fresh, answer),
        "contained": float(contained),
        "figures_missing": missing,
        "figures_conflict": float(bool(figures) and missing == 1.0 and other_figures),
        "other_date": float(other_date(answer, reference)),
        "precision": precision,
        "all_precise": float(bool(added) and precision == 1.0),
        "last_word": float(answer.has(gold[-1])),
        "first_word": float(answer.has(gold[0])),
        "answer_length": math.log1p(len(answer.words)),
        "unsure": float(bool(_UNSURE.search(answer.raw))),
        "aliases": math.log1p(aliases),
        "short": float(len(answer.words) < 8),
    }


def phrase_probability(features: Mapping[str, float]) -> float:
    """Return the probability that people accept the answer, from its features."""
    total = INTERCEPT + sum(weight * features[name] for name, weight in WEIGHTS.items())
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))
