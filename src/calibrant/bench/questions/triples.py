"""Read triples: published fact files, tables, and saved results of a SPARQL query."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from calibrant.bench.questions.question import WORDINGS
from calibrant.core.errors import InputError, did_you_mean, error_source
from calibrant.core.hints import Hint
from calibrant.data import read_table

_ENTITY = "http://www.wikidata.org/entity/"
_VALUES = {
    "year": ("year", "date", "time", "start", "startdate", "pointintime", "point_in_time"),
    "area": ("area",),
    "views": ("views", "pageviews", "sitelinks_views"),
    "aliases": ("aliases", "objectaltlabel", "altlabels", "objectaliases"),
    "domain": ("domain",),
}


def sparql_records(content: Any) -> list[dict[str, Any]] | None:
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
    ...                 "results": {"bindings": bindings}})
    [{'subject': 'Euphrates', 'object': 'Turkey', 'subject_id': 'Q34589'}]
    """
    if isinstance(content, dict) and isinstance(content.get("results"), dict):
        bindings = content["results"].get("bindings")
        names = list(content.get("head", {}).get("vars", []))
        if not isinstance(bindings, list):
            raise InputError("a SPARQL result has results.bindings")
        rows = [{name: cell.get("value") for name, cell in row.items()} for row in bindings]
    elif isinstance(content, list) and content and _has_labels(content[0]):
        rows = content
        names = list(dict.fromkeys(name for row in rows for name in row))
    else:
        return None
    subject, target = _roles(names)
    return [_record(row, subject, target) for row in rows]


def _has_labels(row: Any) -> bool:
    return isinstance(row, dict) and any(name.endswith("Label") for name in row)


def _roles(names: list[str]) -> tuple[str, str]:
    labelled = [name.removesuffix("Label") for name in names if name.endswith("Label")]
    variables = []
    for role, position in (("subject", 0), ("object", 1)):
        if role in names or f"{role}Label" in names:
            variables.append(role)
        elif len(labelled) > position:
            variables.append(labelled[position])
        else:
            raise InputError(
                f"no variable for the {role} among {', '.join(names) or 'none'}",
                hint="select ?subject ?subjectLabel ?object ?objectLabel in the query",
            )
    return variables[0], variables[1]


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


DOMAIN_RELATION = {
    "award": "awarded_to",
    "office": "held_by",
    "region": "division_of",
    "language": "spoken_in",
    "river": "flows_through",
}
_OTHER_NAMES = {"country": "region"}
_FORMATS = {".csv", ".jsonl", ".json", ".parquet", ".gz", ".ndjson"}


class Triple(Struct, frozen=True):
    """One raw triple as read, before any filter: everything but its place may be missing."""

    domain: str
    subject: str | None
    obj: str | None
    low: float | None = None
    high: float | None = None
    aliases: tuple[str, ...] = ()
    subject_id: str | None = None
    views: float | None = None


def read_triples(path: str | Path, *, domain: str | None = None) -> list[Triple]:
    """Read triples from a file, or from every file of a folder.

    Parameters
    ----------
    path
        A JSON file that maps a subject to its objects (with years or areas), a table (csv,
        jsonl, parquet) with columns ``subject`` and ``object`` and, where they are known,
        ``year`` or ``area`` (or ``low`` and ``high``), ``aliases``, ``views``, ``subject_id``
        and ``domain``, or a SPARQL JSON result as a query service returns it.
    domain
        Domain of all triples; without it a ``domain`` column or the file's name says it.
    """
    place = Path(path)
    with error_source(str(path)):
        if place.is_dir():
            files = sorted(item for item in place.iterdir() if item.suffix in _FORMATS)
            if not files:
                raise InputError("the folder holds no csv, json, jsonl or parquet file")
            return [triple for file in files for triple in read_triples(file, domain=domain)]
        if not place.is_file():
            raise InputError("the file of triples does not exist")
        if place.suffix == ".json":
            return _from_json(place, domain)
        return _from_records(read_table(place).iter_rows(named=True), place, domain)


