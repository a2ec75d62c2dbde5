"""What a person sees of a judge: tables, charts and page agree with the sentences."""

import re

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.document import plain
from calibrant.report import render_text
from calibrant.report.answers import badge_of, claims_of
from calibrant.report.cells import Table, written
from calibrant.report.charts import charts_of
from calibrant.report.charts.chart import Item, Line, ReferenceLine
from calibrant.report.page import render_html
from calibrant.report.tables import document_blocks
from judged import pairs, ratings

ROLES = {"judge": ["judge"], "human": ["expert1", "expert2"]}


def judged(table=None, **options):
    return plain(cal.judge(ratings() if table is None else table, **{**ROLES, **options}))


def tables_of(document):
    blocks = [block for block in document_blocks(document) if isinstance(block, Table)]
    return {block.title: block for block in blocks}


def column(table, name):
    place = table.columns.index(name)
    return [written(row[place]) for row in table.rows]


@pytest.fixture(scope="module")
def other_scale():
    rng = np.random.default_rng(0)
    yes = rng.random(300) < 0.6
    score = np.clip(np.round(3 + 1.5 * (yes - 0.5) + rng.standard_normal(300)), 1, 5)
    human = pl.Series(np.where(yes, "yes", "no").tolist())
    rated = pl.Series(rng.permutation(300) < 150)
    table = pl.DataFrame({"judge": score, "model": ["a", "b"] * 150, "human": human})
    return judged(
        table.with_columns(pl.when(rated).then("human").alias("human")), human=["human"],
        by=["model"],
    )  # fmt: skip


def test_a_judge_on_another_scale_keeps_its_own(other_scale):
    for title, table in tables_of(other_scale).items():
        if "judge says" in table.columns:
            assert all(
                re.fullmatch(r"\d\.\d+ of 1-5", cell) for cell in column(table, "judge says")
            ), title
    means = [mark for mark in charts_of(other_scale)[0].marks if isinstance(mark, Item)]
    assert any("judge 3" in mark.tip and "of 1-5" in mark.tip for mark in means)
    assert not re.search(r"\d{3} %", " ".join(mark.tip for mark in means).replace("100 %", ""))


@pytest.mark.parametrize("same", [True, False])
def test_the_line_of_equal_ratings_is_drawn_where_both_share_a_scale(same, other_scale):
    document = judged() if same else other_scale
    meaning = next(chart for chart in charts_of(document) if "score means" in chart.title)
    dashed = [mark for mark in meaning.marks if isinstance(mark, Line) and mark.look == "dashed"]
    assert (len(dashed), "Dashed" in meaning.caption) == (same, same)


def test_people_judge_and_corrected_stand_on_one_scale():
    models = charts_of(judged())[0]
    words = [words for _, _, words in models.legend]
    assert words == [
        "people, corrected by the judge", "people alone", "judge", "people, all rows"
    ]  # fmt: skip
    assert [mark.axis for mark in models.marks if isinstance(mark, ReferenceLine)] == ["x"]
    page = render_html([judged()])
    assert page.count('class="dashed"') >= 4


def test_a_table_of_pairs_says_what_the_sentence_says():
    for seed in range(8):
        document = judged(ratings(items=400, rated=300, models=3, gap=0.5, seed=seed))
        better = next(c for c in document["claims"] if c["id"] == "judge.model_better")
        table = tables_of(document)["Models against each other"]
        rows = zip(
            *(column(table, name) for name in ("ahead", "behind", "p corrected")), strict=True
        )
        best = better["subject"].get("a")
        shown = {b for a, b, p in rows if a == best and float(p.lstrip("<")) <= 0.05}
        assert shown == set(better["subject"].get("b") or ())


def test_favour_that_no_sentence_shows_has_no_small_p():
    document = judged(ratings(items=400, rated=300, models=4))
    shown = any(c["outcome"] == "shown" for c in document["claims"] if c["id"] == "judge.favours")
    p = map(float, column(tables_of(document)["What the judge leans to"], "p corrected"))
    assert (min(p) <= 0.05) is shown


