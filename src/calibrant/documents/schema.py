"""Values of documents as classes, and the JSON Schema of every kind."""

import types
import typing
from typing import Any

import msgspec

from calibrant.core.document import newest_version
from calibrant.core.errors import SchemaError
from calibrant.documents.fields import FIELDS, Fields

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def fields_of(kind: type[Fields]) -> dict[str, Any]:
    """Return the types of a document's keys, those of every document first."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Fields):
            found |= typing.get_type_hints(base)
    return found


def field_value(kind: type[Fields], name: str, value: Any) -> Any:
    """Return the value of a key as the class that its annotation names.

    Examples
    --------
    >>> from calibrant.documents.fields import GroupsFields
    >>> field_value(GroupsFields, "grouping_loss", {"value": 0.1, "low": 0.0, "high": 0.2}).high
    0.2
    """
    try:
        return msgspec.convert(value, fields_of(kind)[name])
    except msgspec.ValidationError as error:
        raise SchemaError(
            f"the key {name!r} is not what its schema says: {error}",
            hint="read it as plain data: result[key]",
        ) from None


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
