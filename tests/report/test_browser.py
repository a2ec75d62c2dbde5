"""The page in a real browser: charts drawn, nothing requested, hostile text inert."""

import shutil

import pytest
from hostile import MARK, hostile_document, hostile_questions

import calibrant as cal
from calibrant.report import render_html

pytestmark = pytest.mark.browser
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("NO BROWSER: install Debian's chromium and chromium-driver to run these tests")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


def open_page(browser, page, folder):
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    wait_for(browser, "return [...document.querySelectorAll('.chart')].every(c => c.dataset.drawn)")


def wait_for(browser, script, seconds=20):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, seconds).until(lambda b: b.execute_script(script))


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
    assert browser.execute_script("return document.querySelectorAll('.chart svg').length") == 1
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


def test_hostile_text_is_shown_and_never_run(browser, tmp_path):
    page = render_html([hostile_document()], questions=hostile_questions(), questions_note="all")
    open_page(browser, page, tmp_path)
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


@pytest.mark.parametrize(("name", "width"), [("phone", 390), ("desktop", 1280)])
def test_screenshots_for_a_person(browser, audited, tmp_path, name, width):
    browser.set_window_size(width, 1600)
    open_page(browser, render_html([audited]), tmp_path)
    body = browser.execute_script("return document.documentElement.scrollWidth")
    assert body <= width, "the page must not scroll sideways"
    assert browser.save_screenshot(str(tmp_path / f"{name}.png"))


def test_every_control_can_be_reached_with_the_keyboard_and_has_a_name(browser, audited, tmp_path):
    open_page(browser, render_html([audited]), tmp_path)
    nameless = browser.execute_script(
        "return [...document.querySelectorAll('button, input, a')].filter("
        "e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length"
    )
    assert nameless == 0
    assert browser.execute_script("return document.documentElement.lang") == "en"
