"""The page in a real browser: seen in five seconds, nothing requested, hostile text inert."""

import json
from contextlib import suppress

import numpy as np
import pytest
from axe import serious_violations
from hostile import MARK, TEXTS, hostile_document, hostile_questions
from pages import open_charts, open_page, page_with_table, wait_for
from selenium.common.exceptions import WebDriverException

import calibrant as cal
from calibrant.core.document import plain
from calibrant.report import render_html
from calibrant.report.cells import Number, Table, number_cell
from documents import KINDS, WITHOUT_PICTURE, document_of

pytestmark = pytest.mark.browser

PICTURED = sorted(set(KINDS) - WITHOUT_PICTURE)
SCREENS = {"desktop": (1400, 900, 700), "phone": (390, 844, 800)}
TOP = (
    "const s = [...document.querySelectorAll('.hero-picture svg')]"
    ".find(e => e.getBoundingClientRect().width > 0);"
    "return s.getBoundingClientRect().top"
)
WORDS_BEFORE = """
const picture = document.querySelector('.hero-picture');
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let words = 0;
while (walker.nextNode()) {
  const node = walker.currentNode, holder = node.parentElement;
  if (!(picture.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_PRECEDING)) break;
  if (holder.checkVisibility() && !['SCRIPT', 'STYLE'].includes(holder.tagName))
    words += node.textContent.trim().split(/\\s+/).filter(Boolean).length;
}
return words;
"""


def requests_made(browser):
    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    urls = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    # The browser's own pages (chrome:) are not requests of the report.
    return [url for url in urls if url.startswith(("http:", "https:", "ws:", "wss:", "ftp:"))]


def errors_of(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture
def screen(browser):
    """Set the size and the scheme of the screen, and give both back afterwards."""

    def put(width, height, scheme="light"):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    yield put
    with suppress(WebDriverException):  # A crashed tab is replaced.
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.fixture(scope="module")
def audited():
    return cal.audit([0.9, 0.8, 0.6, 0.7] * 50, [1, 0, 1, 1] * 50, resamples=50).to_dict()


@pytest.fixture(scope="module")
def many():
    """Forty models on the same questions."""
    rng = np.random.default_rng(0)
    rows = {
        "model": np.repeat([f"m{i}" for i in range(40)], 100),
        "question_id": np.tile([f"q{i}" for i in range(100)], 40),
        "confidence": np.repeat(np.linspace(0.3, 0.95, 40), 100) + rng.normal(0, 0.01, 4000),
        "correct": (rng.random(4000) < 0.5).astype(float),
    }
    return cal.audit(rows, resamples=20).to_dict()


@pytest.mark.parametrize("kind", PICTURED)
@pytest.mark.parametrize("name", SCREENS)
def test_the_answer_is_on_the_first_screen(browser, screen, tmp_path, kind, name):
    width, height, most = SCREENS[name]
    screen(width, height)
    open_page(browser, render_html([plain(document_of(kind))]), tmp_path)
    assert 0 <= browser.execute_script(TOP) <= most
    assert browser.execute_script(WORDS_BEFORE) <= 60
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert errors_of(browser) == []
    assert requests_made(browser) == []


@pytest.mark.parametrize("kind", PICTURED)
def test_every_chart_has_a_size_that_a_reader_can_see(browser, screen, tmp_path, kind):
    """A legend without entries once made a chart of 1.8e308 px, and the browser crashed."""
    screen(1400, 900)
    open_page(browser, render_html([plain(document_of(kind))]), tmp_path)
    open_charts(browser)
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('main svg')].map(s => s.getBoundingClientRect())"
        ".filter(r => r.width || r.height).map(r => [r.width, r.height])"
    )
    assert sizes
    assert all(width <= 1400 and height <= 4000 for width, height in sizes)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"analysis", "report", "serve"}))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, screen, tmp_path, kind, scheme):
    screen(1400, 900, scheme)
    browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    try:
        open_page(browser, render_html([plain(document_of(kind))]), tmp_path)
        open_charts(browser)
        assert serious_violations(browser) == []
        assert errors_of(browser) == []
    finally:
        with suppress(WebDriverException):
            browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})


def test_all_diagrams_are_there_and_drawn_as_they_come_near(browser, many, tmp_path):
    open_page(browser, render_html([many]), tmp_path)
    count = "return document.querySelectorAll('.multiple').length"
    assert browser.execute_script(count) == 12
    browser.execute_script("document.querySelector('#multiples-more button').click()")
    assert browser.execute_script(count) == 40
    browser.execute_script("document.querySelector('.multiple:last-child').scrollIntoView()")
    wait_for(browser, "return !!document.querySelector('.multiple:last-child svg')")


