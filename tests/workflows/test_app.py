"""The app's server: tabs of one input, for whoever holds the token, and nothing written."""

import asyncio
import json
import re
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest
from aiohttp import ClientSession, CookieJar
from hostile import MARK, TEXTS

import calibrant as cal
from calibrant.apps.browser.opened import AppData
from calibrant.apps.browser.server import AppServer
from calibrant.apps.browser.state import State
from calibrant.apps.browser.tabs import TABS, form_of
from calibrant.core.hints import Call
from epistemic.test_whole_units import documents

OWN = {"X-Calibrant": "1"}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(5)
    said = rng.choice([55, 65, 75, 85, 95, 100], 600)
    right = rng.random(600) < said / 100 - 0.15
    path = tmp_path / "mine.csv"
    pl.DataFrame(
        {
            "question": [f"What is item {i // 2}?" for i in range(600)],
            "llm": ["mini", "large"] * 300,
            "topic": rng.choice(["law", "math"], 600),
            "answer": [TEXTS[i % len(TEXTS)].replace("\0", "") for i in range(600)],
            "certainty": [f"{c} %" for c in said],
            "ok": np.where(right, "yes", "no"),
        }
    ).write_csv(path)
    return path


def served(path, work, reading=None):
    async def both():
        server = AppServer(None if path is None else AppData(str(path), reading))
        address = await server.start()
        try:
            async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
                async with session.get(address) as response:
                    assert response.status == 200
                    assert "token" not in str(response.url)
                return await work(session, address.split("/?")[0], server)
        finally:
            await server.stop()

    return asyncio.run(both())


async def got(session, address):
    """Return status and text once the work behind an address is done."""
    while True:
        async with session.get(address) as response:
            text = await response.text()
            if response.status != 202:
                return response.status, text
        await asyncio.sleep(0.05)


def test_every_tab_shows_its_answer_and_its_command(table):
    before = table.read_bytes()

    async def work(session, base, server):
        told = {}
        for tab in ("overview", "compare", "groups", "decide", "mend", "labels", "watch"):
            status, told[tab] = await got(session, f"{base}/api/tab/{tab}?decide.max_error=0.4")
            assert status == 200, told[tab]
        return told

    told = served(table, work)
    assert "say more than they know" in told["overview"]
    for tab in ("overview", "compare", "groups", "decide", "mend", "watch"):
        assert "calibrant " in told[tab].partition("data-command")[2]
        assert f"{table}" in told[tab]
        # What a shell calls COL means nothing to a person.
        assert not re.search(r'placeholder="[^"]*COL', told[tab])
    assert 'placeholder="Column of groups"' in told["decide"]
    assert "--max-error 0.4" in told["decide"]
    assert "No labels yet" in told["labels"]
    assert table.read_bytes() == before
    assert [path.name for path in table.parent.iterdir()] == ["mine.csv"]


def test_rows_follow_the_address(table):
    async def work(session, base, server):
        query = "model=mini&span=0.93:1&group=topic%3Dlaw&grade=wrong"
        return await got(session, f"{base}/api/rows?{query}")

    status, text = served(table, work)
    frame = pl.read_csv(table).filter(
        pl.col("llm") == "mini", pl.col("topic") == "law", pl.col("ok") == "no",
        pl.col("certainty").is_in(["95 %", "100 %"]),
    )  # fmt: skip
    assert status == 200
    assert f"{frame.height} wrong answers" in text
    assert text.count("data-place=") == min(frame.height, 25)


