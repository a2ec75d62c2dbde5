"""Write ``fixtures/otel.jsonl`` with OpenTelemetry: spans of an instrumented OpenAI client.

opentelemetry-instrumentation-openai-v2 records what the client asks a small server of this machine.
Grades and stated confidences are events `gen_ai.evaluation.result`, by the convention.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from cases import CASES

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

import openai
from opentelemetry import trace
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
    InMemorySpanExporter,
)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked["messages"][-1]["content"]
        place, said = next((n, said) for n, (q, said, *_) in enumerate(CASES) if q == text)
        choice = {"index": 0, "message": {"role": "assistant", "content": said}}
        body = {"id": f"chatcmpl-{place}", "object": "chat.completion", "created": 0}
        body |= {"model": "toy-1", "choices": [{**choice, "finish_reason": "stop"}]}
        body |= {"usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


kept = InMemorySpanExporter()
provider = TracerProvider(resource=Resource({"service.name": "sums"}))
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()


def evaluated(span, name, value, **more):
    known = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": float(value), **more}
    span.add_event("gen_ai.evaluation.result", known)


server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")
tracer = trace.get_tracer("sums")
for asked, said, right, sure in CASES:
    with tracer.start_as_current_span("ask") as span:
        client.chat.completions.create(
            model="toy", messages=[{"role": "user", "content": asked}], temperature=0
        )
        evaluated(span, "correctness", said == right)
        evaluated(span, "helpfulness", 0.7)
        if sure is not None:
            evaluated(span, "confidence", sure)
server.shutdown()
spans = kept.get_finished_spans()


def about_the_machine(text):
    return text.replace(str(server.server_port), "8000")


lines = [about_the_machine(span.to_json(indent=None)) for span in spans]
Path(sys.argv[1]).write_text("\n".join(lines) + "\n")
