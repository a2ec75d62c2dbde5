"""Long answers: split into claims by rules, each with a confidence of its own."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import polars as pl

from calibrant.answers.confidence.compact import DrawTable
from calibrant.answers.confidence.likeness import (
    greedy_texts,
    is_function_word,
    texts_by_unit,
    words,
)
from calibrant.answers.confidence.method import Options, register
from calibrant.core.arrays import Floats

_ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|approx|No|Fig|e\.g|i\.e|U\.S|Jr|Sr|Inc|Ltd|[A-Z])\.$"
)
# Letters that are looked at before a full stop: more than any abbreviation has.
_LONGEST_ABBREVIATION = 24
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_VERBS = (
    r"(?:is|are|was|were|has|have|had|can|could|will|would|may|might|does|did|became|becomes|"
    r"won|wrote|lived|died|served|received|led|founded|played|made|began|started|ended|moved|"
    r"studied|worked|helped|used|uses|contains|includes|covers|causes|lies|borders|plays|makes|"
    r"helps|provides|produces|includes|consists|requires|allows|reduces|increases|occurs)"
)
_JOINED = re.compile(rf"(?:;\s+|,?\s+and\s+(?:also\s+)?|,?\s+but\s+(?:also\s+)?)(?={_VERBS}\b)")
_SUBJECT = re.compile(rf"^(.{{1,80}}?)\s+{_VERBS}\b")
_EMPTY_TALK = re.compile(
    r"^(?:sure|of course|certainly|i hope|let me|here (?:is|are)|please|thank|as an ai|"
    r"in (?:summary|conclusion)[,:]?$|note that$|great question)",
    flags=re.IGNORECASE,
)
_FEWEST_WORDS = 3


def split_sentences(text: str) -> list[str]:
    r"""Return the sentences and list entries of a text.

    Examples
    --------
    >>> split_sentences("Dr. Curie won twice. She was born in 1867.\n- Physics prize: 1903")
    ['Dr. Curie won twice.', 'She was born in 1867.', 'Physics prize: 1903']
    """
    sentences = []
    for line in text.splitlines():
        # Long stretches of blanks are one: what looks for the words around them looks once.
        whole = " ".join(_BULLET.sub("", line).split())
        start = 0
        for match in _END.finditer(whole):
            before = whole[max(0, match.start() - _LONGEST_ABBREVIATION) : match.start()]
            if _ABBREVIATION.search(before.rstrip("\"')]")):
                continue
            sentences.append(whole[start : match.start()].strip())
            start = match.end()
        sentences.append(whole[start:].strip())
    return [sentence for sentence in sentences if sentence]


def split_claims(text: str) -> list[str]:
    """Return the claims of a text: one statement each, in its own words.

    A sentence with two predicates makes two claims, and the second one gets the subject of the
    first. Questions, headings, polite phrases and repetitions make none.

    Examples
    --------
    >>> split_claims("Lima is the capital of Peru and has ten million people. Is it nice?")
    ['Lima is the capital of Peru', 'Lima has ten million people']
    """
    claims: dict[str, None] = {}
    for sentence in split_sentences(text):
        if sentence.endswith(("?", ":")) or _EMPTY_TALK.match(sentence):
            continue
        bare = sentence.rstrip(".! ")
        subject = _SUBJECT.match(bare)
        for place, part in enumerate(_JOINED.split(bare)):
            claim = part.strip(" ,;")
            if place and subject:
                claim = f"{subject[1]} {claim}"
            if len(claim.split()) >= _FEWEST_WORDS:
                claims.setdefault(claim)
    return list(claims)


Support = Callable[[str, str], float]
Split = Callable[[str], Sequence[str]]
_NUMBER = re.compile(r"\d[\d,.]*")


def support(claim: str, text: str) -> float:
    """Return how far the words of a text support a claim, in [0, 1].

    It is the share of the claim's content words in the best sentence of the text or in two
    neighbouring ones. A number of the claim that the text does not have halves the support.
    This word rule stands in for entailment; give a judge for more.

    Examples
    --------
    >>> support("Lima is the capital of Peru", "Peru's capital is Lima. It lies on the coast.")
    1.0
    >>> support("She was born in 1867", "She was born in 1900.")
    0.25
    """
    targets = {word for word in words(claim) if not is_function_word(word)}
    if not targets:
        return 0.0
    sentences = [set(words(sentence)) for sentence in split_sentences(text)]
    pairs = [a | b for a, b in pairwise(sentences)]
    best = max((len(targets & said) / len(targets) for said in (*sentences, *pairs)), default=0.0)
    numbers = {number.strip(".,") for number in _NUMBER.findall(claim)}
    present = {number.strip(".,") for number in _NUMBER.findall(text)}
    return best if numbers <= present else best / 2.0


@dataclass(frozen=True, slots=True)
class ClaimScore:
    """One claim with what the samples and the model itself say about it.

    Parameters
    ----------
    claim
        The statement.
    luq
        Mean support by the samples.
    p_true
        The model's own P(True) of the claim; None where it was not asked.
    supported
        Which samples support it (support of at least one half).
    """

    claim: str
    luq: float
    p_true: float | None
    supported: tuple[bool, ...]

    @property
    def confidence(self) -> float:
        """Mean of the two scores that are there."""
        return self.luq if self.p_true is None else (self.luq + self.p_true) / 2.0


@dataclass(frozen=True, slots=True)
class LongScore:
    """Claims of a long answer; its confidence is the mean over claims."""

    claims: tuple[ClaimScore, ...]

    @property
    def confidence(self) -> float:
        """Expected share of right claims; NaN for an answer without claims."""
        if not self.claims:
            return float("nan")
        return float(np.mean([claim.confidence for claim in self.claims]))

    @property
    def weakest(self) -> ClaimScore | None:
        """The claim with the least confidence."""
        return min(self.claims, key=lambda claim: claim.confidence, default=None)


def score_long_answer(
    answer: str,
    samples: Sequence[str],
    *,
    p_true: Mapping[str, float] | None = None,
    split: Split = split_claims,
    supports: Support = support,
) -> LongScore:
    """Split an answer into claims and score each by the samples and by P(True).

    Parameters
    ----------
    answer
        The long answer.
    samples
        Further answers to the same question.
    p_true
        The model's P(True) by claim, where it was asked.
    split, supports
        How claims are found, and how far a text supports a claim; rules by default.

    Examples
    --------
    >>> samples = ["Lima is Peru's capital.", "Lima is on the coast."]
    >>> score = score_long_answer("Lima is the capital of Peru.", samples)
    >>> [(claim.claim, round(claim.luq, 3)) for claim in score.claims]
    [('Lima is the capital of Peru', 0.667)]
    """
    scored = []
    for claim in split(answer):
        values = [supports(claim, text) for text in samples]
        luq = float(np.mean(values)) if values else float("nan")
        belief = None if p_true is None else p_true.get(claim)
        scored.append(ClaimScore(claim, luq, belief, tuple(value >= 0.5 for value in values)))
    return LongScore(tuple(scored))


def claim_draws(scores: Mapping[str, LongScore], grades: Mapping[str, bool]) -> pl.DataFrame:
    """Return claims as questions for Sem-ECE: one row per claim and sample.

    A sample says the claim (class 0) or does not (class 1). The class that says it is right
    where the claim is; the other one where the claim is wrong.

    Parameters
    ----------
    scores
        Long answers by name.
    grades
        Grade of each claim; claims without one are left out.
    """
    rows = [
        {
            "question_id": f"{name}/{place}",
            "class_id": int(not confidence),
            "correct": confidence == right,
        }
        for name, score in scores.items()
        for place, claim in enumerate(score.claims)
        if (right := grades.get(claim.claim)) is not None
        for confidence in claim.supported
    ]
    schema = {"question_id": pl.String, "class_id": pl.Int64, "correct": pl.Boolean}
    return pl.DataFrame(rows, schema=schema)


def _claims_of_greedy(table: DrawTable, reduce: Callable[[Sequence[float]], float]) -> Floats:
    targets, value = greedy_texts(table), np.full(len(table), np.nan)
    for unit, texts in texts_by_unit(table.samples):
        target = targets[unit]
        claims = () if target is None else score_long_answer(target, texts).claims
        if claims:
            value[unit] = reduce([claim.luq for claim in claims])
    return value


@register
def claim_support(table: DrawTable, _: Options) -> Floats:
    """Mean over claims of the greedy answer; undefined where it makes none."""
    return _claims_of_greedy(table, lambda values: float(np.mean(values)))


@register
def claim_support_min(table: DrawTable, _: Options) -> Floats:
    """Least supported claim of the greedy answer."""
    return _claims_of_greedy(table, min)


@register
def luq(table: DrawTable, _: Options) -> Floats:
    """Mean over samples and their sentences of the support by the other samples."""
    value = np.full(len(table), np.nan)
    for unit, texts in texts_by_unit(table.samples):
        means = []
        for place, text in enumerate(texts if len(texts) > 1 else ()):
            peers = [*texts[:place], *texts[place + 1 :]]
            values = [_cached(claim, peer) for claim in split_sentences(text) for peer in peers]
            means.append(float(np.mean(values)) if values else 0.0)
        value[unit] = np.mean(means) if means else np.nan
    return value


# Short answers repeat: a question's fifty draws often have few different texts.
_cached = lru_cache(maxsize=1 << 16)(support)
