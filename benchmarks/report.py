"""How large a page is, how long it takes to write and to open, beside the page of before."""

from __future__ import annotations

import io
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._report_study import many_models, write_large_study
from benchmarks.harness import DATA, ROOT, Page, median_seconds, peer, seconds
from calibrant.core.document import dump_document
from calibrant.report import render_html
from calibrant.verbs.audit import audit
from calibrant.verbs.demo import demo
from calibrant.verbs.study.analysis import write_study_page

SIZES = ((200, 20), (20_000, 20))
MODELS, CONFIDENCES = 100, ("consistency", "verb", "p_true_prob")
MMLU = DATA / "scores" / "mmlu_pro_16_models.parquet"
COLUMNS = [
    "verbal_numerical_confidence",
    "logit_perplexity_confidence",
    "verbal_linguistic_confidence",
]
# The last page before the redesign: tables first, every chart drawn at once.
BEFORE = "64c7832"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
REPEATS = 5
DRAWN = "return document.readyState === 'complete'"
RENDER = (
    "import json, sys; from pathlib import Path; from calibrant.report import render_html;"
    "document = json.loads(Path(sys.argv[1]).read_text());"
    "Path(sys.argv[2]).write_text(render_html([document]))"
)


class Opened(NamedTuple):
    """Seconds until everything shown is drawn, and CPU seconds of the page's own thread."""

    wall: float
    cpu: float


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


def opened(window: Any, paths: Sequence[Path]) -> list[Opened]:
    """Return how long each page takes to open, measured in turns: medians."""
    found: list[list[Opened]] = [[] for _ in paths]
    for _ in range(REPEATS):
        for own, path in zip(found, paths, strict=True):
            own.append(_open(window, path))
    return [Opened(*map(statistics.median, zip(*own, strict=True))) for own in found]


def _open(window: Any, path: Path) -> Opened:
    window.get("about:blank")
    window.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    cpu, begun = _thread_seconds(window), time.perf_counter()
    window.get(path.as_uri())
    while not window.execute_script(DRAWN):
        time.sleep(0.01)
    wall = time.perf_counter() - begun
    spent = _thread_seconds(window)
    # A new page may run in a new thread, whose clock begins at zero.
    return Opened(wall, spent - cpu if spent >= cpu else spent)


def _thread_seconds(window: Any) -> float:
    metrics = window.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(float(m["value"]) for m in metrics if m["name"] == "ThreadTime")


def before(document: Mapping[str, Any], folder: Path) -> Path | None:
    """Write the page that the version of before makes of the document, where git has it."""
    packed = subprocess.run(["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True)
    if packed.returncode:
        print(f"   left out: no commit {BEFORE} here", flush=True)
        return None
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder / "before", filter="data")
    stored, page = folder / "document.json", folder / "before.html"
    stored.write_bytes(dump_document(document))
    command = [sys.executable, "-c", RENDER, str(stored), str(page)]
    paths = {"PYTHONPATH": str(folder / "before" / "src"), "PATH": "/usr/bin:/bin"}
    subprocess.run(command, check=True, env=paths)
    return page


def study_row(questions: int, draws: int, folder: Path) -> tuple[str, float, Path]:
    study = write_large_study(folder / "s", questions=questions, draws=draws)
    study.write_result("audit", audit(study.path, resamples=100).to_dict())
    write = median_seconds(lambda: write_study_page(study), repeats=3)
    return f"{questions:,} questions x {draws} draws, 3 confidences", write, study.report_path


def models_row(folder: Path) -> tuple[str, float, Path]:
    table = many_models(MODELS, CONFIDENCES)
    return audit_row(
        f"{MODELS} models x {len(CONFIDENCES)} confidences",
        audit(table, resamples=20).to_dict(),
        folder,
    )


def audit_row(name: str, document: Mapping[str, Any], folder: Path) -> tuple[str, float, Path]:
    path = folder / "page.html"

    def write() -> None:
        path.write_text(render_html([document]), encoding="utf-8")

    return name, median_seconds(write, repeats=3), path


def demo_row(folder: Path) -> tuple[str, float, Path]:
    found = demo(folder / "demo", recorded=True)
    return "the demo: 300 questions, 9 documents", float("nan"), Path(found["report"])


def main() -> None:
    window = browser()
    makers: list[Callable[[Path], tuple[str, float, Path]]] = [
        demo_row,
        *(lambda folder, size=size: study_row(*size, folder=folder) for size in SIZES),
        models_row,
    ]
    page = Page("report", "The report: time and size", packages=["polars", "vl-convert-python"])
    page.text(
        "'Opens' is the time in headless Chromium from the request until every chart that is shown "
        "is drawn, 'CPU' what the page's own thread computes meanwhile; medians of "
        f"{REPEATS}. Aims: the demo at most 1.5 MB, every page below 15 MB and open within 1.5 s. "
        "The browser of questions holds the first 2,000 questions at most, and the page says so."
    )
    rows = []
    for make in makers:
        with tempfile.TemporaryDirectory() as folder:
            name, write, path = make(Path(folder))
            took = None if window is None else opened(window, [path])[0]
            rows.append((name, "" if write != write else seconds(write), *_told(path, took)))
    page.table("Pages", ("page", "written", "size", "opens", "CPU"), rows)
    if MMLU.exists() and window is not None:
        beside(page, window)
    if window is not None:
        window.quit()
    page.write()


def beside(page: Page, window: Any) -> None:
    """Compare with the page of before, on the same document, in turns."""
    document = audit(
        MMLU, confidence=",".join(COLUMNS), correct="correct", on_invalid="drop", resamples=50
    ).to_dict()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old = before(document, folder)
        if old is None:
            return
        _, _, new = audit_row("", document, folder)
        took = opened(window, [old, new])
        rows = [
            (words, *_told(path, own))
            for words, path, own in zip(("before", "now"), (old, new), took, strict=True)
        ]
        ratio = [f"{new.stat().st_size / old.stat().st_size:.2f}x"]
        ratio += [f"{b / a:.2f}x" for a, b in zip(*took, strict=True)]
        page.table(
            "MMLU-Pro, 16 models x 3 confidences, beside the page of before",
            ("page", "size", "opens", "CPU"),
            [*rows, ("now / before", *ratio)],
        )


def _told(path: Path, took: Opened | None) -> tuple[str, ...]:
    size = f"{path.stat().st_size / 1e6:.2f} MB"
    if took is None:
        return size, "no browser", ""
    return size, seconds(took.wall), seconds(took.cpu)
