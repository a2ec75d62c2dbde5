"""Does a text hold the key? It is looked for in every form that decodes to it."""

from __future__ import annotations

import base64
import html
import re
from urllib.parse import unquote

__all__ = ["KeyFinder"]

# Of an encoded key the ends depend on what stands beside it; the middle does not.
_LEAST = 8
# How often a text may have been escaped: an answer that quotes a request that quotes a header.
_ROUNDS = 4
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\\/\"]))")


class KeyFinder:
    """Finds a key in what an endpoint sent.

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
    """

    def __init__(self, key: str | None) -> None:
        self._key = key
        self._forms = [] if key is None else _encoded(key)

    def found_in(self, text: str) -> bool:
        """Return whether a text holds the key: itself, encoded, or encoded several times over."""
        if self._key is None:
            return False
        for _ in range(_ROUNDS):
            if self._key in text or any(form in text for form in self._forms):
                return True
            decoded = _decoded(text)
            if decoded == text:
                return False
            text = decoded
        return self._key in text

    def cleaned(self, text: str) -> str:
        """Return the text with the key, and what decodes to it, left out."""
        if self._key is None:
            return text
        for form in (self._key, *self._forms):
            text = text.replace(form, "[key]")
        return "[key]" if self.found_in(text) else text


def _decoded(text: str) -> str:
    """Return the text with escapes of JSON, addresses and pages taken off once."""
    if "\\" in text:
        text = _ESCAPED.sub(_letter, text)
    if "%" in text:
        # A plus stays one: a key has no spaces.
        text = unquote(text)
    return html.unescape(text) if "&" in text else text


def _letter(found: re.Match[str]) -> str:
    digits = found[1] or found[2]
    return chr(int(digits, 16)) if digits else found[3]


def _encoded(key: str) -> list[str]:
    """Return the stretches that base64 and hexadecimal text has wherever the key stands in it."""
    raw = key.encode()
    once = _as_base64(raw)
    twice = [form for whole in once for form in _as_base64(whole.encode())]
    forms = [raw.hex(), raw.hex().upper(), raw.hex(":"), raw.hex(" "), *once, *twice]
    return [form for form in dict.fromkeys(forms) if len(form) >= _LEAST]


def _as_base64(raw: bytes) -> list[str]:
    forms = []
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * before + raw).decode().rstrip("=")
            # Letters that also depend on the bytes before or after the key are cut off.
            start, end = (8 * before + 5) // 6, 8 * (before + len(raw)) // 6
            forms.append(whole[start:end])
    return forms
