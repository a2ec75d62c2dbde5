"""The JSON Schema of every kind of document."""

import types
import typing
from typing import Any

import msgspec

from calibrant.core.document import newest_version
from calibrant.documents.fields import FIELDS, fields_of

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
        "required": [name for name, type_ in fields.items() if not _may_be_missing(type_)],
        "$defs": parts,
    }


def _may_be_missing(type_: Any) -> bool:
    union = typing.get_origin(type_) in (types.UnionType, typing.Union)
    return union and types.NoneType in typing.get_args(type_)
