"""The page for people who cannot see it, who use no mouse, and who print it."""

import itertools
import re
from dataclasses import replace

import pytest
from pages import open_charts, open_page, page_with_table, wait_for

import calibrant as cal
from calibrant.core.document import plain
from calibrant.report import render_html
from calibrant.report.cells import Number, Table
from calibrant.report.charts import answer_of, further_of
from calibrant.report.charts.draw import chart_file, save_chart
from calibrant.report.page import _SCRIPTS, page_asset
from documents import KINDS, document_of


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_picture_of_a_page_has_a_name_a_description_and_a_table(kind):
    document = plain(document_of(kind))
    page = render_html([document])
    figures = further_of(document)
    pictures = re.findall(
        r'role="group" aria-labelledby="([\w-]+)" aria-describedby="([\w-]+)"', page
    )
    assert len(pictures) == len(figures)
    for title, caption in pictures:
        assert f'<h3 id="{title}">' in page
        assert f'<figcaption id="{caption}">' in page
    assert page.count("Numbers of this chart") == len(figures)


def test_an_exported_picture_carries_its_title_and_its_caption(tmp_path):
    found = answer_of(plain(document_of("plan")))
    chart = replace(found, name="x", title="A <b> & c", caption="How to read it.")
    save_chart(chart, tmp_path, formats=("svg",))
    for svg in (chart_file(chart), (tmp_path / "x.svg").read_text()):
        assert svg.startswith("<svg ")
        assert ' role="img"' in svg.split("<title>")[0]
        assert "<title>A &lt;b&gt; &amp; c</title><desc>How to read it.</desc>" in svg
        # A font of the reader's own would need another width than was measured.
        assert "Liberation Sans" in svg
        assert "system-ui" not in svg


def test_nothing_on_the_page_moves_by_itself():
    """So there is nothing to switch off for people who asked for less motion."""
    css = page_asset("page.css") + page_asset("picture.css")
    assert not re.search(r"transition|animation|scroll-behavior|@keyframes", css)
    assert not re.search(
        r"\.animate\(|requestAnimationFrame|behavior", "".join(map(page_asset, _SCRIPTS))
    )


@pytest.mark.browser
def test_headings_leave_no_level_out(browser, tmp_path):
    rows = [
        {"id": "a", "text": "Who?", "scores": [], "answers": [
            {"model": "m", "answer": "x", "draws": 1, "correct": True}]}
    ]  # fmt: skip
    page = render_html([plain(document_of("audit"))], questions=rows, questions_note="all")
    open_page(browser, page, tmp_path)
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3, h4')].map(h => +h.tagName[1])"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.browser
def test_more_questions_keep_the_place_of_the_keyboard(browser, tmp_path):
    rows = [{"id": f"q{i}", "text": f"Q{i}?", "scores": "", "answers": []} for i in range(30)]
    audited = cal.audit([0.9, 0.8] * 50, [1, 0] * 50).to_dict()
    open_page(browser, render_html([audited], questions=rows, questions_note="all"), tmp_path)
    browser.execute_script("byId('browse').open = true")
    wait_for(browser, "return !!document.querySelector('#questions button.more')")
    browser.execute_script("document.querySelector('#questions button.more').focus()")
    browser.execute_script("document.activeElement.click()")
    assert browser.execute_script("return document.activeElement.textContent") == "Q10? q10"


@pytest.mark.browser
def test_the_slider_follows_the_arrow_keys(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    open_page(browser, render_html([plain(document_of("decide"))]), tmp_path)
    open_charts(browser)
    wait_for(browser, "return !!document.querySelector('#threshold input[type=range]')")
    slider = browser.find_element("css selector", "#threshold input[type=range]")
    ring = "return document.querySelector('#threshold .ring').getAttribute('cx')"
    before = float(browser.execute_script(ring))
    for _ in range(10):
        slider.send_keys(Keys.ARROW_RIGHT)
    # A higher threshold answers less.
    assert float(browser.execute_script(ring)) < before


@pytest.fixture
def printed(browser):
    """Emulate paper, on the machine of somebody who likes it dark."""
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    yield lambda: browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {**media, "media": "print"})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


@pytest.mark.browser
def test_no_name_covers_a_number_on_paper(browser, printed, tmp_path):
    rows = tuple(
        (f"a rather long name of a model {i}", Number(0.123, 0.1, 0.146)) for i in range(5)
    )
    open_page(browser, page_with_table(Table(("model", "ECE"), rows)), tmp_path)
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    printed()
    place = "getComputedStyle(document.querySelector('#t0-0 td.label'))"
    assert browser.execute_script(f"return {place}.position") == "static"
    assert browser.execute_script("return getComputedStyle(document.body).color") == (
        "rgb(27, 31, 36)"
    )


@pytest.mark.browser
def test_words_of_charts_are_dark_on_paper(browser, printed, tmp_path):
    open_page(browser, render_html([plain(document_of("cascade"))]), tmp_path)
    open_charts(browser)
    printed()
    colours = browser.execute_script(
        "return [...new Set([...document.querySelectorAll('.picture .tick')]"
        ".map(t => getComputedStyle(t).fill))]"
    )
    assert colours == ["rgb(87, 96, 106)"]