def test_rows_without_a_confidence_or_a_grade_are_listed(table):
    frame = pl.read_csv(table)
    said = [None if n % 10 == 0 else text for n, text in enumerate(frame["certainty"])]
    ok = ["perhaps" if n % 60 == 1 else text for n, text in enumerate(frame["ok"])]
    frame.with_columns(certainty=pl.Series(said), ok=pl.Series(ok)).write_csv(table)

    async def work(session, base, server):
        asked = ("", "?grade=silent", "?grade=open", "?words=item+30%3F&grade=open")
        return [(await got(session, f"{base}/api/rows{query}"))[1] for query in asked] + [
            (await got(session, f"{base}/api/row/{place}"))[1] for place in (0, 1, 2)
        ]

    # A word that may mean either is asked about first, as in the terminal.
    status, question = served(table, lambda session, base, server: got(session, f"{base}/api/rows"))
    assert status >= 400, question
    assert "10 rows whose ok is perhaps are neither right nor wrong" in question
    reading = {"confidence": "certainty", "correct": "ok", "right": "yes/no", "scale": "percent"}
    every, silent, ungraded, searched, first, second, third = served(table, work, reading)
    assert "of 590 answers" in every
    assert "of 600" in every
    assert "60 answers without a confidence" in silent
    assert silent.count("no confidence</td>") == 25
    assert "10 answers without a grade" in ungraded
    assert "1 answer without a grade" in searched
    assert "No number counts this row: the confidence is missing" in first
    assert "No number counts this row: the outcome says neither right nor wrong" in second
    assert "No number counts" not in third


def test_rows_of_weight_0_are_listed_and_say_that_they_do_not_count(table):
    frame = pl.read_csv(table).with_row_index("n")
    frame.with_columns(weights=(pl.col("n") > 2).cast(pl.Float64)).drop("n").write_csv(table)

    async def work(session, base, server):
        every = (await got(session, f"{base}/api/rows"))[1]
        return [every] + [(await got(session, f"{base}/api/row/{n}"))[1] for n in (2, 3)]

    every, without, counted = served(table, work)
    assert "of 600 answers" in every
    assert "No number counts this row: its weight is 0" in without
    assert "No number counts" not in counted


def test_a_dot_of_the_watch_lists_its_rows(table):
    frame = pl.read_csv(table).with_row_index("n")
    days = [f"2026-05-{1 + n // 60:02}" for n in range(600)]
    frame = frame.with_columns(day=pl.Series(days)).sort("topic")
    frame.drop("n").write_csv(table)

    async def work(session, base, server):
        found = []
        for settings in ("monitor.time=day", "monitor.every=70"):
            status, tab = await got(session, f"{base}/api/tab/watch?{settings}")
            assert status == 200
            names = re.findall(r"large␟certainty␟(watched = [^\"&]+)", tab)
            group = quote(names[2].replace(" = ", "="))
            query = f"{settings}&model=large&group={group}&tab=questions"
            found.append((await got(session, f"{base}/save/rows.csv?{query}"))[1])
            found.append((await got(session, f"{base}/api/rows?{query}"))[1])
        return found

    by_day, page, by_rows, _ = served(table, work)
    large = frame.filter(pl.col("llm") == "large")
    wanted = large.filter(pl.col("day") == "2026-05-03")
    assert set(pl.read_csv(by_day.encode())["question"]) == set(wanted["question"])
    assert "watched: 2026-05-03" in page
    third = large.slice(140, 70)
    assert set(pl.read_csv(by_rows.encode())["question"]) == set(third["question"])


def test_a_tab_about_one_of_several_models_says_which(table):
    async def work(session, base, server):
        return [
            (await got(session, f"{base}/api/tab/{tab}{query}"))[1]
            for tab in ("groups", "decide", "mend")
            for query in ("?model=large", "?model=mini")
        ]

    pages = served(table, work)
    for page, name in zip(pages, ["large", "mini"] * 3, strict=True):
        assert re.findall(r'data-focus="([^"]*)"', page) == [name]
        assert f"{name}, certainty: " in page


def test_a_decision_that_cannot_be_saved_shows_no_program_that_loads_it(table):
    async def work(session, base, server):
        address = f"{base}/api/tab/decide?decide.max_error="
        return [(await got(session, address + limit))[1] for limit in ("0.001", "0.6")]

    refused, kept = served(table, work)
    assert "Nothing to save" in refused
    assert ("load_policy" in refused, "load_policy" in kept) == (False, True)


