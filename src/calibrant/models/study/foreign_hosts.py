"""Hosts and variables that a policy or a study names: used once somebody has said yes to them.

Both are files like any other. Whoever can edit one could send prompts, and the content of any
environment variable, to any address.
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from calibrant.core.append_only import AppendOnly
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint

_LOCAL_KINDS = frozenset({"embedded", "replay"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def check_places(
    recipe: Mapping[str, Any], models: Sequence[str], endpoints: Mapping[str, str],
    keys: Mapping[str, str], confirm: str | None, *, source: str,
) -> None:  # fmt: skip
    """Refuse hosts and variables of the policy's own that nobody has confirmed.

    Models with an address of the caller's need nothing; neither do those that are asked on this
    very machine without a key.
    """
    names = {name: _place(recipe["models"][name], keys.get(name))
             for name in models if name not in endpoints}  # fmt: skip
    foreign = {name: place for name, place in names.items() if place is not None}
    if not foreign:
        return
    code = _code(foreign)
    if confirm == code:
        _remember(code)
    if confirm == code or code in _remembered():
        return
    raise InputError(
        f"the policy names hosts that nobody has confirmed: {_words(foreign)}",
        source=source,
        hint=Hint(
            "if they are yours, confirm them once with {confirm}; else give {endpoint} and "
            "{key_env}",
            confirm=code,
            endpoint="NAME=URL",
            key_env="NAME=VARIABLE",
        ),
    )


def agree_to_keys(
    entries: Mapping[str, Mapping[str, Any]], confirm: Callable[[str], bool]
) -> str | None:
    """Ask whether keys may go where a study says; return what was refused, None where nothing was.

    A provider's own address needs nothing, nor does this very machine.
    """
    named = {name: _place(entry, None) for name, entry in entries.items() if entry.get("base_url")}
    foreign = {
        name: place
        for name, place in named.items()
        if place is not None and place[2] and not all(map(_is_loopback, place[1]))
    }
    if not foreign or (code := _code(foreign)) in _remembered():
        return None
    words = f"this study asks {_words(foreign)}"
    if not confirm(f"{words[0].upper()}{words[1:]}. Send the key there?"):
        return words
    _remember(code)
    return None


_Place = tuple[str, list[str], str]


def _code(foreign: Mapping[str, _Place]) -> str:
    packed = orjson.dumps(foreign, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(packed, digest_size=6).hexdigest()


def _words(foreign: Mapping[str, _Place]) -> str:
    return "; ".join(
        f"{name} at {' and '.join(map(str, urls))}"
        + (f" with the key in {variable}" if variable else "")
        for name, (_, urls, variable) in foreign.items()
    )


def _place(entry: Mapping[str, Any], given_key: str | None) -> _Place | None:
    """Return kind, addresses and variable of a model; None where nothing leaves the machine."""
    kind = str(entry.get("client", entry.get("kind", "")))
    if kind in _LOCAL_KINDS:
        return None
    url = entry.get("base_url")
    urls = [url] if isinstance(url, str) else list(url or [f"the usual address of {kind}"])
    variable = "" if given_key is not None else str(entry.get("api_key_env") or "")
    if not variable and all(_is_loopback(item) for item in urls):
        return None
    return kind, urls, variable


def _is_loopback(url: object) -> bool:
    try:
        return urlsplit(str(url)).hostname in _LOOPBACK
    except ValueError:
        return False


def _file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "calibrant" / "confirmed"


def _remembered() -> list[str]:
    with suppress(OSError, RuntimeError):
        return _file().read_text(encoding="ascii", errors="replace").split()
    return []


def _remember(code: str) -> None:
    # A container may have no home: the code is then given each time.
    with suppress(OSError, RuntimeError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        if code not in _remembered():
            AppendOnly(_file()).append(code.encode())
