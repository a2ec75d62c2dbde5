"""People check grades on the page: what they see, what is kept, and what it says of the grader."""

import asyncio
import json
import stat

import aiohttp
import numpy as np
import pytest

import calibrant
from calibrant.data.label_store import LabelStore
from calibrant.labels.page.grades import open_grades
from calibrant.labels.page.server import LabelServer
from grading_world import world


def served(session, work):
    """Serve the grades, do some work with the page's own requests, stop."""

    async def go():
        server = LabelServer(session, session.precise)
        address = (await server.start()).split("?")[0]
        page = {"Cookie": f"{server.door.cookie}={server.token}", "X-Labelling": "1"}
        try:
            jar = aiohttp.DummyCookieJar()
            async with aiohttp.ClientSession(cookie_jar=jar, headers=page) as client:
                return await work(client, address, server)
        finally:
            await server.stop()

    return asyncio.run(go())


def label_all(session, truth, count, who="ann"):
    """Label as many as asked for by the page's requests, and return what the page was shown."""

    async def work(client, address, server):
        shown = []
        async with client.get(f"{address}api/next?who={who}") as answer:
            found = await answer.json()
        while found["item"] and len(shown) < count:
            shown.append(found)
            model = found["item"]["answer"].split()[-1]
            right = truth[model][int(found["item"]["question"][1:])]
            body = {"who": who, "item": found["item"]["id"], "label": "right" if right else "wrong"}
            async with client.post(f"{address}api/label", json=body) as answer:
                found = await answer.json()
        return shown

    return served(session, work)


def test_the_page_hides_the_verdict_and_its_checks_reach_the_audit(tmp_path):
    study, truth, _ = world(tmp_path / "s", gap=0.12, models=("a", "b"))
    session = open_grades(study.path, {})
    shown = label_all(session, truth, 120)
    assert set(shown[0]["item"]) == {"id", "question", "answer", "reference", "choices"}
    assert "known to within" in shown[-1]["progress"]["text"]
    found = calibrant.audit(study.path, resamples=100)
    for entry in found["results"]:
        told = entry["metrics"]["accuracy"]
        assert entry["grading"]["checked"] >= 50
        assert told["low"] <= truth[entry["model"]].mean() <= told["high"]
    report = calibrant.label_status(study.path, grades=True)
    kind, harsh = report["grader"]["models"]
    assert kind["error"]["low"] > 0.03
    assert kind["kappa"] < harsh["kappa"] == 1.0
    assert report["grader"]["rules"][0] == {
        "rule": "phrase", "graded": "right", "checked": pytest.approx(60, abs=40),
        "wrong": kind["wrong"],
    }  # fmt: skip
    assert "found wrong" in str(report)


def test_any_first_part_of_the_draw_holds_every_kind_of_grade(tmp_path):
    study, _, table = world(tmp_path / "s")
    session = open_grades(study.path, {}, wave=60)
    items = session.take("ann", 60)
    rows = [session.row(item) for item in items]
    doubtful = [0.03 < row["chance"] < 0.97 for row in rows]
    for part in (15, 30, 60):
        kinds = {(row["correct"], doubt) for row, doubt in zip(rows[:part], doubtful, strict=False)}
        assert len(kinds) == 4
    # Doubtful grades are 40 % of all and most of the checks.
    assert np.mean(doubtful) > np.mean([0.03 < chance < 0.97 for chance in table["chance"]]) + 0.1


def test_asking_again_assigns_nothing_again(tmp_path):
    study, _, _ = world(tmp_path / "s")
    session = open_grades(study.path, {})
    first = session.take("ann")[0]
    for _ in range(50):
        assert session.take("ann")[0] == first
    count = session.store._db.execute("SELECT COUNT(*) FROM assignments").fetchone()[0]
    assert count == 1
    # A lease that is half over is held on to, so that a slow reader keeps the item.
    later = session.store.take("ann", now=__import__("time").time() + 1000)
    assert later[0] == first


def test_pages_of_two_pools_keep_apart(tmp_path):
    names = set()
    for name in ("one", "two"):
        study, _, _ = world(tmp_path / name)
        session = open_grades(study.path, {})

        async def work(client, address, server):
            names.add(server.door.cookie)
            body = {"who": "ann", "item": 1, "label": "right", "store": "another"}
            async with client.post(f"{address}api/label", json=body) as answer:
                assert answer.status == 409
                assert "another pool" in (await answer.json())["error"]

        served(session, work)
        mode = stat.S_IMODE((study.path / "grades.sqlite").stat().st_mode)
        assert mode == 0o600
    assert len(names) == 2


ODD = [
    b"", b"[]", b"{", b'"x"', b'{"who": "a", "item": 99999999999999999999999, "label": "right"}',
    b'{"who": "a", "item": -1, "label": "right"}', b'{"who": "\\ud800", "item": 1}',
    b'{"who": "a", "item": 1, "label": "\xff"}', b'{"who": "", "item": 1, "label": "right"}',
    b'{"who": "a", "item": 123456789, "label": "right"}', b"\x00" * 100, b"9" * 5000,
]  # fmt: skip


def test_every_answer_is_json_with_all_headers(tmp_path):
    study, _, _ = world(tmp_path / "s")

    async def work(client, address, server):
        for body in ODD:
            headers = {"Content-Type": "application/json"}
            async with client.post(f"{address}api/label", data=body, headers=headers) as answer:
                assert 400 <= answer.status < 500, body
                assert json.loads(await answer.text())["error"]
                assert answer.headers["Content-Security-Policy"]
        for path in ("nowhere", "api/next", "api/next?who=%ff%fe", "api/conflict?who="):
            async with client.get(address + path) as answer:
                assert answer.headers["X-Content-Type-Options"] == "nosniff", path
                assert answer.status == 200 or json.loads(await answer.text())["error"]

    served(open_grades(study.path, {}), work)


def test_a_failure_of_the_server_is_told_and_the_label_is_not_lost(tmp_path, monkeypatch):
    study, _, _ = world(tmp_path / "s")

    async def work(client, address, server):
        monkeypatch.setattr(LabelStore, "label", lambda *_, **__: 1 / 0)
        body = {"who": "ann", "item": 1, "label": "right"}
        async with client.post(f"{address}api/label", json=body) as answer:
            assert answer.status == 500
            assert "ZeroDivisionError" in (await answer.json())["error"]

    served(open_grades(study.path, {}), work)


def test_grades_of_others_are_not_checked(tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("confidence,correct\n0.5,1\n0.6,0\n")
    with pytest.raises(calibrant.InputError, match="no grades of this program"):
        calibrant.label_status(str(scores), grades=True)
