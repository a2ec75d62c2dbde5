"""Where an endpoint is and what it is told in secret: never written down, found in answers."""

import base64
import binascii
import html
import os
import re
from collections.abc import Mapping
from itertools import product
from typing import Any
from urllib.parse import unquote, urlsplit

from calibrant.core.errors import InputError
from calibrant.models.protocol import Json

# Names of variables are in capitals, or short; a key is long and has both.
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}|[A-Za-z_][A-Za-z0-9_]{0,19}")
# Headers that say what is sent or who sends it; any other one that a user sets may be a secret.
OPEN_HEADERS = frozenset({
    "accept", "accept-encoding", "accept-language", "content-type", "user-agent", "referer",
    "http-referer", "x-title", "anthropic-version", "anthropic-beta", "openai-beta",
    "openai-organization", "openai-project",
})  # fmt: skip
SECRET_NAMES = re.compile(r"key|token|secret|sig|passw|pwd|auth|credential", re.I)


def key_from_environment(name: str | None) -> str | None:
    """Return the API key that the variable holds; None where no variable is named."""
    if name is None:
        return None
    if not isinstance(name, str) or not VARIABLE.fullmatch(name):
        # It may be the key itself: it is not shown.
        raise InputError(
            "api_key_env is the name of an environment variable, such as OPENAI_API_KEY",
            hint="export the key as such a variable; a key is never written down",
        )
    key = os.environ.get(name, "").strip()
    if not key:
        raise InputError(
            f"the environment variable {name} holds no API key",
            hint=f"export {name}=... (the key is used for sending only and never stored)",
        )
    if not key.isprintable():
        raise InputError(
            f"the API key in {name} has a line end or another control character",
            hint=f"export {name} again, as one line",
        )
    return key


def secrets_in(headers: Mapping[str, str]) -> list[str]:
    """Return what a user's own headers may hold in secret; of `Bearer KEY` the last word."""
    if not isinstance(headers, Mapping) or not all(isinstance(v, str) for v in headers.values()):
        raise InputError(f"headers are texts by name, got {type(headers).__name__}")
    names = [name for name in headers if name.lower() not in OPEN_HEADERS]
    return [headers[name].split()[-1] for name in names if headers[name].strip()]


def check_extra(extra: Any) -> Mapping[str, Json]:
    """Return further fields of every call, or refuse them: they are kept in the ledger."""
    if not isinstance(extra, Mapping):
        raise InputError(f"extra_body is a table of fields, got {type(extra).__name__}")
    for name in extra:
        if re.search(r"key|secret|passw|credential", str(name), re.I):
            raise InputError(
                f"extra_body is kept in the ledger, so it must hold no secret, got {name!r}",
                hint="name an environment variable as api_key_env, or use extra_headers",
            )
    return extra


def endpoint_name(base_url: str) -> str:
    """Return the address without its query, or say why it is none that can be used."""
    if not isinstance(base_url, str):
        raise InputError(f"a base_url is an address, got {base_url!r}")
    try:
        parts = urlsplit(base_url)
        port = f":{parts.port}" if parts.port else ""
        bare = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError as error:
        raise InputError(f"the base_url is no address: {error}") from None
    if parts.username or parts.password:
        raise InputError(
            "a base_url must not hold a user name or password",
            hint="put the key into an environment variable and name it as api_key_env",
        )
    if not bare or any(letter.isspace() for letter in base_url.strip()):
        # What stands before an @ may be a password.
        text = str(base_url).rpartition("@")[2]
        raise InputError(
            f"a base_url starts with http:// or https:// and names a host, got {text!r}"
        )
    if SECRET_NAMES.search(f"{parts.query}#{parts.fragment}"):
        raise InputError(
            "a base_url must not hold a key in its query",
            hint="put the key into an environment variable and name it as api_key_env",
        )
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"


def joined(base_url: str, path: str) -> str:
    """Return the address of a call; a query, such as Azure's api-version, stays behind the path.

    Examples
    --------
    >>> joined("https://a.example/openai/deployments/m?api-version=2024-10-21", "/chat")
    'https://a.example/openai/deployments/m/chat?api-version=2024-10-21'
    """
    bare, mark, query = base_url.partition("?")
    return f"{bare.rstrip('/')}{path}{mark}{query}"


