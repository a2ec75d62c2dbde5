"""An audit as metrics of an MLflow run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.imports import optional_import

_NOT_ALLOWED = re.compile(r"[^\w\-. /]")


def mlflow_metrics(document: Mapping[str, Any]) -> dict[str, float]:
    """Return every defined number of an audit under a name that MLflow accepts.

    Examples
    --------
    >>> metrics = {"ece": {"value": 0.1, "low": 0.0, "high": None, "n": 9}}
    >>> entry = {"model": "m:1", "method": "verb", "group": None, "n": 9, "metrics": metrics}
    >>> mlflow_metrics({"results": [entry]})
    {'m_1/verb/ece': 0.1, 'm_1/verb/ece.low': 0.0, 'm_1/verb/n': 9.0}
    """
    found: dict[str, float] = {}
    for entry in document["results"]:
        group = [f"{key}={value}" for key, value in (entry.get("group") or {}).items()]
        place = "/".join([entry["model"].replace("/", "_"), entry["method"], *group])
        for name, estimate in entry["metrics"].items():
            for end, part in (("", "value"), (".low", "low"), (".high", "high")):
                if estimate[part] is not None:
                    found[_clean(f"{place}/{name}{end}")] = float(estimate[part])
        found[_clean(f"{place}/n")] = float(entry["n"])
    return found


def log_to_mlflow(document: Mapping[str, Any], *, artifact: str = "calibrant.json") -> None:
    """Log an audit to the active MLflow run: numbers as metrics, the document as an artifact."""
    mlflow = optional_import("mlflow", extra="mlflow", purpose="logging to MLflow")
    try:
        mlflow.log_metrics(mlflow_metrics(document))
        mlflow.log_dict(dict(document), artifact)
    except Exception as error:
        # The slim package of MLflow cannot open the data base that is its default store.
        if "unsupported URI" not in str(error):
            raise
        raise InputError(
            "this installation of MLflow cannot open its tracking store",
            hint="pip install 'calibrant[mlflow]', or set MLFLOW_TRACKING_URI to a server",
        ) from error


def _clean(name: str) -> str:
    return _NOT_ALLOWED.sub("_", name)
