"""Questions to a judge, their replies, and the docket that counts, bounds and remembers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from calibrant.core import InputError

GRADES = ("CORRECT", "INCORRECT", "NOT_ATTEMPTED")


@dataclass(frozen=True, slots=True)
class SameQuery:
    """Do `a` and `b` mean the same as answers to the question? Reply: bool."""

    question: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class WhichQuery:
    """Which of the candidates means the same as the answer? Reply: its index, or -1 for none."""

    question: str
    answer: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """Put all answers into groups of one meaning. Reply: one group number per answer."""

    question: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GradeQuery:
    """Is the answer right, given the references? Reply: one of `GRADES`."""

    question: str
    references: tuple[str, ...]
    answer: str


Query: TypeAlias = SameQuery | WhichQuery | GroupQuery | GradeQuery
Reply: TypeAlias = bool | int | str | tuple[int, ...] | None


class Judge(Protocol):
    """Something that answers queries; None for a reply that could not be read."""

    @property
    def name(self) -> str:
        """Name of the judge, recorded as the grader."""

    def answer_all(self, queries: Sequence[Query]) -> list[Reply]:
        """Return one reply per query, in order."""


@dataclass
class Docket:
    """Ask a judge, never twice for the same, never more than `max_calls` times.

    Parameters
    ----------
    judge
        Who is asked.
    max_calls
        Calls allowed; further queries are answered with None and counted in `refused`.
    check_symmetry
        Ask 'same?' in both orders. Where the two replies differ the pair counts as different
        and is kept in `asymmetric`.

    Examples
    --------
    >>> from calibrant.semantics.judging.simulated import SimulatedJudge
    >>> docket = Docket(SimulatedJudge({"UK": 0, "Britain": 0}), max_calls=1)
    >>> query = SameQuery("Where?", "UK", "Britain")
    >>> docket.ask_all([query, query]), docket.calls
    ([True, True], 1)
    """

    judge: Judge
    max_calls: int | None = None
    check_symmetry: bool = False
    calls: int = 0
    refused: int = 0
    unreadable: int = 0
    asymmetric: list[tuple[str, str]] = field(default_factory=list)
    _known: dict[Query, Reply] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.max_calls is not None and self.max_calls < 0:
            raise InputError(f"max_calls is 0 or more, got {self.max_calls}")

    def ask_all(self, queries: Sequence[Query]) -> list[Reply]:
        """Return one reply per query, asking only what is not known yet."""
        wanted = [_canonical(query) for query in queries]
        if self.check_symmetry:
            mirrored = [_mirror(query) for query in wanted if isinstance(query, SameQuery)]
            self._fetch([*wanted, *mirrored])
            return [self._both_ways(query) for query in wanted]
        self._fetch(wanted)
        return [self._known.get(query) for query in wanted]

    def _fetch(self, queries: Sequence[Query]) -> None:
        missing = [query for query in dict.fromkeys(queries) if query not in self._known]
        if self.max_calls is not None:
            room = max(0, self.max_calls - self.calls)
            self.refused += len(missing) - len(missing[:room])
            missing = missing[:room]
        if not missing:
            return
        self.calls += len(missing)
        for query, reply in zip(missing, self.judge.answer_all(missing), strict=True):
            self.unreadable += reply is None
            self._known[query] = reply

    def _both_ways(self, query: Query) -> Reply:
        reply = self._known.get(query)
        if not isinstance(query, SameQuery):
            return reply
        other = self._known.get(_mirror(query))
        if reply is None or other is None or reply == other:
            return reply if other is None else other
        if (query.a, query.b) not in self.asymmetric:
            self.asymmetric.append((query.a, query.b))
        return False


def _canonical(query: Query) -> Query:
    """Sameness is symmetric: one spelling of the query serves both orders."""
    if isinstance(query, SameQuery) and query.a > query.b:
        return _mirror(query)
    return query


def _mirror(query: SameQuery) -> SameQuery:
    return SameQuery(query.question, query.b, query.a)
