"""Commands that ask, wait or show progress, at a terminal: Ctrl-C and SIGTERM end them."""

import asyncio
import json
import socket
import sqlite3
import time

import numpy as np
import polars as pl
import pytest
from aiohttp import web

from collect.endpoint import Oracle
from collect.studies import write_study
from collect.test_judge_run import WORDY
from support import break_page, model_scores, need_small_model
from terminal import Terminal
from workflows.test_serve_promise import saved

FOR_EVER = 600.0
SERVE = ["serve", "policy.json", "--endpoint", "m=http://127.0.0.1:9/v1"]
SERVE += ["--measured-by", "perplexity"]
BOTH = pytest.mark.parametrize("how", ["ctrl-c", "sigterm"])


class Trouble(Oracle):
    """An endpoint that answers some calls, then does something else for ever."""

    def __init__(self, then, answered=0):
        super().__init__()
        self.then, self.answered = then, answered
        self.troubled = 0

    async def _chat(self, request):
        body = json.loads(await request.read())
        if len(self.calls) < self.answered and body["model"] != "judge":
            return await super()._chat(request)
        self.troubled += 1
        return await self.then(request)


async def hold(request):
    await asyncio.sleep(FOR_EVER)


async def hold_the_body(request):
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"id": "1", ')
    await asyncio.sleep(FOR_EVER)


async def fail(request):
    return web.json_response({"error": {"message": "out of order"}}, status=500)


async def rate_limit(request):
    return web.json_response({"error": "slowly"}, status=429, headers={"Retry-After": "60"})


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def kept(study):
    with sqlite3.connect(study / "ledger.sqlite") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return db.execute("SELECT COUNT(*) FROM draws").fetchone()[0]


def ended_well(at, status=130):
    assert at.process.returncode == status, at.shown
    assert at.cursor_is_shown
    assert "Traceback" not in at.shown
    assert "Exception" not in at.shown


def paid(folder, url, **settings):
    """Write a study of an endpoint whose price nobody knows."""
    study = write_study(folder, url, **settings)
    text = (study / "study.toml").read_text()
    (study / "study.toml").write_text(text.replace('"vllm"', '"openai"\napi_key_env = ""'))
    return study


# -- the question ------------------------------------------------------------------------------


@BOTH
def test_the_question_stands_alone_and_can_be_stopped(tmp_path, how):
    with Oracle() as oracle:
        study = paid(tmp_path / "study", oracle.url)
        with Terminal("run", study) as at:
            at.until("Send them? [y/N] ")
            time.sleep(0.5)  # a display would draw ten times meanwhile
            at._read(0)
            assert at.shown.rstrip().endswith("Send them? [y/N]"), "nothing covers the question"
            assert "\x1b[?25l" not in at.shown, "the cursor is shown"
            at.end(how)
            ended_well(at)
            assert "stopped before anything was sent" in at.shown
        assert oracle.calls == []


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"], ids=["no", "nothing", "end"])
def test_without_a_yes_nothing_is_sent(tmp_path, answer):
    with Oracle() as oracle, Terminal("run", paid(tmp_path / "s", oracle.url)) as at:
        at.until("Send them?")
        at.type(answer)
        assert at.wait() == 2
        assert "nothing was sent" in at.shown
        assert oracle.calls == []


def test_a_yes_begins_the_display(tmp_path):
    with Oracle() as oracle, Terminal("run", paid(tmp_path / "s", oracle.url)) as at:
        at.until("Send them?")
        at.type("y\n")
        assert at.wait(120) == 0
        ended_well(at, status=0)
        assert "draws/s" in at.shown
        assert oracle.calls


def test_lost_answers_are_not_bought_again_without_asking(tmp_path):
    with Oracle() as oracle:
        study = paid(tmp_path / "study", oracle.url, extra='methods = ["verb"]\n')
        text = (study / "study.toml").read_text()
        prices = '[budget]\nprices = "prices.toml"\n'
        (study / "prices.toml").write_text("[oracle]\nprompt = 1.0\ncompletion = 1.0\n")
        (study / "study.toml").write_text(text + prices)
        with Terminal("run", study) as at:
            at.wait(120)
        before = len(oracle.calls)
        assert before, at.shown
        (study / "ledger.backup.sqlite").unlink()
        place = break_page(study / "ledger.sqlite", "payloads")
        assert place.stop > place.start
        with Terminal("run", study, "--repair") as at:
            at.until("which would be bought again")
            at.type("n\n")
            assert at.wait() == 2
        assert len(oracle.calls) == before