# What is shorter is a word of many answers (`test`, `ollama`), not a secret.
_LEAST_KEY = 8
# From keys of this length on, parts of eight letters are looked for too.
_LONG_KEY, _PART = 20, 8
# The beginning of a key says whose it is, and stands in many manuals.
_KNOWN_START = re.compile(
    r"sk-(?:proj-|ant-|or-|svcacct-|admin-)?(?:api\d+-|v\d+-)?|gsk_|xai-|AIza|hf_|pplx-|r8_|Bearer "
)
# How often a text may have been encoded, and how often escaped within one such round: an answer
# that quotes a request that quotes a header.
_ROUNDS, _ESCAPES = 5, 24
_ESCAPED = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,4})\}|U0{4}([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})"
    r"|([0-3][0-7]{2})|([\\/\"]))"
)
_PERCENT_U = re.compile(r"%u([0-9a-fA-F]{4})")
_EQUALS = re.compile(r"=([0-9A-F]{2})")
_WITHOUT_WIDTH = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_BLANKS, _BETWEEN_BYTES = b" \t\n\r\v\f", b":,;-_"
# A mail or certificate has lines of 64 or 76 letters.
_LINE = 60
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
# Every byte that is no letter of base64 becomes a blank; both alphabets become the usual one.
_LETTERS = bytes(
    byte if byte in _ALPHABET + b"+/" else {ord("-"): ord("+"), ord("_"): ord("/")}.get(byte, 32)
    for byte in range(256)
)
_MARKED = bytes(ord(" ") if letter == ord(" ") else ord("a") for letter in _LETTERS)


