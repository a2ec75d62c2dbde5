"""Tables and sentences of every kind of document, as neutral blocks that all writers take."""

from collections.abc import Mapping
from typing import Any

from calibrant.core.errors import SchemaError, did_you_mean
from calibrant.core.names import function_at, registered
from calibrant.findings.claims import Claim
from calibrant.findings.documents.fields import typed
from calibrant.report.answers import claims_of
from calibrant.report.captions import rows_left_out, wrong_table
from calibrant.report.cells import Paragraph, Table, claims_first

# Where the blocks of a kind are made, loaded when they are asked for.
_PLACES = {
    "accuracy": "lists.accuracy_blocks",
    "analysis": "lists.analysis_blocks",
    "audit": "audit.blocks",
    "cascade": "decide.cascade_blocks",
    "compare": "compare.blocks",
    "decide": "decide.blocks",
    "demo": "lists.demo_blocks",
    "grade": "meanings.grade_blocks",
    "groups": "audit.groups_blocks",
    "import_logs": "lists.import_blocks",
    "init": "lists.init_blocks",
    "judge": "labels.judge_blocks",
    "label": "labels.label_blocks",
    "leaderboard": "plan.leaderboard_blocks",
    "mend": "decide.mend_blocks",
    "methods": "lists.methods_blocks",
    "models": "lists.models_blocks",
    "monitor": "labels.monitor_blocks",
    "plan": "plan.blocks",
    "report": "lists.report_blocks",
    "run": "run.blocks",
    "semantics": "meanings.blocks",
    "serve": "lists.serve_blocks",
    "study": "run.study_blocks",
}
KINDS = {kind: f"{__name__}.{place}" for kind, place in _PLACES.items()} | registered("tables")
_FRAMED = frozenset({"accuracy", "cascade", "decide", "judge", "mend", "monitor"})
"""Kinds that begin with what they claim and end with the rows that were left out."""
_SENTENCES = 3


def document_blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the neutral blocks of a document; a kind that has none is refused by name."""
    result = typed(document)
    kind = result.kind
    if kind not in KINDS:
        raise SchemaError(
            f"there is no report of documents calibrant.{kind}/1",
            hint=did_you_mean(kind, sorted(KINDS)),
        )
    blocks = function_at(KINDS[kind])(result)
    if kind in _FRAMED:
        blocks = [*claims_first(result), *blocks, *rows_left_out(result)]
    return [*blocks, *wrong_table(result)]


def said_first(document: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of a document, or the sentences of one that makes none.

    A plan by formula makes no claim about data; what it comes to is said by its tables.
    """
    result = typed(document)
    kind, claims = result.kind, claims_of(result)
    if kind in ("audit", "compare") or (claims and kind != "plan"):
        return claims
    strong = [b.text for b in document_blocks(result) if isinstance(b, Paragraph) and b.strong]
    most = 1 if claims else _SENTENCES
    # A sentence that decides nothing.
    form: dict[str, Any] = {"id": f"{kind}.opening", "subject": {}, "outcome": ""}
    return [*(Claim(**form, text=text) for text in strong[:most] if text), *claims]
