"""Write ``fixtures/deepeval.json`` with DeepEval itself (4.3): metrics by rule, no model."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"
os.environ["DEEPEVAL_RESULTS_FOLDER"] = tempfile.mkdtemp()

from deepeval import evaluate
from deepeval.metrics import ExactMatchMetric, PatternMatchMetric
from deepeval.test_case import LLMTestCase

CASES = [
    ("2+2", "4", "4", 0.9),
    ("3+3", "6", "6", 0.85),
    ("5+4", "9", "9", 0.8),
    ("7+6", "14", "13", 0.6),
    ("8+8", "about 17", "16", 0.55),
    ("9+3", "12", "12", None),
]

cases = [
    LLMTestCase(
        input=asked,
        actual_output=said,
        expected_output=right,
        metadata=None if sure is None else {"confidence": sure},
    )
    for asked, said, right, sure in CASES
]
evaluate(
    cases,
    metrics=[ExactMatchMetric(), PatternMatchMetric(pattern=r"\d+")],
    hyperparameters={"model": "toy"},
)
(written,) = Path(os.environ["DEEPEVAL_RESULTS_FOLDER"]).glob("*.json")
shutil.copy(written, sys.argv[1])
