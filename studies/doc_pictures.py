"""Pictures of README and documentation, drawn by the product from real results.

`claims.svg` and `guarantee.svg` are drawn from simulated worlds whose truth is known; `page.png`,
`app-*.png`, `compare.svg` and `decide.svg` from recorded answers.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import calibrant as cal
from calibrant.core.document import plain
from calibrant.report.charts import answer_of
from calibrant.report.charts.chart import Axis, Chart, Dot, Item, Line, Names, ReferenceLine
from calibrant.report.charts.draw import chart_file
from calibrant.report.charts.svg import points
from calibrant.verbs.compare import compare
from calibrant.verbs.decide import decide
from calibrant.verbs.demo import demo
from studies import _gallery_inputs as inputs
from studies._page import DATA, FOLDER
from studies.gallery import browser, photograph, save_small

IMAGES = FOLDER.parent / "images"
SCREEN = (1400, 655, "light")
# Words, rows, and how much more is said than known.
WORLDS = (("shown", 2_000, 0.06), ("equivalent", 20_000, 0.003), ("undecided", 300, 0.03))
LIMIT = 0.2


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    write("claims", claims_chart())
    write("guarantee", guarantee_chart())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page_picture(folder)
        if DATA.exists():
            app_pictures(folder)
            inputs.mcq(DATA, folder)
            found = compare(folder / "mcq_mmlu.parquet", on_invalid="drop")
            write("compare", answer_of(plain(found.to_dict())))
            inputs.pool(DATA, folder)
            decided = decide(folder / "answers.parquet", max_error=0.15)
            write("decide", answer_of(plain(decided.to_dict())))


def write(name: str, chart: Chart | None) -> None:
    assert chart is not None
    (IMAGES / f"{name}.svg").write_text(chart_file(chart), encoding="utf-8")


def page_picture(folder: Path) -> None:
    """Photograph the demo's first screen, where there is a browser."""
    window = browser()
    if window is None:
        return
    page = Path(demo(folder / "demo", recorded=True)["report"])
    save_small(photograph(window, page, SCREEN), IMAGES / "page.png")
    window.quit()


def app_pictures(folder: Path) -> None:
    """Photograph tabs of the app on real answers, where there is a browser."""
    window = browser()
    if window is None:
        return
    table = pl.read_parquet(DATA / "scores" / "open_qa_6_models.parquet").filter(
        pl.col("prompt") == "verb", pl.col("dataset") == "nq", pl.col("verbalized") >= 0
    )
    kept = {"question": "question", "model": "model", "reference": "target"}
    kept |= {"answer": "extracted_answer", "confidence": "verbalized", "correct": "correct"}
    path = folder / "open_questions.parquet"
    table.select(**{name: pl.col(column) for name, column in kept.items()}).write_parquet(path)
    command = [sys.executable, "-m", "calibrant", "view", str(path), "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = server.stderr.readline().rpartition(" ")[2].strip()
        window.get(address)
        for tab, more in (
            ("overview", ""),
            ("decide", "&model=Qwen_Qwen2-72B-Instruct&decide.max_error=0.55"),
        ):
            place = f"{address.partition('?')[0]}?tab={tab}{more}"
            save_small(tab_photographed(window, place), IMAGES / f"app-{tab}.png")
        server.terminate()
    window.quit()


def tab_photographed(window: Any, address: str) -> bytes:
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    window.get(address)
    ready = "return !document.querySelector('[aria-busy], .working')"
    for _ in range(600):
        time.sleep(0.2)
        if window.execute_script(ready):
            break
    time.sleep(0.5)
    shot = window.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    return base64.b64decode(shot["data"])


def world(rows: int, more: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    said = rng.uniform(0.5, 0.95, rows)
    return said, rng.random(rows) < said - more


def claims_chart() -> Chart:
    """Describe one gap per outcome, with its interval, beside zero."""
    items = []
    for words, rows, more in WORLDS:
        claim = cal.audit(*world(rows, more), resamples=200)["claims"][0]
        assert claim["outcome"] == words, (words, claim["text"])
        sign = -1 if claim["id"].endswith("under_confident") else 1
        low, high = sorted(sign * claim[end] for end in ("low", "high"))
        tone = {"shown": "over_confident", "equivalent": "equivalent"}.get(words, "undecided")
        dots = [Dot(sign * claim["value"], 0, low, high, tone)]
        items.append(Item(f"{rows:,} labels", tone, dots=dots, words=said_words(words),
                          tip=claim["text"]))  # fmt: skip
    return Chart(
        "claims",
        "Three outcomes of a claim: the interval beside zero and the margin",
        "Equivalent: the interval lies within 2 points of zero.",
        Axis("says more than it knows, points", points, -0.06, 0.1),
        Names([item.row for item in items]),
        items,
    )


def said_words(outcome: str) -> str:
    return {
        "shown": "shown: over-confident",
        "equivalent": "equivalent within 2 points",
        "undecided": "undecided: more labels",
    }[outcome]


def guarantee_chart() -> Chart:
    """Describe the error among the answered: what looks good, and what can be promised."""
    said, right = world(3_000, 0.01)
    entry = plain(
        decide({"confidence": said, "correct": right.astype(int)}, max_error=LIMIT).to_dict()
    )["results"][0]
    curve = sorted(
        (point["share"], point["error"]["value"])
        for point in entry["curve"]
        if point["error"]["value"] is not None
    )
    looks = max((place for place in curve if place[1] <= LIMIT), default=curve[0])
    promised = (entry["answered"]["value"], entry["error"]["value"])
    return Chart(
        "guarantee",
        "Wrong among the answered: the threshold that looks good, and the one that is promised",
        "The promise keeps a distance to the limit that covers chance.",
        Axis("share answered", low=0),
        Axis("wrong among the answered", low=0),
        [
            Line(curve),
            ReferenceLine(LIMIT, words="limit 20 %"),
            Dot(*looks, tone="second", shape="ring", label="looks good", side="right"),
            Dot(*promised, tone="third", shape="ring", label="promised"),
        ],
    )
