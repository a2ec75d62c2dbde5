"""Where an endpoint is and what it is told in secret: nothing of that is ever written down."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from calibrant.core.errors import InputError

# Names of variables are in capitals, or short; a key is long and has both.
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}|[A-Za-z_][A-Za-z0-9_]{0,19}")
# Headers that say what is sent or who sends it; any other one that a user sets may be a secret.
OPEN_HEADERS = frozenset(
    [
        "accept",
        "accept-encoding",
        "accept-language",
        "content-type",
        "user-agent",
        "referer",
        "http-referer",
        "x-title",
        "anthropic-version",
        "anthropic-beta",
        "openai-beta",
        "openai-organization",
        "openai-project",
    ]
)
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


def check_extra(extra: Any) -> Mapping[str, Any]:
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
        shown = str(base_url).rpartition("@")[2]
        raise InputError(
            f"a base_url starts with http:// or https:// and names a host, got {shown!r}"
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
