"""Result documents in the formats of other tools."""

from calibrant.report.exports.junit import Check, junit_xml
from calibrant.report.exports.mlflow import log_to_mlflow, mlflow_metrics
from calibrant.report.exports.model_card import card_snippet, model_index

__all__ = [
    "Check",
    "card_snippet",
    "junit_xml",
    "log_to_mlflow",
    "mlflow_metrics",
    "model_index",
]
