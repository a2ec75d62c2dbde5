"""Every kind of page and chart, made from real data by the commands shown beside them.

Set CALIBRANT_GALLERY to a folder that keeps the documents, to draw the pages again in seconds.
"""

from __future__ import annotations

import base64
import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from calibrant.core.document import load_document
from calibrant.report import render_html
from calibrant.report.charts import Chart, charts_of
from calibrant.report.charts.draw import save_chart
from studies import _gallery_inputs as inputs
from studies._page import DATA, FOLDER, StudyPage

MMLU = "$DATA/scores/mmlu_pro_16_models.parquet"
LOGIT = "--confidence logit_perplexity_confidence --on-invalid drop"
ALL_THREE = (
    "--confidence verbal_numerical_confidence,logit_perplexity_confidence,"
    "verbal_linguistic_confidence --correct correct --on-invalid drop"
)
MOST_BYTES = 200_000
DEMO = "calibrant demo --recorded"
PLACE = FOLDER / "gallery"
SCREENS = {
    "desktop": (1400, 900, "light"),
    "dark": (1400, 900, "dark"),
    "phone": (390, 844, "light"),
}


@dataclass(frozen=True)
class Exhibit:
    """A result document: the commands that make it, and the figures of it that are shown."""

    name: str
    title: str
    about: str
    commands: Sequence[str]
    figures: Sequence[str]
    prepare: Callable[[Path, Path], None] | None = None


EXHIBITS = (
    Exhibit(
        "audit_three",
        "Audit: MMLU-Pro, 16 models x 3 confidences",
        "Which confidence of which model can be believed?",
        [f"calibrant audit {MMLU} {ALL_THREE} --resamples 200 --json audit_three.json"],
        [],
    ),
    Exhibit(
        "audit_one",
        "Audit: one model",
        "Is this confidence calibrated, and how sure are we?",
        ["calibrant audit answers.parquet --json audit_one.json"],
        ["reliability-1"],
        prepare=inputs.pool,
    ),
    Exhibit(
        "decide",
        "Decide: GPT-4o on MMLU-Pro",
        "Where may it answer alone, with what promise?",
        ["calibrant decide answers.parquet --max-error 0.15 --json decide.json"],
        [],
    ),
    Exhibit(
        "audit",
        "Audit: MMLU-Pro, 16 models",
        "Is the confidence calibrated, and how sure are we?",
        [f"calibrant audit {MMLU} {LOGIT} --resamples 200 --json audit.json"],
        ["floors"],
    ),
    Exhibit(
        "meanings",
        "Sem-ECE: DeepSeek-V3, 6,000 questions x 20 draws",
        "Answers of one question that mean the same are one class; the frequency of the most "
        "frequent class is the confidence.",
        ["calibrant audit deepseek_meanings.parquet --json meanings.json"],
        ["meaning-reliability-1", "convergence-1", "margins-1", "regimes-1"],
        prepare=inputs.deepseek,
    ),
    Exhibit(
        "multi_answer",
        "Several right answers: DeepSeek-V3",
        "The same model by number of right answers, and on mixes of them.",
        [
            "calibrant bench evaluate deepseek_scores.parquet --draws deepseek_draws.parquet "
            "--reference consistency --tune '' --on-invalid drop --json multi_answer.json"
        ],
        ["by-k-1", "by-mix-1", "coverage-1"],
    ),
    Exhibit(
        "compare",
        "Compare: seven models on multiple-choice questions (MMLU)",
        "Is one model better calibrated, or only more accurate?",
        ["calibrant compare mcq_mmlu.parquet --on-invalid drop --json compare.json"],
        ["gaps", "both-wrong-1"],
        prepare=inputs.mcq,
    ),
    Exhibit(
        "groups",
        "Groups: UCI Adult",
        "For whom is the confidence wrong, and can recalibration mend it?",
        [
            "calibrant groups $DATA/tabular/uci_adult_with_probs.parquet --features "
            "age,sex,education_num,race,hours_per_week --confidence p_lr3 --correct y "
            "--json groups.json"
        ],
        [],
    ),
    Exhibit(
        "cascade",
        "Cascade: Qwen3-4B and Qwen3-14B on MMLU-Pro",
        "When to ask the larger model? On the page a slider moves the threshold.",
        [
            f"calibrant cascade {MMLU} --models Qwen3-4B,Qwen3-14B --price 4,14 "
            f"--cost token_length --features category,token_length {LOGIT} --random-splits 5 "
            "--json cascade.json"
        ],
        [],
    ),
    Exhibit(
        "plan",
        "Plan: what labels can show",
        "How many labels does a claim take, and which ranks do they settle?",
        [f"calibrant plan {MMLU} {LOGIT} --precision 0.02 --rank accuracy --json plan.json"],
        ["leaderboard"],
    ),
    Exhibit(
        "label",
        "Label: GPT-4o on MMLU-Pro, batch by batch",
        f"{inputs.BATCHES} batches of {inputs.BATCH} labels; here the known labels stand in for a "
        "person.",
        [
            *(
                command
                for _ in range(inputs.BATCHES)
                for command in (
                    f"calibrant label next pool.parquet --out batch.csv --size {inputs.BATCH}",
                    "calibrant label add pool.parquet batch.csv --precision 0.03 --json label.json",
                )
            )
        ],
        ["gaps-1"],
        prepare=inputs.pool,
    ),
    Exhibit(
        "judge",
        "Judge: GPT-4 on relevance of summaries (SummEval)",
        f"What is its score worth, where two people rated {inputs.RATED} of the rows?",
        [
            "calibrant judge summeval.parquet --judge gpt4 --human human1,human2 --model model "
            "--scale 1-5 --human-scale 1-5 --json judge.json"
        ],
        ["judge-map-1"],
        prepare=inputs.summeval,
    ),
    Exhibit(
        "monitor",
        "Monitor: basketball forecasts, seven seasons",
        "Has the calibration changed since it was verified?",
        [
            "calibrant monitor games.parquet --time date --every month --confidence prob "
            "--correct outcome --baseline-rows 2000 --json monitor.json"
        ],
        ["evidence-1"],
        prepare=inputs.games,
    ),
)


