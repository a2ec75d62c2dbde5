"""The one command that comes next, and why."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims.claim import Claim

__all__ = ["next_step"]

_TABLE = "TABLE"


def next_step(verb: str, head: Mapping[str, Any], claims: Sequence[Claim]) -> dict[str, str]:
    """Return a command to copy, and the reason for it.

    Parameters
    ----------
    verb
        What was done.
    head
        Head of the document: its input and its columns.
    claims
        What was found.

    Examples
    --------
    >>> next_step("audit", {"source": "s.csv", "input": [{"path": "s.csv"}]}, [])["command"]
    "calibrant plan s.csv --claim 'ece<0.05'"
    """
    source = _place(head)
    if verb == "audit" and any(claim.outcome == "shown" for claim in claims):
        models = {claim.subject.get("model") for claim in claims if claim.subject.get("model")}
        if len(models) > 1:
            why = "Is one model better calibrated, or only more accurate?"
            return {"command": f"calibrant compare {source}", "why": why}
        why = "Where may it answer alone?"
        return {"command": f"calibrant decide {source} --max-error 0.10", "why": why}
    why = "How many labels would decide it?"
    return {"command": f"calibrant plan {source} --claim 'ece<0.05'", "why": why}


def _place(head: Mapping[str, Any]) -> str:
    """Return the input with the columns that it was read by, as a command takes them."""
    files = head.get("input") or []
    source = str(head.get("source") or "")
    named = shlex.quote(source) if files and source else _TABLE
    settings = head.get("settings") or {}
    columns = (settings.get("columns") or {}).items()
    given = [f"--{role} {shlex.quote(str(name))}" for role, name in columns if name]
    # What had to be dropped here would stop the next command too.
    more = " --on-invalid drop" if settings.get("on_invalid") == "drop" else ""
    return " ".join([named, *given]) + more
