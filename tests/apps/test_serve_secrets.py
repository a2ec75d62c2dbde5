"""What a policy and a label store may not do: send keys and prompts away, or lie open."""

import asyncio
import json
import os

import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.label_schema import ItemKey
from calibrant.data.label_store import LabelStore
from calibrant.labels.labelling.session import LabelSession
from calibrant.labels.page.server import LabelServer
from calibrant.verbs.run import run
from clients.server import Endpoint
from collect.endpoint import Oracle
from collect.studies import write_study
from workflows.test_serve_promise import ASKED, question, served


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studied")
    with Oracle() as oracle:
        study = write_study(folder / "study", oracle.url, extra='methods = ["consistency"]\n')
        lines = "".join(json.dumps(row) + "\n" for row in ASKED)
        (study / "questions.jsonl").write_text(lines)
        run(study)
        policy = folder / "policy.json"
        cal.decide(study, costs={"wrong": 2, "ask": 1}, only_method="consistency",
                   on_invalid="drop", save=policy)  # fmt: skip
        yield policy, oracle


def edited(policy, path, change):
    data = json.loads(policy.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def test_a_deferred_answer_is_not_handed_out(studied, tmp_path):
    policy = edited(studied[0], tmp_path / "p.json", lambda data: data.update(threshold=1.0))

    async def act():
        found = []
        async with served(tmp_path, policy, studied[1].url, confidence=None, model="oracle") as (
            ask,
            _,
        ):
            for row in ASKED[:12]:
                known = {"question_id": row["question_id"], "kind": row["kind"]}
                found.append(await ask(question(row["text"], calibrant=known), raw=True))
        return found

    found = asyncio.run(act())
    rows = [json.loads(line) for line in (tmp_path / "served.jsonl").read_text().splitlines()]
    deferred = 0
    for (status, body, headers), row in zip(found, rows, strict=True):
        if status != 409 or not row["answer"]:
            continue
        deferred += 1
        said = json.loads(body)["calibrant"]
        assert "draws" in said["why"], "how sure is said"
        assert f"say {row['answer']}" not in body + str(headers)
    assert deferred >= 3


def test_an_edited_policy_sends_no_key_and_no_prompt_to_another_host(
    studied, tmp_path, monkeypatch
):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-another-service")
    with Endpoint() as foreign:

        def change(data):
            entry = data["fitted_on"]["asked"]["models"]["oracle"]
            entry |= {"base_url": f"{foreign.url}/v1", "api_key_env": "AWS_SECRET_ACCESS_KEY"}

        policy = edited(studied[0], tmp_path / "p.json", change)

        async def act():
            async with served(tmp_path, policy, None, confidence=None, model="oracle") as (ask, _):
                await ask(question("Name one even number."))

        with pytest.raises(InputError, match="AWS_SECRET_ACCESS_KEY"):
            asyncio.run(act())
        assert foreign.headers == []


def test_a_study_sends_no_key_to_a_host_that_nobody_has_confirmed(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-another-service")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    tail = 'api_key_env = "AWS_SECRET_ACCESS_KEY"'
    study = write_study(tmp_path / "study", "http://192.0.2.1:9/v1", tail=tail)
    asked = []

    def say(answer):
        return lambda question: asked.append(question) or answer

    with pytest.raises(InputError, match="nothing was sent") as refused:
        run(study, confirm=say(False))
    for told in (asked[0], str(refused.value)):
        assert "oracle at http://192.0.2.1:9/v1 with the key in AWS_SECRET_ACCESS_KEY" in told
    # Whoever says yes is asked once; what the study costs is another question.
    for _ in range(2):
        with pytest.raises(InputError, match="nothing was sent"):
            run(study, confirm=lambda question: say("Send the key" in question)(question))
    assert sum("Send the key" in question for question in asked) == 2
    tail = tail.replace("AWS_SECRET_ACCESS_KEY", "HOME")
    write_study(study, "http://192.0.2.1:9/v1", tail=tail)
    with pytest.raises(InputError, match="with the key in HOME"):
        run(study, confirm=say(False))
    # On this machine nobody is asked.
    before = len(asked)
    with Oracle() as oracle:
        run(write_study(tmp_path / "here", oracle.url, tail=tail, draws=1), confirm=say(False))
    assert len(asked) == before


@pytest.mark.parametrize("existing", [False, True])
def test_the_token_of_the_labelling_page_lies_open_nowhere(tmp_path, existing):
    import polars as pl

    path = tmp_path / "labels.sqlite"
    old = os.umask(0o022)
    try:
        if existing:
            store = LabelStore(path)
            store.add_wave([ItemKey("1", "a")], [1.0], design="random", frame=1)
            store.close()
            # As version 0.2 made it.
            path.chmod(0o644)
        rows = pl.DataFrame({"question_id": ["1"], "model": ["m"], "method": ["s"],
                             "confidence": [0.5], "answer": ["a"]})  # fmt: skip
        server = LabelServer(LabelSession(rows, LabelStore(path)))
        token = server.token.encode()
        holding = [p for p in tmp_path.iterdir() if token in p.read_bytes()]
        assert holding
        for place in tmp_path.iterdir():
            assert place.stat().st_mode & 0o077 == 0, place
        server.session.store.close()
    finally:
        os.umask(old)
