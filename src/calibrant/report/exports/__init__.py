"""Result documents in the formats of other tools."""

from calibrant.report.exports.every_eval_ever import RELATIONSHIPS, every_eval_ever_records
from calibrant.report.exports.junit import Check, junit_xml
from calibrant.report.exports.mlflow import log_to_mlflow, mlflow_metrics
from calibrant.report.exports.model_card import card_snippet, model_index

__all__ = [
    "RELATIONSHIPS",
    "Check",
    "card_snippet",
    "every_eval_ever_records",
    "junit_xml",
    "log_to_mlflow",
    "mlflow_metrics",
    "model_index",
]
