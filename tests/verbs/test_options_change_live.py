"""Options of verbs that label, grade, ask and serve: what is accepted changes something.

Every call is made in a folder of its own, and what it did is looked at: its document, the files it
wrote, what endpoints were asked and what callers got.
"""

import asyncio
import io
import itertools
import json
import shutil
import socket
import warnings
from contextlib import redirect_stderr
from pathlib import Path

import aiohttp
import polars as pl
import pytest
from aiohttp import web

import calibrant as cal
from calibrant.apps.serve import serve
from calibrant.cli import VERBS, verb_function
from calibrant.core.document import plain
from calibrant.core.errors import CalibrantError
from calibrant.core.verb import declaration
from calibrant.data import Study
from clients.server import Endpoint
from collect.endpoint import Oracle
from collect.studies import write_study
from verbs.test_options_change import kept, table, values_of
from workflows.test_serve_promise import question, saved

# Where work is done, what is asked on a terminal alone, and a code that tests of secrets try.
NOT_SEEN = {"engine", "yes", "confirm"}
NUMBERS = itertools.count()
# What shows only where some rows have a label.
_OF_LABELS = ("right", "correct of label", "gold", "cluster", "unit", "precision", "threshold")
# What an option needs beside it, and what to try where its kind does not say it.
WITH = {
    **{name: {"existing": "random"} for name in _OF_LABELS},
    "budget": {"existing": "random", "threshold": 0.1},
    "repeats": {"pool": "repeats.csv"},
    "on_invalid": {"pool": "on_invalid.csv"},
    "defer": {"policy": "sure.json"},
    "on_shift": {"watch": "torn.csv"},
    "per_token": {"price": {"m": 1.0}},
    "retry_failures": {"study": "failed"},
    "repair": {"study": "damaged"},
    "judge_url": {"judge": "oracle", "max_judge_calls": 1},
    "max_judge_calls": {"judge": "oracle", "judge_url": "URL"},
    "judge of grade": {"judge_url": "URL"},
}
VALUES = {
    "samples": ["others"],
    "reference": ["other_gold"],
    "references": ["references.jsonl"],
    "correct of grade": ["ok"],
    "question of grade": ["again"],
    "model of grade": ["maker"],
    "judge of grade": ["oracle"],
    "judge_url": ["URL"],
    "max_judge_calls": [1],
    "budget": [50, 300, 10**6],
    "why": ["q01"],
    "out of grade": ["elsewhere"],
    "size": [20],
    "mend": ["map.json"],
    "endpoint": [["m=OTHER/v1"]],
    "key_env": [["m=UPSTREAM_KEY"]],
    "defer": ["text:I do not know"],
    "measured_by": ["sequence_probability"],
    "watch": ["torn.csv"],
    "price": [{"m": 2.0}],
    "patience": [0.05],
    "most_requests": [1],
    "host": ["127.0.0.2"],
    "allow_host": [["callers.example"]],
    "token_env": ["OTHER_TOKEN"],
    "ledger": ["other.sqlite"],
    "labels": ["people.sqlite"],
    "tau": [0.9],
}


