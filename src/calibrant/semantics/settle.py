"""Classes and grades of one question's distinct answers; many questions side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from calibrant.semantics.grading.grade import Grade, Grader, References, flatten_references
from calibrant.semantics.judge import Docket, GradeQuery, mask_instructions
from calibrant.semantics.options import Options
from calibrant.semantics.same.cluster import Clusters, cluster_exact, cluster_rules
from calibrant.semantics.same.hybrid import Similarity, Steps, hybrid_steps, is_phrase, run_steps
from calibrant.semantics.text.normalise import Normaliser


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
        names = [flatten_references([entry])[:1] for entry in entries]
        return (*self.siblings, *(name for found in names for name in found))


@dataclass(slots=True)
class Settled:
    """Class and grade of each distinct answer of a group."""

    clusters: Clusters
    grades: list[Grade]
    mixed_classes: int = 0
    masked: list[str] = field(default_factory=list)


class Settler:
    """Settle groups: cluster them, grade one answer per class, let the others inherit.

    Examples
    --------
    >>> settler = Settler(Options())
    >>> group = Group(["Paris.", "Rome", "paris"], [3, 1, 1], references=["Paris"])
    >>> settled = settler.settle([group])[0]
    >>> settled.clusters.ids, [grade.correct for grade in settled.grades]
    ([0, 1, 0], [True, False, True])
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.grader = Grader(
            Normaliser(options.steps), tolerance=options.tolerance, math=options.math
        )
        self.docket = (
            None
            if options.judge is None
            else Docket(
                options.judge, options.max_judge_calls, check_symmetry=options.check_symmetry
            )
        )
        self.similarity = (
            None
            if options.compare is None
            else Similarity(options.compare, options.same_cosine, options.different_cosine)
        )

    def settle(self, groups: Sequence[Group]) -> list[Settled]:
        """Return classes and grades of all groups."""
        clusters = self._cluster(groups)
        settled = [self._grade(group, found) for group, found in zip(groups, clusters, strict=True)]
        self._by_embeddings(groups, settled)
        self._by_judge(groups, settled)
        return settled

    def _cluster(self, groups: Sequence[Group]) -> list[Clusters]:
        how = self.options.clustering
        asks = how in ("hybrid", "judge") and self.docket is not None
        plain = not asks and (self.similarity is None or how in ("rules", "exact"))
        if plain:
            return [self._without_help(group) for group in groups]
        return run_steps([self._steps(group, asks) for group in groups], self.docket)

    def _without_help(self, group: Group) -> Clusters:
        if self.options.clustering == "exact" or group.choices:
            return cluster_exact(group.answers, reader=self.grader.reader)
        return cluster_rules(
            group.answers,
            question=group.question,
            reader=self.grader.reader,
            tolerance=self.options.tolerance,
            math=self.options.math,
            siblings=group.apart,
        )

    def _steps(self, group: Group, asks: bool) -> Steps:
        if group.choices:
            return _at_once(cluster_exact(group.answers, reader=self.grader.reader))
        return hybrid_steps(
            group.answers,
            question=group.question,
            reader=self.grader.reader,
            similarity=None if self.options.clustering == "judge" else self.similarity,
            mode=self.options.judge_mode,
            ask=asks,
            rules=self.options.clustering != "judge",
            tolerance=self.options.tolerance,
            counts=group.counts,
            math=self.options.math,
            siblings=group.apart,
        )

    def _grade(self, group: Group, clusters: Clusters) -> Settled:
        ids = clusters.ids
        if self.options.per_draw:
            grades = [self._one(group, answer) for answer in group.answers]
            by_class: dict[int, set[bool | None]] = {}
            for class_id, grade in zip(ids, grades, strict=True):
                by_class.setdefault(class_id, set()).add(grade.correct)
            return Settled(clusters, grades, sum(len(found) > 1 for found in by_class.values()))
        by_class_grade = {
            class_id: self._one(group, group.answers[place])
            for class_id, place in representatives(ids, group).items()
        }
        return Settled(clusters, [by_class_grade[class_id] for class_id in ids])

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
            (number, place, alias)
            for number, (group, result) in enumerate(zip(groups, settled, strict=True))
            for place in self._open_places(group, result)
            if not result.grades[place].correct and is_phrase(read(group.answers[place]))
            for alias in flatten_references(group.references)
            if is_phrase(read(alias))
        ]
        scores = model.scores(
            [
                (groups[number].question, groups[number].answers[place], alias)
                for number, place, alias in open_pairs
            ]
        )
        for (number, place, _), score in zip(open_pairs, map(float, scores), strict=True):
            if score >= self.options.same_cosine:
                self._spread(settled[number], place, Grade(True, "embedding", probability=score))

    def _by_judge(self, groups: Sequence[Group], settled: list[Settled]) -> None:
        if self.docket is None or self.options.grading not in ("hybrid", "judge"):
            return
        wanted: list[tuple[int, int, GradeQuery]] = []
        for number, (group, result) in enumerate(zip(groups, settled, strict=True)):
            references = tuple(
                text for text in flatten_references(group.references) if text.strip()
            )
            for place in self._open_places(group, result):
                masked = mask_instructions(group.answers[place])
                result.masked.extend(masked.removed)
                # An answer that is nothing but an instruction is never shown to a judge.
                if references and masked.text:
                    query = GradeQuery(group.question, references, masked.text)
                    wanted.append((number, place, query))
        replies = self.docket.ask_all([query for _, _, query in wanted])
        for (number, place, _), reply in zip(wanted, replies, strict=True):
            if isinstance(reply, str):
                self._spread(settled[number], place, self._verdict(reply))

    def _verdict(self, reply: str) -> Grade:
        name = self.docket.judge.name if self.docket is not None else "judge"
        if reply == "NOT_ATTEMPTED":
            return Grade(None, name, "refusal")
        return Grade(reply == "CORRECT", name)

    def _open_places(self, group: Group, result: Settled) -> list[int]:
        """Return the answers to look at again: those that only words have decided."""
        everything = self.options.grading == "judge"
        places = (
            range(len(group.answers))
            if self.options.per_draw
            else representatives(result.clusters.ids, group).values()
        )
        return [
            place
            for place in places
            if result.grades[place].reason == "attempted"
            and (everything or result.grades[place].doubtful)
        ]

    def _spread(self, result: Settled, place: int, grade: Grade) -> None:
        if self.options.per_draw:
            result.grades[place] = replace(grade)
            return
        class_id = result.clusters.ids[place]
        for other, found in enumerate(result.clusters.ids):
            if found == class_id:
                result.grades[other] = grade


def _at_once(clusters: Clusters) -> Steps:
    """Return a clustering that asks nothing."""
    yield from ()
    return clusters


def representatives(ids: Sequence[int], group: Group) -> dict[int, int]:
    """Return the place of the most frequent form of each class (the first, where they tie)."""
    best: dict[int, int] = {}
    for place, class_id in enumerate(ids):
        if class_id not in best or group.counts[place] > group.counts[best[class_id]]:
            best[class_id] = place
    return best
