"""Results in the formats of other tools: checks as JUnit XML, model cards, MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.api.claims import failed_claims, parse_claim
from calibrant.api.result import Result
from calibrant.report.exports import Check, card_snippet, junit_xml, log_to_mlflow, model_index

__all__ = ["to_junit", "to_mlflow", "to_model_card", "to_model_index"]


def to_junit(result: Result, claims: Sequence[str], path: str | Path | None = None) -> str:
    """Check claims such as ``ece>0.05`` on every block, and return the outcome as JUnit XML.

    A claim names what must not be: where it holds, or is undefined, the test fails.

    Examples
    --------
    >>> import calibrant as cal
    >>> audit = cal.audit([0.9, 0.9, 0.9, 0.9], [1, 0, 0, 1], resamples=20)
    >>> 'failures="1"' in to_junit(audit, ["brier>0.2", "brier>0.9"])
    True
    """
    checks = []
    for entry in result["results"]:
        group = (entry.get("group") or {}).values()
        place = " / ".join([entry["model"], entry["method"], *group])
        for text in claims:
            failures = failed_claims([entry], [parse_claim(text)])
            checks.append(Check(place, f"not {text}", failures[0] if failures else None))
    xml = junit_xml(checks, suite=f"calibrant {result['source']}")
    if path is not None:
        Path(path).write_text(xml, encoding="utf-8")
    return xml


def to_model_index(result: Result, *, model: str, dataset: str, dataset_type: str) -> str:
    """Return the `model-index` entry of a Hugging Face model card, as YAML."""
    return model_index(result.to_dict(), model=model, dataset=dataset, dataset_type=dataset_type)


def to_model_card(result: Result) -> str:
    """Return a Markdown section for a model card."""
    return card_snippet(result.to_dict())


def to_mlflow(result: Result) -> None:
    """Log an audit to the active MLflow run (needs ``mlflow``)."""
    log_to_mlflow(result.to_dict())
