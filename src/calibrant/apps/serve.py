"""`serve`: a policy in front of the models it chooses from."""

import datetime as dt
import hashlib
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from calibrant.apps.serving.engine import ServingEngine
from calibrant.apps.serving.front import MOST_REQUESTS, Front
from calibrant.apps.serving.in_study import AsInStudy
from calibrant.apps.serving.measure import PATIENCE_S, Measure, PassedOn, check_method
from calibrant.apps.serving.replies import Served
from calibrant.apps.serving.watching import Watch
from calibrant.core.errors import InputError, require_known
from calibrant.core.event_loop import OwnLoop
from calibrant.core.hints import Call, Hint
from calibrant.core.loopback import until_stopped
from calibrant.core.shared_options import source, written
from calibrant.core.verb import Option, verb
from calibrant.data.recalibration_map import load_mend
from calibrant.data.sources.input import document_head
from calibrant.labels.watching.betting import PromiseWatch
from calibrant.models.endpoints.embedded import open_embedder
from calibrant.models.ledger import Ledger
from calibrant.models.study.endpoints import check_places
from calibrant.report.result import ServeResult
from calibrant.trust import load_policy
from calibrant.trust.deferral.answers import QuestionEmbedding
from calibrant.trust.policies import MendedPolicy
from calibrant.trust.policy import Policy
from calibrant.trust.units import DROP, STOP, UnitScore
from calibrant.verbs.monitor import Promise

HORIZON, ALPHA = 365, 0.05
"""Days over which a broken promise is told wrongly at most so often."""

ALLOW_HOST = "CALIBRANT_ALLOW_HOST"


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
    on_shift: Annotated[str, Option(choices=("warn", "defer"))] = "warn",
    price: Annotated[Mapping[str, float] | None, Option(metavar="small=1,..", kind="map")] = None,
    per_token: Annotated[bool, Option()] = False,
    patience: Annotated[float, Option(metavar="SECONDS", above=0, max=86_400)] = PATIENCE_S,
    most_requests: Annotated[int, Option(metavar="N", min=1, max=100_000)] = MOST_REQUESTS,
    confirm: Annotated[str | None, Option(metavar="CODE")] = None,
    host: Annotated[str, Option(metavar="HOST")] = "127.0.0.1",
    allow_host: Annotated[Sequence[str], Option(metavar="NAME", kind="several")] = (),
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

        With ``question_id``, ``answer`` and ``correct``, late and in any order. When they
        show that the promise is broken, or cannot be read, callers are told so.
    on_shift
        Warn, or defer all, while questions differ from the labels or the promise is broken.

        ``warn`` tells callers and ``/metrics``; ``defer`` leaves all questions to somebody else.
    price
        Price per call of each model.
    per_token
        Prices are per token of the answer.
    patience
        Seconds for which a caller waits for the models.

        Models that think long take minutes.
    most_requests
        Requests that are answered at a time; more get 503.
    confirm
        Code of the hosts and variables that the policy names itself, as the message shows it.

        Needed once per machine; `endpoint` and `key_env` need none.
    host
        Address to listen on.
    allow_host
        Name by which callers reach it, such as a service or a proxy; may be given several times.

        Names in ``CALIBRANT_ALLOW_HOST``, separated by commas, count too.
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
    value = os.environ.get(token_env)
    token = value or secrets.token_urlsafe(24)
    front = open_front(
        policy, endpoints=_pairs(endpoint, "endpoint"), keys=_pairs(key_env, "key_env"),
        price=price or {}, per_token=per_token, ledger=ledger, token=token, defer=defer,
        measured_by=measured_by, mend=mend, reuse=reuse, log_requests=log_requests,
        watch=watch, on_shift=on_shift, patience_s=patience, confirm=confirm,
        most_requests=most_requests, names=(*allow_host, *_names(ALLOW_HOST)),
    )  # fmt: skip

    def started(address: str) -> None:
        if on_start is not None:
            on_start(address, token)
            return
        text = f"token in {token_env}" if value else f"token {token}"
        sys.stderr.write(f"Serving {policy} at {address} ({text})\n")
        sys.stderr.flush()

    with OwnLoop() as loop:
        loop.run(until_stopped(front.start(host, port), front.stop, started))
    head = document_head("serve", policy)
    return ServeResult({**head, "results": [front.engine.totals()], "claims": []})


def _names(variable: str) -> list[str]:
    return [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]


