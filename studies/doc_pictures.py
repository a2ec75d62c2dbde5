"""Pictures of README and documentation, drawn by the product from real results.

`claims.svg` and `guarantee.svg` are drawn from simulated worlds whose truth is known; `page.png`,
`compare.svg` and `decide.svg` from recorded answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.core.document import plain
from calibrant.report.pictures import Picture, picture_of
from calibrant.report.pictures.lines import Chart, Mark, Series, line_chart
from calibrant.report.pictures.scales import Axis, across, points
from calibrant.report.pictures.svg import Drawing, standalone
from calibrant.verbs.compare import compare
from calibrant.verbs.decide import decide
from calibrant.workflows.demo import demo
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
    write("claims", claims_drawing())
    write("guarantee", guarantee_drawing())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page_picture(folder)
        if DATA.exists():
            inputs.mcq(DATA, folder)
            found = compare(folder / "mcq_mmlu.parquet", on_invalid="drop")
            write("compare", wide(found.to_dict()))
            inputs.pool(DATA, folder)
            write("decide", wide(decide(folder / "answers.parquet", max_error=0.15).to_dict()))


def write(name: str, svg: str) -> None:
    (IMAGES / f"{name}.svg").write_text(standalone(svg, plain=True), encoding="utf-8")


def wide(document: Mapping[str, Any]) -> str:
    found = picture_of(plain(document))
    assert isinstance(found, Picture)
    return found.wide


def page_picture(folder: Path) -> None:
    """Photograph the demo's first screen, where there is a browser."""
    window = browser()
    if window is None:
        return
    page = Path(demo(folder / "demo", recorded=True)["report"])
    save_small(photograph(window, page, SCREEN), IMAGES / "page.png")
    window.quit()


def world(rows: int, more: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    said = rng.uniform(0.5, 0.95, rows)
    return said, rng.random(rows) < said - more


def claims_drawing() -> str:
    """Draw one gap per outcome, with its interval, beside the margin of 2 points."""
    label = "Three outcomes of a claim: the interval beside zero and the margin"
    drawing = Drawing(760, 210, label)
    axis = Axis(-0.06, 0.1, 150, 520)
    drawing.rect(axis(-0.02), 24, axis(0.02) - axis(-0.02), 146, "band")
    across(drawing, axis, [(v, points(v) if v else "0") for v in (-0.05, 0, 0.05, 0.1)], 24, 170)
    drawing.line(axis(0), 24, axis(0), 170, "zero")
    drawing.text(axis(0), 14, "margin of 2 points", "small", anchor="middle")
    drawing.text((axis.start + axis.end) / 2, 206, "says more than it knows, points", "axis",
                 anchor="middle")  # fmt: skip
    for place, (words, rows, more) in enumerate(WORLDS):
        claim = cal.audit(*world(rows, more), resamples=200)["claims"][0]
        assert claim["outcome"] == words, (words, claim["text"])
        sign = -1 if claim["id"].endswith("under_confident") else 1
        low, high = sorted(sign * claim[end] for end in ("low", "high"))
        y = 48 + 46 * place
        drawing.text(140, y + 4, f"{rows:,} labels", "name", anchor="end")
        tone = {"shown": "over_confident", "equivalent": "equivalent"}.get(words, "undecided")
        drawing.open_group(tone, claim["text"])
        drawing.line(axis(low), y, axis(high), y, "says-whisker")
        drawing.circle(axis(sign * claim["value"]), y, 6, "mark")
        drawing.text(540, y + 4, said_words(words), "label")
        drawing.close_group()
    return drawing.svg()


def said_words(outcome: str) -> str:
    return {
        "shown": "shown: over-confident",
        "equivalent": "equivalent within 2 points",
        "undecided": "undecided: more labels",
    }[outcome]


def guarantee_drawing() -> str:
    """Draw the error among the answered: what looks good, and what can be promised."""
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
    marks = [
        Mark("looks good", *looks, tone="second", ring=True, name_y=LIMIT + 0.03),
        Mark(
            "promised", entry["answered"]["value"], entry["error"]["value"], tone="third", ring=True
        ),
    ]
    chart = Chart(
        "Wrong among the answered: the threshold that looks good, and the one that is promised",
        "share answered",
        "wrong among the answered",
        [Series("", "first", curve)],
        marks,
        y_from=0.0,
        level=(LIMIT, "limit 20 %"),
    )
    return line_chart(chart, wide=True)
