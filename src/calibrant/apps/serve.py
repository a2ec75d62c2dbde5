"""`serve`: a policy in front of the models it chooses from."""

import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from calibrant.apps.serving.engine import Engine, Served, policy_id
from calibrant.apps.serving.front import Front
from calibrant.apps.serving.measure import AsInStudy, Measure, PassedOn, check_method
from calibrant.apps.serving.watching import Watch
from calibrant.core.errors import InputError, require_known
from calibrant.core.event_loop import OwnLoop
from calibrant.core.hints import Hint
from calibrant.core.loopback import until_stopped
from calibrant.core.shared_options import source, written
from calibrant.core.verb import Option, verb
from calibrant.data.mend.recalibration_map import load_mend
from calibrant.data.sources.provenance import document_head
from calibrant.models.endpoints.embeddings import open_embedder
from calibrant.models.ledger import Ledger
from calibrant.report.typed import ServeResult
from calibrant.trust import load_policy
from calibrant.trust.deferral.answers import QuestionEmbedding


@verb(
    example="calibrant serve policy.json --endpoint small=http://127.0.0.1:8001/v1",
    outputs=("json",),
)
def serve(
    policy: Annotated[str | Path, source(metavar="POLICY", argument=True)],
    *,
    endpoint: Annotated[Sequence[str], Option(metavar="NAME=URL", kind="several")] = (),
    key_env: Annotated[Sequence[str], Option(metavar="NAME=VAR", kind="several")] = (),
    defer: Annotated[str, Option(metavar="HOW")] = "status",
    measured_by: Annotated[str | None, Option(metavar="METHOD")] = None,
    mend: Annotated[str | Path | None, Option(metavar="FILE", place="read")] = None,
    reuse: Annotated[bool, Option()] = False,
    log_requests: Annotated[bool, Option()] = False,
    watch: Annotated[str | Path | None, Option(metavar="LABELS", place="read")] = None,
    on_shift: Annotated[Literal["warn", "defer"], Option(metavar="warn|defer")] = "warn",
    price: Annotated[Mapping[str, float] | None, Option(metavar="small=1,..", kind="map")] = None,
    per_token: Annotated[bool, Option()] = False,
    host: Annotated[str, Option(metavar="HOST")] = "127.0.0.1",
    port: Annotated[int, Option(metavar="N", min=0, max=65_535)] = 0,
    token_env: Annotated[str, Option(metavar="VAR")] = "CALIBRANT_TOKEN",
    ledger: Annotated[str | Path, written()] = "served.sqlite",
    on_start: Callable[[str, str], None] | None = None,
) -> ServeResult:
    """Serve a policy as one OpenAI-compatible address in front of its models; stop with Ctrl-C.

    Callers send chat completions as to any model, with what is known of the question under
    ``calibrant`` (or ``metadata``). The front measures the confidence as it was certified, asks on
    while the policy says so, and answers, or defers as `defer` says. It does not start where it
    cannot measure what was certified.

    Parameters
    ----------
    policy
        Saved policy.

        File of `decide` or `cascade`.
    endpoint
        Where a model is asked, as NAME=URL; may be given several times.

        Base address of each model of the policy, up to and with ``/v1``.
    key_env
        Environment variable that holds the key of a model, as NAME=VARIABLE.

        Keys are never written down.
    defer
        What callers get where the policy does not answer: status (409), text:.., or a NAME
        of another endpoint.

        ``status`` answers 409, ``text:I do not know`` that text, and a name the answer of that
        endpoint, which `endpoint` gives an address.
    measured_by
        How the confidence of a table was made: perplexity, sequence_probability,
        min_token_probability, endpoint, or the policy that its rows were served by. A study
        says so itself.

        A policy of a study knows its method, prompts and draws and takes none.
    mend
        Map of `mend`: callers are told the probability that it gives, with its interval.

        It is for the model and method of the policy. Decisions rest on the confidence that
        was certified; the probability told is the map's.
    reuse
        Answer equal requests from the ledger also at a temperature above 0.
    log_requests
        Write a line per request to standard error, without texts.
    watch
        Labels of served answers as they arrive: a table, or the file of `label serve`.

        With ``question_id`` and ``correct``, late and in any order. When they
        show that the promise is broken, callers are told so.
    on_shift
        Warn, or defer all, while questions differ from the labels or the promise is broken.

        ``warn`` tells callers and ``/metrics``; ``defer`` leaves all questions to somebody else.
    price
        Price per call of each model.
    per_token
        Prices are per token of the answer.
    host
        Address to listen on.
    port
        Port; 0 takes a free one.

        Other than loopback is open to the network: the token is then all that
        protects it.
    token_env
        Environment variable with the token that callers must send.

        Where it is not set, one is drawn and printed.
    ledger
        File that keeps what was asked.

        SQLite file with every call. Beside it, with the ending ``.jsonl``, stands a row per
        question, which `audit`, `label serve` and `monitor` read.
    on_start
        Called with address and token; by default they are printed.
    """
    given = os.environ.get(token_env)
    token = given or secrets.token_urlsafe(24)
    front = open_front(
        policy, endpoints=_pairs(endpoint, "endpoint"), keys=_pairs(key_env, "key_env"),
        price=price or {}, per_token=per_token, ledger=ledger, token=token, defer=defer,
        measured_by=measured_by, mend=mend, reuse=reuse, log_requests=log_requests,
        watch=watch, on_shift=on_shift,
    )  # fmt: skip

    def started(address: str) -> None:
        if on_start is not None:
            on_start(address, token)
            return
        shown = f"token in {token_env}" if given else f"token {token}"
        sys.stderr.write(f"Serving {policy} at {address} ({shown})\n")
        sys.stderr.flush()

    with OwnLoop() as loop:
        loop.run(until_stopped(front.start(host, port), front.stop, started))
    head = document_head("serve", policy)
    return ServeResult({**head, "results": [front.engine.totals()], "claims": []})


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name or not value:
            raise InputError(Hint("{" + option + "} is written NAME=VALUE, got {0}", repr(text)))
        pairs[name.strip()] = value.strip()
    return pairs


