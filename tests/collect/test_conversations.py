"""Questions with images and several turns: passed through whole, hashed in the ledger."""

import json

import pytest

from calibrant.core.errors import InputError
from calibrant.data.questions import load_questions
from calibrant.models.asks import PRESETS
from calibrant.models.codec import canonical_request
from calibrant.models.dispatch.limits import prompt_tokens_estimate
from calibrant.models.endpoints.wires import WIRES
from calibrant.models.protocol import Capabilities
from calibrant.models.study.config import parse_config
from calibrant.models.study.plan import AskPlanner, Wanted
from calibrant.models.study.prompts import PromptBook, iterate_questions

IMAGE = "data:image/png;base64,iVBORw0KGgo="
TURNS = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hello. What shall I look at?"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Which city is this?"},
            {"type": "image_url", "image_url": {"url": IMAGE}},
        ],
    },
]


def request_of(tmp_path, turns=TURNS):
    path = tmp_path / "questions.jsonl"
    rows = [{"messages": turns, "references": [["Lima"]]}, {"text": "2 + 2?", "question_id": "b"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    questions = list(iterate_questions(load_questions(path)))
    assert questions[1].turns == ()
    values = {"questions": "q.jsonl", "models": [{"name": "m", "client": "vllm"}]}
    config = parse_config(values, folder=tmp_path, source="study.toml")
    book = PromptBook(config.prompts, folder=tmp_path)
    asker = AskPlanner(config, config.models[0], Wanted({"greedy": 1}), Capabilities(), book)
    return questions[0], next(iter(asker.first_turn(questions[:1]))).request


def test_the_last_turn_is_the_question_and_the_rest_goes_with_it(tmp_path):
    question, request = request_of(tmp_path)
    assert question.text == "Which city is this?"
    assert [turn.role for turn in request.messages][-3:] == ["user", "assistant", "user"]
    assert request.messages[-2].content == TURNS[1]["content"]
    assert "Which city is this?" in request.messages[-1].parts[0]["text"]
    assert request.messages[-1].parts[1] == TURNS[2]["content"][1]


def test_the_ledger_knows_an_image_by_its_hash_alone(tmp_path):
    _, request = request_of(tmp_path)
    body = canonical_request(request)
    assert b"iVBOR" not in body
    other = json.loads(json.dumps(TURNS).replace("iVBORw0KGgo=", "iVBORw0KGgp="))
    assert canonical_request(request_of(tmp_path, other)[1]) != body
    assert prompt_tokens_estimate(request) > 1_000


@pytest.mark.parametrize(
    ("wire", "place", "part"),
    [
        ("chat", "messages", {"type": "image_url", "image_url": {"url": IMAGE}}),
        ("responses", "input", {"type": "input_image", "image_url": IMAGE}),
        (
            "messages",
            "messages",
            {
                "type": "image",
                "source": {
                    "type": "base64",
                    "media_type": "image/png",
                    "data": "iVBORw0KGgo=",
                },
            },
        ),
        ("content", "contents", {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
    ],
)
def test_every_interface_gets_the_image_in_its_own_form(tmp_path, wire, place, part):
    _, request = request_of(tmp_path)
    last = WIRES[wire].write(request, PRESETS["openai"])[place][-1]
    assert (last.get("content") or last["parts"])[-1] == part


def test_a_conversation_that_ends_with_the_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="row 1: the last of messages is what the user asks"):
        request_of(tmp_path, TURNS[:2])
