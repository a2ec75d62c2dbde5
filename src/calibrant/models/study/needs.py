"""From what the wanted methods need to the probes that bring it."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from calibrant.core.errors import CapabilityError
from calibrant.models.protocol import Capabilities
from calibrant.models.study.config import StudyConfig
from calibrant.models.study.plan import Wanted, close_over_needs
from calibrant.models.study.probes import NEEDS, POOL, PROBES, STATED_POOL, ProbedInput


class Selection(Struct, frozen=True):
    """What one model is asked for, and which methods it cannot serve, with the reason."""

    wanted: Wanted
    unavailable: Mapping[str, str]


def select_probes(
    methods: Mapping[str, Collection[str]],
    config: StudyConfig,
    able: Capabilities,
    *,
    kinds: Collection[str],
    model: str,
) -> Selection:
    """Return the probes that the methods need, each once.

    Parameters
    ----------
    methods
        Needs of each wanted method.
    config
        The study.
    able
        What the model's endpoint can give.
    kinds
        Kinds of question in the study.
    model
        Name of the model, for messages.

    Raises
    ------
    CapabilityError
        Where study.toml names a method that the endpoint cannot serve. With ``methods = "all"``
        such methods are listed as unavailable instead.
    """
    unavailable: dict[str, str] = {}
    needs: list[ProbedInput] = []
    for method, names in methods.items():
        lack = next(filter(None, (_lack(name, able, kinds) for name in names)), None)
        lack = lack or _not_asked(names, config)
        if lack is None:
            needs.extend(NEEDS[name] for name in names)
            continue
        if config.methods is not None:
            raise CapabilityError(
                f"the method {method} cannot be used with the model {model}: {lack}; "
                "nothing was sent\n  -> take it off `methods` in study.toml, or use another "
                "endpoint"
            )
        unavailable[method] = lack
    return Selection(_wanted(needs, config, able), unavailable)


def _lack(name: str, able: Capabilities, kinds: Collection[str]) -> str | None:
    need = NEEDS.get(name)
    if need is None:
        return f"it needs {name}, which a study does not collect"
    if need.logprobs and not able.logprobs:
        return "the endpoint gives no log-probs"
    if need.top and able.top_logprobs < 2:
        return "the endpoint shows no alternatives of the first token"
    if need.kinds and not set(need.kinds) & set(kinds):
        return f"no question is of the kind {' or '.join(need.kinds)}"
    return None


def _not_asked(names: Collection[str], config: StudyConfig) -> str | None:
    """Say why ``methods = "all"`` leaves a method out, or what else the study lacks for it."""
    if "panel" in names and len(config.models) < 2:
        return "a panel needs a second model"
    if "ensemble" in names:
        return None if config.scoring.ensemble else "scoring.ensemble names no file"
    costly = next((name for name in names if NEEDS[name].named_only), None)
    if costly is None or config.methods is not None:
        return None
    if NEEDS[costly].probe == POOL and config.candidate_pool and costly == "panel":
        return None
    return "it takes many calls, so it is asked only where `methods` names it"


def _wanted(needs: list[ProbedInput], config: StudyConfig, able: Capabilities) -> Wanted:
    request = {need.probe for need in needs}
    if config.candidate_pool:
        # Each model says how sure it is of every answer in the way that it is asked about its own.
        request |= {POOL} | ({STATED_POOL} if "self_ask" in request else set())
    repeated = {need.probe for need in needs if need.repeated}
    draws = {}
    for name in close_over_needs(request):
        votes_not_needed = PROBES[name].first_token and name not in repeated and able.logprobs
        draws[name] = 1 if votes_not_needed else config.sampling.times(name)
    readable = {POOL} & request if able.top_logprobs >= 2 else set[str]()
    return Wanted(
        draws=draws,
        logprobs=frozenset({need.probe for need in needs if need.logprobs} | readable),
        top=frozenset({need.probe for need in needs if need.top} | readable),
        judge_samples=any(need.judge_samples for need in needs),
    )
