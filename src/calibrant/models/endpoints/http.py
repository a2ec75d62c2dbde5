"""What all HTTP endpoints have in common: sending, reading, and naming what went wrong."""

import asyncio
import re
import time
from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import aiohttp
import orjson
from msgspec.structs import replace

from calibrant.core import errors
from calibrant.data.limits import limit
from calibrant.models import protocol
from calibrant.models.asks import check_request, for_draws
from calibrant.models.endpoints import refused, secrets
from calibrant.models.replies.malformed_reply import any_json

OVERLOAD = frozenset({408, 425, 429, 502, 503, 504, 520, 522, 524, 529})
REFUSED = frozenset({401, 402, 403, 404, 405, 407})
OUT_OF_CREDIT = re.compile(r"insufficient_quota|exceeded your current quota|credit balance", re.I)
BAD_KEY = re.compile(r"API_KEY_INVALID|api key not valid|invalid[_ ]api[_ ]key", re.I)
ABOUT_THE_TEXT = re.compile(r"moderation|flagged|content[_ ]policy|safety", re.I)
LONGEST_QUOTE = 300
MOST_QUOTED = 65_536
SUCCESSES = frozenset({201, 202, 203, 206})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
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


class HttpClient:
    """An endpoint reached over HTTP; adapters say how a request is written and read.

    Parameters
    ----------
    base_url
        Root of the interface, without user name, password or key.
    key
        API key, sent as `key_header` with `key_prefix` in front; kept in memory only.
    capabilities
        What the endpoint can give.
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

    key_header = "Authorization"
    key_prefix = "Bearer "
    own_headers: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        base_url: str,
        *,
        capabilities: protocol.Capabilities,
        key: str | None = None,
        timeout_s: float = 120.0,
        extra_headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, protocol.Json] | None = None,
        most_bytes: int | None = None,
    ) -> None:
        self.endpoint = secrets.endpoint_name(base_url)
        _check_number("timeout_s", timeout_s, refused.LONGEST_WAIT_S)
        if most_bytes is not None:
            _check_number("most_bytes", most_bytes, 2**63)
        self._base = base_url
        self._extra = secrets.check_extra(extra_body or {})
        self.refused: dict[str, refused.Refusals] = {}
        self.most_refused = MOST_REFUSED
        self.essential: set[str] = set()
        """Settings without which nothing is to be sent."""
        self.news: set[str] = set()
        """Models of which something was learned that nobody has written down yet."""
        self._finding_out: dict[object, asyncio.Event] = {}
        self._most_bytes = limit("answer_bytes") if most_bytes is None else most_bytes
        hidden = (key, *secrets.secrets_in(extra_headers or {}))
        self._finders = [secrets.KeyFinder(secret) for secret in hidden]
        self._key = key
        self.capabilities = capabilities
        connect_s = min(CONNECT_S, timeout_s)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=connect_s)
        self._headers = {**self.own_headers, **(extra_headers or {})}
        if key is not None:
            self._headers[self.key_header] = self.key_prefix + key
        self._session: aiohttp.ClientSession | None = None

    def resolve(self, model: str) -> str:
        """Return the name itself: what stands behind it is known only from the answers."""
        return model

    def prepare(self, request: protocol.Request) -> protocol.Request:
        """Return the request as it will be sent, or raise errors.CapabilityError."""
        room = self.capabilities.thinking_tokens
        if (room or self._extra) and request.body is None:
            request = replace(request, thinking_tokens=room, extra=self._extra or None)
        check_request(request, self.capabilities, endpoint=self.endpoint)
        return request

    async def ask(self, request: protocol.Request) -> list[protocol.Completion]:
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
        completions = refused.cut_at_stop(request, completions)
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

    async def _send_adapted(
        self, path: str, body: Mapping[str, protocol.Json], model: str
    ) -> Received:
        """Send without what the endpoint refuses.

        Of calls of one form the first goes alone, so that a refusal is met once and not by all
        calls that are under way.
        """
        limits, left = self.refusals(model), self.most_refused
        while True:
            self._check_essential(limits, model)
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

    def _check_essential(self, limits: refused.Refusals, model: str) -> None:
        for setting in self.essential & limits.left_out.keys():
            raise errors.CapabilityError(
                f"{self.endpoint} refuses {setting} of the model {model!r}, which this study "
                f"cannot do without: {limits.left_out[setting]}\n  -> take the methods that need "
                "it off `methods` in study.toml, or use another endpoint"
            )

    def recall(self, model: str, limits: refused.Refusals) -> None:
        """Take over what was learned before."""
        self.refused[model] = limits
        self._fewer_draws(limits)

    def _fewer_draws(self, limits: refused.Refusals) -> None:
        most = 1 if "n" in limits.left_out else limits.at_most.get("n", self.capabilities.native_n)
        self.capabilities = replace(self.capabilities, native_n=most)

    async def _call(self, request: protocol.Request) -> list[protocol.Completion]:
        raise NotImplementedError

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
            raise protocol.UnreachableError(f"no connection within {CONNECT_S:g} s") from None
        except TimeoutError:
            waited = self._timeout.total or 0.0
            raise protocol.OverloadError(f"no answer within {waited:g} s") from None
        except aiohttp.ClientError as error:
            unreachable = isinstance(error, aiohttp.ClientConnectorError)
            kind = protocol.UnreachableError if unreachable else protocol.OverloadError
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
            raise protocol.EndpointRefusedError(
                "the endpoint repeats the API key in its answer; the answer was not stored"
            )

    def error(
        self, status: int, headers: Mapping[str, str], raw: bytes
    ) -> errors.TransientClientError | errors.PermanentClientError:
        """Return the error that an answer with this status is."""
        quote = self._quote(raw)
        message = f"HTTP {status}: {quote}" if quote else f"HTTP {status}"
        if status in REDIRECTS:
            place = self._short(str(headers.get("Location", "another address")))
            return protocol.EndpointRefusedError(
                f"HTTP {status}: the endpoint sends the call on to {place!r}, which is not "
                "followed; set base_url to the address that answers itself"
            )
        if OUT_OF_CREDIT.search(quote) or BAD_KEY.search(quote):
            return protocol.EndpointRefusedError(message)
        wait = refused.retry_after_s(headers, raw)
        if status in OVERLOAD:
            return protocol.OverloadError(message, retry_after=wait, rate_limited=status == 429)
        if status in REFUSED and not ABOUT_THE_TEXT.search(quote):
            return protocol.EndpointRefusedError(message)
        if status >= 500 or status in (409, 421):
            return errors.TransientClientError(message, retry_after=wait)
        return refused.RefusedCallError(message, raw)

    def _quote(self, raw: bytes) -> str:
        """Return the endpoint's own words, short, on one line and without the key."""
        text = raw[:MOST_QUOTED].decode("utf-8", "replace")
        try:
            error = any_json(raw).get("error")
            if error:
                text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
                code = error.get("code") or error.get("type") if isinstance(error, dict) else None
                text = f"{text} ({code})" if code else text
        except (ValueError, AttributeError):
            pass
        return self._short(text)

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
