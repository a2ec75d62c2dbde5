"""Pages in a browser: shared by the tests that look at them."""

from unittest import mock

from calibrant.report import render_html


def open_page(browser, page, folder):
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())


def open_charts(browser):
    """Unfold everything, so that every chart is seen."""
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    wait_for(browser, "return !document.querySelector('script.drawing')")


def wait_for(browser, script, seconds=20):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, seconds, poll_frequency=0.05).until(lambda b: b.execute_script(script))


def page_with_table(table):
    """A page with one table, through the same path as every document."""
    document = {"schema": "calibrant.report/1", "written": []}
    with mock.patch("calibrant.report.page.parts.document_blocks", return_value=[table]):
        return render_html([document])