def open_front(
    policy: str | Path, *, token: str, defer: str = "status", log_requests: bool = False,
    watch: str | Path | None = None, on_shift: str = "warn", **how: Any,
) -> Front:  # fmt: skip
    """Return the front of a saved policy, checked; the other options are those of `open_engine`."""
    endpoints, keys = dict(how.pop("endpoints")), dict(how.pop("keys"))
    fallback, other = None, None if defer == "status" or defer.startswith("text:") else defer
    if other is not None and other not in endpoints:
        raise InputError(
            Hint("{defer} is status, text:.., or the name of an endpoint, got {0}", repr(defer)),
            hint=Hint("give {endpoint}", endpoint=f"{other}=http://127.0.0.1:8002/v1"),
        )
    address, variable = endpoints.pop(other, ""), keys.pop(other, None)
    engine = open_engine(policy, endpoints=endpoints, keys=keys, **how)
    if other is not None:
        fallback = PassedOn(other, address, variable, engine.ledger)
    engine.defer_shifted = on_shift == "defer"
    labels = None if watch is None else Path(watch)
    followed = Watch(engine, policy, load_policy(policy).check, labels)
    return Front(engine, token, defer, fallback, log_requests, followed)


def open_engine(
    policy: str | Path, *, endpoints: Mapping[str, str], keys: Mapping[str, str],
    price: Mapping[str, float], per_token: bool, ledger: str | Path,
    measured_by: str | None = None, mend: str | Path | None = None, reuse: bool = False,
) -> Engine:  # fmt: skip
    """Return what asks and decides for a saved policy, or say why it cannot be served.

    Every model has an address, and its confidence is measured as it was certified.
    """
    loaded = load_policy(policy)
    fitted_on = dict(loaded.fitted_on)
    models = loaded.models
    rule = f"the policy has no model {{}}; it has {', '.join(models)}"
    require_known({**endpoints, **keys, **price}, models, rule, source=str(policy))
    recipe = dict(fitted_on.get("asked") or {"not_live": "it does not say how it was asked"})
    if recipe["not_live"] is not None and measured_by and Path(measured_by).is_file():
        # Refitted on served rows: they were measured as the policy before says.
        recipe, measured_by = dict(load_policy(measured_by).fitted_on.get("asked") or recipe), None
    missing = [name for name in models if name not in endpoints]
    method = _check_live(recipe, measured_by, missing, str(policy))
    # Map and policy come from the same labels, so they know model and method by the same names.
    named = fitted_on.get("method")
    mends = {} if mend is None else {n: load_mend(mend, model=n, method=named) for n in models}
    kept = Ledger(ledger)
    try:
        measures: dict[str, Measure] = {
            name: AsInStudy(recipe, name, endpoints.get(name), keys.get(name), kept,
                            source=str(policy))
            if recipe["not_live"] is None
            else PassedOn(name, endpoints[name], keys.get(name), kept, method=method, reuse=reuse)
            for name in models
        }  # fmt: skip
    except BaseException:
        kept.close()
        raise
    about = getattr(loaded, "embedding", None)
    describe = None if about is None else QuestionEmbedding(about, open_embedder()).described
    # Rows are kept under the name that the policy's labels have: `monitor` finds them again.
    labelled_as = named or "confidence"
    served = Served(policy_id(policy), method, _promise(loaded.promise), labelled_as,
                    loaded.ends_when, loaded.expires)  # fmt: skip
    rows = Path(ledger).with_suffix(".jsonl")
    return Engine(loaded.route, measures, kept, rows, served, price, per_token, describe, mends)


def _check_live(
    recipe: Mapping[str, object], measured_by: str | None, missing: Sequence[str], source: str
) -> str:
    """Return the method that is served, or say why what was certified cannot be measured here."""
    if recipe["not_live"] is None:
        if measured_by is not None and measured_by != recipe["method"]:
            raise InputError(
                f"the policy was certified for {recipe['method']!r}, not {measured_by!r}",
                source=source,
                hint=Hint("leave out {measured_by}"),
            )
        return str(recipe["method"])
    if measured_by is None:
        raise InputError(
            f"how the confidence is measured is not known: {recipe['not_live']}",
            source=source,
            hint=Hint(
                "make the policy from a study, or say how the table's confidence was made with "
                "{measured_by}",
                measured_by="perplexity",
            ),
        )
    check_method(measured_by, source)
    if missing:
        raise InputError(
            f"the model {missing[0]!r} has no address",
            source=source,
            hint=Hint("give {endpoint}", endpoint=f"{missing[0]}=http://127.0.0.1:8001/v1"),
        )
    return measured_by


def _promise(promise: Mapping[str, Any]) -> str:
    """Return what is promised of the answers given, in one sentence."""
    most = promise.get("max_error")
    if most is None:
        return "none: the policy was made for a cost"
    if not promise.get("certified"):
        return "none: nothing was certified"
    chance = promise.get("delta") or 0.0
    return (
        f"at most {most:.0%} of the answers given are wrong, for questions like the labelled ones; "
        f"chance that this fails: {chance:.0%}"
    )
