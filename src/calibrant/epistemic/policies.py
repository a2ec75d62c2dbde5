"""Saved policies: plain JSON in, a policy that decides the same out."""

from __future__ import annotations

from pathlib import Path

from calibrant.core.document import load_document
from calibrant.core.errors import SchemaError
from calibrant.epistemic.cascade import Cascade
from calibrant.epistemic.router import Router

__all__ = ["load_policy"]


def load_policy(path: str | Path) -> Cascade | Router:
    """Read a saved policy.

    Nothing in the file is run: it holds numbers and names. The decisions are those of the policy
    that was saved, bit for bit.
    """
    data = load_document(path)
    if data["schema"] != "calibrant.policy/1":
        raise SchemaError(
            f"a policy has the schema calibrant.policy/1, got {data['schema']!r}", source=str(path)
        )
    if data.get("kind") not in ("cascade", "router"):
        raise SchemaError(f"unknown kind of policy {data.get('kind')!r}", source=str(path))
    try:
        return Cascade.from_dict(data) if data["kind"] == "cascade" else Router.from_dict(data)
    except (KeyError, TypeError, IndexError) as error:
        raise SchemaError(
            f"the policy is damaged: {type(error).__name__} {error}", source=str(path)
        ) from None
