"""What goes into the dispatcher, what comes out, and what endpoints can be asked for."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct, structs

from calibrant.core.errors import CapabilityError, InputError, require_known
from calibrant.core.names import Registry, data_beside
from calibrant.models.protocol import Capabilities, Completion, Json, Request


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


class EndpointNote(Struct, frozen=True):
    """Something the endpoint does that a reader of the results must know.

    `kind` is a short name (``draws-not-independent``, ``logprobs-refused``,
    ``model-changed``, ``fewer-choices``, ``endpoint-left-out``,
    ``usage-estimated``, ``answers-odd``, ``ledger-rows-refilled``), `message` a
    sentence, `count` how often it was seen.
    """

    kind: str
    message: str
    count: int = 1


class Price(Struct, frozen=True):
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


class Plan(Struct, frozen=True):
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


class RunProgress(Struct, frozen=True):
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
    return structs.replace(request, n=n, seed=None if seed is None else seed + first)


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


FULL_SAMPLING = {"top_k": 0.0, "top_p": 1.0, "min_p": 0.0}
REASONING = {"logprobs": False, "top_logprobs": 0, "temperature": False, "thinking_tokens": 4096}
"""What a model gives that is known to think; its room for that where nobody said how much."""


class ProviderPreset(Struct, frozen=True):
    """One provider, as ``presets.toml`` describes it.

    Parameters
    ----------
    able
        What it can give, as changes to `Capabilities`; see `capabilities_of`.
    base_url, key_env
        Where it is, and the environment variable that usually holds its key (None: no key).
    wire
        Interface that it speaks: ``chat``, ``responses``, ``messages``, ``content``.
    thinks
        Pattern of the names of models that think before they answer.
    max_tokens_field, seed_field
        Its names for these settings.
    sampler
        Settings that are always sent, because the server's own defaults cut the distribution.
    integer_logprobs
        Whether `logprobs` is the number of alternatives instead of true.
    one_choice_counted
        Whether the usage of a call with several choices is that of one choice (llama.cpp).
    key_header, key_prefix, headers
        How the key is sent, and what is sent beside it.
    """

    able: Mapping[str, Json]
    base_url: str | None = None
    key_env: str | None = None
    wire: str = "chat"
    thinks: str | None = None
    max_tokens_field: str = "max_tokens"
    seed_field: str = "seed"
    sampler: Mapping[str, float] = {}
    integer_logprobs: bool = False
    one_choice_counted: bool = False
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = {}

    def capabilities_of(self, model: str) -> Capabilities:
        """Return what this model can give.

        Examples
        --------
        >>> PRESETS["openai"].capabilities_of("gpt-4.1").logprobs
        True
        >>> PRESETS["openai"].capabilities_of("o3-mini").logprobs
        False
        """
        thinks = self.thinks is not None and re.search(self.thinks, model)
        return adjusted(Capabilities(), {**self.able, **(REASONING if thinks else {})})


def adjusted(base: Capabilities, changes: Mapping[str, Json] | None) -> Capabilities:
    """Return `base` with the user's own knowledge of the endpoint.

    Examples
    --------
    >>> adjusted(Capabilities(), {"native_n": 4}).native_n
    4
    >>> adjusted(Capabilities(), {"nativ_n": 4})
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: there is no capability 'nativ_n'
      -> did you mean 'native_n'?
    """
    names = Capabilities.__struct_fields__
    require_known(changes or {}, names, "there is no capability {}")
    values: dict[str, Any] = dict(changes or {})
    if "samplers" in values:
        values["samplers"] = tuple(values["samplers"])
    return structs.replace(base, **values)


def check_request(request: Request, able: Capabilities, *, endpoint: str) -> None:
    """Raise CapabilityError where the request asks for more than the endpoint can give.

    Examples
    --------
    >>> check_request(Request("m", (), logprobs=True), Capabilities(), endpoint="E")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.CapabilityError: E gives no log-probs (model 'm'); nothing was sent
      -> choose another endpoint, or set capabilities.logprobs where you know better
    """
    problem = _lack(request, able)
    if problem is not None:
        lack, setting = problem
        raise CapabilityError(
            f"{endpoint} {lack} (model {request.model!r}); nothing was sent\n"
            f"  -> choose another endpoint, or set capabilities.{setting} where you know better"
        )


def _lack(request: Request, able: Capabilities) -> tuple[str, str] | None:
    if request.logprobs and not able.logprobs:
        return "gives no log-probs", "logprobs"
    if (target := request.top_logprobs) > able.top_logprobs:
        return f"shows at most {able.top_logprobs} alternatives, not {target}", "top_logprobs"
    if request.seed is not None and not able.seed:
        return "takes no seed", "seed"
    if request.schema is not None and not able.json_schema:
        return "takes no JSON schema", "json_schema"
    hottest, wished = able.max_temperature, request.temperature
    if able.temperature and wished > hottest:
        return f"takes temperatures up to {hottest:g}, not {wished:g}", "max_temperature"
    unknown = [name for name in request.sampler if name not in able.samplers]
    if unknown:
        return f"takes no sampling setting {', '.join(sorted(unknown))}", "samplers"
    return None


PRESETS: Registry[ProviderPreset] = Registry("provider preset")
for _name, _values in data_beside(__file__, "presets.toml").items():
    PRESETS.add(_name, ProviderPreset(**_values))
