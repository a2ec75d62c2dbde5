"""Does a text hold the key? It is looked for in every form that decodes to it."""

from __future__ import annotations

import base64
from urllib.parse import unquote_plus

__all__ = ["KeyFinder"]

# Of an encoded key the ends depend on what stands beside it; the middle does not.
_LEAST = 8


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
        """Return whether decoded text holds the key, itself or in an encoding of its own."""
        if self._key is None:
            return False
        if self._key in text or any(form in text for form in self._forms):
            return True
        return ("%" in text or "+" in text) and self._key in unquote_plus(text)

    def cleaned(self, text: str) -> str:
        """Return the text with the key, and what decodes to it, left out."""
        if self._key is None:
            return text
        for form in (self._key, *self._forms):
            text = text.replace(form, "[key]")
        return "[key]" if self.found_in(text) else text


def _encoded(key: str) -> list[str]:
    """Return the stretches that base64 and hexadecimal text has wherever the key stands in it."""
    raw = key.encode()
    forms = [raw.hex(), raw.hex().upper()]
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * before + raw).decode().rstrip("=")
            # Letters that also depend on the bytes before or after the key are cut off.
            start, end = (8 * before + 5) // 6, 8 * (before + len(raw)) // 6
            forms.append(whole[start:end])
    return [form for form in dict.fromkeys(forms) if len(form) >= _LEAST]