def test_empty_settings_show_words_or_an_example():
    forms = [form_of(tab.verb, State()) for tab in TABS if tab.verb]
    hints = {field["name"]: field["hint"] for form in forms for field in form}
    assert hints["audit.judge"] == "Name of a model"
    assert hints["decide.max_error"] == "Between 0 and 1"
    assert hints["audit.bins"] == "A whole number from 1 to 100,000"
    assert hints["monitor.baseline_rows"] == "A whole number, at least 0"
    assert hints["monitor.time"] == "Column of the time"
    assert not [hint for hint in hints.values() if re.fullmatch("[A-Z]+", hint)]


def test_what_a_model_says_is_text(table):
    async def work(session, base, server):
        return [
            (await got(session, f"{base}{path}"))[1]
            for path in ("/api/rows", "/api/row/1", "/api/picker", f"/api/rows?words={MARK}")
        ]

    for text in served(table, work):
        assert "<script" not in text
        assert "<img" not in text
        assert "<iframe" not in text


def test_a_policy_is_saved_as_the_command_saves_it(table, tmp_path):
    async def work(session, base, server):
        query = "tab=decide&model=mini&decide.max_error=0.35"
        return await got(session, f"{base}/save/policy.json?{query}")

    status, text = served(table, work)
    assert status == 200
    ours = tmp_path / "ours.json"
    cal.decide(table, max_error=0.35, only_model="mini", save=ours)
    made, wanted = json.loads(text), json.loads(ours.read_text())
    assert made["threshold"] == wanted["threshold"]
    (tmp_path / "policy.json").write_text(text)
    assert cal.load_policy(tmp_path / "policy.json").threshold == wanted["threshold"]


def test_a_corrected_grade_is_kept_beside_the_table(table):
    before = table.read_bytes()

    async def work(session, base, server):
        _, text = await got(session, f"{base}/api/rows?grade=wrong")
        place = int(text.partition('data-place="')[2].partition('"')[0])
        sent = json.dumps({"place": place, "grade": "right"})
        async with session.post(f"{base}/api/grade", data=sent, headers=OWN) as response:
            assert "right, corrected" in await response.text()
        return place, (await got(session, f"{base}/save/corrected.csv"))[1]

    place, text = served(table, work)
    assert table.read_bytes() == before
    kept = (table.parent / "mine.csv.corrections.jsonl").read_text()
    assert json.loads(kept)["is"] == "right"
    rows = pl.read_csv(text.encode())
    given = pl.read_csv(table)["ok"].to_list()
    changed = [k for k, ok in enumerate(given) if (ok == "yes") != (rows["correct"][k] == 1)]
    assert changed == [place]


def test_a_dropped_file_is_opened_and_leaves_nothing_behind(table):
    async def work(session, base, server):
        async with session.get(base) as response:
            assert "Drop a table here" in await response.text()
        body = table.read_bytes()
        async with session.post(
            f"{base}/api/open?name=..%2F..%2Fevil.csv", data=body, headers=OWN
        ) as response:
            assert response.status == 200
        status, text = await got(session, f"{base}/api/tab/overview")
        return status, text, server.data.folder

    status, text, folder = served(None, work)
    assert status == 200
    assert "say more than they know" in text
    assert not folder.exists()


def test_only_the_page_may_send(table):
    async def work(session, base, server):
        found = []
        for path in ("/api/open?name=a.csv", "/api/grade", "/api/label", "/api/cancel/overview"):
            async with session.post(base + path, data=b"{}") as response:
                found.append(response.status)
        for path in ("/mine.csv", "/../mine.csv", "/save/mine.csv", "/api/row/../../x"):
            async with session.get(base + path) as response:
                found.append(response.status)
                assert "certainty" not in await response.text()
        return found

    assert all(status in (403, 404, 422) for status in served(table, work))