def test_diagrams_and_numbers_are_sorted_and_filtered_together(browser, many, tmp_path):
    open_page(browser, render_html([many]), tmp_path)
    browser.execute_script("byId('numbers').open = true")
    wait_for(browser, "return document.querySelectorAll('#numbers-table tbody tr').length === 40")
    browser.execute_script(
        "const s = document.querySelector('#scale-tools select'); s.value = '-gap';"
        "s.dispatchEvent(new Event('input'))"
    )
    first = browser.execute_script("return document.querySelector('.multiple .who').textContent")
    row = browser.execute_script(
        "return document.querySelector('#numbers-table tbody td').textContent"
    )
    largest = max(many["results"], key=lambda e: abs(e["metrics"]["confidence_gap"]["value"]))
    assert first == row == largest["model"]
    browser.execute_script(
        "const f = document.querySelector('#scale-tools input'); f.value = 'm11';"
        "f.dispatchEvent(new Event('input'))"
    )
    shown = "return document.querySelectorAll('#numbers-table tbody tr, .multiple').length"
    assert browser.execute_script(shown) == 2


def test_groups_of_columns_are_folded_and_columns_sort(browser, many, tmp_path):
    open_page(browser, render_html([many]), tmp_path)
    browser.execute_script("byId('numbers').open = true")
    heads = (
        "return [...document.querySelectorAll('#numbers-table th .sort')].map(h => h.textContent)"
    )
    wait_for(browser, heads + ".length > 0")
    assert "Brier" not in browser.execute_script(heads)
    browser.execute_script("document.querySelector('#numbers-tools button').click()")
    assert "Brier" in browser.execute_script(heads)
    names = (
        "return [...document.querySelectorAll('#numbers-table tbody tr')]"
        ".map(r => r.cells[0].textContent)"
    )
    sort = (
        "[...document.querySelectorAll('#numbers-table th .sort')]"
        ".find(h => h.textContent === 'confidence').click()"
    )
    browser.execute_script(sort)
    rising = browser.execute_script(names)
    browser.execute_script(sort)
    assert browser.execute_script(names) == rising[::-1]
    assert (
        browser.execute_script(
            "return getComputedStyle(document.querySelector('#numbers-table thead th')).position"
        )
        == "sticky"
    )


def test_a_click_opens_a_panel_that_a_link_opens_again(browser, many, tmp_path):
    open_page(browser, render_html([many]), tmp_path)
    browser.execute_script("document.querySelector('.multiple[data-key]').click()")
    title = "return byId('panel').open && byId('panel-title').textContent"
    name = browser.execute_script(title)
    link = browser.execute_script("return location.hash")
    assert name
    assert f"model={name}" in link
    for part in ("svg", ".sliders", "table", ".claims li"):
        assert browser.execute_script(f"return !!document.querySelector('#panel {part}')"), part
    browser.execute_script("byId('panel').close()")
    # The browser tells of the closing after the call has returned.
    wait_for(browser, "return location.hash === ''")
    browser.get("about:blank")
    browser.get((tmp_path / "page.html").as_uri() + link)
    wait_for(browser, "return byId('panel').open")
    assert browser.execute_script(title) == name