# -- while a study is asked --------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "then", [hold, hold_the_body, fail, rate_limit], ids=lambda then: then.__name__
)
def test_a_run_that_waits_or_tries_again_is_stopped(tmp_path, then, how):
    with Trouble(then, answered=3) as endpoint:
        study = write_study(tmp_path / "study", endpoint.url)
        with Terminal("run", study) as at:
            until(lambda: endpoint.troubled >= 2)
            began = time.monotonic()
            at.end(how)
            print(f"{then.__name__} {how}: {time.monotonic() - began:.2f} s")  # noqa: T201
            ended_well(at)
        assert f"the {kept(study):,} answers that had arrived are kept" in at.shown


def test_a_run_at_a_dead_address_ends_by_itself(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        study = write_study(tmp_path / "s", f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        with Terminal("run", study) as at:
            at.wait()
            ended_well(at, status=2)
            assert "nothing answers at http://127.0.0.1" in at.shown
            assert kept(study) == 0


@BOTH
def test_a_run_that_waits_for_its_judge_is_stopped(tmp_path, how):
    with Oracle() as oracle, Trouble(hold) as judge:
        tail = f"""
[semantics.judge]
client = "vllm"
name = "judge"
model = "judge"
base_url = "{judge.url}"
"""
        study = write_study(tmp_path / "s", oracle.url, extra='methods = ["consistency"]\n',
                            tail=tail, draws=6)  # fmt: skip
        lines = "".join(json.dumps(row) + "\n" for row in WORDY)
        (study / "questions.jsonl").write_text(lines)
        with Terminal("run", study) as at:
            until(lambda: judge.troubled)
            at.end(how)
            ended_well(at)
        assert f"the {kept(study):,} answers" in at.shown


@BOTH
def test_a_model_that_computes_here_is_stopped(tmp_path, how):
    need_small_model("smollm2-135m-instruct")
    study = write_study(tmp_path / "s", "http://unused", draws=8)
    text = (study / "study.toml").read_text().partition("[[models]]")[0]
    model = '[[models]]\nname = "smollm2-135m-instruct"\nclient = "embedded"\n'
    (study / "study.toml").write_text(text + model)
    with Terminal("run", study) as at:
        at.until("draws/s")
        began = time.monotonic()
        at.end(how)
        print(f"embedded {how}: {time.monotonic() - began:.2f} s")  # noqa: T201
        ended_well(at)
    assert "answers that had arrived are kept" in at.shown


# -- a comparison ------------------------------------------------------------------------------


def many_models(path, count=40, n=1_200):
    rng = np.random.default_rng(3)
    said = rng.random((count, n))
    rows = {"question_id": np.tile(np.arange(n), count), "confidence": said.ravel()}
    rows |= {"model": np.repeat([f"m{k:02}" for k in range(count)], n)}
    rows |= {"correct": (rng.random(count * n) < said.ravel()).astype(int)}
    pl.DataFrame(rows).write_parquet(path)
    return path


def test_a_long_comparison_shows_its_progress_and_is_stopped(tmp_path):
    with Terminal("compare", many_models(tmp_path / "scores.parquet")) as at:
        at.until("models compared")
        at.until("/40")
        at.end("ctrl-c")
        ended_well(at)


# -- commands that serve -----------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["view", "scores.csv", "--no-open"], "View it here"),
        (["label", "serve", "scores.csv", "--no-open"], "Label here"),
        (SERVE, "Serving policy.json at"),
    ],
    ids=["view", "label serve", "serve"],
)
def test_a_server_is_stopped(tmp_path, words, says, how):
    model_scores(models=["small"]).write_csv(tmp_path / "scores.csv")
    saved(tmp_path / "policy.json")
    with Terminal(*words, cwd=tmp_path) as at:
        at.until(says)
        at.end(how)
        ended_well(at, status=0)