def _pairs(values: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not name or not value:
            raise InputError(Hint("{" + option + "} is written NAME=VALUE, got {0}", repr(text)))
        pairs[name.strip()] = value.strip()
    return pairs


def open_front(
    policy: str | Path, *, token: str, defer: str = "status", log_requests: bool = False,
    watch: str | Path | None = None, on_shift: str = "warn", names: Sequence[str] = (),
    most_requests: int = MOST_REQUESTS, **how: Any,
) -> Front:  # fmt: skip
    """Return the front of a saved policy, checked; the other options are those of `open_engine`."""
    endpoints, keys = dict(how.pop("endpoints")), dict(how.pop("keys"))
    fallback, peer = None, None if defer == "status" or defer.startswith("text:") else defer
    if peer is not None and peer not in endpoints:
        raise InputError(
            Hint("{defer} is status, text:.., or the name of an endpoint, got {0}", repr(defer)),
            hint=Hint("give {endpoint}", endpoint=f"{peer}=http://127.0.0.1:8002/v1"),
        )
    address, variable = endpoints.pop(peer, ""), keys.pop(peer, None)
    engine = open_engine(policy, endpoints=endpoints, keys=keys, **how)
    if peer is not None:
        wait = how.get("patience_s", PATIENCE_S)
        fallback = PassedOn(peer, address, variable, engine.ledger, patience_s=wait)
    engine.defer_shifted = on_shift == "defer"
    return Front(
        engine, token, defer, fallback, log_requests, _watch(engine, policy, watch),
        tuple(name.lower() for name in names), most_requests,
    )  # fmt: skip


def _watch(engine: ServingEngine, policy: str | Path, labels: str | Path | None) -> Watch:
    """Return what looks at traffic and labels, as far as the policy has something to look for."""
    loaded = load_policy(policy)
    # A map of `mend` has a test of its own; a policy without a profile has none.
    guarded = loaded.profile is not None or isinstance(loaded, MendedPolicy)
    promised: Callable[[], PromiseWatch] | None = None
    if labels is not None:
        promise = Promise(policy)
        watch = partial(promise.watch, promise.key, HORIZON, ALPHA)
        if watch() is None:
            rule = "the policy promises no error, so labels cannot break it"
            raise InputError(rule, source=str(policy), hint=Hint("leave out {watch}"))
        promised = cast("Callable[[], PromiseWatch]", watch)
    place = None if labels is None else Path(labels)
    return Watch(engine, loaded.check if guarded else None, place, promised)


def open_engine(
    policy: str | Path, *, endpoints: Mapping[str, str], keys: Mapping[str, str],
    price: Mapping[str, float], per_token: bool, ledger: str | Path,
    measured_by: str | None = None, mend: str | Path | None = None, reuse: bool = False,
    patience_s: float = PATIENCE_S, confirm: str | None = None,
    clock: Callable[[], dt.datetime] | None = None,
) -> ServingEngine:  # fmt: skip
    """Return what asks and decides for a saved policy, or say why it cannot be served.

    Every model has an address, and its confidence is measured as it was certified.
    """
    loaded = load_policy(policy)
    fitted_on = dict(loaded.fitted_on)
    models = loaded.models
    rule = f"the policy has no model {{}}; it has {', '.join(models)}"
    require_known({**endpoints, **keys, **price}, models, rule, source=str(policy))
    unknown = {"not_live": "it does not say how it was asked", "settings": {}, "prompt_texts": {}}
    recipe = {**unknown, **(fitted_on.get("asked") or {})}
    if recipe["not_live"] is not None and measured_by and Path(measured_by).is_file():
        # Refitted on served rows: they were measured as the policy before says.
        recipe, measured_by = dict(load_policy(measured_by).fitted_on.get("asked") or recipe), None
    missing = [name for name in models if name not in endpoints]
    method = _check_live(recipe, measured_by, missing, str(policy))
    # Map and policy come from the same labels, so they know model and method by the same names.
    names = fitted_on.get("method")
    mends = {} if mend is None else {n: load_mend(mend, model=n, method=names) for n in models}
    alone = [loaded.mend] if isinstance(loaded, MendedPolicy) else []
    for fitted in (*mends.values(), *alone):
        low, high = fitted.fitted_on.get("people_scale", (0.0, 1.0))
        if (low, high) != (0.0, 1.0):
            rule = f"it says how people rate from {low:g} to {high:g}, not how often they say yes"
            hint = Hint("make one with {0}", Call("mend", "TABLE"))
            raise InputError(rule, source=str(mend or policy), hint=hint)
    if recipe["not_live"] is None:
        rule = f"the policy does not say how {{}} is asked, but {', '.join(recipe['models'])}"
        require_known(models, recipe["models"], rule, source=str(policy))
        check_places(recipe, models, endpoints, keys, confirm, source=str(policy))
    how: dict[str, Any] = {"reuse": reuse, "patience_s": patience_s}
    selection = Ledger(ledger)
    try:
        measures: dict[str, Measure] = {
            name: AsInStudy(recipe, name, endpoints.get(name), keys.get(name), selection,
                            source=str(policy), **how)
            if recipe["not_live"] is None
            else PassedOn(name, endpoints[name], keys.get(name), selection, method=method, **how)
            for name in models
        }  # fmt: skip
    except BaseException:
        selection.close()
        raise
    about = getattr(loaded, "embedding", None)
    describe = None if about is None else QuestionEmbedding(about, open_embedder()).described
    # Rows are kept under the name that the policy's labels have: `monitor` finds them again.
    labelled_as = names or "confidence"
    # A short name of the very file.
    policy_id = hashlib.blake2b(Path(policy).read_bytes(), digest_size=6).hexdigest()
    answers_served = Served(policy_id, method, _promise(loaded), labelled_as,
                            loaded.ends_when, loaded.expires)  # fmt: skip
    rows = Path(ledger).with_suffix(".jsonl")
    engine = ServingEngine(
        loaded.route, measures, selection, rows, answers_served, price, per_token, describe, mends
    )
    engine.clock = clock or engine.clock
    return engine


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


# What a policy of whole units promises, by the score that is held against its threshold.
_OF_UNITS = {
    STOP: "at most {most:.0%} of the stopped runs would have succeeded",
    DROP: "at most {most:.0%} of the units keep a wrong row",
}


def _promise(policy: Policy) -> str:
    """Return what is promised of the answers given, in one sentence."""
    promise = policy.promise
    most = promise.get("max_error")
    if most is None:
        return "none: the policy was made for a cost"
    if not promise.get("certified"):
        return "none: nothing was certified"
    chance = promise.get("delta") or 0.0
    score = getattr(policy, "score", None)
    of_what, words = "questions", "at most {most:.0%} of the answers given are wrong"
    if isinstance(score, UnitScore):
        passing = "at most {most:.0%} of the units that pass have a wrong row"
        of_what, words = "units", _OF_UNITS.get(score.how, passing)
    return (
        f"{words.format(most=most)}, for {of_what} like the labelled ones; "
        f"chance that this fails: {chance:.0%}"
    )
