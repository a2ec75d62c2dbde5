"""What can be chosen about classes and grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.answers.semantics.judge import Judge
from calibrant.answers.semantics.same.hybrid import DIFFERENT_COSINE, MODES, SAME_COSINE
from calibrant.answers.semantics.same.mathematics import algebra
from calibrant.answers.semantics.same.pairs import CosinePairs, PairModel
from calibrant.answers.semantics.text.normalise import Normaliser
from calibrant.core import InputError
from calibrant.core.errors import require_known

if TYPE_CHECKING:
    # Rules need nothing that talks to models.
    from calibrant.models.endpoints.embeddings import Embedder
    from calibrant.models.inference.judge import EmbeddedJudge

CLUSTERINGS = ("hybrid", "rules", "exact", "embeddings", "judge")
GRADINGS = ("hybrid", "rules", "exact", "embeddings", "judge")


@dataclass(frozen=True)
class SemanticsOptions:
    """Choices for `annotate`.

    Parameters
    ----------
    steps
        Normalisation steps, all where None.
    clustering
        ``hybrid`` (rules, then embeddings where an embedder is given, then the judge where one
        is given, else the embedded one), ``rules``, ``exact``, ``embeddings`` (rules and
        embeddings) or ``judge`` (exact strings, then the judge).
    grading
        ``hybrid`` (rules and words; the judge, where given, for what these leave open),
        ``rules``, ``exact``, ``embeddings`` (rules, words and cosine) or ``judge``.
    judge, max_judge_calls, judge_mode, check_symmetry
        Who is asked, how often at most, and how (``confirmed``, ``which``,
        ``pairwise``, ``group``).
    embedded
        The judge that has learned to read (`embedded_judge`): it reads what words have decided,
        and says which answers are one where rules leave it open.
    embedder, same_cosine, different_cosine
        Sentence embeddings and their calibrated thresholds; only phrases are compared.
    pair_model
        Any other model that compares two answers, in place of the embedder (see `PairModel`);
        `same_cosine` and `different_cosine` are its thresholds then, to be set for it.
    math
        Whether formulas are compared by computer algebra (extra ``math``).
    per_draw
        Grade every distinct answer instead of one per class, and report disagreement.
    tolerance
        Relative tolerance of numbers.
    scale, words
        How stated confidences are read (see `parse_confidence`).
    """

    steps: Sequence[str] | None = None
    clustering: str = "hybrid"
    grading: str = "hybrid"
    judge: Judge | None = None
    max_judge_calls: int | None = None
    judge_mode: str = "confirmed"
    check_symmetry: bool = False
    embedded: EmbeddedJudge | None = None
    embedder: Embedder | None = None
    same_cosine: float = SAME_COSINE
    different_cosine: float = DIFFERENT_COSINE
    pair_model: PairModel | None = None
    math: bool = False
    per_draw: bool = False
    tolerance: float = 1e-9
    scale: str = "auto"
    words: bool = True

    def __post_init__(self) -> None:
        known_names = {"clustering": CLUSTERINGS, "grading": GRADINGS, "judge_mode": MODES}
        for name, values in known_names.items():
            value = getattr(self, name)
            require_known([value], values, f"there is no {name} {{}}")
            if value == "judge" and self.judge is None:
                raise InputError(f"{name} 'judge' needs a judge", hint="give Options(judge=...)")
            if value == "embeddings" and self.compare is None:
                raise InputError(
                    f"{name} 'embeddings' needs an embedder",
                    hint="pip install 'calibrant[local]' and give Options(embedder=...)",
                )
        if self.math:
            algebra()
        Normaliser(self.steps)

    @property
    def compare(self) -> PairModel | None:
        """The model that compares two answers: the one given, or the cosine of the embedder."""
        if self.pair_model is not None or self.embedder is None:
            return self.pair_model
        return CosinePairs(self.embedder)
