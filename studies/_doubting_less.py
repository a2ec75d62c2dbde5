"""How few grades could be doubtful? What clauses, candidates and kinds of question would add.

Boosted and randomised trees on all of it, fitted to the fitted half, beside the shipped grader:
the share of wrong grades among those that are not doubtful, by the share that is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from calibrant.answers.semantics import Grader
from calibrant.answers.semantics.grading.agreement import cohen_kappa
from calibrant.answers.semantics.grading.doubt import stance
from calibrant.answers.semantics.grading.evidence import (
    WEIGHTS,
    BagReader,
    evidence,
    phrase_probability,
)

DOUBTFUL = (0.30, 0.35, 0.40, 0.45, 0.50)
_NAME = re.compile(r"\b[A-Z][\w'-]*(?:\s(?:of\s|the\s|and\s)?[A-Z][\w'-]*)*")
_FIGURE = re.compile(r"\d[\d,.]*")
_SENTENCE = re.compile(r"(?<=\w{3})[.!?\n]+\s")
_MEANT = re.compile(r"\b(?:is|was|are|were|by|called|named|in|on|as|:)\s(?:the\s|an?\s)?\W?$", re.I)
_TURN = re.compile(r"\b(?:not?|never|or|but|however|although|though|actually|instead)\b|\?", re.I)
_ASKED = ("who", "when", "where", "many", "how", "what", "which", "why")
_READ = 6000


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _rivals(text: str, reference: str, named: set[str]) -> int:
    """Count candidates of the reference's type that neither it nor the question names."""
    pattern = _FIGURE if re.search(r"\d", reference) else _NAME
    return sum(not _words(found[0]) & named for found in pattern.finditer(text))


def _mention(text: str, aliases: Sequence[str]) -> re.Match[str] | None:
    found = []
    for alias in aliases:
        words = re.findall(r"\w+", alias)[:12]
        if words:
            pattern = r"\b" + r"\W{1,3}".join(words) + r"\b"
            found += re.finditer(pattern, text, re.IGNORECASE)
    return min(found, key=lambda each: each.start(), default=None)


def _clause(text: str, mention: re.Match[str] | None, reference: str, row: Any) -> list[float]:
    """Where the mention stands, what its sentence repeats of the question and names beside it."""
    if mention is None:
        return [-1.0] * 9
    before = text[: mention.start()]
    start = max((found.end() for found in _SENTENCE.finditer(before)), default=0)
    rest = _SENTENCE.split(text[mention.end() :], maxsplit=1)[0]
    sentence = text[start : mention.end()] + rest
    asked = _words(row.question)
    named = asked | _words(" ".join(row.references))
    return [
        len(_SENTENCE.findall(before)),
        mention.start() / len(text),
        min(mention.start(), 400),
        float(bool(_MEANT.search(before[-30:]))),
        len(asked & _words(sentence)) / max(1, len(asked)),
        _rivals(sentence, reference, named),
        _rivals(before, reference, named),
        float(not rest.strip(" .")),
        float(bool(_TURN.search(sentence))),
    ]


def features(rows: Sequence[Any]) -> tuple[Any, Any]:
    """Everything that words tell about each row, and the grader's own chance."""
    grader, bag = Grader(), BagReader()
    common = Counter(word for row in rows if row.part == "fit" for word in bag(row.answer).known)
    rules: dict[str, int] = {}
    table, chances = [], []
    for row in rows:
        grade = grader.grade(row.answer, row.references, question=row.question)
        chances.append(0.02 if grade.probability is None else grade.probability)
        aliases = [alias for alias in row.references if alias.strip()]
        answer, asked = bag(row.answer), bag(row.question)
        each = [(evidence(answer, bag(a), asked, aliases=len(aliases)), a) for a in aliases]
        told = [(phrase_probability(e), e, a) for e, a in each if e is not None]
        chance, best, reference = max(told, key=lambda one: one[0], default=(0.0, {}, aliases[0]))
        text = row.answer[:_READ] or " "
        mention = _mention(text, aliases)
        gold = bag(reference).content
        rare = [math.log((common.total() + 1) / (common[word] + 1)) for word in gold]
        has = [answer.has(word) for word in gold]
        kept = [r for r, there in zip(rare, has, strict=True) if there]
        lost = [r for r, there in zip(rare, has, strict=True) if not there]
        named = _words(row.question) | _words(" ".join(aliases))
        table.append(
            [
                *(best.get(name, -1.0) for name in WEIGHTS),
                chance,
                chances[-1],
                rules.setdefault(grade.grader, len(rules)),
                next((k for k, w in enumerate(_ASKED) if w in row.question.lower().split()), 9),
                len(answer.words),
                len(_SENTENCE.findall(text)),
                len(gold),
                len(aliases),
                np.mean([_mention(text, [alias]) is not None for alias in aliases]),
                max(kept, default=-1.0),
                max(lost, default=-1.0),
                sum(kept) / max(sum(rare), 1e-9),
                _rivals(text, reference, named),
                float(bool(re.search(r"\d", reference))),
                float(reference[:1].isupper()),
                float(bool(re.search(r",|\band\b|;", reference))),
                float(stance(text, aliases, row.question) == "open"),
                *_clause(text, mention, reference, row),
            ]
        )
    return np.array(table, dtype=float), np.array(chances)


def doubting_less_table(rows: Sequence[Any], parts: Sequence[str]) -> list[list[Any]]:
    """Kappa, and wrong grades among the others where so many are doubtful, by model and part."""
    table, chance = features(rows)
    right = np.array([row.right for row in rows])
    part = np.array([row.part for row in rows])
    fitted = part == "fit"
    boosted = HistGradientBoostingClassifier(
        max_iter=250, learning_rate=0.04, max_leaf_nodes=12, min_samples_leaf=25,
        l2_regularization=5.0, random_state=0,
    ).fit(table[fitted], right[fitted])  # fmt: skip
    trees = ExtraTreesClassifier(300, min_samples_leaf=4, max_features=0.4, random_state=0)
    trees.fit(table[fitted], right[fitted])
    both = boosted.predict_proba(table)[:, 1] + trees.predict_proba(table)[:, 1]
    found = {"shipped": chance, "two kinds of trees": both / 2}
    return [
        [name, p, *_curve(values[part == p], right[part == p])]
        for p in parts
        for name, values in found.items()
    ]


def _curve(chance: Any, right: Any) -> list[str]:
    graded = chance >= 0.5
    counts = np.zeros((2, 2))
    np.add.at(counts, (graded.astype(int), right.astype(int)), 1)
    wrong = (graded != right)[np.argsort(np.minimum(chance, 1 - chance), kind="stable")]
    shares = [wrong[: round(len(wrong) * (1 - share))].mean() for share in DOUBTFUL]
    return [f"{cohen_kappa(counts):.3f}", *(f"{100 * share:.1f} %" for share in shares)]
