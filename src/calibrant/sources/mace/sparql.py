"""SPARQL JSON results, as Wikidata's query service returns or saves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.core.errors import InputError

_ENTITY = "http://www.wikidata.org/entity/"
_VALUES = {
    "year": ("year", "date", "time", "start", "startdate", "pointintime", "point_in_time"),
    "area": ("area",),
    "views": ("views", "pageviews", "sitelinks_views"),
    "aliases": ("aliases", "objectaltlabel", "altlabels", "objectaliases"),
    "domain": ("domain",),
}


def sparql_records(content: Any, *, source: str) -> list[dict[str, Any]] | None:
    """Return records with subject and object, or None when `content` is no SPARQL result.

    Both forms are read: ``{"head": .., "results": {"bindings": [..]}}`` of the W3C
    recommendation, and the flat list of the query page's download. An entity variable ``?x``
    goes with its label ``?xLabel``. The subject is ``?subject``, or else the first variable
    with a label; the object is ``?object``, or else the second one.

    Examples
    --------
    >>> bindings = [{"river": {"type": "uri", "value": "http://www.wikidata.org/entity/Q34589"},
    ...              "riverLabel": {"type": "literal", "value": "Euphrates"},
    ...              "country": {"type": "uri", "value": "http://www.wikidata.org/entity/Q43"},
    ...              "countryLabel": {"type": "literal", "value": "Turkey"}}]
    >>> sparql_records({"head": {"vars": ["river", "riverLabel", "country", "countryLabel"]},
    ...                 "results": {"bindings": bindings}}, source="rivers.json")
    [{'subject': 'Euphrates', 'object': 'Turkey', 'subject_id': 'Q34589'}]
    """
    if isinstance(content, dict) and isinstance(content.get("results"), dict):
        bindings = content["results"].get("bindings")
        names = list(content.get("head", {}).get("vars", []))
        if not isinstance(bindings, list):
            raise InputError("a SPARQL result has results.bindings", source=source)
        rows = [{name: cell.get("value") for name, cell in row.items()} for row in bindings]
    elif isinstance(content, list) and content and _has_labels(content[0]):
        rows = content
        names = list(dict.fromkeys(name for row in rows for name in row))
    else:
        return None
    subject, target = _roles(names, source)
    return [_record(row, subject, target) for row in rows]


def _has_labels(row: Any) -> bool:
    return isinstance(row, dict) and any(name.endswith("Label") for name in row)


def _roles(names: list[str], source: str) -> tuple[str, str]:
    labelled = [name.removesuffix("Label") for name in names if name.endswith("Label")]
    found = []
    for role, position in (("subject", 0), ("object", 1)):
        if role in names or f"{role}Label" in names:
            found.append(role)
        elif len(labelled) > position:
            found.append(labelled[position])
        else:
            raise InputError(
                f"no variable for the {role} among {', '.join(names) or 'none'}",
                source=source,
                hint="select ?subject ?subjectLabel ?object ?objectLabel in the query",
            )
    return found[0], found[1]


def _record(row: Mapping[str, Any], subject: str, target: str) -> dict[str, Any]:
    record = {"subject": _name(row, subject), "object": _name(row, target)}
    identity = row.get(subject)
    if isinstance(identity, str) and identity.startswith(_ENTITY):
        record["subject_id"] = identity.removeprefix(_ENTITY)
    for column, names in _VALUES.items():
        for name, value in row.items():
            if name.lower() in names and value is not None:
                record.setdefault(column, value)
    if isinstance(record.get("aliases"), str):
        record["aliases"] = [part.strip() for part in record["aliases"].split(",")]
    return record


def _name(row: Mapping[str, Any], variable: str) -> Any:
    """Return the label; without one the bare Q-id, which the validity filter then drops."""
    label = row.get(f"{variable}Label", row.get(variable))
    return label.removeprefix(_ENTITY) if isinstance(label, str) else label
