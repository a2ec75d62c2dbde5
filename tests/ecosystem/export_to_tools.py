"""Export an audit to MLflow and to a model card, and read it back with them: `.. LOG`."""

import json
import sys
from pathlib import Path

import mlflow
from huggingface_hub import ModelCard

import calibrant as cal
from calibrant.integrations.exports import to_mlflow, to_model_card, to_model_index


def through_mlflow(audit):
    # In the store that MLflow takes by itself, in this folder.
    with mlflow.start_run() as run:
        to_mlflow(audit)
    artifact = mlflow.artifacts.load_dict(f"{run.info.artifact_uri}/calibrant.json")
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    return {"metrics": metrics, "artifact": artifact}


def through_a_card(audit):
    front = to_model_index(audit, model="me/small", dataset="Capitals", dataset_type="me/capitals")
    card = ModelCard(f"---\n{front}---\n\n{to_model_card(audit)}")
    return [
        {"type": r.metric_type, "metric_name": r.metric_name, "metric_value": r.metric_value}
        for r in card.data.eval_results
    ]


if __name__ == "__main__":
    audit = cal.audit(sys.argv[1])
    Path("mlflow.json").write_text(json.dumps(through_mlflow(audit)))
    Path("card.json").write_text(json.dumps(through_a_card(audit)))
