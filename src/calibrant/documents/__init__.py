"""Typed documents: what every verb returns, as classes, and their JSON Schema.

A result is plain JSON data and is read like a dict. The classes here say which keys it has, so
that ``audit.results[0].metrics.ece.high`` completes in an editor and a type checker knows it is a
number. Keys may be added to a document without a new version; readers pass over what they do not
know.
"""

from calibrant.documents.entries import Claim, EstimateEntry, Metrics, Verification
from calibrant.documents.fields import FIELDS, Fields
from calibrant.documents.schema import document_schema, field_value

__all__ = [
    "FIELDS",
    "Claim",
    "EstimateEntry",
    "Fields",
    "Metrics",
    "Verification",
    "document_schema",
    "field_value",
]
