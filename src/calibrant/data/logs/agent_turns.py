"""Turns of agents: which reply answers a run, which lead to it, and what an opinion is about.

A reply that calls a tool is a step; the next reply of the same run that calls none is the answer.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from calibrant.data.logs import exchange
from calibrant.data.logs.log import ForeignLog, believed_tokens


class Turn(Struct, frozen=True):
    """A span of a trace: where it stands, whether it is a reply, and which tools it calls."""

    id: str
    trace: str
    parent: str | None = None
    start: str = ""
    reply: bool = False
    tools: tuple[str, ...] = ()
    is_agent: bool = False
    is_tool: bool = False


class Runs:
    """Turns in runs: the steps of each answer, and the answer that each span is about.

    Parameters
    ----------
    turns
        All spans of a log.

    Examples
    --------
    >>> spans = [
    ...     Turn("root", "t"),
    ...     Turn("a", "t", "root", "1", True, ("search",)),
    ...     Turn("b", "t", "root", "2", True),
    ... ]
    >>> runs = Runs(spans)
    >>> runs.steps, runs.judged("root"), runs.judged("a")
    ({'b': ['a']}, 'b', 'a')
    """

    def __init__(self, turns: Iterable[Turn]) -> None:
        self.by_id = {turn.id: turn for turn in turns}
        groups: dict[str, list[Turn]] = defaultdict(list)
        for turn in self.by_id.values():
            if turn.reply:
                around = (self.by_id[place] for place in self._above(turn) if place in self.by_id)
                agent = next((peer.id for peer in around if peer.is_agent), turn.trace)
                groups[agent].append(turn)
        self.steps: dict[str, list[str]] = {}
        self.unanswered: dict[str, list[str]] = {}
        self._below: dict[str, list[str]] = defaultdict(list)
        self._of_trace: dict[str, list[str]] = defaultdict(list)
        self.runs: dict[str, str] = {}
        for run, replies in groups.items():
            waiting: list[str] = []
            # A sort is stable: spans without a time stay in their order.
            for turn in sorted(replies, key=lambda turn: turn.start):
                if turn.tools:
                    waiting.append(turn.id)
                else:
                    self.steps[turn.id], waiting = waiting, []
                    self.runs[turn.id] = run
                    self._of_trace[turn.trace].append(turn.id)
                    for place in self._above(turn):
                        self._below[place].append(turn.id)
            if waiting:
                self.unanswered[run] = waiting

    def _above(self, turn: Turn) -> Iterable[str]:
        earlier: set[str] = set()
        place = turn.parent
        while place is not None and place not in earlier:
            earlier.add(place)
            yield place
            parent = self.by_id.get(place)
            place = None if parent is None else parent.parent

    @property
    def has_tools(self) -> bool:
        """Whether any reply calls a tool."""
        return bool(self.unanswered) or any(self.steps.values())

    def add_to(
        self,
        log: ForeignLog,
        opinions: Mapping[str, exchange.Raw],
        model: Callable[[str], str],
        tokens: Callable[[str], Sequence[Any] | None] = lambda _: None,
    ) -> None:
        """Add the turns of every run, and list the runs that end without an answer.

        Parameters
        ----------
        log
            Takes turns and problems.
        opinions
            What was said of each span, by name.
        model, tokens
            Model and tokens of a span.
        """
        for run, steps in self.unanswered.items():
            tools = ", ".join(self.by_id[steps[-1]].tools)
            log.problem(f"run {run}", f"it ends with a call of {tools} and has no answer")
        for answer, steps in self.steps.items() if self.has_tools else ():
            turns = [
                AgentTurn(
                    self.by_id[place].tools,
                    opinions.get(place, {}).get(exchange.CONFIDENCE),
                    tokens(place),
                )
                for place in (*steps, answer)
            ]
            grade = exchange.grade_among(opinions.get(answer, {}), log.options.grade).correct
            add_run(log, self.runs[answer], model(answer), grade, turns)

    def judged(self, place: str) -> str | None:
        """Return the reply that an opinion on a span is about; None where that is not told."""
        turn = self.by_id[place]
        if turn.reply:
            return place
        if turn.is_tool:
            return None
        below = self._below.get(place) or self._of_trace.get(turn.trace, [])
        # An agent inside another has answers of its own.
        below = [answer for answer in below if self.runs[answer] == place] or below
        if len(below) == 1:
            return below[0]
        # Of several answers of one agent the last is the run's; others may be apart.
        one_run = len({self.runs[answer] for answer in below}) == 1
        agentic = any(self.steps[answer] for answer in below)
        return below[-1] if below and one_run and agentic else None


class AgentTurn(Struct, frozen=True):
    """A turn of a run: the tools it calls, what it states, and the log-probs of its tokens."""

    tools: Sequence[str]
    stated: Any = None
    tokens: Sequence[Any] | None = None


def add_run(
    log: ForeignLog, run: str, model: str, correct: float | None, steps: Sequence[AgentTurn]
) -> None:
    """Add the turns of a run, each with the outcome of the whole run."""
    for number, step in enumerate(steps):
        confidence = None if step.stated is None else exchange.number_in(step.stated)
        logs = believed_tokens(log, step.tokens or (), None)
        log.step(
            run=run,
            model=model,
            step=number,
            tool=", ".join(step.tools) or None,
            stated=None if confidence is None else log.options.fraction(confidence),
            perplexity=math.exp(math.fsum(logs) / len(logs)) if logs else None,
            correct=correct,
        )
