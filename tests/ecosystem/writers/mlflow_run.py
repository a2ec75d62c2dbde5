"""Write ``fixtures/mlflow/`` with MLflow (3.17): its default store, scorers by rule, no model.

`genai.json` is the table of `mlflow.genai.evaluate`, `table.json` the artifact of
`mlflow.models.evaluate`, `traces.json` that of `mlflow.search_traces` with feedback of people.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from cases import CASES

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_GENAI_EVAL_ENABLE_SCORER_TRACING"] = "false"
target = Path(sys.argv[1]).absolute()
target.mkdir(parents=True, exist_ok=True)
place = tempfile.mkdtemp()
os.chdir(place)

import mlflow  # noqa: E402
import pandas as pd  # noqa: E402
from mlflow.entities import AssessmentSource  # noqa: E402
from mlflow.genai.scorers import scorer  # noqa: E402


@scorer
def correctness(outputs, expectations):
    return outputs["answer"] == expectations["expected_response"]


@scorer
def confidence(outputs):
    return outputs["confidence"]


rows = [
    {
        "inputs": {"question": asked},
        "outputs": {"answer": said, "confidence": sure},
        "expectations": {"expected_response": right},
    }
    for asked, said, right, sure in CASES
]
mlflow.set_experiment("sums")
found = mlflow.genai.evaluate(data=rows, scorers=[correctness, confidence])
table = found.tables["eval_results"]
# What these hold is about the machine of the run.
table = table.drop(columns=["trace", "trace_metadata", "tags", "spans", "assessments"])
table.to_json(target / "genai.json", orient="records", default_handler=str)

frame = pd.DataFrame(
    {
        "inputs": [asked for asked, *_ in CASES],
        "ground_truth": [right for _, _, right, _ in CASES],
        "predictions": [said for _, said, _, _ in CASES],
        "confidence": [sure for *_, sure in CASES],
    }
)


def matches(predictions, targets):
    from mlflow.metrics import MetricValue

    return MetricValue(scores=[float(a == b) for a, b in zip(predictions, targets, strict=True)])


with mlflow.start_run() as run:
    mlflow.models.evaluate(
        data=frame,
        targets="ground_truth",
        predictions="predictions",
        extra_metrics=[
            mlflow.metrics.make_metric(eval_fn=matches, greater_is_better=True, name="exact_match")
        ],
        evaluators="default",
    )
    kept = mlflow.artifacts.download_artifacts(
        run_id=run.info.run_id, artifact_path="eval_results_table.json"
    )
shutil.copy(kept, target / "table.json")

mlflow.set_experiment("traces")
PERSON = AssessmentSource(source_type="HUMAN", source_id="reader")


@mlflow.trace
def answer(question):
    return next({"answer": said, "confidence": c} for q, said, _, c in CASES if q == question)


for asked, said, right, _ in CASES:
    answer(asked)
    mlflow.flush_trace_async_logging()
    about = {"trace_id": mlflow.get_last_active_trace_id(), "source": PERSON}
    mlflow.log_feedback(name="correctness", value=said == right, **about)
    mlflow.log_expectation(name="expected_response", value=right, **about)
traces = mlflow.search_traces(return_type="pandas")
traces = traces.drop(columns=["trace", "trace_metadata", "tags", "spans"])
traces.to_json(target / "traces.json", orient="records", default_handler=str)
