"""What an endpoint refuses, learned once and left out ever after; how long it asks to wait."""

import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

import msgspec
from msgspec import Struct

from calibrant.core.errors import PermanentClientError, TransientClientError
from calibrant.models.protocol import (
    EndpointRefusedError,
    Json,
    OverloadError,
)
from calibrant.models.replies import any_json, loose_json

# Which fields of a call a setting stands for, in the interfaces of all providers.
FIELDS: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "top_k": ("top_k", "topK"),
    "min_p": ("min_p",),
    "logprobs": ("logprobs", "top_logprobs", "responseLogprobs", "include"),
    "seed": ("seed", "random_seed"),
    "n": ("n", "candidateCount"),
    "stop": ("stop", "stop_sequences", "stopSequences"),
}
NAMES = {
    **{field: setting for setting, fields in FIELDS.items() for field in fields},
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "response_logprobs": "logprobs",
    "multiple candidates": "n",
    "candidate_count": "n",
}
"""Settings by what endpoints call them."""
THINKING = ("temperature", "top_p", "logprobs", "stop")
"""A model that thinks before it answers takes none of these; it says so of one at a time."""
OWN_TEMPERATURE = ("temperature", 1.0)
_WORDS = "|".join(sorted(NAMES.keys() - {"include"}, key=len, reverse=True))
_SPELT = re.compile(rf"(?<![a-z_])({_WORDS})(?![a-z_])", re.I)
_REFUSED = re.compile(
    r"unsupported|n[o']t (?:be )?(?:supported?|enabled|allowed|permitted|available|accepted)|does "
    r"not (?:support|accept|take)|unknown|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)|only "
    r"the default|may only be set to 1|must be (?:unset|1\b)|cannot both|incompatible|deprecated",
    re.I,
)
_AT_MOST = re.compile(
    r"(?:at most|less than or equal to|no more than|<=|maximum(?: value)?(?: is| of)?)\D{0,3}"
    r"(\d{1,6})",
    re.I,
)


class RefusedCallError(PermanentClientError):
    """The endpoint refuses one call; `raw` is what it says."""

    def __init__(self, message: str, raw: bytes) -> None:
        super().__init__(message)
        self.raw = raw


class Refusals(Struct):
    """What an endpoint refuses of one model, and what is sent instead.

    Examples
    --------
    >>> known = Refusals()
    >>> sent = {"model": "m", "temperature": 0.0, "max_tokens": 9}
    >>> known.learn("Unsupported value: 'temperature' does not support 0.0 with this model.", sent)
    True
    >>> known.adapted(sent)
    ({'model': 'm', 'max_tokens': 9}, ('temperature',))
    >>> known.learn("Your credit is used up", sent)
    False
    """

    left_out: dict[str, str] = msgspec.field(default_factory=dict)
    at_most: dict[str, int] = msgspec.field(default_factory=dict)
    renamed: dict[str, str] = msgspec.field(default_factory=dict)

    def adapted(self, body: Mapping[str, Json]) -> tuple[Mapping[str, Json], tuple[str, ...]]:
        """Return the call as the endpoint takes it, and the settings that were left out."""
        if not (self.left_out or self.at_most or self.renamed):
            return body, ()
        inner = body.get("generationConfig")
        if isinstance(inner, Mapping):
            fields, missing = self.adapted(inner)
            return {**body, "generationConfig": fields}, missing
        gone = {field for name in self.left_out for field in FIELDS[name]}
        selection = {
            self.renamed.get(name, name): min(value, self.at_most[name])
            if isinstance(value, int | float) and name in self.at_most
            else value
            for name, value in body.items()
            if name not in gone
        }
        # Temperature 1 is the model's own distribution: nothing is lost with it.
        present = {
            NAMES[name] for name in body if name in gone and (name, body[name]) != OWN_TEMPERATURE
        }
        return selection, tuple(name for name in self.left_out if name in present)

    def learn(self, reply: str, body: Mapping[str, Json], named: str | None = None) -> bool:
        """Take note of a refusal; return whether the call can be sent in another way.

        Parameters
        ----------
        reply
            The endpoint's words.
        body
            What was sent.
        named
            The field that the endpoint names apart from its words, if it does.
        """
        fields = fields_of(body)
        words = [named] if named in NAMES else _SPELT.findall(reply)
        for word in words:
            field = str(word).lower() if str(word).lower() in NAMES else str(word)
            setting = NAMES.get(field)
            if setting == "max_tokens":
                if self._learn_length(reply, fields):
                    return True
            elif setting is not None and any(name in fields for name in FIELDS[setting]):
                return self._learn(setting, field, reply, fields)
        return False

    def _learn(self, setting: str, field: str, reply: str, fields: Mapping[str, Json]) -> bool:
        limit = _AT_MOST.search(reply)
        if limit and isinstance(value := fields.get(field), int) and value > int(limit[1]) > 0:
            self.at_most[field] = int(limit[1])
            return True
        if setting in self.left_out or not _REFUSED.search(reply):
            return False
        self.left_out[setting] = reply
        if setting == "temperature" and "with this model" in reply:
            self._learn_that_it_thinks(reply)
        return True

    def _learn_length(self, reply: str, fields: Mapping[str, Json]) -> bool:
        for old, new in (
            ("max_tokens", "max_completion_tokens"),
            ("max_completion_tokens", "max_tokens"),
        ):
            if old not in fields or old in self.renamed:
                continue
            limit = _AT_MOST.search(reply)
            if limit and isinstance(targets := fields[old], int) and targets > int(limit[1]) > 0:
                return False  # a longer answer was wanted than there can be: the user decides
            if not _REFUSED.search(reply) or new in self.renamed:
                return False
            self.renamed[old] = new
            if new == "max_completion_tokens":
                self._learn_that_it_thinks(reply)
            return True
        return False

    def _learn_that_it_thinks(self, reply: str) -> None:
        for name in THINKING:
            self.left_out.setdefault(name, reply)


