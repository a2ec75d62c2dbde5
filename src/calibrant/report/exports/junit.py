"""Checks as JUnit XML, the form that build servers show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

# XML 1.0 has no way to write these; a model's name may hold anything.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Check:
    """One condition on one block of an audit; `failure` says why it does not hold, if so."""

    place: str
    name: str
    failure: str | None = None


def junit_xml(checks: Sequence[Check], *, suite: str = "calibrant") -> str:
    """Return the checks as a JUnit test suite.

    Examples
    --------
    >>> print(junit_xml([Check("small / verb", "ece>0.05", "value = 0.2")]).splitlines()[2].strip())
    <testcase classname="small / verb" name="ece&gt;0.05">
    """
    failures = sum(check.failure is not None for check in checks)
    root = ElementTree.Element(
        "testsuite", name=_clean(suite), tests=str(len(checks)), failures=str(failures), errors="0"
    )
    for check in checks:
        case = ElementTree.SubElement(
            root, "testcase", classname=_clean(check.place), name=_clean(check.name)
        )
        if check.failure is not None:
            failure = ElementTree.SubElement(case, "failure", message=_clean(check.failure))
            failure.text = _clean(check.failure)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)