def test_labelling_opens_its_page_from_the_app(table):
    async def work(session, base, server):
        async with session.post(f"{base}/api/label", headers=OWN) as response:
            assert response.status == 200, await response.text()
            address = (await response.json())["address"]
        async with session.get(address) as response:
            return response.status, await response.text()

    status, text = served(table, work)
    assert status == 200
    assert "<title>" in text


def test_work_can_be_stopped_and_begun_again(table):
    async def work(session, base, server):
        data, call = server.data, Call("audit", resamples=1_000_000)
        job = data.document(call)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(data.cancel, call)
        for _ in range(600):
            if job.done:
                break
            await asyncio.sleep(0.05)
        return job, await got(session, f"{base}/api/tab/overview")

    job, (status, text) = served(table, work)
    assert job.done
    assert job.error == "Stopped."
    assert status == 200
    assert "say more than they know" in text


def test_a_refusal_is_told_on_its_tab(table):
    async def work(session, base, server):
        return await got(session, f"{base}/api/tab/decide?decide.max_error=7")

    status, text = served(table, work)
    assert status == 200
    assert "lies between 0 and 1, got 7" in text


def test_a_table_that_leaves_a_doubt_is_read_as_the_page_is_told(table):
    frame = pl.read_csv(table)
    frame.with_columns(
        stated_confidence=pl.col("certainty"), token_confidence=pl.lit("60 %")
    ).drop("certainty").write_csv(table)  # fmt: skip

    async def work(session, base, server):
        told = [await got(session, f"{base}/api/tab/overview")]
        for sent in ({"confidence": "stated_confidence"}, {"shell": "rm"}):
            body = json.dumps(sent)
            async with session.post(f"{base}/api/read", data=body, headers=OWN) as response:
                told.append((response.status, await response.text()))
        told.append(await got(session, f"{base}/api/tab/overview"))
        return told

    (_, before), (read, _), (refused, _), (_, after) = served(table, work)
    every = "stated_confidence,token_confidence"
    assert f'<option value="{every}">all 2: stated_confidence, token_confidence' in before
    assert (read, refused) == (200, 422)
    assert "say more than they know" in after
    assert "--confidence stated_confidence" in after
    assert '<option value="stated_confidence" selected>' in after


def test_what_was_served_is_shown_day_by_day_before_anybody_labels(tmp_path):
    path = tmp_path / "served.jsonl"
    days = [f"2026-05-{1 + n // 10:02}" for n in range(300)]
    pl.DataFrame({
        "question_id": [str(n) for n in range(300)], "model": "m", "method": "confidence",
        "answer": "yes", "confidence": [0.5 + n % 10 / 20 for n in range(300)],
        "decision": ["answer" if n % 4 else "defer" for n in range(300)], "policy": "a",
        "cost": 2.0, "seconds": 0.25, "promised": [n % 4 > 0 and n < 200 for n in range(300)],
        "shift": [None if n < 250 else "more of law" for n in range(300)], "time": days,
    }).write_ndjson(path)  # fmt: skip

    async def work(session, base, server):
        rows = await got(session, f"{base}/save/rows.csv?tab=questions&group=served%3D2026-05-04")
        return *await got(session, f"{base}/api/tab/watch"), rows[1]

    status, text, rows = served(path, work)
    assert status == 200
    assert "␟␟served = 2026-05-04" in text
    assert pl.read_csv(rows.encode())["question_id"].to_list() == list(range(39, 29, -1))
    told = text.partition("Traffic")[2]
    for words in ("<b>300</b>", "<b>75 %</b>", "<b>600</b>", "<b>0.25</b>"):
        assert words in told
    assert "From 2026-05-21 on answers were given without the promise" in told
    assert "From 2026-05-26 on questions unlike the labelled ones: more of law" in told


