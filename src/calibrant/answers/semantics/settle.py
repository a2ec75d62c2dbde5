"""Classes and grades of one question's distinct answers, and what can be chosen about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calibrant.answers.semantics import hybrid
from calibrant.answers.semantics.cluster import Clusters, cluster_exact
from calibrant.answers.semantics.grade import Grader
from calibrant.answers.semantics.judge import Docket, GradeQuery, Judge, mask_instructions
from calibrant.answers.semantics.mathematics import algebra
from calibrant.answers.semantics.text.normalise import Normaliser
from calibrant.answers.semantics.verdict import (
    Grade,
    References,
    flatten_references,
    read_again,
)
from calibrant.core import InputError
from calibrant.core.errors import require_known

if TYPE_CHECKING:
    from calibrant.models.endpoints.embedded import Embedder
    from calibrant.models.inference.judge import EmbeddedJudge

CLUSTERINGS = ("hybrid", "rules", "exact", "embeddings", "judge")
GRADINGS = ("hybrid", "rules", "exact", "embeddings", "judge")
MODES = ("confirmed", "which", "pairwise", "group")


@dataclass(frozen=True)
class SemanticsOptions:
    """Choices for `annotate`.

    Parameters
    ----------
    steps
        Normalisation steps, all where None.
    clustering
        ``hybrid`` (rules, then who is there of the judge, the embedded one and the embedder, in
        this order), ``rules``, ``exact``, ``embeddings`` (rules, then the embedder) or ``judge``
        (exact strings, then the judge).
    grading
        ``hybrid`` (rules and words; the judge, where given, for what these leave open),
        ``rules``, ``exact``, ``embeddings`` (rules, words and cosine) or ``judge``.
    judge, max_judge_calls, judge_mode, check_symmetry
        Who is asked, how often at most, and how: ``which`` (one call per doubtful form, shown
        all classes), ``confirmed`` (the same with a second opinion), ``pairwise`` (one call per
        pair of form and class, most similar first) or ``group`` (one call for all forms, checked
        for completeness, with ``confirmed`` as the way out).
    embedded
        The judge that has learned to read (`embedded_judge`): it reads what words have decided,
        and says which answers are one where rules leave it open.
    embedder, same_cosine
        Sentence embeddings and their calibrated threshold; only phrases are compared.
    pair_model
        Any other model that compares two answers, in place of the embedder (see `PairModel`);
        `same_cosine` is its threshold then, to be set for it.
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
    same_cosine: float = hybrid.SAME_COSINE
    pair_model: hybrid.PairModel | None = None
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
    def compare(self) -> hybrid.PairModel | None:
        """The model that compares two answers: the one given, or the cosine of the embedder."""
        if self.pair_model is not None or self.embedder is None:
            return self.pair_model
        return hybrid.CosinePairs(self.embedder)


@dataclass(frozen=True, slots=True)
class Group:
    """The distinct answers of one question and model, in order of first appearance."""

    answers: list[str]
    counts: list[int]
    question: str = ""
    references: References = None
    kind: str = "open"
    choices: Sequence[str] | None = None
    siblings: Sequence[str] = ()

    @property
    def apart(self) -> tuple[str, ...]:
        """Names that mean different things: the known siblings, and each right answer's own name.

        Examples
        --------
        >>> Group([], [], references=[["Minsk Region", "Minsk oblast"]], siblings=["Minsk"]).apart
        ('Minsk', 'Minsk Region')
        """
        if not self.siblings:
            return ()
        entries = [self.references] if isinstance(self.references, str) else self.references or ()
        names = (name for entry in entries for name in flatten_references([entry])[:1])
        return (*self.siblings, *names)


@dataclass(slots=True)
class Settled:
    """Classes of a group's distinct answers, and the grades of those that speak for the others.

    `spoken_for_by` holds for each answer the place of the one whose grade it has.
    """

    clusters: Clusters
    spoken_for_by: list[int]
    verdicts: dict[int, Grade]
    mixed_classes: int = 0
    masked: list[str] = field(default_factory=list)

    @property
    def grades(self) -> list[Grade]:
        """The grade of each distinct answer."""
        return [self.verdicts[place] for place in self.spoken_for_by]


