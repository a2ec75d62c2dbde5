"""Typed documents: what every verb returns, as classes, and their JSON Schema.

A result is plain JSON data and is read like a dict. The classes here say which keys it has, so
that ``audit.results[0].metrics.ece.high`` completes in an editor and a type checker knows it is a
number. Keys may be added to a document without a new version; readers pass over what they do not
know.
"""

from calibrant.findings.documents.entries import Claim as Claim
from calibrant.findings.documents.entries import EstimateEntry as EstimateEntry
from calibrant.findings.documents.entries import Metrics as Metrics
from calibrant.findings.documents.entries import Verification as Verification
from calibrant.findings.documents.fields import FIELDS as FIELDS
from calibrant.findings.documents.fields import Fields as Fields
from calibrant.findings.documents.fields import typed as typed
from calibrant.findings.documents.schema import document_schema as document_schema
