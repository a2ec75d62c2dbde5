"""The page in a real browser: charts drawn, nothing requested, hostile text inert."""

import numpy as np
import pytest
from colours import contrast, palette_of
from hostile import MARK, hostile_document, hostile_questions
from pages import open_page, page_with_table, wait_for

import calibrant as cal
from calibrant.report import render_html
from calibrant.report.blocks import Table
from calibrant.verbs.cascade import cascade

pytestmark = pytest.mark.browser


def requests_made(browser):
    import json

    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    urls = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    # The browser's own pages (chrome:) are not requests of the report.
    return [url for url in urls if url.startswith(("http:", "https:", "ws:", "wss:", "ftp:"))]


@pytest.fixture(scope="module")
def audited():
    return cal.audit([0.9, 0.8, 0.6, 0.7] * 50, [1, 0, 1, 1] * 50).to_dict()


def test_charts_are_drawn_without_error_or_request(browser, audited, tmp_path):
    open_page(browser, render_html([audited]), tmp_path)
    # A reliability diagram and the floors.
    assert browser.execute_script("return document.querySelectorAll('.chart svg').length") == 2
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert requests_made(browser) == []


def test_tables_sort_and_filter(browser, tmp_path):
    rows = {
        "model": [f"m{i % 12}" for i in range(1200)],
        "question_id": [f"q{i // 12}" for i in range(1200)],
        "confidence": [0.3 + 0.05 * (i % 12) for i in range(1200)],
        "correct": [float(i % 3 == 0) for i in range(1200)],
    }
    open_page(browser, render_html([cal.audit(rows, resamples=50).to_dict()]), tmp_path)
    first = "return document.querySelector('tbody tr td').textContent"
    browser.execute_script("document.querySelectorAll('th button.sort')[3].click()")
    ascending = browser.execute_script(first)
    browser.execute_script("document.querySelectorAll('th button.sort')[3].click()")
    assert browser.execute_script(first) != ascending
    browser.execute_script(
        "const f = document.querySelector('input.filter'); f.value = 'm11';"
        "f.dispatchEvent(new Event('input'))"
    )
    shown = "return [...document.querySelector('tbody').rows].filter(r => !r.hidden).length"
    assert browser.execute_script(shown) == 1


def test_a_long_table_is_folded_until_asked_for_and_numbers_sort_before_words(browser, tmp_path):
    rows = tuple(
        (f"m{i}", "undefined" if i == 0 else f"{i / 100:.3f} [0.0, 1.0]") for i in range(40)
    )
    page = page_with_table(Table(("model", "ECE"), rows, title="Many"))
    open_page(browser, page, tmp_path)
    shown = "return [...document.querySelectorAll('#t0-0 tbody tr')].filter(r => r.offsetParent)"
    assert len(browser.execute_script(shown)) == 12
    browser.execute_script("document.querySelector('button.more').click()")
    assert len(browser.execute_script(shown)) == 40
    for _ in range(2):
        browser.execute_script("document.querySelectorAll('#t0-0 th .sort')[1].click()")
        last = "return [...document.querySelectorAll('#t0-0 tbody tr')].at(-1).cells[1].textContent"
        assert browser.execute_script(last) == "undefined"


