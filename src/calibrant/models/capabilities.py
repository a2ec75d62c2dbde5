"""What each kind of endpoint can give, and how it wants to be asked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from calibrant.core.errors import CapabilityError, require_known
from calibrant.core.imports import data_beside
from calibrant.core.registry import Registry
from calibrant.models.protocol import Capabilities, Json, Request

FULL_SAMPLING = {"top_k": 0.0, "top_p": 1.0, "min_p": 0.0}
REASONING = {"logprobs": False, "top_logprobs": 0, "temperature": False, "thinking_tokens": 4096}
"""What a model gives that is known to think; its room for that where nobody said how much."""


@dataclass(frozen=True, slots=True)
class ProviderPreset:
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
    sampler: Mapping[str, float] = field(default_factory=dict)
    integer_logprobs: bool = False
    one_choice_counted: bool = False
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict)

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
    names = [item.name for item in fields(Capabilities)]
    require_known(changes or {}, names, "there is no capability {}")
    values: dict[str, Any] = dict(changes or {})
    if "samplers" in values:
        values["samplers"] = tuple(values["samplers"])
    return replace(base, **values)


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
