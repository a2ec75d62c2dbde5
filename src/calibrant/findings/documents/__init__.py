"""Typed documents: what every verb returns, as classes, and their JSON Schema.

A result is plain JSON data and is read like a dict. The classes here say which keys it has, so
that ``audit.results[0].metrics.ece.high`` completes in an editor and a type checker knows it is a
number. Keys may be added to a document without a new version; readers pass over what they do not
know.
"""

from types import NoneType
from typing import Any, get_args

import msgspec

from calibrant.core.document import newest_version
from calibrant.findings.documents.entries import Claim as Claim
from calibrant.findings.documents.entries import EstimateEntry as EstimateEntry
from calibrant.findings.documents.entries import Metrics as Metrics
from calibrant.findings.documents.entries import Verification as Verification
from calibrant.findings.documents.fields import FIELDS as FIELDS
from calibrant.findings.documents.fields import Fields as Fields
from calibrant.findings.documents.fields import fields_of
from calibrant.findings.documents.fields import typed as typed

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def document_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of document.

    Keys that are not in the schema are allowed: a document may have gained some.

    Parameters
    ----------
    kind
        Such as ``audit``.

    Examples
    --------
    >>> schema = document_schema("audit")
    >>> schema["properties"]["schema"], "results" in schema["required"]
    ({'const': 'calibrant.audit/1'}, True)
    """
    fields = fields_of(FIELDS[kind])
    types_, parts = msgspec.json.schema_components(
        list(fields.values()), ref_template="#/$defs/{name}"
    )
    properties = dict(zip(fields, types_, strict=True))
    properties["schema"] = {"const": f"calibrant.{kind}/{newest_version(kind)}"}
    return {
        "$schema": _DIALECT,
        "title": f"calibrant.{kind}/{newest_version(kind)}",
        "type": "object",
        "properties": properties,
        "required": [name for name, kinds in fields.items() if NoneType not in get_args(kinds)],
        "$defs": parts,
    }
