"""What each log of other tools gives, as the table that docs/import.md links to.

`python tests/ecosystem/table_of_logs.py` reads the files that the tools wrote for the tests and the
public ones of the shared data folder, and writes the table; a test compares it.
"""

import csv
import re
import sys
from pathlib import Path

import polars as pl

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import calibrant as cal  # noqa: E402
from calibrant.core.errors import CalibrantError  # noqa: E402
from calibrant.data.logs.json_text import ReadOptions  # noqa: E402
from calibrant.data.logs.recognise import read_log  # noqa: E402

TABLE = ROOT / "docs" / "files" / "logs.csv"


# Who wrote each file, by the start of its name; fixtures/README.md says with which script.
WRITERS = {
    "inspect": "inspect-ai 0.3.285",
    "lm_eval/": "lm-eval 0.4.13",
    "helm": "crfm-helm 0.5.16",
    "openai_evals": "evals 3.0.1",
    "simple_evals": "nvidia-simple-evals 26.3",
    "promptfoo": "promptfoo 0.121.20",
    "deepeval": "DeepEval 4.3.1",
    "langfuse": "models of Langfuse's client 3.15; no server",
    "phoenix": "Phoenix 20.21 and its client",
    "mlflow": "MLflow 3.17.2",
    "ragas": "ragas 0.4.3",
    "lm_polygraph": "lm-polygraph 0.7.0",
    "uqlm": "uqlm 0.6.7",
    "langsmith": "langsmith 0.14.17",
    "braintrust": "braintrust 0.47.0",
    "wandb": "wandb 0.31.0",
    "otel": "OpenTelemetry 1.45, instrumentation of OpenAI's client 2.4b0",
    "langchain": "langchain-core 1.7.2",
    "agent_otel": "OpenTelemetry 1.45, LangGraph 1.2.22",
    "agent_langchain": "langchain-core 1.7.2, LangGraph 1.2.22",
    "dspy": "DSPy 3.4.1",
    "details_": "LightEval 0.13.0",
    "results_": "LightEval 0.13.0",
    "public: hellaswag": "HELM, published by every_eval_ever",
    "public: mmlu": "HELM, published by every_eval_ever",
    "public: helm": "HELM, published by every_eval_ever",
    "public: scenario": "HELM, published by every_eval_ever",
    "public: interim": "Inspect, its own test data",
    "public: gpqa": "simple-evals, a public run",
    "public: nested": "simple-evals, a public run",
}


def writer_of(name):
    """Return who wrote a file; an unknown one is an error."""
    return next(writer for start, writer in WRITERS.items() if name.startswith(start))


def own_files():
    """Return the logs that the tools wrote for the tests, by kind."""
    fixtures = HERE / "fixtures"
    named = [
        *("inspect.eval", "inspect.json", "helm", "openai_evals.jsonl", "simple_evals.json"),
        *("simple_evals.html", "promptfoo.json", "promptfoo.jsonl", "deepeval.json"),
        *("langfuse.json", "phoenix", "phoenix/experiment.json", "phoenix/spans.parquet"),
        *("mlflow/genai.json", "mlflow/table.json", "mlflow/traces.json", "ragas.csv"),
        *("lm_polygraph.pth", "uqlm.csv"),
        *("langsmith.csv", "braintrust.jsonl", "wandb.table.json"),
        *("otel.jsonl", "langchain.jsonl", "dspy.json"),
        *("agent_otel.jsonl", "agent_langchain.jsonl"),
    ]
    found = [fixtures / name for name in named]
    found[2:2] = sorted((fixtures / "lm_eval").glob("samples_*.jsonl"))
    found += sorted((fixtures / "lighteval").rglob("details_*.parquet"))
    found += sorted((fixtures / "lighteval").rglob("results_*.json"))
    return found


def public_files(data):
    """Return the logs of public repositories in the shared data folder."""
    logs = data / "logs"
    return [
        *sorted((logs / "helm").iterdir()),
        logs / "helm",
        logs / "helm" / "mmlu_philosophy_gpt2" / "scenario_state.json",
        logs / "inspect" / "interim_version_3.eval",
        *sorted((logs / "simple_evals").iterdir()),
    ]


def row(path, name):
    """Return the cells of a line of the table: what was read, and what an audit says."""
    try:
        log = read_log(path, options=ReadOptions())
    except CalibrantError:
        return [name, writer_of(name), "-", "-", "-", "-", _audited(path)]
    graded = log.draws["correct"].is_not_null().sum() or log.scores["correct"].is_not_null().sum()
    methods = log.scores.group_by("method", maintain_order=True).agg(pl.len()).rows()
    told = ", ".join(f"{method} {count}" for method, count in methods) or "none"
    draws = log.draws.height or log.scores.height
    counted = f"{log.questions.height} / {draws}"
    return [name, writer_of(name), log.kind, counted, str(graded), told, _audited(path)]


def _audited(path):
    try:
        blocks = cal.audit(path, resamples=20)["results"]
    except CalibrantError as error:
        return f"refused: {_line(error)}"
    if "accuracy" in blocks[0]:
        return "shares right alone: " + ", ".join(f"{b['model']} {b['n']}" for b in blocks[:3])
    return "audited: " + ", ".join(f"{block['method']} {block['n']}" for block in blocks)


def _line(error):
    """Return the first line of a message, without the name of the file."""
    return str(error).partition("\n")[0].rpartition(": ")[2]


def _short(path):
    """Return the name of a file without the time of its run, and its folder where that tells."""
    name = re.sub(r"_2026-[\dT.-]+(?=\.)", "_*", path.name)
    inside = path.parent.name in ("phoenix", "mlflow", "lm_eval")
    return f"{path.parent.name}/{name}" if inside else name


def table(data):
    """Return the lines of the table, each a list of cells."""
    head = ["file", "written by", "kind", "questions / answers", "graded", "confidences", "audit"]
    own = [row(path, _short(path)) for path in own_files()]
    public = [row(path, f"public: {path.name}") for path in public_files(data)]
    return [head, *own, *public]


def written():
    """Return the table that the page links to."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


if __name__ == "__main__":
    from support import shared_data_folder

    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table(shared_data_folder()))
