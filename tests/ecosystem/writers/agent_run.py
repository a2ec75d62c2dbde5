"""Write ``fixtures/agent_otel.jsonl`` and ``fixtures/agent_langchain.jsonl`` with LangGraph.

A number after the folder asks for so many runs of a study (`studies/units.py`).

An agent with two tools asks a small server of this machine, which calls tools once to three times
and then answers. OpenTelemetry's instrumentation of OpenAI's client records the spans; the outcome
is an event `gen_ai.evaluation.result` of the span around each run. A tracer of LangChain records
the same runs, with feedback on the whole run as LangSmith keeps it.
"""

import json
import math
import os
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_core.tracers.base import BaseTracer
from langchain_openai import ChatOpenAI
from opentelemetry import trace
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

# What is asked, how many tools are called, whether the answer is right.
RUNS = ((12, 30, 1, True), (25, 17, 2, True), (40, 9, 3, False), (8, 15, 1, True))
target, chance = Path(sys.argv[1]), random.Random(62)
if len(sys.argv) > 2:
    RUNS = tuple(
        (n, 7, chance.randint(1, 7), chance.random() < 0.6) for n in range(int(sys.argv[2]))
    )


TASKS = {(a, b): (calls, right) for a, b, calls, right in RUNS}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        words = next(m["content"] for m in asked if m["role"] == "user").split()
        a, b = (int(word) for word in words if word.isdigit())
        calls, right = TASKS[a, b]
        done = sum(message["role"] == "tool" for message in asked)
        sure = 0.9 if right else max(0.2, 0.8 - 0.2 * done)
        if len(sys.argv) > 2:
            sure = min(max(sure + random.Random(f"{a} {done}").gauss(-0.05, 0.12), 0.02), 0.99)
        message = {"role": "assistant", "content": str(a + b + (not right))}
        if done < calls:
            call = {"name": ("look_up", "add")[done % 2], "arguments": json.dumps({"x": a, "y": b})}
            named = {"id": f"call_{done}", "type": "function", "function": call}
            message = {"role": "assistant", "content": None, "tool_calls": [named]}
        token = {"token": message["content"] or "<tool>", "logprob": math.log(sure)}
        choice = {"index": 0, "message": message, "logprobs": {"content": [token]}}
        choice["finish_reason"] = "tool_calls" if done < calls else "stop"
        body = {"id": f"chatcmpl-{a}-{done}", "object": "chat.completion", "created": 0}
        body |= {"model": "toy-agent", "choices": [choice]}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Kept(BaseTracer):
    whole = None

    def _persist_run(self, run):
        self.whole = run


@tool
def look_up(x: int, y: int) -> str:
    """Look numbers up."""
    return f"{x} and {y}"


@tool
def add(x: int, y: int) -> str:
    """Add two numbers."""
    return str(x + y)


def rows(run, feedback):
    held = run.model_dump(exclude={"child_runs"})
    yield {**held, "feedback_stats": feedback} if feedback else held
    for child in run.child_runs:
        yield from rows(child, None)


def plain(value):
    return value.model_dump() if hasattr(value, "model_dump") else str(value)


kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()
server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1"
model = ChatOpenAI(model="toy-agent", base_url=url, api_key="none", logprobs=True)
agent = create_agent(model, [look_up, add])
tracer, lines = trace.get_tracer("sums"), []
for a, b, *_ in RUNS:
    recorded, asked = Kept(), {"messages": [("user", f"What is {a} plus {b} ?")]}
    with tracer.start_as_current_span("invoke_agent sums") as span:
        span.set_attribute("gen_ai.operation.name", "invoke_agent")
        told = agent.invoke(asked, config={"recursion_limit": 60, "callbacks": [recorded]})
        right = float(told["messages"][-1].content == str(a + b))
        name = {"gen_ai.evaluation.name": "correct", "gen_ai.evaluation.score.value": right}
        span.add_event("gen_ai.evaluation.result", name)
    lines += rows(recorded.whole, {"correct": {"n": 1, "avg": right}})
spans = [json.dumps(json.loads(span.to_json())) for span in kept.get_finished_spans()]
(target / "agent_otel.jsonl").write_text("\n".join(spans) + "\n")
text = "\n".join(json.dumps(line, default=plain) for line in lines)
(target / "agent_langchain.jsonl").write_text(text + "\n")
