"""What is left of the agreement where nothing was made by looking at the labels.

Two answers: a grader without any rule or word list of ours, fitted on the fitted half alone, and
the shipped grader on labels that no weight was fitted to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from calibrant.answers.semantics import forms as evidence_module
from calibrant.answers.semantics.forms import BagReader, evidence
from calibrant.answers.semantics.text.normalise import Normaliser

PLAIN_STEPS = ("unicode", "accents", "case", "punctuation", "articles")
# Overlap of words, both ways, containment and length: what anybody would try first.
FIRST_TRIED = ("fresh_share", "contained", "precision", "answer_length")
# All features that need no list of words.
WITHOUT_LISTS = (
    *FIRST_TRIED,
    "figures_missing",
    "figures_conflict",
    "all_precise",
    "last_word",
    "first_word",
    "aliases",
    "short",
)


@contextmanager
def without_word_lists() -> Iterator[None]:
    """Switch off generic words and near spellings."""
    with ExitStack() as stack:
        for name, empty in (
            ("GENERIC", frozenset()),
            ("near_word", lambda _word, _others: False),
        ):
            stack.enter_context(mock.patch.object(evidence_module, name, empty))
        yield


class BareGrader:
    """A logistic regression on shared words: no rule, no word list, no near spelling."""

    def __init__(self, features: Sequence[str]) -> None:
        self.features = features
        self.read = BagReader(Normaliser(PLAIN_STEPS))

    def _vectors(self, row: Any) -> list[list[float]]:
        aliases = [alias for alias in row.references if alias.strip()]
        if not row.answer.strip():
            return []
        answer, asked = self.read(row.answer), self.read(row.question)
        each = (evidence(answer, self.read(a), asked, aliases=len(aliases)) for a in aliases)
        return [[found[name] for name in self.features] for found in each if found is not None]

    def fit(self, rows: Sequence[Any]) -> BareGrader:
        """Learn weights and threshold from these rows alone."""
        pairs = [(vectors, row.right) for row in rows if (vectors := self._vectors(row))]
        labels = [right for _, right in pairs]
        weights = np.ones(len(self.features))
        for _ in range(6):  # the best alias depends on the weights; this settles quickly
            best = np.array([max(v, key=lambda x: float(weights @ x)) for v, _ in pairs])
            scale = StandardScaler().fit(best)
            model = LogisticRegression(max_iter=5000).fit(scale.transform(best), labels)
            weights = model.coef_[0] / scale.scale_
            self.intercept = float(model.intercept_[0] - weights @ scale.mean_)
        self.weights = weights
        return self

    def __call__(self, row: Any) -> bool:
        return any(
            self.intercept + float(self.weights @ vector) >= 0 for vector in self._vectors(row)
        )


def bare_graders(rows: Sequence[Any]) -> dict[str, Callable[[Any], bool]]:
    """Both bare graders, fitted on the rows of part 'fit'; call them `without_word_lists`."""
    fitted = [row for row in rows if row.part == "fit"]
    return {
        "shared words, 4 features, nothing of ours": BareGrader(FIRST_TRIED).fit(fitted),
        "shared words, 11 features, no rule or list": BareGrader(WITHOUT_LISTS).fit(fitted),
    }


def unseen_rows(folder: Path, seen: set[str], make: Callable[..., Any]) -> list[Any]:
    """Answers to open questions that an LLM judge graded; questions of the label sets left out."""
    table = pl.read_parquet(folder / "scores" / "open_qa_6_models.parquet").drop_nulls(
        ["extracted_answer", "target"]
    )
    known = {plain_question(question) for question in seen}
    names = {"nq": "Natural Questions", "triviaqa": "TriviaQA"}
    return [
        make(
            r["question"],
            (r["target"],),
            r["extracted_answer"],
            r["correct"] == 1.0,
            names[r["dataset"]],
        )
        for r in table.to_dicts()
        if plain_question(r["question"]) not in known
    ]


def plain_question(question: str) -> str:
    """Return a question as it is compared: case and question mark do not count."""
    return question.lower().strip(" ?")