class KeyFinder:
    """Finds a key in what an endpoint sent.

    A key of less than eight letters is not looked for: servers without keys are given a word such
    as `test`, and an answer may well have it. Of a long key every part of eight letters is looked
    for that is no word: it has digits and letters, or large and small ones.

    Parameters
    ----------
    key
        The key, or None where nothing is looked for.

    Examples
    --------
    >>> finder = KeyFinder("sk-secret-1234567")
    >>> import base64, json
    >>> finder.found_in('{"echo": "sk-secret%2D1234567"}')
    True
    >>> finder.found_in(base64.b64encode(b"the key: sk-secret-1234567.").decode())
    True
    >>> finder.found_in("sk-another"), KeyFinder(None).found_in("anything")
    (False, False)
    >>> KeyFinder("test").found_in("a test")
    False
    """

    def __init__(self, key: str | None) -> None:
        self._key = None if key is None or len(key) < _LEAST_KEY else key
        if self._key is None:
            return
        raw = self._key.encode()
        forms = [raw, raw[::-1]]
        for before, encode in product(range(3), (base64.b64encode, base64.urlsafe_b64encode)):
            whole = encode(b"\0" * before + raw).rstrip(b"=")
            # Letters that also depend on the bytes before or after the key are cut off.
            forms.append(whole[(8 * before + 5) // 6 : 8 * (before + len(raw)) // 6])
        self._forms = list(dict.fromkeys(forms))
        self._parts = _parts(self._key)
        self._hexadecimal = raw.hex().encode()
        self._numbers = ",".join(map(str, raw)).encode()
        # What decodes to an encoded key is longer than the key.
        self._least = len(raw) * 4 // 3
        self._digits = re.compile(rb"(?:[0-9a-fA-F]{2}){%d,}" % len(raw))

    def found_in(self, text: str) -> bool:
        """Return whether a text holds the key: itself, encoded, or encoded several times over."""
        if self._key is None:
            return False
        waiting = [text]
        for _ in range(_ROUNDS):
            plain = []
            for text in waiting:
                for _ in range(_ESCAPES + 1):
                    if self._plainly_in(text):
                        return True
                    before, text = text, _unescaped(text)
                    if before == text:
                        break
                plain.append(text)
            waiting = [decoded for part in plain for decoded in self._decoded(part)]
        return any(map(self._plainly_in, waiting))

    def cleaned(self, text: str) -> str:
        """Return the text with the key, and what decodes to it, left out."""
        if self._key is None:
            return text
        for form in self._forms:
            text = text.replace(form.decode(), "[key]")
        return "[key]" if self.found_in(text) else text

    def _plainly_in(self, text: str) -> bool:
        """Return whether the key or one of its encoded forms stands in the text.

        Blanks, line ends, also as JSON writes them, and letters without width are left out: they
        part what belongs together.
        """
        if not text.isascii():
            text = text.translate(_WITHOUT_WIDTH)
        if "\\" in text:
            text = text.replace("\\n", "").replace("\\r", "").replace("\\t", "")
        joined = text.encode("utf-8", "surrogatepass").translate(None, _BLANKS)
        if any(form in joined for form in self._forms) or self._numbers in joined:
            return True
        if any(part in joined for part in self._parts):
            return True
        digits = joined.lower().replace(b"0x", b"").translate(None, _BETWEEN_BYTES)
        return self._hexadecimal in digits

    def _decoded(self, text: str) -> list[str]:
        """Return what runs of base64 and of hexadecimal digits in a text stand for."""
        raw = text.encode("ascii", "replace")
        # Most answers have no run of that many letters, and need not be taken apart.
        if b"a" * self._least not in raw.translate(_MARKED):
            return []
        runs = [run for run in raw.translate(_LETTERS).split() if len(run) >= self._least]
        if any(len(run) >= _LINE for run in runs):
            lines = raw.replace(b"\\n", b"").replace(b"\\r", b"").translate(None, _BLANKS)
            runs += lines.translate(_LETTERS).split()
        wholes = [run[: len(run) - (len(run) % 4 == 1)] for run in runs]
        # Padded to its length, a run of these letters is base64 whatever it was.
        bits = [binascii.a2b_base64(whole + b"=" * (-len(whole) % 4)) for whole in wholes]
        bits += [binascii.unhexlify(digits) for run in runs for digits in self._digits.findall(run)]
        texts = list(filter(None, map(_as_text, bits)))
        return [" ".join(texts)] if texts else []


def _parts(key: str) -> list[bytes]:
    """Return the parts of a long key that nobody writes by chance.

    Examples
    --------
    >>> _parts("sk-proj-Ab3dEf6hIj"), len(_parts("sk-proj-Ab3dEf6hIjKl9nOp"))
    ([], 9)
    """
    if len(key) < _LONG_KEY:
        return []
    prefix = _KNOWN_START.match(key)
    remainder = key[prefix.end() :] if prefix else key
    parts = []
    for start in range(len(remainder) - _PART + 1):
        part = remainder[start : start + _PART]
        mixed = part != part.lower() and part != part.upper() and not part.istitle()
        is_no_word = mixed or sum(map(str.isdigit, part)) >= 2
        if is_no_word and sum(map(str.isalpha, part)) >= 2:
            parts.append(part.encode())
    return parts


def _unescaped(text: str) -> str:
    """Return the text with escapes of JSON, addresses, pages and mails taken off once."""
    if "\\" in text:
        text = _ESCAPED.sub(_letter, text)
    if "%" in text:
        # A plus stays one: a key has no spaces.
        text = unquote(_PERCENT_U.sub(_letter, text))
    if "=" in text:
        text = _EQUALS.sub(_letter, text)
    return html.unescape(text) if "&" in text else text


def _letter(match: re.Match[str]) -> str:
    if match.re is not _ESCAPED:
        return chr(int(match[1], 16))
    digits = match[1] or match[2] or match[3] or match[4]
    if digits:
        return chr(int(digits, 16))
    return chr(int(match[5], 8)) if match[5] else match[6]


def _as_text(raw: bytes) -> str:
    """Return bytes as a text, nothing where they are none; those of UTF-16 have zeros."""
    try:
        return raw.decode().replace("\0", "")
    except UnicodeDecodeError:
        return ""
