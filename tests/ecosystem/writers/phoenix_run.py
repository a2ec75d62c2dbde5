"""Write ``fixtures/phoenix/`` with Phoenix (20.2), a server of its own and its client.

Three files: the runs of an experiment as the server hands them out, the table of spans with the
replies in the manner of OpenAI, and the table of annotations of those spans.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from cases import WITH_TOKENS, tokens_of

PORT = "6899"
BASE = f"http://127.0.0.1:{PORT}"
target = Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)


def wait_for_server():
    for _ in range(900):
        try:
            urllib.request.urlopen(f"{BASE}/healthz", timeout=5)
            return
        except OSError:
            time.sleep(1)
    raise TimeoutError("the server does not answer")


def experiment(client):
    dataset = client.datasets.create_dataset(
        name="sums",
        inputs=[{"question": asked} for asked, *_ in WITH_TOKENS],
        outputs=[{"answer": right} for _, _, right, *_ in WITH_TOKENS],
    )
    said = {asked: {"answer": text, "confidence": sure} for asked, text, _, sure, _ in WITH_TOKENS}

    def task(input):
        return said[input["question"]]

    def correct(output, expected):
        return output["answer"] == expected["answer"]

    run = client.experiments.run_experiment(
        dataset=dataset, task=task, evaluators=[correct], print_summary=False
    )
    url = f"{BASE}/v1/experiments/{run['experiment_id']}/json"
    with urllib.request.urlopen(url) as reply:
        (target / "experiment.json").write_bytes(reply.read())


def spans(client):
    from openinference.semconv.resource import ResourceAttributes
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider(resource=Resource({ResourceAttributes.PROJECT_NAME: "sums"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{BASE}/v1/traces")))
    tracer = provider.get_tracer("sums")
    graded = []
    for asked, text, right, sure, logs in WITH_TOKENS:
        reply = {
            "model": "toy",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "logprobs": {"content": tokens_of(text, logs)},
                }
            ],
        }
        with tracer.start_as_current_span("ChatCompletion") as span:
            span.set_attribute("openinference.span.kind", "LLM")
            span.set_attribute("llm.model_name", "toy")
            span.set_attribute("input.value", asked)
            span.set_attribute("output.value", json.dumps(reply))
            span.set_attribute("output.mime_type", "application/json")
            span.set_attribute("metadata", json.dumps({"confidence": sure}))
            graded.append((f"{span.context.span_id:016x}", text == right))
    time.sleep(10)
    for name, right in graded:
        client.spans.add_span_annotation(
            span_id=name,
            annotation_name="correctness",
            annotator_kind="CODE",
            label="correct" if right else "incorrect",
            score=float(right),
        )
    time.sleep(5)
    table = client.spans.get_spans_dataframe(project_identifier="sums")
    table.to_parquet(target / "spans.parquet")
    found = client.spans.get_span_annotations_dataframe(
        spans_dataframe=table, project_identifier="sums"
    )
    # Not as parquet: it has no empty objects, and the metadata of an annotation is one.
    found.reset_index().to_csv(target / "annotations.csv", index=False)


with tempfile.TemporaryDirectory() as folder:
    settings = {"PHOENIX_WORKING_DIR": folder, "PHOENIX_PORT": PORT, "PHOENIX_GRPC_PORT": "6898"}
    os.environ["PHOENIX_COLLECTOR_ENDPOINT"] = BASE
    command = [str(Path(sys.executable).parent / "phoenix"), "serve"]
    with Path(folder, "server.log").open("w") as log:
        server = subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            wait_for_server()
            from phoenix.client import Client

            client = Client(base_url=BASE)
            spans(client)
            experiment(client)
        finally:
            server.terminate()
            server.wait()