def test_several_files_are_dropped_together(table, tmp_path):
    halves = [tmp_path / "first.csv", tmp_path / "second.csv"]
    frame = pl.read_csv(table)
    for path, name in zip(halves, ("mini", "large"), strict=True):
        frame.filter(pl.col("llm") == name).write_csv(path)

    async def work(session, base, server):
        for number, path in enumerate(halves):
            place = f"{base}/api/open?more={number}&left={1 - number}&name=answers.csv"
            async with session.post(place, data=path.read_bytes(), headers=OWN) as response:
                assert response.status == 200
            assert (server.data is None) is (number == 0)
        return await got(session, f"{base}/api/rows"), server.data.name

    (status, text), name = served(None, work)
    assert status == 200
    assert name == "2 files"
    assert "of 600 answers" in text


def test_two_servers_have_cookies_of_their_own():
    assert AppServer().cookie != AppServer().cookie


def test_no_cell_of_a_saved_table_is_run_by_a_spreadsheet(table):
    frame = pl.read_csv(table).with_columns(
        answer=pl.Series(["=1+1", "+cmd", "-x", "@SUM(A1)"] * 150)
    )
    frame.write_csv(table)

    async def work(session, base, _):
        return [(await got(session, f"{base}/save/{name}"))[1] for name in FILES]

    FILES = ("rows.csv", "corrected.csv")
    for text in served(table, work):
        saved = pl.read_csv(text.encode())
        assert set(saved["answer"]) == {"'=1+1", "'+cmd", "'-x", "'@SUM(A1)"}


def test_a_question_about_a_table_is_answered_on_the_page(tmp_path):
    path = tmp_path / "helpdesk.csv"
    said = [95, 90, 85, 60] * 30
    edited = ["No", "No", "No", "Yes"] * 29 + ["No", "Yes", "No", "Yes"]
    pl.DataFrame({"AI confidence": said, "Agent edited reply?": edited}).write_csv(path)

    async def work(session, base, server):
        _, asked = await got(session, f"{base}/api/tab/overview")
        second = asked.split("<form data-read>")[2].split("</form>")[0]
        chosen = dict(re.findall(r'name="(\w+)" value="([^"]*)"', second))
        async with session.post(f"{base}/api/read", data=json.dumps(chosen), headers=OWN) as done:
            assert done.status == 200
        return asked, chosen, (await got(session, f"{base}/api/tab/overview"))[1]

    asked, chosen, after = served(path, work)
    assert asked.count("Use this reading") == 2
    assert str(tmp_path) not in asked.partition("<template")[0]
    # Five rows of each reading, as they stand and as they are read.
    assert asked.count("<td>wrong</td>") + asked.count("<td>right</td>") == 10
    assert "<td>95 %</td><td>right</td><td>95</td><td>No</td>" in asked
    assert "<td>95 %</td><td>wrong</td><td>95</td><td>No</td>" in asked
    assert chosen["right"] == "yes"
    assert "--right yes" in after
    assert "Which is meant?" not in after


def test_the_app_decides_about_whole_documents(tmp_path):
    path = tmp_path / "fields.csv"
    documents().write_csv(path)

    async def work(session, base, server):
        body = json.dumps({"unit": "doc"})
        async with session.post(f"{base}/api/read", data=body, headers=OWN) as response:
            assert response.status == 200
        limit = "/api/tab/decide?decide.max_error=0.15"
        tabs = [await got(session, f"{base}{limit}{more}") for more in ("", "&decide.drop=on")]
        return [text for _, text in [*tabs, await got(session, f"{base}/api/tab/overview")]]

    whole, dropped, audit = served(path, work)
    assert "of the units pass alone" in whole
    assert "policy.answers([0.93, 0.88])" in whole
    assert "--unit doc" in whole
    assert "Fields of one doc" in whole
    assert "policy.keeps([0.93, 0.41])" in dropped
    assert "--unit doc" in audit
