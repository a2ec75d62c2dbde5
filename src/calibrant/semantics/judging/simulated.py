"""A judge that knows the truth and errs at a known rate: for planning and for tests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from calibrant.core import InputError
from calibrant.core.rng import named_stream
from calibrant.semantics.judging.judge import (
    GradeQuery,
    GroupQuery,
    Query,
    Reply,
    SameQuery,
    WhichQuery,
)


class SimulatedJudge:
    """Answer from known meanings, wrongly with probability `error_rate`, the same every time.

    Parameters
    ----------
    meanings
        Answer text -> meaning. For grading, -1 is wrong and any other meaning is right.
    error_rate
        Probability that one comparison is wrong.
    compound
        Whether a reply that compares with n candidates is wrong with probability
        ``1 - (1 - error_rate) ** n`` instead of `error_rate`.
    seed
        Replies depend on seed and query alone, not on the order of asking.

    Examples
    --------
    >>> judge = SimulatedJudge({"UK": 0, "Britain": 0, "France": 1})
    >>> judge.answer_all([SameQuery("q", "UK", "Britain"), WhichQuery("q", "France", ("UK",))])
    [True, -1]
    """

    def __init__(
        self,
        meanings: Mapping[str, int],
        *,
        error_rate: float = 0.0,
        compound: bool = False,
        seed: int = 0,
    ) -> None:
        if not 0.0 <= error_rate <= 1.0:
            raise InputError(f"error_rate lies in [0, 1], got {error_rate}")
        self.meanings = dict(meanings)
        self.error_rate = error_rate
        self.compound = compound
        self.seed = seed
        self.calls = 0

    @property
    def name(self) -> str:
        """Name of the judge."""
        return f"simulated(error={self.error_rate})"

    def answer_all(self, queries: Sequence[Query]) -> list[Reply]:
        """Return one reply per query."""
        self.calls += len(queries)
        return [self._answer(query) for query in queries]

    def _answer(self, query: Query) -> Reply:
        digest = hashlib.blake2b(repr(query).encode("utf-8", "replace"), digest_size=8).hexdigest()
        rng = named_stream(self.seed, "judge", digest)
        wrong = bool(rng.random() < self._chance_of_error(query))
        if isinstance(query, SameQuery):
            return (self.meanings[query.a] == self.meanings[query.b]) != wrong
        if isinstance(query, WhichQuery):
            meanings = [self.meanings[text] for text in query.candidates]
            mine = self.meanings[query.answer]
            truth = meanings.index(mine) if mine in meanings else -1
            others = [index for index in range(-1, len(meanings)) if index != truth]
            return int(rng.choice(others)) if wrong else truth
        if isinstance(query, GroupQuery):
            return self._group(query, wrong, int(rng.integers(len(query.answers))))
        assert isinstance(query, GradeQuery)
        right = self.meanings[query.answer] >= 0
        return "CORRECT" if right != wrong else "INCORRECT"

    def _chance_of_error(self, query: Query) -> float:
        if not self.compound:
            return self.error_rate
        size = 1
        if isinstance(query, WhichQuery):
            size = len(query.candidates)
        elif isinstance(query, GroupQuery):
            size = len(query.answers) * (len(query.answers) - 1) // 2
        return float(1.0 - (1.0 - self.error_rate) ** size)

    def _group(self, query: GroupQuery, wrong: bool, place: int) -> tuple[int, ...]:
        """Return the true groups; an error moves one answer into a group of its own."""
        groups = [self.meanings[text] for text in query.answers]
        if wrong:
            groups[place] = max(groups) + 1
        return tuple(groups)
