"""Saved policies: plain JSON in, a policy that decides the same out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrant.core.document import load_document
from calibrant.core.errors import SchemaError
from calibrant.epistemic.deferral.policy import MixedPolicy, inner_policy
from calibrant.epistemic.mended import MendedPolicy
from calibrant.epistemic.policy import Policy
from calibrant.epistemic.selective.policy import SelectivePolicy
from calibrant.records.mend_map import SCHEMA as MEND_SCHEMA
from calibrant.records.mend_map import load_mend

SCHEMA = "calibrant.policy/1"


def load_policy(path: str | Path) -> Policy:
    """Read what `decide`, `cascade` or `mend` saved.

    Nothing in the file is run: it holds numbers and names. The decisions are those of the policy
    that was saved.
    """
    data = load_document(path)
    if data["schema"] == MEND_SCHEMA:
        return MendedPolicy(load_mend(path))
    if data["schema"] != SCHEMA:
        raise SchemaError(
            f"a policy has the schema {SCHEMA}, got {data['schema']!r}", source=str(path)
        )
    try:
        return _policy(data)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise SchemaError(
            f"the policy is damaged: {type(error).__name__} {error}", source=str(path)
        ) from None
    except SchemaError as error:
        raise SchemaError(error.rule, source=str(path)) from None


def _policy(data: dict[str, Any]) -> Policy:
    kind = data.get("kind")
    if kind == "selective":
        return SelectivePolicy.from_dict(data)
    if kind == "mixed":
        return MixedPolicy.from_dict(data)
    if kind in ("cascade", "router"):
        # Fitted in Python and saved by itself: one setting, and no promise.
        return MixedPolicy.alone(inner_policy(data))
    if kind == "corrector":
        raise SchemaError(
            "a corrected confidence decides nothing; read it with "
            "calibrant.epistemic.GroupCorrector.load"
        )
    raise SchemaError(f"unknown kind of policy {kind!r}")
