"""A judge settles what rules leave open when samples are graded; nothing is asked twice."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import polars as pl
import pytest

import calibrant as cal


class Endpoint:
    """An OpenAI-style endpoint on the loopback that takes everything but Venus for Mars."""

    def __init__(self):
        self.bodies = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                bodies.append(body)
                asked = body["messages"][-1]["content"]
                right = "venus" not in asked.lower()
                check = re.search(r'"check": "(\w+)"', asked).group(1)
                name = re.search(r'"(same|number|verdict)":', asked).group(1)
                known = {"same": right, "number": int(right)}
                known["verdict"] = "CORRECT" if right else "INCORRECT"
                reply = json.dumps({"check": check, name: known[name]})
                found = {
                    "id": "x",
                    "model": body["model"],
                    "choices": [
                        {"index": 0, "message": {"content": reply}, "finish_reason": "stop"}
                    ],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1},
                }
                data = json.dumps(found).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()


@pytest.fixture
def endpoint(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    found = Endpoint()
    yield found
    found.server.shutdown()
    found.server.server_close()


def samples(path):
    rows = [
        {
            "id": number,
            "question": f"Which planet has rovers on it, number {number}?",
            "gold": "Mars",
            "answers": ["the red planet", "Mars", "Mars", "Venus"],
        }
        for number in range(3)
    ]
    pl.DataFrame(rows).write_ndjson(path)
    return path


def test_a_judge_is_asked_and_its_replies_are_kept(tmp_path, endpoint):
    path = samples(tmp_path / "samples.jsonl")
    alone = cal.audit(path, samples="answers", reference="gold", resamples=20)["sem_ece"][0]
    assert not endpoint.bodies
    options = {"samples": "answers", "reference": "gold", "resamples": 20}
    judged = cal.audit(path, judge="judge-1", judge_url=endpoint.url, **options)["sem_ece"][0]
    assert endpoint.bodies
    assert judged["accuracy"]["value"] >= alone["accuracy"]["value"]
    assert judged["leading"]["confidence"] > alone["leading"]["confidence"]
    asked = len(endpoint.bodies)
    again = cal.audit(path, judge="judge-1", judge_url=endpoint.url, **options)["sem_ece"][0]
    assert len(endpoint.bodies) == asked
    assert again["sem2"] == judged["sem2"]


def test_a_limit_of_calls_is_kept(tmp_path, endpoint):
    path = samples(tmp_path / "samples.jsonl")
    cal.grade(
        path, tmp_path / "study", samples="answers", reference="gold", judge="judge-1",
        judge_url=endpoint.url, max_judge_calls=2,
    )  # fmt: skip
    assert len(endpoint.bodies) <= 2
    assert (tmp_path / "study" / "ledger.sqlite").is_file()


def test_after_a_limit_only_the_rest_is_asked(tmp_path, endpoint):
    path, study = samples(tmp_path / "samples.jsonl"), tmp_path / "study"
    options = {"judge": "judge-1", "judge_url": endpoint.url}
    cal.grade(path, study, samples="answers", reference="gold", max_judge_calls=2, **options)
    first = [body["messages"] for body in endpoint.bodies]
    assert len(first) == 2
    cal.grade(study, **options)
    later = [body["messages"] for body in endpoint.bodies[2:]]
    assert later
    assert not [asked for asked in later if asked in first]
    cal.grade(study, study, **options)
    assert len(endpoint.bodies) == len(first) + len(later)


def test_what_an_audit_has_asked_is_not_asked_again_for_a_study(tmp_path, endpoint):
    path = samples(tmp_path / "samples.jsonl")
    options = {"samples": "answers", "reference": "gold", "judge": "judge-1",
               "judge_url": endpoint.url}  # fmt: skip
    cal.audit(path, resamples=20, **options)
    asked = len(endpoint.bodies)
    assert asked
    cal.grade(path, tmp_path / "study", **options)
    assert len(endpoint.bodies) == asked
