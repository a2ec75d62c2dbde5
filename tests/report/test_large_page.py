"""20,000 questions x 20 draws: the page stays small and says what it leaves out."""

import pytest
from benchmarks._report_study import write_large_study
from pages import open_page, wait_for

from calibrant.report import render_html
from calibrant.verbs.audit import audit
from calibrant.verbs.write_report import write_report

MOST_BYTES = 15_000_000


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large") / "study"
    study = write_large_study(folder, questions=20_000, draws=20)
    study.write_result("audit", audit(study.path, resamples=50).to_dict())
    write_report(study.path, html=folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8")


def test_the_page_of_a_large_study_stays_small(page):
    assert len(page.encode()) < MOST_BYTES


def test_the_page_says_that_it_shows_a_part(page):
    assert "2,000 of 20,000 questions, most confidently wrong." in page


def test_long_texts_and_many_confidences_do_not_make_a_page_large():
    scores = "; ".join(f"model {i} / some_method_{i}: 0.123" for i in range(150))
    answers = [{"model": "m", "answer": "x" * 300, "draws": 1, "correct": None}] * 12
    rows = [
        {"id": f"q{i}", "text": "y" * 300, "answers": answers, "scores": scores}
        for i in range(2_000)
    ]
    text = render_html([{"schema": "calibrant.report/1", "written": []}], questions=rows)
    assert len(text.encode()) < MOST_BYTES
    assert "Only the first" in text
    assert "of these 2,000 are on this page" in text


@pytest.mark.browser
def test_the_large_page_opens_and_finds_a_question(page, browser, tmp_path):
    open_page(browser, page, tmp_path)
    browser.execute_script("byId('browse').open = true")
    wait_for(browser, "return !!document.getElementById('questions-filter')")
    browser.execute_script(
        "const last = JSON.parse(byId('questions-data').textContent).rows.at(-1).id;"
        "const f = document.getElementById('questions-filter'); f.value = `question ${last}:`;"
        "f.dispatchEvent(new Event('input'))"
    )
    count = browser.execute_script("return document.getElementById('questions-count').textContent")
    assert count.startswith("1 of 2000")
