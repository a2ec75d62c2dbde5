"""`serve`: a policy in front of the models it chooses from."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.registry import did_you_mean
from calibrant.core.verb import INPUT, OUTPUT, Option, verb
from calibrant.epistemic import GroupCorrector, SelectivePolicy, Step, load_policy
from calibrant.epistemic.deferral.embedding import QuestionEmbedding
from calibrant.inputs.provenance import document_head
from calibrant.report.typed import ServeResult
from calibrant.verbs.serving.front import Endpoint, Front
from calibrant.verbs.serving.log import ServedLog


@verb(
    example="calibrant serve policy.json --endpoint small=http://127.0.0.1:8001/v1",
    outputs=("json",),
)
def serve(
    policy: Annotated[
        str | Path,
        Option("Saved policy.", metavar="POLICY", group=INPUT, argument=True, place="read"),
    ],
    *,
    endpoint: Annotated[
        Sequence[str],
        Option(
            "Where a model is asked, as NAME=URL; may be given several times.",
            metavar="NAME=URL",
            kind="several",
        ),
    ] = (),
    key_env: Annotated[
        Sequence[str],
        Option(
            "Environment variable that holds the key of a model, as NAME=VARIABLE.",
            metavar="NAME=VAR",
            kind="several",
        ),
    ] = (),
    price: Annotated[
        Mapping[str, float] | None,
        Option("Price per call of each model.", metavar="small=1,..", kind="map"),
    ] = None,
    per_token: Annotated[bool, Option("Prices are per token of the answer.")] = False,
    host: Annotated[str, Option("Address to listen on.", metavar="HOST")] = "127.0.0.1",
    port: Annotated[int, Option("Port; 0 takes a free one.", metavar="N", min=0, max=65_535)] = 0,
    token_env: Annotated[
        str, Option("Environment variable with the token that callers must send.", metavar="VAR")
    ] = "CALIBRANT_TOKEN",
    ledger: Annotated[
        str | Path,
        Option("File that keeps what was asked.", metavar="PATH", group=OUTPUT, place="write"),
    ] = "served.sqlite",
    on_start: Callable[[str, str], None] | None = None,
) -> ServeResult:
    """Serve a policy as one OpenAI-compatible address in front of its models; stop with Ctrl-C.

    Callers send chat completions as to any model, with what is known of the question under
    ``calibrant`` (or ``metadata``). The front asks the model that the policy chooses, asks on
    while the policy says so, and answers with the response of the chosen one.

    Parameters
    ----------
    policy
        File of `decide` or `cascade`.
    endpoint
        Base address of each model of the policy, up to and with ``/v1``.
    key_env
        Environment variables with the keys; keys are never written down.
    price, per_token
        What a call costs, for the ledger.
    host, port
        Where to listen. Other than loopback is open to the network: the token is then all that
        protects it.
    token_env
        Environment variable with the token of callers; where it is not set, one is drawn and
        printed.
    ledger
        SQLite file with every call and every question. The same call is never paid for twice.
    on_start
        Called with address and token; by default they are printed.
    """
    given = os.environ.get(token_env)
    token = given or secrets.token_urlsafe(24)
    front = open_front(
        policy,
        endpoints=_pairs(endpoint, "endpoint"),
        keys=_pairs(key_env, "key_env"),
        price=price or {},
        per_token=per_token,
        ledger=ledger,
        token=token,
    )

    def started(address: str) -> None:
        if on_start is not None:
            on_start(address, token)
            return
        shown = f"token in {token_env}" if given else f"token {token}"
        sys.stderr.write(f"Serving {policy} at {address} ({shown})\n")
        sys.stderr.flush()

    try:
        asyncio.run(_serve(front, host, port, started))
        totals = front.log.totals()
    finally:
        front.log.close()
    head = document_head("serve", policy)
    return ServeResult({**head, "results": [totals], "claims": []})


async def _serve(front: Front, host: str, port: int, started: Callable[[str], None]) -> None:
    started(await front.start(host, port))
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        pass
    finally:
        await front.stop()


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    found = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name or not value:
            raise InputError(Hint("{" + option + "} is written NAME=VALUE, got {0}", repr(text)))
        found[name.strip()] = value.strip()
    return found


def open_front(
    policy: str | Path,
    *,
    endpoints: Mapping[str, str],
    keys: Mapping[str, str],
    price: Mapping[str, float],
    per_token: bool,
    ledger: str | Path,
    token: str,
) -> Front:
    """Return the front of a saved policy, checked: every model has an address."""
    loaded = load_policy(policy)
    if isinstance(loaded, GroupCorrector):
        raise InputError(
            "a corrected confidence decides nothing, so it cannot be served",
            source=str(policy),
            hint="serve a policy of `decide` or `cascade`",
        )
    if isinstance(loaded, SelectivePolicy):
        name = str(loaded.fitted_on.get("model", "model"))
        models, decide = [name], _selective(loaded, name)
    else:
        models, decide = list(loaded.models), loaded.route
    for name in (*endpoints, *keys, *price):
        if name not in models:
            raise InputError(
                f"the policy has no model {name!r}; it has {', '.join(models)}",
                source=str(policy),
                hint=did_you_mean(name, models),
            )
    missing = [name for name in models if name not in endpoints]
    if missing:
        raise InputError(
            f"the model {missing[0]!r} has no address",
            source=str(policy),
            hint=Hint("give {endpoint}", endpoint=f"{missing[0]}=http://127.0.0.1:8001/v1"),
        )
    places = {
        name: Endpoint(endpoints[name], name, _key(keys.get(name)), price.get(name, 0.0), per_token)
        for name in models
    }
    about = getattr(loaded, "embedding", None)
    describe = None if about is None else QuestionEmbedding(about, _embedder()).described
    return Front(decide, places, ServedLog(ledger), token, describe)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise InputError(f"the environment variable {variable} is not set")
    return os.environ[variable]


def _selective(policy: SelectivePolicy, name: str) -> Callable[..., Step]:
    """Ask the model, then answer or leave the question to somebody else."""

    def route(question: Mapping[str, Any], asked: Mapping[str, Any]) -> Step:
        if name not in asked:
            return Step("ask", name)
        action = policy.decide({**question, **asked[name]})
        return Step(action, name) if action == "answer" else Step("defer", name)

    return route


def _embedder() -> Any:
    from calibrant.clients.endpoints.embeddings import open_embedder

    return open_embedder()
