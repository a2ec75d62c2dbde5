"""Answers are told apart live as they were in the study: by the same judge, or not at all."""

import asyncio
import hashlib
import json
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import calibrant as cal
from calibrant.answers import graded_samples
from calibrant.apps.serving import measure
from calibrant.core.errors import InputError
from calibrant.data import Study
from calibrant.models.inference.judge import MODEL, available
from calibrant.models.study.prompts import study_recipe
from calibrant.verbs.run import run
from cli.test_main import calls
from clients.server import Endpoint
from collect.studies import write_study
from workflows.test_serve_promise import question, saved, served

# The first two mean the same, and no rule knows it.
SAID = {
    "Why did the bridge fail?": (
        "the cables snapped in the wind", "strong winds broke its cables", "a barge rammed it",
    ),
    "Why is the sky blue?": (
        "air scatters blue light the most", "blue light is scattered more by the air",
        "it reflects the sea",
    ),
    "How do vaccines work?": (
        "they train the immune system", "the immune system learns from them",
        "they kill germs directly",
    ),
    "What does a barometer measure?": (
        "air pressure", "the pressure of the atmosphere", "humidity",
    ),
}  # fmt: skip
ASKED = [f"{text} ({number})" for number in range(8) for text in SAID]
SAME = {frozenset(answers[:2]) for answers in SAID.values()}


class Speaker(Endpoint):
    """Gives one of the answers, by question and seed."""

    def text(self, body, number, position):
        prompt = body["messages"][-1]["content"]
        answers = next(answers for text, answers in SAID.items() if text in prompt)
        place = 0 if body.get("temperature") == 0 else body["seed"] + position
        return answers[hashlib.sha256(f"{prompt}{place}".encode()).digest()[0] % 3]


@dataclass
class KnowsThePairs:
    """Stands in for the judge where its weights are not at hand."""

    name: str = "embedded judge of pairs"

    def scores(self, asked):
        pairs = [frozenset((*references, answer)) for _, references, answer in asked]
        return np.array([3.0 if pair in SAME else -3.0 for pair in pairs])


@pytest.fixture(params=["of pairs", pytest.param("with weights", marks=pytest.mark.local)])
def judge(request, monkeypatch):
    """Let a judge read, here and in the study."""
    if request.param == "of pairs":
        for place in (graded_samples, measure):
            monkeypatch.setattr(place, "embedded_judge", lambda *_, **__: KnowsThePairs())
    elif not available():
        pytest.skip(f"no weights: calibrant models fetch {MODEL}")
    monkeypatch.delenv("CALIBRANT_JUDGE", raising=False)


def studied(folder, url, methods='"consistency"'):
    """Return a study of open questions that was asked and read."""
    study = write_study(folder / "study", url, extra=f"methods = [{methods}]\n", draws=5)
    rows = [{"question_id": text, "text": text, "references": [[SAID[text[:-4]][0]]]}
            for text in ASKED]  # fmt: skip
    (study / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(study)
    return study


def confidences(study):
    scores = Study(study).read("scores").filter(method="consistency")
    return dict(scores.select("question_id", "confidence").iter_rows())


def test_the_served_confidence_is_read_as_the_certified_one(judge, tmp_path, monkeypatch):
    policy = tmp_path / "policy.json"
    targets = ASKED[:4]

    async def act():
        async with served(tmp_path, policy, None, confidence=None, model="oracle") as (ask, _):
            # Who is there at the start stays: weights may be taken away meanwhile.
            monkeypatch.setenv("CALIBRANT_JUDGE", "none")
            bodies = [question(text, calibrant={"question_id": text}) for text in targets]
            return [(await ask(body))[1]["calibrant"]["probability"] for body in bodies]

    with Speaker() as speaker:
        study = studied(tmp_path, f"{speaker.url}/v1")
        certified = confidences(study)
        cal.decide(study, costs={"wrong": 2, "ask": 1}, save=policy)
        told = asyncio.run(act())
        monkeypatch.delenv("CALIBRANT_JUDGE")
        with cal.trusted(policy) as model:
            inside = [model.ask(text, question_id=text).probability for text in targets]
        monkeypatch.setenv("CALIBRANT_JUDGE", "none")
        for place in (graded_samples, measure):
            monkeypatch.setattr(place, "embedded_judge", lambda *_, **__: None)
        run(study)
        by_rules = confidences(study)
    expected = [certified[text] for text in targets]
    assert told == pytest.approx(expected, abs=1e-12)
    assert inside == pytest.approx(expected, abs=1e-12)
    assert max(abs(certified[text] - by_rules[text]) for text in targets) > 0.1


# -- where it is not at hand -----------------------------------------------------------------------


def policy_of(folder, method="consistency", read_by="embedded judge 0123"):
    """Save a policy whose study was read by a judge."""
    study = write_study(folder / "study", "http://127.0.0.1:9/v1")
    needs = ("samples", "clusters") if method == "consistency" else ("verb",)
    asked = {**study_recipe(study, method, needs), "read_by": read_by}
    return saved(folder / "p.json", model="oracle", method=method, asked=asked)


@pytest.mark.parametrize(
    ("judge_here", "said", "next_step"),
    [
        (None, "and it is not here", "calibrant models fetch"),
        (SimpleNamespace(name="embedded judge 4567"), "here is the embedded judge 4567",
         "run the study again"),
    ],
)  # fmt: skip
def test_a_policy_whose_reader_is_not_here_is_refused(
    tmp_path, monkeypatch, judge_here, said, next_step
):
    monkeypatch.setattr(measure, "embedded_judge", lambda: judge_here)
    policy = policy_of(tmp_path)
    with pytest.raises(InputError) as refused, cal.trusted(policy, ledger=tmp_path / "l.sqlite"):
        pass
    told = str(refused.value)
    assert "embedded judge 0123 told the answers of its study apart" in told
    assert said in told
    assert next_step in told


def test_the_command_ends_with_a_message(tmp_path):
    ended = calls("serve", str(policy_of(tmp_path)), "--ledger", str(tmp_path / "l.sqlite"))
    assert ended.returncode == 2
    assert "p.json: the embedded judge 0123 told the answers of its study apart" in ended.stderr
    assert "-> fetch its weights with `calibrant models fetch`" in ended.stderr


def test_a_method_of_one_answer_needs_no_reader(tmp_path):
    with cal.trusted(policy_of(tmp_path, "verb"), ledger=tmp_path / "l.sqlite") as model:
        assert model.calls == {"oracle": 1}


@pytest.mark.parametrize(("clustering", "reader"), [("hybrid", "a judge"), ("rules", None)])
def test_a_study_that_left_nothing_to_the_judge_needs_none(tmp_path, clustering, reader):
    study = write_study(tmp_path / "study", "http://127.0.0.1:9/v1")
    document = {"schema": "calibrant.semantics/1", "clustering": clustering, "embedded": "a judge"}
    Study(study).write_result("semantics", document)
    assert study_recipe(study, "consistency", ("samples", "clusters"))["read_by"] == reader


def test_answers_that_grade_has_read_again_are_not_served_as_the_study_says(tmp_path):
    with Speaker() as speaker:
        study = studied(tmp_path, f"{speaker.url}/v1")
        needs = ("samples", "clusters")
        assert study_recipe(study, "consistency", needs)["not_live"] is None
        cal.grade(study, study)
        assert "calibrant grade" in study_recipe(study, "consistency", needs)["not_live"]
        run(study)
        assert study_recipe(study, "consistency", needs)["not_live"] is None
