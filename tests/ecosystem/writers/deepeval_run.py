"""Write ``fixtures/deepeval.json`` with DeepEval itself (4.3): metrics by rule, no model."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"
os.environ["DEEPEVAL_RESULTS_FOLDER"] = tempfile.mkdtemp()

from cases import CASES
from deepeval import evaluate
from deepeval.metrics import ExactMatchMetric, PatternMatchMetric
from deepeval.test_case import LLMTestCase

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
