"""What a document says first on a page: its claims, or what its own tables open with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims import Claim
from calibrant.core.document import kind_of
from calibrant.report.answers import claims_of
from calibrant.report.blocks import Paragraph
from calibrant.report.terminal import document_blocks

_SENTENCES = 3


def said_first(document: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of a document, or the sentences of one that makes none.

    A plan by formula makes no claim about data; what it comes to is said by its tables.
    """
    kind = kind_of(document)
    claims = claims_of(document)
    if kind in ("audit", "compare") or (claims and kind != "plan"):
        return claims
    strong = [b.text for b in document_blocks(document) if isinstance(b, Paragraph) and b.strong]
    most = 1 if claims else _SENTENCES
    # A sentence that decides nothing.
    form: dict[str, Any] = {"id": f"{kind}.opening", "subject": {}, "outcome": ""}
    return [*(Claim(**form, text=text) for text in strong[:most] if text), *claims]
