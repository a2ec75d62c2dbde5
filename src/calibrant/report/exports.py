"""Results in the formats of other tools: JUnit XML, MLflow, Weights & Biases."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from calibrant.core.errors import InputError
from calibrant.core.names import optional_import
from calibrant.core.places import writing
from calibrant.findings.claims.checks import checked_blocks, failed_checks, parse_check
from calibrant.report.result import Result

# XML 1.0 has no way to write these; a model's name may hold anything.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_IN_MLFLOW = re.compile(r"[^\w\-. /]")


def to_junit(
    result: Result,
    claims: Sequence[str],
    path: str | Path | None = None,
    *,
    allow_undecided: bool = False,
) -> str:
    """Check claims such as ``ece>0.05`` on every block, and return the outcome as JUnit XML.

    A claim names what must not be: where it holds, is undefined or undecided, the test fails;
    `allow_undecided` lets what is undecided pass.

    Examples
    --------
    >>> import calibrant as cal
    >>> audit = cal.audit([0.9, 0.9, 0.9, 0.9], [1, 0, 0, 1], resamples=20)
    >>> 'failures="1"' in to_junit(audit, ["brier>0.2", "brier>0.9"])
    True
    """
    checks = []
    for place, metrics, about in checked_blocks(result):
        for text in claims:
            check = parse_check(text)
            if check.metric not in metrics and not (check.of_claims and about):
                continue
            lines = failed_checks(result, [check], allow_undecided=allow_undecided)
            own = (line for line in lines if line.startswith((f"{place}:", f"{text}:")))
            checks.append((place, f"not {text}", next(own, None)))
    failures = sum(failure is not None for _, _, failure in checks)
    root = ElementTree.Element(
        "testsuite",
        name=_clean(f"calibrant {result['source']}"),
        tests=str(len(checks)),
        failures=str(failures),
        errors="0",
    )
    for place, name, failure in checks:
        case = ElementTree.SubElement(root, "testcase", classname=_clean(place), name=_clean(name))
        if failure is not None:
            element = ElementTree.SubElement(case, "failure", message=_clean(failure))
            element.text = _clean(failure)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    xml = f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'
    if path is not None:
        with writing(path):
            Path(path).write_text(xml, encoding="utf-8")
    return xml


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)


def to_wandb(result: Result, run: Any) -> None:
    """Log the numbers of an audit to a run of Weights & Biases: ``to_wandb(audit, wandb.run)``."""
    run.log(mlflow_metrics(result))


def to_mlflow(result: Result) -> None:
    """Log an audit to the active MLflow run (needs ``mlflow``): numbers, and the document."""
    mlflow = optional_import("mlflow", extra="mlflow", purpose="logging to MLflow")
    try:
        mlflow.log_metrics(mlflow_metrics(result))
        mlflow.log_dict(result.to_dict(), "calibrant.json")
    except Exception as error:
        # The slim package of MLflow cannot open the data base that is its default store.
        if "unsupported URI" not in str(error):
            raise
        raise InputError(
            "this installation of MLflow cannot open its tracking store",
            hint="pip install 'calibrant[mlflow]', or set MLFLOW_TRACKING_URI to a server",
        ) from error


def mlflow_metrics(document: Mapping[str, Any]) -> dict[str, float]:
    """Return every defined number of an audit under a name that MLflow accepts.

    Examples
    --------
    >>> metrics = {"ece": {"value": 0.1, "low": 0.0, "high": None, "n": 9}}
    >>> entry = {"model": "m:1", "method": "verb", "group": None, "n": 9, "metrics": metrics}
    >>> mlflow_metrics({"results": [entry]})
    {'m_1/verb/ece': 0.1, 'm_1/verb/ece.low': 0.0, 'm_1/verb/n': 9.0}
    """
    values: dict[str, float] = {}
    for entry in document["results"]:
        group = [f"{key}={value}" for key, value in (entry.get("group") or {}).items()]
        place = "/".join([entry["model"].replace("/", "_"), entry["method"], *group])
        for name, estimate in entry["metrics"].items():
            for end, part in (("", "value"), (".low", "low"), (".high", "high")):
                if estimate[part] is not None:
                    values[_NOT_IN_MLFLOW.sub("_", f"{place}/{name}{end}")] = float(estimate[part])
        values[_NOT_IN_MLFLOW.sub("_", f"{place}/n")] = float(entry["n"])
    return values