class Settler:
    """Settle groups: cluster them, grade one answer per class, let the others inherit.

    Examples
    --------
    >>> settler = Settler(SemanticsOptions())
    >>> group = Group(["Paris.", "Rome", "paris"], [3, 1, 1], references=["Paris"])
    >>> settled = settler.settle([group])[0]
    >>> settled.clusters.ids, [grade.correct for grade in settled.grades]
    ([0, 1, 0], [True, False, True])
    """

    def __init__(self, options: SemanticsOptions) -> None:
        self.options = options
        self.grader = Grader(
            Normaliser(options.steps), tolerance=options.tolerance, math=options.math, judge=None
        )
        self.docket: Docket | None = None
        if options.judge is not None:
            self.docket = Docket(options.judge, options.max_judge_calls, options.check_symmetry)
        self.sameness, self.scope = self._sameness()

    def _sameness(self) -> tuple[Docket | None, str | None]:
        """Return who says which answers are one where rules leave it open, and of which."""
        options, how = self.options, self.options.clustering
        if self.docket is not None and how in ("hybrid", "judge"):
            return self.docket, "all"
        if options.embedded is not None and how == "hybrid":
            # Log-odds of 0: as likely one as two.
            return Docket(hybrid.PairJudge(hybrid.ReadPairs(options.embedded), same=0.0)), "near"
        if (model := options.compare) is not None and how in ("hybrid", "embeddings"):
            return Docket(hybrid.PairJudge(model, options.same_cosine)), "phrases"
        return None, None

    def settle(self, groups: Sequence[Group]) -> list[Settled]:
        """Return classes and grades of all groups."""
        clusters = hybrid.run_steps([self._steps(group) for group in groups], self.sameness)
        settled = [self._grade(group, split) for group, split in zip(groups, clusters, strict=True)]
        self._by_embeddings(groups, settled)
        self._by_judge(groups, settled)
        return settled

    def read_again(self, groups: Sequence[Group], settled: Sequence[Settled]) -> int:
        """Let the embedded judge read what words have decided; return how many answers it read."""
        judge = self.options.embedded
        if judge is None or self.docket is not None or self.options.grading != "hybrid":
            return 0
        open_ones = [
            (result, place, (group.answers[place], group.references, group.question))
            for group, result in zip(groups, settled, strict=True)
            for place, grade in result.verdicts.items()
            if grade.by_words
        ]
        grades = [result.verdicts[place] for result, place, _ in open_ones]
        read = read_again(judge, grades, [request for _, _, request in open_ones])
        for (result, place, _), grade in zip(open_ones, read, strict=True):
            result.verdicts[place] = grade
        return len(open_ones)

    def _steps(self, group: Group) -> hybrid.Steps:
        how, read = self.options, self.grader.reader
        if how.clustering == "exact" or group.choices:
            return cluster_exact(group.answers, reader=read)
        return (yield from hybrid.hybrid_steps(group, how, reader=read, scope=self.scope))

    def _grade(self, group: Group, clusters: Clusters) -> Settled:
        ids, speakers = clusters.ids, list(range(len(clusters.ids)))
        if not self.options.per_draw:
            # The most frequent form of each class speaks for it, the first of several.
            rising = sorted(speakers, key=lambda place: (group.counts[place], -place))
            heaviest = {ids[place]: place for place in rising}
            speakers = [heaviest[class_id] for class_id in ids]
        verdicts = {n: self._one(group, group.answers[n]) for n in dict.fromkeys(speakers)}
        outcomes = {(ids[place], grade.correct) for place, grade in verdicts.items()}
        mixed = Counter(class_id for class_id, _ in outcomes)
        return Settled(clusters, speakers, verdicts, sum(each > 1 for each in mixed.values()))

    def _one(self, group: Group, answer: str) -> Grade:
        grade = self.grader.grade(
            answer,
            group.references,
            question=group.question,
            kind=group.kind,
            choices=group.choices,
            siblings=group.siblings,
        )
        if self.options.grading == "exact" and grade.grader not in ("exact", "letter", "empty"):
            return Grade(None if grade.correct is None else False, "exact", grade.reason)
        return grade

    def _by_embeddings(self, groups: Sequence[Group], settled: list[Settled]) -> None:
        """Accept a phrase that words left open and whose cosine with a reference is clear."""
        model = self.options.compare
        if model is None or self.options.grading not in ("embeddings", "hybrid"):
            return
        read = self.grader.reader
        open_pairs = [
            (result, place, (group.question, group.answers[place], alias))
            for group, result in zip(groups, settled, strict=True)
            for place in self._open_places(result)
            if not result.verdicts[place].correct and hybrid.is_phrase(read(group.answers[place]))
            for alias in flatten_references(group.references)
            if hybrid.is_phrase(read(alias))
        ]
        scores = model.scores([pair for _, _, pair in open_pairs])
        for (result, place, _), score in zip(open_pairs, map(float, scores), strict=True):
            if score >= self.options.same_cosine:
                result.verdicts[place] = Grade(True, "embedding", probability=score)

    def _by_judge(self, groups: Sequence[Group], settled: list[Settled]) -> None:
        if self.docket is None or self.options.grading not in ("hybrid", "judge"):
            return
        targets: list[tuple[Settled, int, GradeQuery]] = []
        for group, result in zip(groups, settled, strict=True):
            references = tuple(filter(str.strip, flatten_references(group.references)))
            for place in self._open_places(result):
                masked = mask_instructions(group.answers[place])
                result.masked.extend(masked.removed)
                # An answer that is nothing but an instruction is never shown to a judge.
                if references and masked.text:
                    query = GradeQuery(group.question, references, masked.text)
                    targets.append((result, place, query))
        replies = self.docket.ask_all([query for _, _, query in targets])
        name = self.docket.judge.name
        for (result, place, _), reply in zip(targets, replies, strict=True):
            if reply == "NOT_ATTEMPTED":
                result.verdicts[place] = Grade(None, name, "refusal")
            elif isinstance(reply, str):
                result.verdicts[place] = Grade(reply == "CORRECT", name)

    def _open_places(self, result: Settled) -> list[int]:
        """Return the answers to look at again: those that only words have decided."""
        everything = self.options.grading == "judge"
        return [
            place
            for place, grade in result.verdicts.items()
            if grade.reason == "attempted" and (everything or grade.doubtful)
        ]