class World:
    """Folders with all that calls read, made once, and endpoints that answer them."""

    def __init__(self, folder, oracle, first, second):
        self.folder, self.oracle, self.endpoints = folder, oracle, (first, second)
        first.behaviour.latency_s = second.behaviour.latency_s = 0.1
        given = folder / "given"
        given.mkdir()
        rows = table()
        known = pl.int_range(pl.len()) % 3 == 0
        rows.with_columns(correct=pl.when(known).then("correct")).write_csv(given / "pool.csv")
        for name in ("repeats", "on_invalid"):
            table(name).write_csv(given / f"{name}.csv")
        cal.label_next(given / "pool.csv", given / "batch.csv", size=60, who="ann")
        batch = pl.read_csv(given / "batch.csv", infer_schema=False)
        right = ["1" if number % 3 else "0" for number in range(batch.height)]
        batch.with_columns(correct=pl.Series(right)).write_csv(given / "batch.csv")
        one = rows.filter(pl.col("model") == "small")
        for name in ("m", "oracle"):
            cal.mend(one.with_columns(model=pl.lit(name)), save=given / f"{name}.json")
        saved(given / "policy.json")
        saved(given / "sure.json", threshold=1.0)
        (given / "torn.csv").write_text("questi")
        self._samples(given)
        self._studies(given)

    def _samples(self, given):
        texts = ["the red planet", "Mars", "Mars", "Venus"]
        rows = [
            {"id": f"q{number:02}", "question": f"Which planet is it, number {number}?",
             "answers": texts[: 3 + number % 2], "others": texts[1:], "gold": "Mars",
             "other_gold": "Venus", "again": f"r{number // 2}",
             "ok": [1, 1, 0, 0][: 3 + number % 2], "maker": "left" if number < 5 else "right"}
            for number in range(10)
        ]  # fmt: skip
        pl.DataFrame(rows).write_ndjson(given / "samples.jsonl")
        told = [{"question_id": row["id"], "text": row["question"], "references": [["Venus"]]}
                for row in rows]  # fmt: skip
        pl.DataFrame(told).write_ndjson(given / "references.jsonl")

    def _studies(self, given):
        methods = 'methods = ["consistency", "sca", "degree_matrix"]'
        cal.run(write_study(given / "study", self.oracle.url, extra=methods))
        shutil.copytree(given / "study", given / "damaged")
        ledger = given / "damaged" / "ledger.sqlite"
        ledger.write_bytes(ledger.read_bytes()[:5_000] + bytes(9_000))
        first = self.endpoints[0]
        first.behaviour.fault = lambda number, body: (
            web.Response(status=400) if "Peru" in str(body["messages"]) else None
        )
        methods = 'methods = ["perplexity"]'
        cal.run(write_study(given / "failed", f"{first.url}/v1", extra=methods, draws=1))
        first.behaviour.fault = None

    def observed(self, words, given, patched):
        """Return what a call does in a folder of its own; None where it is refused."""
        place = self.folder / str(next(NUMBERS))
        shutil.copytree(self.folder / "given", place)
        patched.chdir(place)
        given = {name: self._addressed(value) for name, value in given.items()}
        for endpoint in (self.oracle, *self.endpoints):
            endpoint.calls.clear()
        log = io.StringIO()
        try:
            with warnings.catch_warnings(), redirect_stderr(log):
                warnings.simplefilter("ignore")
                document, more = getattr(self, f"_{words.replace(' ', '_')}")(given, patched)
        except CalibrantError:
            return None
        document = _without_seconds(kept(plain(document.to_dict())))
        calls = [len(endpoint.calls) for endpoint in (self.oracle, *self.endpoints)]
        files = sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())
        known = {"document": document, "calls": calls, "files": files, "more": more,
                 "logged": words == "serve" and bool(log.getvalue())}  # fmt: skip
        return json.dumps(known, sort_keys=True, default=str)

    def _addressed(self, value):
        if isinstance(value, list):
            return [self._addressed(part) for part in value]
        if not isinstance(value, str):
            return value
        urls = {
            "URL": self.oracle.url,
            "ONE": self.endpoints[0].url,
            "OTHER": self.endpoints[1].url,
        }
        return next((value.replace(k, url) for k, url in urls.items() if k in value), value)

    # -- label -------------------------------------------------------------------------------------

    def _label_next(self, given, _):
        Path("pool.csv.labels.sqlite").unlink()
        given = {"table": given.pop("pool", "pool.csv"), "out": "out.csv", **given}
        document = cal.label_next(**given)
        # Some items are for somebody else, too.
        cal.label_next(**{**given, "out": "second.csv", "who": "cy"})
        return document, [Path(path).read_text() for path in (given["out"], "second.csv")]

    def _label_add(self, given, _):
        return cal.label_add("pool.csv", "batch.csv", **given), None

    def _label_status(self, given, _):
        return cal.label_status("pool.csv", **given), None

    def _label_export(self, given, _):
        cal.label_add("pool.csv", "batch.csv")
        given = {"out": "out.csv", **given}
        return cal.label_export("pool.csv", **given), _without_times(Path(given["out"]))

    def _label_serve(self, given, patched):
        shown, opened = [], []
        Path("pool.csv.labels.sqlite").unlink()

        async def visit(start, stop, started):
            address = await start
            started(address)
            server = stop.__self__
            page = {"Cookie": f"{server.door.cookie}={server.token}", "X-Labelling": "1"}
            jar = aiohttp.DummyCookieJar()
            root = address.split("?")[0]
            async with aiohttp.ClientSession(cookie_jar=jar, headers=page) as client:
                for who in ("bo", "cy"):
                    async with client.get(f"{root}api/next?who={who}") as answer:
                        shown.append((await answer.json())["item"])
            await stop()
            shown.append(f":{given.get('port')}/" in address)

        patched.setattr("calibrant.verbs.label.until_stopped", visit)
        patched.setattr("webbrowser.open", opened.append)
        document = cal.label_serve("pool.csv", **given)
        return document, [shown, len(opened)]

    # -- studies -----------------------------------------------------------------------------------

    def _grade(self, given, patched):
        # Of very many draws halves are drawn by the seed; here of all.
        patched.setattr("calibrant.answers.confidence.frequency._AFFORDABLE", 0)
        given = {"out": "graded", **given}
        document = cal.grade("samples.jsonl", **given)
        return document, Study(given["out"]).read("scores").write_json()

    def _run(self, given, _):
        study = given.pop("study", "study")
        document = cal.run(study, **given)
        return document, Study(study).read("scores").write_json()

    # -- serve -------------------------------------------------------------------------------------

    def _serve(self, given, patched):
        answers = []
        patched.setenv("CALIBRANT_TOKEN", "first")
        patched.setenv("OTHER_TOKEN", "second")
        patched.setenv("UPSTREAM_KEY", "third")

        async def visit(start, stop, started):
            address = await start
            started(address)
            front = stop.__self__
            sent = {"Authorization": "Bearer first"}
            async with aiohttp.ClientSession(headers=sent) as client:

                async def ask(number, **headers):
                    body = question(f"What is {number}?", temperature=0.7)
                    place = f"{address}/chat/completions"
                    async with client.post(place, json=body, headers=headers) as reply:
                        known = (await reply.json()).get("calibrant") or {}
                        told = ("decision", "probability", "interval", "cost", "promise")
                        return reply.status, [known.get(name) for name in told]

                answers.extend([await ask(1), await ask(1), await ask(2, Host="callers.example")])
                together = await asyncio.gather(*(ask(number) for number in range(3, 6)))
                answers.append(sorted(map(str, together)))
                await front.watch.look()
                answers.append(await ask(6))
            await stop()
            answers.append([address.rsplit(":", 1)[0], f":{given.get('port')}/" in address])

        patched.setattr("calibrant.apps.serve.until_stopped", visit)
        given = {"policy": "policy.json", "endpoint": [f"m={self.endpoints[0].url}/v1"],
                 "measured_by": "perplexity", **given}  # fmt: skip
        for endpoint in self.endpoints:
            endpoint.headers.clear()
        document = serve(**given, on_start=lambda *_: None)
        keys = {head.get("Authorization") for peer in self.endpoints for head in peer.headers}
        return document, [answers, sorted(map(str, keys))]