def _from_json(path: Path, domain: str | None) -> list[Triple]:
    try:
        content = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise InputError(f"not a JSON file: {error}") from None
    records = sparql_records(content)
    if records is not None:
        return _from_records(records, path, domain)
    if isinstance(content, list) and all(isinstance(item, dict) for item in content):
        return _from_records(content, path, domain)
    if isinstance(content, dict):
        return list(_from_mapping(content, domain or _domain_of(path)))
    raise InputError(
        "a JSON file of triples is a SPARQL result, a list of records, or an object that maps "
        "a subject to its objects"
    )


def _from_mapping(content: Mapping[str, Any], domain: str) -> Iterator[Triple]:
    """Read subject -> objects, subject -> year -> objects, or subject -> object -> area."""
    unit = WORDINGS[DOMAIN_RELATION[domain]].unit
    for subject, entry in content.items():
        if unit is None and isinstance(entry, list):
            for name in entry:
                yield Triple(domain, _label(subject), _label(name))
        elif unit == "year" and isinstance(entry, dict):
            for year, names in entry.items():
                value = _number(year)
                for name in names if isinstance(names, list) else [names]:
                    yield Triple(domain, _label(subject), _label(name), value, value)
        elif unit == "area" and isinstance(entry, dict):
            for name, area in entry.items():
                low, high = area if isinstance(area, list) else (area, area)
                low, high = _number(low), _number(high)
                yield Triple(domain, _label(subject), _label(name), low, high)
        else:
            raise InputError(
                f"the facts of {subject!r} do not have the form of the domain {domain!r}, "
                f"got {type(entry).__name__}"
            )


def _from_records(
    records: Iterable[Mapping[str, Any]], path: Path, domain: str | None
) -> list[Triple]:
    triples = []
    for row, record in enumerate(records, start=1):
        if "subject" not in record or "object" not in record:
            raise InputError(
                f"triples have columns 'subject' and 'object', got {', '.join(record)}",
                hint="rename the columns, or in SPARQL name the variables ?subject and ?object",
            )
        where = domain or record.get("domain") or _domain_of(path)
        triples.append(_from_record(record, _known_domain(str(where)), row))
    return triples


def _from_record(record: Mapping[str, Any], domain: str, row: int) -> Triple:
    unit = WORDINGS[DOMAIN_RELATION[domain]].unit
    low = high = None
    if unit is not None:
        low = high = _number(record.get(unit), row)
        if low is None:
            low, high = (_number(record.get(end), row) for end in ("low", "high"))
    aliases = record.get("aliases") or ()
    if isinstance(aliases, str):
        aliases = aliases.split("|")
    return Triple(
        domain=domain,
        subject=_label(record["subject"]),
        obj=_label(record["object"]),
        low=low,
        high=high,
        aliases=tuple(text.strip() for text in aliases if text and text.strip()),
        subject_id=record.get("subject_id"),
        views=_number(record.get("views"), row),
    )


def _label(value: Any) -> str | None:
    text = str(value).strip() if value is not None else ""
    return text or None


def _number(value: Any, row: int | None = None) -> float | None:
    """Return a number, or the year of a date such as 2004-01-01T00:00:00Z."""
    if value is None or value == "":
        return None
    text = str(value)
    if "T" in text:
        sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
        text = sign + text.split("-")[0].lstrip("+")
    try:
        return float(text)
    except ValueError:
        message = f"a year, area or number of views is a number, got {value!r}"
        raise InputError(message, row=row) from None


def _domain_of(path: Path) -> str:
    """Return the domain that a file's name begins with."""
    return _known_domain(path.name.split(".")[0].split("_")[0].split("-")[0])


def _known_domain(name: str) -> str:
    name = _OTHER_NAMES.get(name.lower(), name.lower())
    if name not in DOMAIN_RELATION:
        raise InputError(
            f"these triples belong to no known domain: {name!r}",
            hint=Hint("name the file after its domain, add a column 'domain', or give {domains}; ")
            + did_you_mean(name, list(DOMAIN_RELATION)),
        )
    return name
