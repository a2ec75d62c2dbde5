"""A real llama.cpp server over HTTP, in the OpenAI wire format, and the same study by replay."""

import polars as pl
import pytest

from calibrant.data import Study
from calibrant.models.endpoints.embedded import EmbeddedClient
from calibrant.verbs.run import run
from support import MEASURED, need_small_model

MODEL = "smollm2-135m-instruct"
QUESTIONS = """\
{"question_id": "a", "text": "What is the capital of Peru?", "references": [["Lima"]]}
{"question_id": "b", "text": "What is 2 + 3?", "references": [["5"]], "kind": "number"}
{"question_id": "c", "text": "Name one even number.", "references": [["2"], ["4"]]}
"""
STUDY = """
questions = "questions.jsonl"
methods = "all"
concurrency = 1

[sampling]
draws = 3

[sampling.max_tokens]
answer = 4
verb = 10
verb_topk = 14

[prompts]
style = "short"

[[models]]
name = "small"
"""
OVER_HTTP = """
client = "openai"
base_url = "{url}/v1"
model = "smollm2"
capabilities = {{ native_n = 3 }}
timeout_s = 300
"""
REPLAYED = """
client = "replay"
model = "smollm2"
ledger = "../asked/ledger.sqlite"
"""

pytestmark = pytest.mark.local


@pytest.fixture
def url():
    """A llama.cpp server that listens on the loopback."""
    need_small_model(MODEL)
    server = EmbeddedClient(model=MODEL, parallel=4, context=512)._load()
    yield server.listening_address
    del server


def make(folder, model):
    folder.mkdir()
    (folder / "questions.jsonl").write_text(QUESTIONS)
    (folder / "study.toml").write_text(STUDY + model)
    return folder


def tables(folder):
    study = Study(folder)
    return {
        # What was paid then is not paid again: a replay costs nothing.
        name: study.read(name).drop(*MEASURED, "cost", strict=False)
        for name in ("questions", "draws", "semantics", "scores")
    }


def test_the_same_study_over_http_and_by_replay(tmp_path, url):
    asked = make(tmp_path / "asked", OVER_HTTP.format(url=url))
    document = run(asked).to_dict()
    assert document["failures"]["count"] == 0
    (counts,) = document["counts"]
    assert counts["draws_new"] == tables(asked)["draws"].height

    replayed = make(tmp_path / "replayed", REPLAYED)
    run(replayed)
    first, second = tables(asked), tables(replayed)
    assert first["draws"]["token_logprobs"].drop_nulls().len() > 0
    assert first["scores"]["method"].n_unique() > 10
    for name, frame in first.items():
        assert frame.equals(second[name]), name
    assert first["scores"].filter(pl.col("method") == "p_true_prob").height > 0
