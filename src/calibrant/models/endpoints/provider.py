"""One client for all providers over HTTP: sending, reading, and naming what went wrong."""

import asyncio
import time
from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
import orjson
from msgspec.structs import replace

from calibrant.core import errors
from calibrant.data.formats import limit
from calibrant.models.asks import PRESETS, adjusted, check_request, for_draws
from calibrant.models.endpoints import chat, refused, secrets
from calibrant.models.endpoints.wires import WIRES
from calibrant.models.protocol import (
    Completion,
    EndpointRefusedError,
    Json,
    OverloadError,
    Request,
    UnreachableError,
)
from calibrant.models.replies import any_json

LONGEST_QUOTE = 300
SUCCESSES = frozenset({201, 202, 203, 206})
CONNECT_S = 4.0
"""Seconds for a connection: an address where nobody answers is told of while the user looks."""
JSON_BODY = {"Content-Type": "application/json"}
MOST_REFUSED = 4
"""Settings that one call may be found to be refused for, one after the other."""


class Received(NamedTuple):
    """An answer as it came, and the settings that were left out of its call."""

    raw: bytes
    headers: Mapping[str, str] = MappingProxyType({})
    latency_s: float = 0.0
    not_sent: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The bytes as a text, whatever they are."""
        return self.raw.decode("utf-8", "replace")


class ProviderClient:
    """A provider of `PRESETS`, over aiohttp and orjson.

    Parameters
    ----------
    preset
        Name of the provider: how its key is sent, a request written and an answer read.
    model
        Model that decides the capabilities; single requests may name another one.
    base_url
        Root of the interface, without user name, password or key, if not where the preset says.
    api
        ``responses`` asks at ``/responses``: one draw per call, log-probs, no seed.
    capabilities
        Changes to what the preset says the endpoint can give.
    reasoning_effort
        How long a model thinks, in the provider's own words.
    key
        API key; kept in memory only.
    timeout_s
        Seconds until a call counts as lost.
    extra_headers
        Further headers; they are sent, never stored.
    extra_body
        Further fields of every call, as the endpoint names them; they are kept with the draws.
    most_bytes
        Size of an answer, decompressed, above which it is refused; None takes the limit
        ``answer_bytes``.
    """

    def __init__(
        self,
        *,
        preset: str = "openai",
        model: str = "",
        base_url: str | None = None,
        api: str = "chat",
        capabilities: Mapping[str, Json] | None = None,
        reasoning_effort: str | None = None,
        key: str | None = None,
        timeout_s: float = 120.0,
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Json] | None = None,
        most_bytes: int | None = None,
    ) -> None:
        self.preset = PRESETS[preset]
        if api not in ("chat", "responses"):
            raise errors.InputError(f"api is chat or responses, got {api!r}")
        url = base_url or self.preset.base_url
        if url is None:
            raise errors.InputError(
                f"the client {preset!r} needs a base_url",
                hint='for Azure base_url = "https://NAME.openai.azure.com/openai/v1"',
            )
        able = self.preset.capabilities_of(model)
        if api == "responses":
            able = replace(able, native_n=1, seed=False)
        self.capabilities = adjusted(able, capabilities)
        self.wire = WIRES["responses" if api == "responses" else self.preset.wire]
        self.endpoint = secrets.endpoint_name(url)
        _check_number("timeout_s", timeout_s, refused.LONGEST_WAIT_S)
        if most_bytes is not None:
            _check_number("most_bytes", most_bytes, 2**63)
        self._most_bytes = limit("answer_bytes") if most_bytes is None else most_bytes
        self._base = url
        extra: dict[str, Json] = {}
        if reasoning_effort is not None:
            outer, _, inner = self.wire.effort.partition(".")
            extra = {outer: {inner: reasoning_effort} if inner else reasoning_effort}
        self._extra = secrets.check_extra({**extra, **(extra_body or {})})
        self.refused: dict[str, refused.Refusals] = {}
        self.most_refused = MOST_REFUSED
        self.essential: set[str] = set()
        """Settings without which nothing is to be sent."""
        self.news: set[str] = set()
        """Models of which something was learned that nobody has written down yet."""
        self._finding_out: dict[object, asyncio.Event] = {}
        hidden = (key, *secrets.secrets_in(extra_headers or {}))
        self._finders = [secrets.KeyFinder(secret) for secret in hidden]
        connect_s = min(CONNECT_S, timeout_s)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=connect_s)
        self._headers = {**self.preset.headers, **(extra_headers or {})}
        if key is not None:
            self._headers[self.preset.key_header] = self.preset.key_prefix + key
        self._session: aiohttp.ClientSession | None = None

    def resolve(self, model: str) -> str:
        """Return the name itself: what stands behind it is known only from the answers."""
        return model

    def prepare(self, request: Request) -> Request:
        """Return the request as it is sent, the whole distribution kept; or CapabilityError."""
        if self.preset.sampler:
            request = request.with_sampler(self.preset.sampler)
        room = self.capabilities.thinking_tokens
        if (room or self._extra) and request.body is None:
            request = replace(request, thinking_tokens=room, extra=self._extra or None)
        check_request(request, self.capabilities, endpoint=self.endpoint)
        return request

    async def ask(self, request: Request) -> list[Completion]:
        """Return at least one and at most `request.n` completions; see `Client.ask`."""
        request = self.prepare(request)
        most = self.capabilities.native_n
        if request.n <= most:
            completions = await self._call(request)
        else:
            starts = range(0, request.n, most)
            parts = [for_draws(request, start, min(most, request.n - start)) for start in starts]
            answers = await asyncio.gather(*(self._call(part) for part in parts))
            completions = list(chain.from_iterable(answers))
        if request.stop and any("stop" in item.not_sent for item in completions):
            # The endpoint would not stop there: the texts end before the first stop text.
            for place, item in enumerate(completions):
                ends = [end for stop in request.stop if (end := item.text.find(stop)) >= 0]
                if ends:
                    text = item.text[: min(ends)]
                    completions[place] = replace(item, text=text, logprobs=None)
        # The parts of a text may make up the key together.
        self._check_no_key(*(completion.text for completion in completions))
        return completions

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def refusals(self, model: str) -> refused.Refusals:
        """Return what is known to be refused of a model."""
        limits = self.refused.get(model)
        if limits is None:
            limits = self.refused[model] = refused.Refusals()
            if not self.capabilities.temperature:
                limits.left_out["temperature"] = "it takes no temperature"
        return limits

    async def _send_adapted(self, path: str, body: Mapping[str, Json], model: str) -> Received:
        """Send without what the endpoint refuses.

        Of calls of one form the first goes alone, so that a refusal is met once and not by all
        calls that are under way.
        """
        limits, left = self.refusals(model), self.most_refused
        while True:
            for setting in self.essential & limits.left_out.keys():
                raise errors.CapabilityError(
                    f"{self.endpoint} refuses {setting} of the model {model!r}, which this study "
                    f"cannot do without: {limits.left_out[setting]}\n  -> take the methods that "
                    "need it off `methods` in study.toml, or use another endpoint"
                )
            payload, missing = limits.adapted(body)
            form = (model, path, *refused.form_of(payload))
            first, mine = self._finding_out.get(form), None
            if first is None:
                mine = self._finding_out[form] = asyncio.Event()
            elif not first.is_set():
                await first.wait()
                continue  # what it found may change this call
            try:
                return (await self._send(path, payload))._replace(not_sent=missing)
            except refused.RefusedCallError as error:
                reply, field = refused.words_of(error.raw)
                left -= 1
                if not left or not limits.learn(self._short(reply), payload, field):
                    raise
                self.news.add(model)
                self._fewer_draws(limits)
            finally:
                if mine is not None:
                    mine.set()

    def recall(self, model: str, limits: refused.Refusals) -> None:
        """Take over what was learned before."""
        self.refused[model] = limits
        self._fewer_draws(limits)

    def _fewer_draws(self, limits: refused.Refusals) -> None:
        most = 1 if "n" in limits.left_out else limits.at_most.get("n", self.capabilities.native_n)
        self.capabilities = replace(self.capabilities, native_n=most)

    async def _call(self, request: Request) -> list[Completion]:
        path, body = self.written(request)
        if request.body is not None:
            # A caller's own request is the caller's own to change.
            return self.completions(await self._send(path, body), request)
        return self.completions(await self._send_adapted(path, body, request.model), request)

    def written(self, request: Request) -> tuple[str, dict[str, Json]]:
        """Return where a call goes and what is sent."""
        path = self.wire.path.replace("{model}", quote(request.model.removeprefix("models/")))
        return path, self.wire.write(request, self.preset)

    def completions(self, received: Received, request: Request) -> list[Completion]:
        """Return what an answer holds."""
        counts, missing = self.preset.one_choice_counted, [*received.not_sent]
        answer = self._parse(received)
        choices = chat.read_answer(answer, request, received.latency_s, one_choice_counted=counts)
        if request.body is None:
            # Settings for which an interface has no field; texts are cut here.
            _, body = self.written(request)
            if request.stop and "input" in body:
                missing.append("stop")
            warm = request.temperature != 1.0 and "temperature" not in refused.fields_of(body)
            if warm and "temperature" not in missing:
                missing.append("temperature")
        if missing:
            choices = [replace(item, not_sent=tuple(missing)) for item in choices]
        # An answer of an odd form is kept as far as it was read; it is not handed on whole.
        if request.body is None or choices[0].odd is not None:
            return choices
        return [replace(item, response=self._json(received)) for item in choices]

    def _parse(self, received: Received) -> chat.ChatAnswer:
        """Return the answer, or say in which way it is none."""
        if self.wire.read is not None:
            return self.wire.read(self._json(received))
        answer = chat.parse_answer(received.raw)
        if isinstance(answer, str):
            # It is paid for whatever its form: what can be read of it is kept.
            answer = chat.loose_answer(received.raw, answer) or answer
        if isinstance(answer, chat.ChatAnswer) and answer.choices:
            self._check_no_key(received.text)
            return answer
        # The general reader names what is wrong: no JSON, no object, an error inside.
        raise chat.without_choices(self._json(received), form=answer)

    async def exreplace(self, path: str, body: Any = None, *, form: Any = None) -> dict[str, Any]:
        """Return what the endpoint says to a body or a form, or about a place, as JSON."""
        return self._json(await self._send(path, body, form=form))

    async def fetched(self, path: str) -> bytes:
        """Return what is at a place, without the key in it."""
        received = await self._send(path)
        self._check_no_key(received.text)
        return received.raw

    async def _send(
        self, path: str, body: Any = None, *, form: aiohttp.FormData | None = None
    ) -> Received:
        """Send and return what comes back; raise a ClientError."""
        session = self._session
        if session is None:
            session = self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                timeout=self._timeout,
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=True,
            )
        started = time.perf_counter()
        try:
            # A redirect would carry the key and the prompts to an address that nobody chose.
            async with session.request(
                "GET" if body is None and form is None else "POST",
                secrets.joined(self._base, path),
                data=form if body is None else orjson.dumps(body),
                headers=None if body is None else JSON_BODY,
                allow_redirects=False,
            ) as response:
                raw = await self._read(response)
                status, headers = response.status, response.headers
        except aiohttp.ConnectionTimeoutError:
            raise UnreachableError(f"no connection within {CONNECT_S:g} s") from None
        except TimeoutError:
            waited = self._timeout.total or 0.0
            raise OverloadError(f"no answer within {waited:g} s") from None
        except aiohttp.ClientError as error:
            unreachable = isinstance(error, aiohttp.ClientConnectorError)
            kind = UnreachableError if unreachable else OverloadError
            raise kind(self._clean(f"{type(error).__name__}: {error}")) from None
        latency = time.perf_counter() - started
        # An answer with another status of success is paid for all the same.
        if status != 200 and not (status in SUCCESSES and raw):
            failed = self.error(status, headers, raw)
            failed.status = status
            raise failed
        return Received(raw, headers, latency)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the answer, piece by piece decompressed, up to a size."""
        announced = response.content_length or 0
        parts, size = [], 0
        if announced <= self._most_bytes:
            async for part in response.content.iter_any():
                size += len(part)
                if size > self._most_bytes:
                    break
                parts.append(part)
        if max(size, announced) > self._most_bytes:
            response.close()
            raise errors.PermanentClientError(
                f"the answer is larger than {self._most_bytes / 1024**2:,.0f} MB; it was not read "
                "(most_bytes of the model, or CALIBRANT_MOST_ANSWER_BYTES, sets the limit)"
            )
        return b"".join(parts)

    def _json(self, received: Received) -> dict[str, Any]:
        raw, quote = received.raw, self._quote
        try:
            answer = any_json(raw)
        except ValueError:
            kind = self._short(received.headers.get("Content-Type", "no content type"))
            reply = f"{kind}, {len(raw)} bytes: {quote(raw) or 'nothing'}"
            raise errors.TransientClientError(f"the answer is not JSON but {reply}") from None
        if not isinstance(answer, dict):
            raise errors.TransientClientError(f"the answer is no JSON object: {quote(raw)}")
        self._check_no_key(received.text)
        return answer

    def _check_no_key(self, *texts: str) -> None:
        """Refuse an answer that repeats the key, however it is written."""
        if any(finder.found_in(text) for text in texts for finder in self._finders):
            raise EndpointRefusedError(
                "the endpoint repeats the API key in its answer; the answer was not stored"
            )

    def error(
        self, status: int, headers: Mapping[str, str], raw: bytes
    ) -> errors.TransientClientError | errors.PermanentClientError:
        """Return the error that an answer with this status is."""
        return refused.status_error(status, headers, raw, self._short)

    def _quote(self, raw: bytes) -> str:
        """Return the endpoint's own words, short, on one line and without the key."""
        return self._short(refused.quoted(raw))

    def _short(self, text: str) -> str:
        """Return a text of the endpoint for a message; the key is left out before it is cut."""
        text = errors.printable(" ".join(self._clean(text).split()))
        return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."

    def _clean(self, text: str) -> str:
        for finder in self._finders:
            text = finder.cleaned(text)
        return text


def _check_number(name: str, value: Any, most: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 < value <= most):
        raise errors.InputError(f"{name} is a number above 0, up to {most:g}, got {value!r}")
