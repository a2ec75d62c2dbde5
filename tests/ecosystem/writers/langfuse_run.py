"""Write ``fixtures/langfuse.json`` with the client of Langfuse (3): an answer of its public API.

Langfuse's server needs four data bases, so none runs here: the typed models of its client say what
an answer of the server looks like, and write it.
"""

import datetime as dt
import json
import sys
from pathlib import Path

from cases import WITH_TOKENS, tokens_of
from langfuse.api.resources.commons.types import TraceWithFullDetails

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def score(trace, name, value, kind):
    held = {"id": f"{trace}-{name}", "traceId": trace, "name": name, "source": "API"}
    times = {"timestamp": NOW, "createdAt": NOW, "updatedAt": NOW, "environment": "default"}
    text = {"stringValue": str(bool(value))} if kind == "BOOLEAN" else {}
    return {**held, **times, **text, "value": float(value), "dataType": kind}


def trace(number, asked, said, right, sure, logs):
    name = f"trace-{number}"
    reply = {
        "role": "assistant",
        "content": said,
        "logprobs": {"content": tokens_of(said, logs)},
    }
    scores = [score(name, "correctness", said == right, "BOOLEAN")]
    if sure is not None:
        scores.append(score(name, "confidence", sure, "NUMERIC"))
    scores.append(score(name, "helpfulness", 0.7, "NUMERIC"))
    generation = {
        "id": f"generation-{number}",
        "traceId": name,
        "type": "GENERATION",
        "startTime": NOW,
        "model": "toy",
        "modelParameters": {},
        "input": [{"role": "user", "content": asked}],
        "output": reply,
        "metadata": {},
        "usage": {"input": 3, "output": len(logs), "total": 3 + len(logs), "unit": "TOKENS"},
        "usageDetails": {},
        "costDetails": {},
        "level": "DEFAULT",
        "environment": "default",
    }
    return TraceWithFullDetails(
        id=name,
        timestamp=NOW,
        name="sums",
        input={"question": asked},
        output={"answer": said},
        tags=[],
        public=False,
        environment="default",
        htmlPath=f"/trace/{name}",
        observations=[generation],
        scores=scores,
    )


traces = [json.loads(trace(number, *case).json()) for number, case in enumerate(WITH_TOKENS)]
meta = {"page": 1, "limit": 50, "totalItems": len(traces), "totalPages": 1}
Path(sys.argv[1]).write_text(json.dumps({"data": traces, "meta": meta}, indent=1) + "\n")
