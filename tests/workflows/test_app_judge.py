"""The app with a judge's scores beside people's: no confidence, and a tab that says so."""

import json
import re

import polars as pl
import pytest

from judged import pairs, ratings
from workflows.test_app import got, served


@pytest.fixture
def judge_table(tmp_path):
    path = tmp_path / "my ratings.csv"
    ratings().with_columns(topic=pl.int_range(300) % 3).write_csv(path)
    return path


def on_tab(path, *queries):
    async def work(session, base, server):
        return [(await got(session, f"{base}/api/tab/{query}"))[1] for query in queries]

    return served(path, work)


def test_a_table_of_ratings_leads_to_the_tab_judge(judge_table):
    overview, judge = on_tab(judge_table, "overview", "judge")
    # What the address does not ask for is chosen by this mark.
    assert 'data-instead="judge"' in overview
    assert '<a href="?tab=judge">Open the tab Judge</a>' in overview
    assert "the judge says" in judge
    assert "--judge judge --human expert1,expert2" in judge
    assert "calibrant.judge(&#39;" in judge
    for name in ("judge.judge", "judge.human", "judge.existing", "judge.scale", "judge.human_scale",
                 "judge.first", "judge.tie", "judge.by"):  # fmt: skip
        assert f'name="{name}"' in judge


def test_a_table_with_a_confidence_opens_on_its_overview(tmp_path):
    path = tmp_path / "t.csv"
    pl.DataFrame({"confidence": [0.9, 0.6] * 50, "correct": [1, 0] * 50}).write_csv(path)
    (overview,) = on_tab(path, "overview")
    assert "data-instead" not in overview


def test_columns_of_judge_and_people_are_ticked(tmp_path):
    path = tmp_path / "unnamed.csv"
    ratings().rename({"judge": "rel", "expert1": "ann", "expert2": "bob"}).write_csv(path)
    asked, told, wrong = on_tab(
        path, "judge", "judge?judge.judge=rel&judge.human=ann,bob",
        "judge?judge.judge=rel&judge.human=ann&judge.scale=1-3",
    )  # fmt: skip
    assert "Judge: which columns hold the judge" in asked
    assert "calibrant.judge(" not in asked
    assert re.search(r'data-many name="judge.human" value="ann">', asked)
    assert re.search(r'data-many name="judge.human" value="ann" checked>', told)
    assert "the judge says" in told
    assert "outside its scale 1-3" in wrong
    # Its columns are known: it is the settings that have to change.
    assert '<details class="settings" open><summary>Settings' in wrong


def test_a_call_that_a_refusal_proposes_stands_in_the_settings(judge_table):
    table = pl.read_csv(judge_table).sort("judge")
    half = pl.int_range(table.height) < 150
    people = [pl.when(half).then(name).alias(name) for name in ("expert1", "expert2")]
    table.with_columns(pl.col("expert1", "expert2").fill_null(3)).with_columns(people).write_csv(
        judge_table
    )
    refused, taken = on_tab(judge_table, "judge", "judge?judge.existing=random")
    assert "no random choice" in refused
    assert "<option selected>random</option>" in refused
    assert "my ratings.csv, judge=" not in refused
    assert "taken as random" in taken


def test_the_page_and_the_map_of_a_judge_are_saved(judge_table):
    async def work(session, base, server):
        await got(session, f"{base}/api/tab/judge")
        return [await got(session, f"{base}/save/{name}?tab=judge")
                for name in ("page.html", "policy.json")]  # fmt: skip

    (status, page), (kept, text) = served(judge_table, work)
    assert (status, kept) == (200, 200)
    assert "What a score means" in page
    assert json.loads(text)


def test_pairs_in_both_orders_are_asked_for_in_the_settings(tmp_path):
    path = tmp_path / "pairs.csv"
    pairs().write_csv(path)
    query = "judge?judge.judge=judge&judge.human=person&judge.swapped=other_order"
    (page,) = on_tab(path, query)
    assert "which answer the judge picks" in page
    assert "follows a place" in page
