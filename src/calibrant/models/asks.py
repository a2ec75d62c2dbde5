"""What goes into the dispatcher and what comes out of it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.errors import InputError
from calibrant.models.protocol import Completion, Request


class Ask(Struct, frozen=True):
    """A request, what it is for, and how many independent draws of it are wanted.

    Parameters
    ----------
    request
        The request; its `n` is not used, the dispatcher chooses how many draws a call makes.
    purpose
        Part of the ledger key: ``answer``, ``greedy``, ``verb``, ``judge`` ...
    draws
        Draws 0 to ``draws - 1`` are wanted.
    tag
        Anything that lets the caller recognise the outcome; it is not stored.

    Examples
    --------
    >>> Ask(Request("m", ()), "answer", draws=0)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: an ask wants at least one draw, got 0
    """

    request: Request
    purpose: str
    draws: int = 1
    tag: Hashable = None

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InputError(f"an ask wants at least one draw, got {self.draws}")


class LedgeredDraw(Struct, frozen=True):
    """One draw that is safe in the ledger.

    `cached` is true where it was there before this run; `cost` is None where no price is
    known for the model.
    """

    index: int
    completion: Completion
    cached: bool
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why draws of an ask are missing.

    `kind` is ``permanent`` (recorded; a later run does not try again unless told to) or
    ``exhausted`` (all retries used up; a later run tries again). `status` is the endpoint's own of
    HTTP, `retry_after` the seconds that it asks for, where it said so.
    """

    kind: Literal["permanent", "exhausted"]
    message: str
    # The ledger keeps what happened, not the number it came with.
    status: int | None = field(default=None, compare=False)
    retry_after: float | None = None


class Outcome(Struct, frozen=True):
    """All the draws of one ask, in order of their index, or the problem that prevents them.

    With a problem, `draws` holds those that were got all the same (perhaps none).
    """

    ask: Ask
    draws: tuple[LedgeredDraw, ...]
    problem: Problem | None = None

    @property
    def complete(self) -> bool:
        """Whether every draw that was wanted is there."""
        return len(self.draws) == self.ask.draws


@dataclass(frozen=True, slots=True)
class EndpointNote:
    """Something the endpoint does that a reader of the results must know.

    `kind` is a short name (``draws-not-independent``, ``logprobs-refused``,
    ``model-changed``, ``fewer-choices``, ``endpoint-left-out``,
    ``usage-estimated``, ``answers-odd``, ``ledger-rows-refilled``), `message` a
    sentence, `count` how often it was seen.
    """

    kind: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, prompt and completion; from when and where the price is."""

    prompt: float
    completion: float
    as_of: str | None = None
    source: str | None = None

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return what these tokens cost.

        Examples
        --------
        >>> Price(1.0, 4.0).cost(1_000_000, 500_000)
        3.0
        """
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


@dataclass(frozen=True, slots=True)
class Plan:
    """What is missing in the ledger and what it would take at most.

    `prompt_tokens` is estimated from the length of the texts, `completion_tokens` is the most
    that the requests allow, `cost` is None where no price is known.
    """

    asks: int = 0
    draws_wanted: int = 0
    draws_held: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Counts of a run so far; `notice` is a sentence for the user, where there is a new one."""

    asks_done: int = 0
    draws_new: int = 0
    draws_cached: int = 0
    calls: int = 0
    retries: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    concurrency: int = 0
    elapsed_s: float = 0.0
    notice: str | None = None


def for_draws(request: Request, first: int, n: int) -> Request:
    """Return the request for these draws: draw i has the seed of the request plus i."""
    seed = request.seed
    if n == request.n and (seed is None or not first):
        return request
    return replace(request, n=n, seed=None if seed is None else seed + first)


def split_draws(draws: Sequence[int], most: int) -> list[list[int]]:
    """Split sorted draw indices into runs without gaps, of at most `most`.

    Without gaps, because choice i of a call uses the seed of the call plus i: a draw then has
    the same seed however the draws were shared among calls.

    Examples
    --------
    >>> split_draws([0, 1, 2, 5, 6, 7, 8], 3)
    [[0, 1, 2], [5, 6, 7], [8]]
    """
    runs: list[list[int]] = []
    for draw in draws:
        if runs and len(runs[-1]) < most and draw == runs[-1][-1] + 1:
            runs[-1].append(draw)
        else:
            runs.append([draw])
    return runs
