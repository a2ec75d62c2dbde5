"""The page as text: self-contained, with a strict policy, and model output as text only."""

import re
from unittest import mock

import msgspec
import pytest
from hostile import hostile_document, hostile_questions
from html_tags import tags_of

import calibrant as cal
from calibrant.findings.documents.audits import SemanticEntry
from calibrant.report import render_html, render_markdown
from calibrant.report.cells import Number, Table
from calibrant.report.charts import charts_of
from calibrant.report.charts.draw import save_chart
from calibrant.report.tables.meanings import _notes


@pytest.fixture(scope="module")
def document():
    return cal.audit([0.9, 0.8, 0.6, 0.7] * 50, [1, 0, 1, 1] * 50).to_dict()


def test_the_page_asks_for_nothing(document):
    page = render_html([document])
    for tag, attributes in tags_of(page):
        for name in ("src", "href", "action", "data"):
            value = attributes.get(name)
            assert value is None or value.startswith("#"), (tag, value)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)


def test_the_policy_allows_only_the_scripts_of_the_page(document):
    page = render_html([document])
    policy = next(a["content"] for t, a in tags_of(page) if t == "meta" and "content" in a)
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "connect-src" not in policy
    assert len(re.findall("sha256-", policy)) == 1
    scripts = [a for t, a in tags_of(page) if t == "script" and a.get("type") is None]
    assert len(scripts) == 1


def test_a_page_is_small(document):
    empty = render_html([{"schema": "calibrant.analysis/1", "done": [], "left_out": []}])
    assert len(empty) < 90_000
    assert len(render_html([document])) < 130_000


def test_hostile_text_never_becomes_a_tag(document):
    plain = {tag for tag, _ in tags_of(render_html([document], questions=[{"id": ""}]))}
    page = render_html([hostile_document()], questions=hostile_questions(), questions_note="x")
    # Long names may get places to break, and rows of several models boxes to point at.
    assert {tag for tag, _ in tags_of(page)} <= plain | {"wbr", "rect"}
    assert page.count("<script") == page.count("</script>")


def test_the_page_opens_with_title_badge_sentence_picture_and_next_step(document):
    page = render_html([document])
    places = [
        page.index(mark)
        for mark in ('class="title"', 'class="badge', "<h1", "<svg", 'class="next"')
    ]
    assert places == sorted(places)


def test_markdown_neutralises_hostile_names():
    text = render_markdown(hostile_document())
    assert "<script" not in text
    assert "<img" not in text


def test_charts_are_written_in_every_format(document, tmp_path):
    paths = save_chart(charts_of(document)[0], tmp_path)
    heads = {path.suffix: path.read_bytes()[:5] for path in paths}
    assert heads[".svg"].startswith(b"<svg")
    assert heads[".png"].startswith(b"\x89PNG")
    assert heads[".pdf"].startswith(b"%PDF")


def test_report_verb_reads_results_and_tables(document, tmp_path):
    from calibrant.verbs.write_report import write_report

    (tmp_path / "t.csv").write_text("confidence,correct\n" + "0.9,1\n0.2,0\n0.6,1\n0.4,1\n" * 20)
    cal.audit(tmp_path / "t.csv").to_json(tmp_path / "a.json")
    written = write_report(
        [tmp_path / "a.json", tmp_path / "t.csv"],
        html=tmp_path / "r.html",
        markdown=tmp_path / "r.md",
    )["written"]
    assert len(written) == 2
    assert (tmp_path / "r.html").read_text().count('<details class="part"') >= 4


def _hard_block(text):
    row = {"question_id": "q7", "sem1": 0.5, "sem2": 0.2, "margin": 0.1, "gap": 0.3}
    block = {"model": "m", "left_out": {}, "hardest": [{**row, "regime": "near tie", "text": text}]}
    estimate = {"value": 0.1}
    return msgspec.convert(
        {**block, "sem1": estimate, "sem2": estimate, "questions": 1}, SemanticEntry
    )


def test_hard_questions_are_named_by_their_text_and_shown_whole_when_asked():
    long = (
        "Which of the many rivers of the north " + "<b>flows</b> " * 10 + "through the most towns?"
    )
    (table,) = [block for block in _notes(_hard_block(long)) if isinstance(block, Table)]
    name = table.rows[0][0].words
    assert name.startswith("Which of the many rivers of the north ")
    assert name.endswith(" ... (q7)")
    assert len(name) <= 80 + len(" (q7)")
    page = page_of_table(table)
    assert '<details class="cell">' in page
    assert "through the most towns?" in page
    assert "<b>flows" not in page


@pytest.mark.parametrize(("text", "name"), [("Who?", "Who? (q7)"), (None, "q7"), ("", "q7")])
def test_short_questions_and_those_without_text_need_no_more(text, name):
    (table,) = [block for block in _notes(_hard_block(text)) if isinstance(block, Table)]
    assert table.rows[0][0] == name
    assert '<details class="cell">' not in page_of_table(table)


def page_of_table(table):
    document = {"schema": "calibrant.report/1", "written": []}
    with mock.patch("calibrant.report.page.parts.document_blocks", return_value=[table]):
        return render_html([document])


def test_long_names_break_between_their_parts_and_stay_text():
    table = Table(("model", "n"), (("a_b-<c>/d", Number(0.1, 0, 0.2, digits=1, mark="tie")),))
    page = page_of_table(table)
    assert "a_<wbr>b-<wbr>&lt;c&gt;/<wbr>d</td>" in page
    assert '0.1<span class="interval"> [0.0, 0.2]</span> tie</td>' in page
