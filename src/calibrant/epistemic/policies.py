"""Saved policies: plain JSON in, a policy that decides the same out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrant.core.document import load_document
from calibrant.core.errors import SchemaError
from calibrant.epistemic.deferral.cascade import Cascade
from calibrant.epistemic.deferral.policy import MixedPolicy
from calibrant.epistemic.deferral.router import Router
from calibrant.epistemic.segments.corrector import GroupCorrector
from calibrant.epistemic.selective.policy import SelectivePolicy

Policy = Cascade | Router | MixedPolicy | SelectivePolicy | GroupCorrector

_KINDS: dict[str, Any] = {
    "cascade": Cascade,
    "router": Router,
    "mixed": MixedPolicy,
    "selective": SelectivePolicy,
    "corrector": GroupCorrector,
}


def load_policy(path: str | Path) -> Policy:
    """Read a saved policy of any kind.

    Nothing in the file is run: it holds numbers and names. The decisions are those of the policy
    that was saved.
    """
    data = load_document(path)
    if data["schema"] != "calibrant.policy/1":
        raise SchemaError(
            f"a policy has the schema calibrant.policy/1, got {data['schema']!r}", source=str(path)
        )
    if data.get("kind") not in _KINDS:
        raise SchemaError(f"unknown kind of policy {data.get('kind')!r}", source=str(path))
    try:
        policy: Policy = _KINDS[data["kind"]].from_dict(data)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise SchemaError(
            f"the policy is damaged: {type(error).__name__} {error}", source=str(path)
        ) from None
    return policy
