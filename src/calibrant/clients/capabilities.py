"""What each kind of endpoint can give, and how it wants to be asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from calibrant.clients.protocol import Capabilities, Request
from calibrant.core.errors import CapabilityError, InputError
from calibrant.core.registry import Registry, did_you_mean


@dataclass(frozen=True, slots=True)
class Preset:
    """One provider of an OpenAI-style interface.

    Parameters
    ----------
    base_url, key_env
        Where it is, and the environment variable that usually holds its key (None: no key).
    capabilities
        What it can give; `by_model` holds changes for names that match a pattern.
    max_tokens_field, seed_field
        Its names for these settings.
    sampler
        Settings that are always sent, because the server's own defaults cut the distribution.
    integer_logprobs
        Whether `logprobs` is the number of alternatives instead of true.
    key_header, key_prefix
        How the key is sent.
    one_choice_counted
        Whether the usage of a call with several choices is that of one choice (llama.cpp).
    """

    base_url: str | None
    key_env: str | None
    capabilities: Capabilities
    by_model: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    max_tokens_field: str = "max_tokens"
    seed_field: str = "seed"
    sampler: Mapping[str, float] = field(default_factory=dict)
    integer_logprobs: bool = False
    one_choice_counted: bool = False
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "

    def capabilities_of(self, model: str) -> Capabilities:
        """Return what this model can give.

        Examples
        --------
        >>> PRESETS["openai"].capabilities_of("gpt-4.1").logprobs
        True
        >>> PRESETS["openai"].capabilities_of("o3-mini").logprobs
        False
        """
        found = self.capabilities
        for pattern, changes in self.by_model.items():
            if re.search(pattern, model):
                found = replace(found, **changes)
        return found


FULL_SAMPLING = {"top_k": 0.0, "top_p": 1.0, "min_p": 0.0}
"""llama.cpp cuts to top-k 40, top-p 0.95 and min-p 0.05 unless it is told not to."""
WIDE = ("top_p", "top_k", "min_p")
THINKING_TOKENS = 4096
"""Room for thinking where a model is known to think and nobody said how much."""
REASONING = {
    "logprobs": False,
    "top_logprobs": 0,
    "temperature": False,
    "thinking_tokens": THINKING_TOKENS,
}

PRESETS: Registry[Preset] = Registry("provider preset")
PRESETS.add(
    "openai",
    Preset(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        Capabilities(128, True, 20, True, True, True),
        by_model={r"^(o\d|gpt-5)": REASONING},
        max_tokens_field="max_completion_tokens",
    ),
)
PRESETS.add(
    "azure",
    Preset(
        None,
        "AZURE_OPENAI_API_KEY",
        # What stands behind the name of a deployment is learned from what it refuses.
        Capabilities(128, True, 20, True, True, True),
        by_model={r"(?:^|[-_/])(o\d|gpt-?5)": REASONING},
        max_tokens_field="max_completion_tokens",
        key_header="api-key",
        key_prefix="",
    ),
)
PRESETS.add(
    "vllm",
    Preset(
        "http://127.0.0.1:8000/v1",
        None,
        Capabilities(128, True, 20, True, True, True, samplers=WIDE),
        # A model's generation_config.json may cut the distribution on the server's side.
        sampler={"top_k": -1.0, "top_p": 1.0, "min_p": 0.0},
    ),
)
PRESETS.add(
    "llamacpp",
    Preset(
        "http://127.0.0.1:8080/v1",
        None,
        # n may not exceed the server's own --parallel, which cannot be asked for here: 1
        # unless the user says more.
        Capabilities(1, True, 20, True, True, True, samplers=WIDE),
        sampler=FULL_SAMPLING,
        one_choice_counted=True,
    ),
)
PRESETS.add(
    "ollama",
    Preset(
        "http://127.0.0.1:11434/v1",
        None,
        Capabilities(1, False, 0, True, True, True),
        sampler={"top_p": 1.0},
    ),
)
PRESETS.add(
    "mistral",
    Preset(
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        Capabilities(8, False, 0, True, True, True, max_temperature=1.5),
        seed_field="random_seed",
    ),
)
PRESETS.add(
    "xai",
    Preset(
        "https://api.x.ai/v1",
        "XAI_API_KEY",
        Capabilities(8, True, 8, True, True, True),
    ),
)
PRESETS.add(
    "together",
    Preset(
        "https://api.together.xyz/v1",
        "TOGETHER_API_KEY",
        Capabilities(64, True, 5, True, True, True, samplers=WIDE),
        integer_logprobs=True,
    ),
)
PRESETS.add(
    "fireworks",
    Preset(
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
        Capabilities(64, True, 5, False, True, True, samplers=WIDE),
    ),
)
PRESETS.add(
    "deepseek",
    Preset(
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
        Capabilities(1, True, 20, False, True, False),
        by_model={r"reasoner": REASONING},
    ),
)
PRESETS.add(
    "groq",
    Preset("https://api.groq.com/openai/v1", "GROQ_API_KEY", Capabilities(1, False, 0, True)),
)
PRESETS.add(
    "openrouter",
    Preset(
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        Capabilities(1, False, 0, True, True, True, samplers=WIDE),
    ),
)


def adjusted(base: Capabilities, changes: Mapping[str, Any] | None) -> Capabilities:
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
    known = [item.name for item in fields(Capabilities)]
    for name in changes or {}:
        if name not in known:
            raise InputError(f"there is no capability {name!r}", hint=did_you_mean(name, known))
    values = dict(changes or {})
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
    if request.top_logprobs > able.top_logprobs:
        return (
            f"shows at most {able.top_logprobs} alternatives, not {request.top_logprobs}",
            "top_logprobs",
        )
    if request.seed is not None and not able.seed:
        return "takes no seed", "seed"
    if request.schema is not None and not able.json_schema:
        return "takes no JSON schema", "json_schema"
    if able.temperature and request.temperature > able.max_temperature:
        return (
            f"takes temperatures up to {able.max_temperature:g}, not {request.temperature:g}",
            "max_temperature",
        )
    unknown = [name for name in request.sampler if name not in able.samplers]
    if unknown:
        return f"takes no sampling setting {', '.join(sorted(unknown))}", "samplers"
    return None