def fields_of(body: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the settings of a call, which one interface keeps together in a field."""
    inner = body.get("generationConfig")
    return inner if isinstance(inner, Mapping) else body


def words_of(raw: bytes) -> tuple[str, str | None]:
    """Return what an endpoint says in a refusal, and the field that it names.

    Examples
    --------
    >>> words_of(b'{"error": {"message": "Unsupported value", "param": "temperature"}}')
    ('Unsupported value', 'temperature')
    """
    text = raw.decode("utf-8", "replace")
    try:
        body = loose_json(raw)
    except ValueError:
        return text, None
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return text, None
    param, reply = error.get("param"), error.get("message")
    return (
        reply if isinstance(reply, str) else text,
        param.rpartition(".")[2] if isinstance(param, str) else None,
    )


def form_of(body: Mapping[str, Json]) -> tuple[object, ...]:
    """Return what an endpoint may refuse about a call: which fields it has, and how warm it is."""
    fields = fields_of(body)
    return (fields.get("temperature"), *fields)


LONGEST_WAIT_S = 366 * 86_400.0
MOST_LOOKED_AT = 65_536
_PLAIN_NUMBER = re.compile(r"\d{1,12}(\.\d{1,6})?", re.ASCII)


def retry_after_s(headers: Mapping[str, str], raw: bytes) -> float | None:
    """Return the seconds that the endpoint asks to wait, in any of the usual dialects.

    What is no plain number or date says nothing; what is beyond a year is a year.
    """
    value = headers.get("Retry-After-Ms")
    if value is not None and _PLAIN_NUMBER.fullmatch(value):
        return min(float(value) / 1000.0, LONGEST_WAIT_S)
    value = headers.get("Retry-After")
    if value is None:
        delay = re.search(rb'"retryDelay"\s*:\s*"(\d{1,12}(?:\.\d{1,6})?)s"', raw[:MOST_LOOKED_AT])
        return min(float(delay.group(1)), LONGEST_WAIT_S) if delay else None
    if _PLAIN_NUMBER.fullmatch(value.strip()):
        return min(float(value), LONGEST_WAIT_S)
    if value.strip().isdecimal():
        # More digits than any time has.
        return LONGEST_WAIT_S
    try:
        wait = parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError, OSError, IndexError, TypeError):
        return None
    return min(max(0.0, wait), LONGEST_WAIT_S)


OVERLOAD = frozenset({408, 425, 429, 502, 503, 504, 520, 522, 524, 529})
REFUSED = frozenset({401, 402, 403, 404, 405, 407})
OUT_OF_CREDIT = re.compile(r"insufficient_quota|exceeded your current quota|credit balance", re.I)
BAD_KEY = re.compile(r"API_KEY_INVALID|api key not valid|invalid[_ ]api[_ ]key", re.I)
ABOUT_THE_TEXT = re.compile(r"moderation|flagged|content[_ ]policy|safety", re.I)
REDIRECTS = frozenset({301, 302, 303, 307, 308})


def status_error(
    status: int, headers: Mapping[str, str], raw: bytes, short: Callable[[str], str]
) -> TransientClientError | PermanentClientError:
    """Return the error that an answer with this status is; `short` makes its words fit to show."""
    quote = short(quoted(raw))
    message = f"HTTP {status}: {quote}" if quote else f"HTTP {status}"
    if status in REDIRECTS:
        place = short(str(headers.get("Location", "another address")))
        return EndpointRefusedError(
            f"HTTP {status}: the endpoint sends the call on to {place!r}, which is not "
            "followed; set base_url to the address that answers itself"
        )
    if OUT_OF_CREDIT.search(quote) or BAD_KEY.search(quote):
        return EndpointRefusedError(message)
    wait = retry_after_s(headers, raw)
    if status in OVERLOAD:
        return OverloadError(message, retry_after=wait, rate_limited=status == 429)
    if status in REFUSED and not ABOUT_THE_TEXT.search(quote):
        return EndpointRefusedError(message)
    if status >= 500 or status in (409, 421):
        return TransientClientError(message, retry_after=wait)
    return RefusedCallError(message, raw)


def quoted(raw: bytes) -> str:
    """Return the endpoint's own words."""
    text = raw[:MOST_LOOKED_AT].decode("utf-8", "replace")
    try:
        error = any_json(raw).get("error")
        if error:
            text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
            code = error.get("code") or error.get("type") if isinstance(error, dict) else None
            text = f"{text} ({code})" if code else text
    except (ValueError, AttributeError):
        pass
    return text
