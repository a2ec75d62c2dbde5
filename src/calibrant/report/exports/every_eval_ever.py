"""An audit as records of Every Eval Ever, the shared format of the EvalEval coalition.

One record per model, with one result per method and measure. The format asks for the range of a
measure, so only measures between 0 and 1 are written; groups are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.metrics.registry import METRICS

SCHEMA_VERSION = "0.2.1"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
"""What the evaluator is to the model's maker."""

_MEASURES = {
    "ece": "expected calibration error",
    "smooth_ece": "smooth calibration error",
    "brier": "Brier score of the confidence",
    "auroc": "AUROC of the confidence for being right",
    "aurc": "area under the risk-coverage curve",
    "accuracy": "accuracy",
}


def every_eval_ever_records(
    document: Mapping[str, Any],
    *,
    dataset: str,
    organization: str,
    relationship: str,
    timestamp: int,
) -> list[dict[str, Any]]:
    """Return one record per model of an audit.

    Parameters
    ----------
    document
        Document ``calibrant.audit/1``.
    dataset
        Name of the questions.
    organization
        Who made the evaluation.
    relationship
        One of `RELATIONSHIPS`.
    timestamp
        Seconds since 1970, when the record is made.
    """
    blocks = [entry for entry in document["results"] if not entry.get("group")]
    models = list(dict.fromkeys(entry["model"] for entry in blocks))
    return [
        {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": f"{dataset}/{model}/{timestamp}",
            "retrieved_timestamp": str(timestamp),
            "source_metadata": {
                "source_type": "evaluation_run",
                "source_organization_name": organization,
                "evaluator_relationship": relationship,
            },
            "eval_library": {"name": "calibrant", "version": document["version"]},
            "model_info": {"name": model, "id": model},
            "evaluation_results": [
                result
                for entry in blocks
                if entry["model"] == model
                for result in _results(entry, document, dataset)
            ],
        }
        for model in models
    ]


def _results(
    entry: Mapping[str, Any], document: Mapping[str, Any], dataset: str
) -> Sequence[dict[str, Any]]:
    results = []
    for name, title in _MEASURES.items():
        estimate = entry["metrics"].get(name)
        if estimate is None or estimate["value"] is None:
            continue
        results.append(
            {
                "evaluation_name": f"{dataset}: {name} ({entry['method']})",
                "source_data": {"dataset_name": dataset, "source_type": "other"},
                "metric_config": {
                    "evaluation_description": f"{title}, confidence by {entry['method']}",
                    "lower_is_better": METRICS[name].better == "low",
                    "score_type": "continuous",
                    "min_score": 0,
                    "max_score": 1,
                },
                "score_details": {
                    "score": estimate["value"],
                    "uncertainty": _uncertainty(estimate, entry["n"], document["level"]),
                },
            }
        )
    return results


def _uncertainty(estimate: Mapping[str, Any], rows: int, level: float) -> dict[str, Any]:
    found: dict[str, Any] = {"num_samples": rows}
    if estimate["low"] is not None and estimate["high"] is not None:
        found["confidence_interval"] = {
            "lower": estimate["low"],
            "upper": estimate["high"],
            "confidence_level": level,
        }
    return found
