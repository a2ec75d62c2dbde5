"""The page as text: self-contained, with a strict policy, and model output as text only."""

import re
from html.parser import HTMLParser

import pytest
from hostile import hostile_document, hostile_questions

import calibrant as cal
from calibrant.report import render_html, render_markdown
from calibrant.report.figures import figures_of, save_figure


@pytest.fixture(scope="module")
def document():
    return cal.audit([0.9, 0.8, 0.6, 0.7] * 50, [1, 0, 1, 1] * 50).to_dict()


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def tags_of(page):
    parser = Tags()
    parser.feed(page)
    return parser.found


def test_the_page_asks_for_nothing(document):
    page = render_html([document])
    for tag, attributes in tags_of(page):
        for name in ("src", "href", "action", "data"):
            value = attributes.get(name)
            assert value is None or value.startswith("#"), (tag, value)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)


def test_the_policy_allows_only_the_two_scripts_of_the_page(document):
    page = render_html([document])
    policy = next(a["content"] for t, a in tags_of(page) if t == "meta" and "content" in a)
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert len(re.findall("sha256-", policy)) == 2
    scripts = [a for t, a in tags_of(page) if t == "script" and a.get("type") is None]
    assert len(scripts) == 2


def test_hostile_text_never_becomes_a_tag(document):
    plain = {tag for tag, _ in tags_of(render_html([document], questions=[{"id": ""}]))}
    page = render_html([hostile_document()], questions=hostile_questions(), questions_note="x")
    assert {tag for tag, _ in tags_of(page)} <= plain
    assert page.count("<script") == page.count("</script>")


def test_the_page_opens_with_a_verdict_of_three_sentences(document):
    page = render_html([document])
    verdict = page.split('<div class="verdict">')[1].split("</div>")[0]
    assert verdict.count("<p>") == 3


def test_markdown_neutralises_hostile_names():
    text = render_markdown(hostile_document())
    assert "<script" not in text
    assert "<img" not in text


def test_figures_are_written_in_every_format(document, tmp_path):
    figure, _floors = figures_of(document)
    paths = save_figure(figure, tmp_path)
    heads = {path.suffix: path.read_bytes()[:5] for path in paths}
    assert heads[".svg"].startswith(b"<svg")
    assert heads[".png"].startswith(b"\x89PNG")
    assert heads[".pdf"].startswith(b"%PDF")


def test_report_verb_reads_results_and_tables(document, tmp_path):
    from calibrant.api.report import report

    (tmp_path / "t.csv").write_text("confidence,correct\n" + "0.9,1\n0.2,0\n0.6,1\n0.4,1\n" * 20)
    cal.audit(tmp_path / "t.csv").to_json(tmp_path / "a.json")
    written = report(
        [tmp_path / "a.json", tmp_path / "t.csv"],
        html=tmp_path / "r.html",
        markdown=tmp_path / "r.md",
    )["written"]
    assert len(written) == 2
    assert (tmp_path / "r.html").read_text().count("<section") >= 3
