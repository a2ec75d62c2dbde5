"""Export an audit to MLflow and read it back with it: `.. LOG`."""

import json
import sys
from pathlib import Path

import mlflow

import calibrant as cal
from calibrant.report.exports import to_mlflow


def through_mlflow(audit):
    # In the store that MLflow takes by itself, in this folder.
    with mlflow.start_run() as run:
        to_mlflow(audit)
    artifact = mlflow.artifacts.load_dict(f"{run.info.artifact_uri}/calibrant.json")
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    return {"metrics": metrics, "artifact": artifact}


if __name__ == "__main__":
    audit = cal.audit(sys.argv[1])
    Path("mlflow.json").write_text(json.dumps(through_mlflow(audit)))