def test_dots_of_the_picture_open_panels_by_mouse_and_keyboard(browser, tmp_path):
    open_page(browser, render_html([plain(document_of("audit"))]), tmp_path)
    row = (
        "[...document.querySelectorAll('.hero-picture [data-key]')].find(e => e.checkVisibility())"
    )
    browser.execute_script(f"{row}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert browser.execute_script("return byId('panel').open")
    browser.execute_script("byId('panel').close()")
    browser.execute_script(f"{row}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter'}}))")
    assert browser.execute_script("return byId('panel').open")


def test_the_threshold_slider_counts_what_the_document_holds(browser, audited, tmp_path):
    open_page(browser, render_html([audited]), tmp_path)
    browser.execute_script("byId('threshold').open = true")
    wait_for(browser, "return !!document.querySelector('#threshold .tile b')")
    read = "return [...document.querySelectorAll('#threshold .tile b')].map(b => b.textContent)"
    move = (
        "const s = document.querySelector('#threshold input[type=range]');"
        "s.value = arguments[0]; s.dispatchEvent(new Event('input'))"
    )
    browser.execute_script(move, 0)
    # All four values are answered: a quarter of the answers is wrong, at a cost of ten each.
    assert browser.execute_script(read) == ["100 %", "25 %", "2.5"]
    browser.execute_script(move, 2)
    # 0.9 (right) and 0.8 (wrong) are answered.
    assert browser.execute_script(read) == ["50 %", "50 %", "3"]
    browser.execute_script(
        "const c = document.querySelector('#threshold .costs input'); c.value = 100;"
        "c.dispatchEvent(new Event('input'))"
    )
    assert browser.execute_script(read)[2] == "25.5"


def test_a_saved_policy_has_the_same_slider(browser, tmp_path):
    open_page(browser, render_html([plain(document_of("decide"))]), tmp_path)
    browser.execute_script("byId('threshold').open = true")
    wait_for(browser, "return !!document.querySelector('#threshold output')")
    threshold = document_of("decide")["results"][0]["threshold"]
    said = browser.execute_script("return document.querySelector('#threshold output').textContent")
    assert float(said) == pytest.approx(threshold, abs=0.02)


def test_a_curve_under_the_pointer_stands_out_and_its_numbers_can_be_read(browser, tmp_path):
    open_page(browser, render_html([plain(document_of("multi_answer"))]), tmp_path)
    open_charts(browser)
    chart = "[...document.querySelectorAll('.chart svg.lines')].find(s => s.checkVisibility())"
    point = "new PointerEvent('pointerover', {bubbles: true})"
    browser.execute_script(f"{chart}.querySelector('[data-key] .series').dispatchEvent({point})")
    key = browser.execute_script(f"return {chart}.querySelector('.lit').dataset.key")
    lit = f"return [...{chart}.querySelectorAll('.lit')].map(g => g.dataset.key)"
    # The curve and its name.
    assert browser.execute_script(lit) == [key, key]
    assert browser.execute_script(f"return {chart}.classList.contains('chosen')")
    wait_for(browser, "return !!document.querySelector('.numbers li')")
    numbers = "return [...document.querySelectorAll('.numbers li')].map(li => li.textContent)"
    assert any(key in text and "%" in text for text in browser.execute_script(numbers))
    assert errors_of(browser) == []
    assert requests_made(browser) == []


def test_a_long_table_is_folded_and_numbers_sort_before_words(browser, tmp_path):
    rows = tuple(
        (f"m{i}", Number(None) if i == 0 else Number(i / 100, 0.0, 1.0)) for i in range(40)
    )
    open_page(browser, page_with_table(Table(("model", "ECE"), rows, title="Many")), tmp_path)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    shown = "return [...document.querySelectorAll('#t0-0 tbody tr')].filter(r => r.offsetParent)"
    assert len(browser.execute_script(shown)) == 12
    browser.execute_script("document.querySelector('button.more[data-table]').click()")
    assert len(browser.execute_script(shown)) == 40
    for _ in range(2):
        browser.execute_script("document.querySelectorAll('#t0-0 th .sort')[1].click()")
        last = "return [...document.querySelectorAll('#t0-0 tbody tr')].at(-1).cells[1].textContent"
        assert browser.execute_script(last) == "undefined"


def test_heads_of_columns_keep_clear_of_their_neighbours(browser, tmp_path):
    """The sign that explains a long head used to lie on the next head."""
    columns = ("group", "gap at equal confidence", "flag", "echo of")
    gap = Number(-0.132, -0.161, -0.103, unit="points", digits=1)
    row = ("g" * 60, gap, "under", "category = math and length >= 80 " * 2)
    open_page(browser, page_with_table(Table(columns, (row,) * 3)), tmp_path)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    for width in (1280, 900, 700, 420):
        browser.set_window_size(width, 900)
        over = browser.execute_script(
            "return [...document.querySelectorAll('th[data-term]')].filter(th => "
            "[...th.children].some(part => part.getBoundingClientRect().width && "
            "part.getBoundingClientRect().right > th.getBoundingClientRect().right + 1))"
            ".map(th => th.textContent)"
        )
        assert over == [], width


def test_hostile_text_is_shown_and_never_run(browser, tmp_path):
    page = render_html([hostile_document()], questions=hostile_questions(), questions_note="all")
    open_page(browser, page, tmp_path)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    wait_for(browser, "return document.getElementById('questions').childElementCount > 0")
    browser.execute_script(
        "for (const c of document.querySelectorAll('td')) {"
        "c.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})); c.click(); }"
        "for (const e of entries) openPanel(e.key);"
    )
    assert browser.execute_script("return window.hacked") is None
    assert MARK in browser.execute_script("return document.getElementById('questions').textContent")
    assert browser.execute_script("return document.querySelectorAll('iframe, img').length") == 0
    assert requests_made(browser) == []


@pytest.mark.parametrize("text", TEXTS[:6])
def test_a_hostile_link_opens_nothing_and_runs_nothing(browser, audited, tmp_path, text):
    from urllib.parse import quote

    open_page(browser, render_html([audited]), tmp_path)
    for link in (f"#{quote(text)}", f"#model={quote(text)}&method={quote(text)}"):
        browser.get("about:blank")
        browser.get((tmp_path / "page.html").as_uri() + link)
        assert browser.execute_script("return window.hacked") is None
        assert browser.execute_script("return document.querySelectorAll('iframe, img').length") == 0
    assert errors_of(browser) == []


QUESTIONS = [
    {
        "id": name,
        "text": f"{name}?",
        "answers": [
            {"model": "m", "answer": "x", "draws": 5, "correct": right},
            {"model": "m", "answer": "y", "draws": 2, "correct": not right},
        ],
        "scores": [{"model": "m", "method": "verb", "confidence": said, "correct": float(right)}],
        "facets": {"domain": domain},
    }
    for name, right, said, domain in (
        ("a", True, 0.9, "law"), ("b", False, 0.4, "law"), ("c", False, 0.95, "sport"),
    )
]  # fmt: skip


def browse(browser, audited, tmp_path):
    page = render_html([audited], questions=QUESTIONS, questions_note="all")
    open_page(browser, page, tmp_path)
    browser.execute_script("byId('browse').open = true")
    wait_for(browser, "return document.querySelectorAll('#questions article').length > 0")
    return "return [...document.querySelectorAll('#questions h3 bdi')].map(b => b.textContent)"


def test_the_most_confidently_wrong_come_first(browser, audited, tmp_path):
    names = browse(browser, audited, tmp_path)
    assert browser.execute_script(names) == ["c?", "b?", "a?"]
    first = browser.execute_script(
        "return document.querySelector('#questions article').textContent"
    )
    assert "says 95 % and is wrong" in first
    assert "7 draws in 2 meanings" in first


def test_questions_are_searched_and_filtered(browser, audited, tmp_path):
    names = browse(browser, audited, tmp_path)
    put = (
        "const f = document.getElementById(arguments[0]); f.value = arguments[1];"
        "f.dispatchEvent(new Event('input'))"
    )
    browser.execute_script(put, "questions-kind", "wrong")
    assert browser.execute_script(names) == ["c?", "b?"]
    browser.execute_script(put, "questions-filter", "b?")
    assert browser.execute_script(names) == ["b?"]
    browser.execute_script(put, "questions-filter", "")
    browser.execute_script(put, "questions-kind", "all")
    browser.execute_script(
        "const s = [...document.querySelectorAll('#questions-tools select')].at(-1);"
        "s.value = 'law'; s.dispatchEvent(new Event('input'))"
    )
    assert browser.execute_script(names) == ["b?", "a?"]


def test_every_control_has_a_name(browser, tmp_path):
    open_page(browser, render_html([plain(document_of("audit"))]), tmp_path)
    open_charts(browser)
    nameless = browser.execute_script(
        "return [...document.querySelectorAll('button, input, select, summary, a')].filter("
        "e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length"
    )
    assert nameless == 0
    assert browser.execute_script("return document.documentElement.lang") == "en"


def test_every_chart_and_diagram_is_drawn_on_paper(browser, many, tmp_path):
    open_page(browser, render_html([many, plain(document_of("compare"))]), tmp_path)
    browser.execute_script("document.querySelector('#multiples-more button').click()")
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script("return document.querySelectorAll('.multiple svg').length") == 40
    charts = browser.execute_script(
        "return [...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('svg').length)"
    )
    assert charts
    assert set(charts) == {2}


def test_print_unfolds_everything_and_shows_no_control(browser, tmp_path):
    rows = tuple((f"m{i}", number_cell(i)) for i in range(40))
    open_page(browser, page_with_table(Table(("model", "n"), rows, title="Many")), tmp_path)
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = (
            "return [...document.querySelectorAll('#t0-0 tbody tr')].filter(r => r.offsetParent)"
        )
        assert len(browser.execute_script(shown)) == 40
        controls = "[...document.querySelectorAll('.outline, .more, .tools, .copy')]"
        assert browser.execute_script(f"return {controls}.every(e => !e.offsetParent)")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