def test_a_number_explains_itself_on_hover_and_on_tap(browser, audited, tmp_path):
    open_page(browser, render_html([audited]), tmp_path)
    find = "const cell = document.querySelector('#t0-1 tbody td:nth-child(6)');"
    browser.execute_script(
        find + "cell.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    )
    title = browser.execute_script(find + "return cell.title")
    assert title.startswith("ECE: Expected calibration error")
    assert "compatible with the data" in title
    browser.execute_script(find + "cell.click()")
    box = browser.execute_script(
        "const e = document.getElementById('explained');"
        "return e.matches(':popover-open') ? e.textContent : null"
    )
    assert "sum over bins" in box


def test_the_numbers_of_a_chart_can_be_read_as_a_table(browser, audited, tmp_path):
    open_page(browser, render_html([audited]), tmp_path)
    browser.execute_script("document.querySelector('details.numbers').open = true")
    wait_for(browser, "return document.querySelectorAll('details.numbers table').length > 0")
    bins = audited["results"][0]["reliability"]["bins"]
    text = browser.execute_script("return document.querySelector('details.numbers').textContent")
    assert f"{bins[0]['rate']:.4g}" in text


@pytest.fixture(scope="module")
def cascaded():
    rng = np.random.default_rng(0)
    hard = rng.random(400)
    table = {
        "question_id": [f"q{i}" for i in range(400)] * 2,
        "model": ["small"] * 400 + ["large"] * 400,
        "confidence": np.concatenate([1 - 0.8 * hard, 1 - 0.4 * hard]),
        "correct": np.concatenate([rng.random(400) > hard, rng.random(400) > hard / 2]) * 1.0,
        "hard": np.concatenate([hard, hard]),
    }
    options = {"models": ["small", "large"], "price": {"small": 1, "large": 8}, "splits": 2}
    return cascade(table, features=["hard"], **options).to_dict()


def test_the_cascade_slider_moves_the_point_and_its_numbers(browser, cascaded, tmp_path):
    open_page(browser, render_html([cascaded]), tmp_path)
    curve = cascaded["results"][0]["strategies"][0]["curve"]
    read = "return [...document.querySelector('.readout tbody tr').cells].map(c => c.textContent)"
    dots = (
        "return [...document.querySelectorAll('.chart svg .mark-symbol.role-mark path')]"
        ".map(p => p.getAttribute('transform'))"
    )
    seen = []
    for position in (0, 1):
        browser.execute_script(
            "const s = document.querySelector('.controls input[type=range]');"
            f"s.value = {position}; s.dispatchEvent(new Event('input'))"
        )
        place = position * (len(curve) - 1)
        want = float(f"{curve[place]['accuracy']['value']:.4g}")
        wait_for(
            browser,
            f"return Math.abs(parseFloat(document.querySelector('.readout tbody tr').cells[3]"
            f".textContent) - {want}) < 1e-9",
        )
        seen.append((browser.execute_script(read), browser.execute_script(dots)))
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]
    entry = cascaded["results"][0]
    for _, shown in seen:
        assert len(shown) == len(entry["strategies"]) + len(entry["models"])


def test_the_slider_has_a_name_outside_of_the_picture(browser, cascaded, tmp_path):
    """A control inside role=img does not exist for a screen reader."""
    open_page(browser, render_html([cascaded]), tmp_path)
    inside = "return document.querySelectorAll('[role=img] input').length"
    assert browser.execute_script(inside) == 0
    named = "return document.querySelector('.controls input').labels.length"
    assert browser.execute_script(named) == 1


def test_hostile_text_is_shown_and_never_run(browser, tmp_path):
    page = render_html([hostile_document()], questions=hostile_questions(), questions_note="all")
    open_page(browser, page, tmp_path)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    browser.execute_script(
        "for (const c of document.querySelectorAll('td')) {"
        "c.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})); c.click(); }"
    )
    assert browser.execute_script("return window.hacked") is None
    assert MARK in browser.execute_script("return document.getElementById('questions').textContent")
    assert browser.execute_script("return document.querySelectorAll('iframe, img').length") == 0
    assert requests_made(browser) == []


def test_search_finds_questions(browser, audited, tmp_path):
    page = render_html([audited], questions=hostile_questions(), questions_note="all")
    open_page(browser, page, tmp_path)
    browser.execute_script(
        "const f = document.getElementById('questions-filter'); f.value = 'right to left';"
        "f.dispatchEvent(new Event('input'))"
    )
    count = browser.execute_script("return document.getElementById('questions-count').textContent")
    assert count.startswith("1 of")