def test_groups_with_too_few_ratings_are_counted_and_not_listed():
    table = ratings(rated=60, models=12)
    leans = tables_of(judged(table, features=["words"]))["What the judge leans to"]
    assert "too few" not in str(leans.rows)
    assert "Too few ratings by two people: 12 more." in leans.note


def test_a_length_that_the_judge_does_not_pick_has_no_p():
    document = plain(
        cal.judge(
            pairs().with_columns(long_a=pl.int_range(200) % 7, long_b=pl.int_range(200) % 5),
            judge=["judge"], human=["person"], features=["long_a", "long_b"],
        )
    )  # fmt: skip
    lean = next(lean for lean in document["results"][0]["bias"] if lean["kind"] == "length")
    # The judge picks long answers less often than people, and in more than half of pairs.
    lean.update(value=-0.05, judge_share=0.6, p=1.0)
    table = tables_of(document)["What the judge leans to"]
    cells = dict(zip(column(table, "lean to"), column(table, "p"), strict=True))
    assert cells["length: the longer"] == ""
    lean.update(value=0.05, p=0.2)
    table = tables_of(document)["What the judge leans to"]
    assert "0.200" in column(table, "p")


def test_what_an_option_asks_for_is_in_the_short_view():
    asked = {"by": ["model"], "precision": 0.2, "cost": {"judge": 0.01}}
    text, whole = (render_text(judged(**asked), width=80, full=full) for full in (False, True))
    for words in ("model = m0", "within 0.2", "A dollar of its verdicts saves"):
        assert words in text
        assert whole.count(words) == 1
    assert "within" not in render_text(judged(), width=80).partition("model  ")[2]


def test_names_of_judges_are_whole_in_a_narrow_terminal():
    table = ratings().rename({"judge": "gpt-3.5-turbo-0301"})
    table = table.with_columns(pl.col("gpt-3.5-turbo-0301").alias("llama-2-7b-chat-hf"))
    names = ["gpt-3.5-turbo-0301", "llama-2-7b-chat-hf"]
    text = render_text(judged(table, judge=names, cost=dict.fromkeys(names, 0.01)), width=80)
    for name in names:
        assert re.search(rf"^ {name} ", text, re.MULTILINE)


def test_bad_news_has_no_tick():
    document = judged()
    badge = badge_of(document, claims_of(document))
    assert (badge.words, badge.symbol) == ("lenient", "!")
    assert '<li class="caution">' in render_html([document])


def test_the_page_shows_meaning_and_rows_under_the_answer_and_proposes_no_page():
    document = judged()
    assert "Next:" in render_text(document, width=80)
    document["next"] = {"command": "calibrant judge t.csv --html judge.html", "why": "See a page"}
    page = render_html([document])
    answer = page.partition('<section class="first"')[2].partition('<section id="details"')[0]
    assert answer.index("What a score means") < answer.index("Most surprising disagreements")
    assert page.count('id="t0-') == len(tables_of(document))
    assert "<p>See a page</p>" not in page
    document["next"]["command"] = "calibrant judge t.csv --batch batch.csv"
    assert "<p>See a page</p>" in render_html([document])


def test_an_interval_stays_beside_its_number_and_its_sentence():
    document = judged()
    words = "Let a second person rate 40 of these rows: that shows how far people agree at all."
    text = f"The judge puts the better of two first in 77 % (72 to 82; 50 is chance). {words}"
    document["claims"] = [{**document["claims"][0], "text": text}]
    page = render_html([document]).replace("\u00a0", " ")
    assert f"<p>Interval of 77 %: 72 to 82; 50 is chance. {words}</p>" in page


def test_a_pair_without_texts_is_named_by_its_question():
    document = plain(cal.judge(pairs(), judge=["judge"], human=["person"]))
    table = tables_of(document)["Most surprising disagreements"]
    assert "question" in table.columns
    assert "share of A" in table.note