def _without_seconds(value):
    if isinstance(value, dict):
        return {k: _without_seconds(v) for k, v in value.items() if k != "elapsed_s"}
    return [_without_seconds(part) for part in value] if isinstance(value, list) else value


def _without_times(path):
    rows = pl.read_csv(path, infer_schema=False)
    return rows.select(name for name in rows.columns if "time" not in name).write_csv()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with Oracle() as oracle, Endpoint() as first, Endpoint() as second:
        yield World(tmp_path_factory.mktemp("live"), oracle, first, second)


LIVE = [words for words in VERBS if words.split()[0] in ("label", "grade", "run", "serve")]
# The quickest first: what verbs of `label` share is opened in one place, and tried at one of them.
LIVE.sort(key=lambda words: words not in ("label next", "label status"))


def cases():
    tried = set()
    for words in LIVE:
        for name, parameter in declaration(verb_function(words)).parameters.items():
            shared = (words.split()[0], name) in tried and name not in ("who", "out", "grades")
            if not (parameter.option.argument or name in NOT_SEEN or shared):
                yield pytest.param(words, name, id=f"{words} {name}")
            tried.add((words.split()[0], name))


def beside(words, name):
    return WITH.get(f"{name} of {words.split()[0]}", WITH.get(name, {}))


@pytest.mark.parametrize("words", LIVE)
def test_the_same_call_does_the_same(words, world, monkeypatch):
    first, second = (world.observed(words, {}, monkeypatch) for _ in range(2))
    assert first == second is not None


@pytest.mark.parametrize(("words", "name"), list(cases()))
def test_an_option_changes_something_or_is_refused(words, name, world, monkeypatch):
    known = declaration(verb_function(words)).parameters
    base = {k: v for k, v in beside(words, name).items() if k in {*known, "pool"}}
    before, taken = world.observed(words, base, monkeypatch), []
    values = VALUES.get(f"{name} of {words.split()[0]}", VALUES.get(name))
    if name == "mend":
        values = ["oracle.json" if words == "run" else "m.json"]
    if name == "port":
        values = [free_port()]
    for value in values or values_of(known[name], world.folder / "given"):
        after = world.observed(words, {**base, name: value}, monkeypatch)
        if after not in (before, None):
            return
        taken += [] if after is None else [value]
    assert not taken, f"{words} takes {name} = {taken} and does as it does without"
