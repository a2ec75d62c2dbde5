"""A policy inside a program: an answer at hand, a drop-in, intervals, and what is promised."""

import asyncio
import json

import pytest

import calibrant as cal
from calibrant.apps.trusted import DeferredError
from calibrant.core.errors import InputError
from calibrant.data import Study
from calibrant.verbs.run import run
from collect.endpoint import Oracle
from collect.studies import write_study
from workflows.test_serve_promise import ASKED, served

METHODS = ["verb", "consistency", "perplexity", "p_true_prob", "self_ask"]


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """A study, a policy per method, and the endpoint that both ask."""
    folder = tmp_path_factory.mktemp("trusted")
    with Oracle() as oracle:
        study = write_study(
            folder / "study", oracle.url, extra=f"methods = {json.dumps(METHODS)}\n"
        )
        lines = "".join(json.dumps(row) + "\n" for row in ASKED)
        (study / "questions.jsonl").write_text(lines)
        run(study)
        for method in METHODS:
            cal.decide(study, costs={"wrong": 2, "ask": 1}, only_method=method, on_invalid="drop",
                       save=folder / f"{method}.json")  # fmt: skip
        yield folder, Study(study)


def known(row):
    return {"question_id": row["question_id"], "kind": row["kind"]}


@pytest.mark.parametrize("method", ["self_ask", "p_true_prob", "consistency"])
def test_the_models_own_answer_is_scored_as_it_was_certified(studied, method):
    folder, study = studied
    scores = study.read("scores").filter(method=method).drop_nulls("confidence")
    rows = {row["question_id"]: row for row in scores.iter_rows(named=True)}
    compared = 0
    with cal.trusted(folder / f"{method}.json") as model:
        for asked in ASKED[::6]:
            own = rows.get(asked["question_id"])
            if own is None:
                continue
            scored = model.score(asked["text"], own["answer"], **known(asked))
            if method == "consistency":
                # Counted over the same draws, so equal where the answer is the most frequent one.
                assert scored.why.endswith(str(own["answer"]))
            assert scored.probability == pytest.approx(own["confidence"], abs=1e-12)
            assert scored.promise == "none for an answer at hand"
            compared += 1
    assert compared >= 5


def test_a_wrong_answer_is_less_consistent_than_the_most_frequent_one(studied):
    folder, _ = studied
    with cal.trusted(folder / "consistency.json") as model:
        asked = ASKED[0]
        own = model.ask(asked["text"], **known(asked))
        other = model.score(asked["text"], "7", **known(asked))
    assert other.probability < own.probability
    assert other.decision == "defer"


def test_methods_that_say_nothing_of_other_answers_say_so(studied):
    folder, _ = studied
    with cal.trusted(folder / "verb.json") as model:
        found = model.score(ASKED[0]["text"], "a horse", **known(ASKED[0]))
        assert found.probability is None
        assert "says nothing of other answers" in found.why
    with (
        cal.trusted(folder / "perplexity.json") as model,
        pytest.raises(InputError, match="perplexity reads the tokens of the model's own answer"),
    ):
        model.score(ASKED[0]["text"], "12")


def test_the_calls_of_a_question_are_known_beforehand(studied):
    folder, _ = studied
    for method, calls in (("verb", 1), ("consistency", 1), ("self_ask", 2)):
        with cal.trusted(folder / f"{method}.json") as model:
            assert model.calls == {"oracle": calls}


def test_a_drop_in_gives_completions_with_the_field_or_raises(studied):
    folder, _ = studied
    with cal.trusted(folder / "verb.json") as model:
        kinds = set()
        for asked in ASKED[:20]:
            try:
                done = model.chat.completions.create(
                    model="oracle",
                    messages=[{"role": "user", "content": asked["text"]}],
                    extra_body={"calibrant": known(asked)},
                )
            except DeferredError as error:
                kinds.add(error.answer.decision)
            else:
                assert isinstance(done.choices[0].message.content, str)
                assert done.calibrant["decision"] == "answer"
                kinds.add("answer")
    assert kinds == {"answer", "defer"}


def test_a_map_tells_the_probability_with_its_interval(studied, tmp_path):
    folder, study = studied
    stated = study.read("scores").filter(method="verb")
    cal.mend(stated, on_invalid="drop", save=tmp_path / "mend.json")
    fitted = cal.load_mend(tmp_path / "mend.json")
    with cal.trusted(folder / "verb.json", mend=tmp_path / "mend.json") as model:
        row = stated.drop_nulls("confidence").row(0, named=True)
        asked = next(one for one in ASKED if one["question_id"] == row["question_id"])
        found = model.ask(asked["text"], **known(asked))
    assert found.probability == fitted.probability(row["confidence"])
    assert found.interval == fitted.interval(row["confidence"])
    with pytest.raises(InputError, match="no map fits"):
        cal.trusted(folder / "consistency.json", mend=tmp_path / "mend.json")


def test_responses_are_streamed_in_their_own_events(studied, tmp_path):
    folder, _ = studied

    async def act():
        policy = folder / "verb.json"
        more = {"confidence": None, "model": "oracle", "defer": "text:I do not know"}
        async with served(tmp_path, policy, None, **more) as (ask, _):
            body = {"input": ASKED[0]["text"], "calibrant": known(ASKED[0]), "stream": True}
            return await ask(body, "/v1/responses", raw=True)

    status, text, _ = asyncio.run(act())
    assert status == 200
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    names = [event["type"] for event in events]
    assert names[0] == "response.created"
    assert names[-1] == "response.completed"
    said = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
    whole = events[-1]["response"]
    assert said == whole["output"][0]["content"][0]["text"]
    assert whole["calibrant"]["policy"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_the_span_that_asks_is_told(studied):
    pytest.importorskip("opentelemetry.sdk", reason="OPENTELEMETRY ABSENT")
    from opentelemetry.sdk.trace import TracerProvider

    folder, _ = studied
    tracer = TracerProvider().get_tracer("test")
    with cal.trusted(folder / "verb.json") as model, tracer.start_as_current_span("ask") as span:
        answer = model.ask(ASKED[0]["text"], **known(ASKED[0]))
    (event,) = span.events
    assert event.name == "gen_ai.evaluation.result"
    assert event.attributes["gen_ai.evaluation.name"] == "calibrant.verb"
    assert event.attributes["gen_ai.evaluation.score.label"] == answer.decision
    assert event.attributes["gen_ai.evaluation.score.value"] == answer.probability
