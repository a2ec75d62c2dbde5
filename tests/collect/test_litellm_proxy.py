"""A study through LiteLLM's own proxy, before an endpoint that refuses like a thinking model."""

import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from calibrant.data import Study
from calibrant.verbs.run import run
from clients.strict import Strict

PROXY = os.environ.get("CALIBRANT_LITELLM", "")
QUESTIONS = "".join(
    f'{{"question_id": "q{n}", "text": "Name a whole number between {n} and {n + 9}.", '
    f'"references": [["{n}"], ["{n + 5}"]], "kind": "number"}}\n'
    for n in range(6)
)
STUDY = """
questions = "questions.jsonl"
methods = ["verb", "self_ask"]

[prompts]
style = "short"

[[models]]
name = "thinks"
client = "openai"
base_url = "{url}/v1"
model = "gpt-5-like"
api_key_env = "PROXY_KEY"
"""

pytestmark = pytest.mark.skipif(
    not PROXY, reason="LITELLM ABSENT: pip install 'litellm[proxy]', CALIBRANT_LITELLM=its command"
)


def wait_for(url):
    for _ in range(180):
        time.sleep(1)
        try:
            urllib.request.urlopen(f"{url}/health/liveliness", timeout=2).close()
        except (urllib.error.URLError, OSError):
            continue
        return
    raise TimeoutError("the proxy did not start")


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    """The proxy in a process of its own, with a key made for it, before a strict endpoint."""
    key = f"sk-{secrets.token_hex(24)}"
    monkeypatch.setenv("PROXY_KEY", key)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Strict() as endpoint:
        settings = tmp_path / "litellm.yaml"
        settings.write_text(
            "model_list:\n  - model_name: gpt-5-like\n    litellm_params:\n"
            f"      model: openai/deployment\n      api_base: {endpoint.url}\n      api_key: none\n"
            "litellm_settings:\n  telemetry: false\n  num_retries: 0\n"
        )
        command = [PROXY, "--config", str(settings), "--host", "127.0.0.1", "--port", str(port)]
        env = {**os.environ, "LITELLM_MASTER_KEY": key, "PYTHONPATH": ""}
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
            try:
                wait_for(f"http://127.0.0.1:{port}")
                yield f"http://127.0.0.1:{port}", endpoint
            finally:
                process.terminate()
                process.wait(timeout=30)


def test_a_model_that_thinks_states_its_confidence_through_the_proxy(proxy, tmp_path):
    url, endpoint = proxy
    study = tmp_path / "study"
    study.mkdir()
    (study / "questions.jsonl").write_text(QUESTIONS)
    (study / "study.toml").write_text(STUDY.format(url=url))
    document = run(study).to_dict()
    assert document["failures"]["count"] == 0
    assert len(endpoint.refused) <= 2
    scores = Study(study).read("scores")
    assert scores.filter(scores["method"] == "verb").height == 6