def main() -> None:
    page = StudyPage("gallery", "Gallery")
    page.text(
        "Every kind of page, from real data: the first screen on a desktop, in the dark and on a "
        "phone, then its further charts. `$DATA` is the folder of real data, files without it are "
        "parts of it in another form."
    )
    PLACE.mkdir(parents=True, exist_ok=True)
    window = browser()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.environ.get("CALIBRANT_GALLERY") or name)
        folder.mkdir(parents=True, exist_ok=True)
        # A relative name, so that no page shows where the data lie on this machine.
        if not (folder / "data").exists():
            (folder / "data").symlink_to(DATA.resolve(), target_is_directory=True)
        show_demo(page, folder, window)
        for exhibit in EXHIBITS:
            print(f"-- {exhibit.name}", flush=True)
            show(page, exhibit, folder, window)
    if window is not None:
        window.quit()
    page.write()


def show_demo(page: StudyPage, folder: Path, window: Any) -> None:
    """Show the page that a newcomer sees first: a whole study on one page."""
    if not (folder / "demo" / "report.html").exists():
        run(DEMO, folder)
    page.heading("Demo: a recorded study of two small open models")
    page.text("What was found, in which order? Every further part is folded below.")
    page.lines += ["```text", f"$ {DEMO}", "```", ""]
    put_screens(page, "demo", folder / "demo" / "report.html", window)


def show(page: StudyPage, exhibit: Exhibit, folder: Path, window: Any) -> None:
    document = made(exhibit, folder)
    page.heading(exhibit.title)
    page.text(exhibit.about)
    if exhibit.commands:
        shown = list(dict.fromkeys(exhibit.commands))
        page.lines += ["```text", *(f"$ {command}" for command in shown), "```", ""]
    path = folder / f"{exhibit.name}.html"
    path.write_text(render_html([document]), encoding="utf-8")
    put_screens(page, exhibit.name, path, window)
    charts = {chart.name: chart for chart in charts_of(document)}
    for wanted in exhibit.figures:
        put_chart(page, exhibit.name, charts[wanted])


def made(exhibit: Exhibit, folder: Path) -> dict[str, Any]:
    """Return the document of an exhibit; one that lies in the folder is not made again."""
    path = folder / f"{exhibit.name}.json"
    if not path.exists():
        if exhibit.prepare is not None:
            exhibit.prepare(DATA, folder)
        for command in exhibit.commands:
            run(command, folder)
            if "label next" in command:
                inputs.fill_batch(folder)
    return load_document(path)


def run(command: str, folder: Path) -> None:
    """Run a command as it is shown, with the data under a relative name."""
    words = shlex.split(command.replace("$DATA", "data"))
    words[0] = str(Path(sys.executable).with_name(words[0]))
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"}
    )
    if done.returncode:
        raise RuntimeError(f"{command}\n{done.stdout}\n{done.stderr}")


def put_chart(page: StudyPage, exhibit: str, chart: Chart) -> None:
    """Write the chart beside the page, with its caption on how to read it."""
    with tempfile.TemporaryDirectory() as name:
        (path,) = save_chart(chart, Path(name), formats=("svg",))
        target = FOLDER / f"gallery-{exhibit}-{chart.name}.svg"
        FOLDER.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    page.lines += [
        f"**{chart.title}**", "", f"![Chart]({target.name})", "", chart.caption, ""
    ]  # fmt: skip


def put_screens(page: StudyPage, place: str, path: Path, window: Any) -> None:
    """Write pictures of the real page, where there is a browser."""
    if window is None:
        page.text("(No picture of the page: no Chromium on this machine.)")
        return
    shown = []
    for name, screen in SCREENS.items():
        target = PLACE / f"{place}-{name}.png"
        save_small(photograph(window, path, screen), target)
        width = "31%" if name == "phone" else "62%" if name == "desktop" else "45%"
        words = "In the dark" if name == "dark" else f"On a {name}"
        shown.append(f'<img src="gallery/{target.name}" alt="{words}" width="{width}">')
    page.lines += [*shown, ""]


def browser() -> Any:
    """Return a headless Chromium, or None where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        return None
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def photograph(window: Any, path: Path, screen: tuple[int, int, str]) -> bytes:
    """Return the first screens of a page as PNG, once its charts are drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    width, height, scheme = screen
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    window.get(path.as_uri())
    drawn = "return document.querySelector('.hero-picture svg') !== null"
    WebDriverWait(window, 30).until(lambda w: w.execute_script(drawn))
    shot = window.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    return base64.b64decode(shot["data"])


def save_small(picture: bytes, path: Path) -> None:
    """Save with as many colours as keep the file small; text needs few."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in (128, 64, 32):
        image.quantize(colours).save(path, optimize=True)
        if path.stat().st_size < MOST_BYTES:
            return
    raise RuntimeError(f"{path.name} is larger than {MOST_BYTES:,} bytes")