def test_questions_can_be_chosen_by_grade(browser, audited, tmp_path):
    grades = {"a": [True, True], "b": [False, True], "c": [False, False]}
    rows = [
        {
            "id": name,
            "text": name,
            "answers": [
                {"model": f"m{i}", "answer": "x", "draws": 2, "correct": right}
                for i, right in enumerate(found)
            ],
            "scores": "m0 verb: 0.5",
        }
        for name, found in grades.items()
    ]
    open_page(browser, render_html([audited], questions=rows, questions_note="all"), tmp_path)
    for kind, expected in (("right", "1 of 3"), ("wrong", "1 of 3"), ("split", "1 of 3")):
        browser.execute_script(
            "const s = document.getElementById('questions-kind');"
            f"s.value = '{kind}'; s.dispatchEvent(new Event('input'))"
        )
        count = "return document.getElementById('questions-count').textContent"
        assert browser.execute_script(count).startswith(expected), kind


@pytest.mark.parametrize(("name", "width"), [("phone", 390), ("desktop", 1280)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshots_for_a_person(browser, audited, cascaded, tmp_path, name, width, scheme):
    size = {"width": width, "height": 1600, "deviceScaleFactor": 1, "mobile": name == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        open_page(browser, render_html([audited, cascaded]), tmp_path)
        body = browser.execute_script("return document.documentElement.scrollWidth")
        assert body <= width, "the page must not scroll sideways"
        wide = browser.execute_script(
            "return [...document.querySelectorAll('.chart')].filter("
            "c => c.scrollWidth > c.clientWidth + 2).length"
        )
        assert wide == 0, "a chart is wider than its place"
        assert browser.save_screenshot(str(tmp_path / f"{name}-{scheme}.png"))
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_words_in_charts_keep_their_contrast_in_the_dark(browser, audited, tmp_path):
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        open_page(browser, render_html([audited]), tmp_path)
        colours = browser.execute_script(
            "return [...new Set([...document.querySelectorAll('.chart text')]"
            ".map(t => t.getAttribute('fill')))]"
        )
        paper = palette_of("dark")["--paper"]
        assert colours
        assert min(contrast(colour, paper) for colour in colours) >= 4.5
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_every_control_can_be_reached_with_the_keyboard_and_has_a_name(browser, cascaded, tmp_path):
    open_page(browser, render_html([cascaded]), tmp_path)
    nameless = browser.execute_script(
        "return [...document.querySelectorAll('button, input, select, summary, a')].filter("
        "e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length"
    )
    assert nameless == 0
    assert browser.execute_script("return document.documentElement.lang") == "en"


def test_the_focus_goes_through_the_page_in_the_order_of_reading(browser, cascaded, tmp_path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    open_page(browser, render_html([cascaded]), tmp_path)
    where = "const e = document.activeElement; return [e.className || e.tagName, e.offsetTop]"
    stops = []
    for _ in range(200):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if browser.execute_script("return document.activeElement === document.body"):
            break
        place = browser.execute_script(
            "return [...document.querySelectorAll('*')].indexOf(document.activeElement)"
        )
        stops.append((place, browser.execute_script(where)[0]))
    assert stops[0][1] == "skip"
    assert [place for place, _ in stops] == sorted(place for place, _ in stops)
    assert any("sort" in kind for _, kind in stops)
    assert any("INPUT" in kind.upper() or kind == "" for _, kind in stops)


def test_print_shows_every_row_and_no_control(browser, audited, tmp_path):
    rows = tuple((f"m{i}", f"{i}") for i in range(40))
    open_page(browser, page_with_table(Table(("model", "n"), rows, title="Many")), tmp_path)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = (
            "return [...document.querySelectorAll('#t0-0 tbody tr')].filter(r => r.offsetParent)"
        )
        assert len(browser.execute_script(shown)) == 40
        controls = "[...document.querySelectorAll('nav, .more, .filter')]"
        assert browser.execute_script(f"return {controls}.every(e => !e.offsetParent)")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
