"""How long a page takes to write and to open, up to 20,000 questions x 20 draws."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._report_study import write_large_study
from benchmarks.harness import Page, median_seconds, peer, seconds
from calibrant.verbs.audit import audit
from calibrant.workflows.study_page import write_study_page

SIZES = ((200, 20), (2_000, 20), (20_000, 20))
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
DRAWN = (
    "return [...document.querySelectorAll('.chart')].every("
    "c => c.dataset.drawn || c.closest('details:not([open])'))"
)


def browser() -> Any:
    """Return a headless Chromium, or None where there is none."""
    webdriver: Any = peer("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if webdriver is None or not (chromium and driver):
        print("   left out: no Chromium with its driver", flush=True)
        return None
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def load_seconds(window: Any, page: Path) -> float:
    """Return the seconds until the page is loaded and every chart that it shows is drawn."""

    def load() -> None:
        window.get("about:blank")
        window.get(page.as_uri())
        while not window.execute_script(DRAWN):
            time.sleep(0.01)

    return median_seconds(load, repeats=5)


def main() -> None:
    window = browser()
    rows = []
    try:
        for questions, draws in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                study = write_large_study(Path(folder) / "s", questions=questions, draws=draws)
                begun = time.perf_counter()
                study.write_result("audit", audit(study.path).to_dict())
                audited = time.perf_counter() - begun
                write = median_seconds(lambda s=study: write_study_page(s), repeats=3)
                load = (
                    "no browser"
                    if window is None
                    else seconds(load_seconds(window, study.report_path))
                )
                size = study.report_path.stat().st_size / 1e6
            rows.append(
                (
                    f"{questions:,} x {draws}",
                    seconds(audited),
                    seconds(write),
                    f"{size:.2f} MB",
                    load,
                )
            )
    finally:
        if window is not None:
            window.quit()
    page = Page("report", "The report: time and size", packages=["polars", "vl-convert-python"])
    page.text(
        "A study with one model and three confidences: audit with Sem-ECE, then the page. 'Opens' "
        "is the time in headless Chromium from the request until every chart that is shown is "
        "drawn. The aim is under 3 s and 15 MB for 20,000 x 20. Reliability curves, histograms "
        "and strata are aggregated; the browser of questions holds the first 2,000 questions at "
        "most, and the page says so."
    )
    page.table("Pages", ("questions x draws", "audit", "page written", "size", "opens"), rows)
    page.write()
