"""The whole loop on a real pool, in a real browser: plan, label, audit, monitor."""

import hashlib
import json
import re
import subprocess
import sys
import time

import polars as pl
import pytest

from browser import opened_browser
from support import call

pytestmark = pytest.mark.browser

MODEL = "gpt-4o-2024-08-06"
HOSTILE = (
    "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>&lt;b&gt; ={} \u202e"
)


@pytest.fixture
def browser(tmp_path):
    with opened_browser(tmp_path / "profile") as found:
        yield found


def pool_of(shared_data, folder, kind):
    """A pool of one model, ids with leading zeros, without outcomes; and the outcomes."""
    rows = (
        pl.read_parquet(shared_data / "scores" / "mmlu_pro_16_models.parquet")
        .filter(
            (pl.col("model") == MODEL)
            & pl.col("verbal_numerical_confidence").is_between(0, 1)
            & pl.col("extracted_answer").cast(pl.String).str.contains("^[A-J]$")
        )
        .head(300)
        .with_columns(pl.format("{}", pl.col("question_id")).str.zfill(4).alias("question_id"))
    )
    truth = dict(zip(rows["question_id"], rows["correct"].cast(pl.Int64), strict=True))
    pool = rows.select(
        "question_id",
        pl.col("model").cast(pl.String),
        pl.format("Number {} {}", pl.col("question_id"), pl.lit(HOSTILE)).alias("text"),
        pl.col("extracted_answer").cast(pl.String).alias("answer"),
        pl.col("verbal_numerical_confidence").cast(pl.Float64).alias("confidence"),
    )
    path = folder / f"pool.{kind}"
    pool.write_csv(path) if kind == "csv" else pool.write_parquet(path)
    return path, truth, rows


def calibrant(*words):
    done = call(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def document(path, *words):
    calibrant(*words, "--json", path)
    return json.loads(path.read_text())


def serve(pool):
    words = [sys.executable, "-m", "calibrant", "label", "serve", str(pool), "--no-open"]
    words += ["--overlap", "0.3", "--wave", "40", "--precision", "0.1"]
    said = pool.with_suffix(".said")
    with said.open("w") as file:
        server = subprocess.Popen(words, stderr=file, stdout=subprocess.DEVNULL)
    end = time.time() + 300
    while time.time() < end and "http" not in said.read_text():
        time.sleep(0.1)
    return server, re.search(r"http://\S+", said.read_text())[0]


def until(happens, seconds=120):
    """Wait for what a page does in its own time; a loaded machine takes long."""
    end = time.time() + seconds
    while not happens() and time.time() < end:
        time.sleep(0.05)
    assert happens()


class Person:
    """Somebody who labels by keyboard what the page shows."""

    def __init__(self, browser, address, name, truth):
        self.browser, self.address, self.name, self.truth = browser, address, name, truth

    def open(self):
        self.browser.get(f"{self.address}&who={self.name}")
        self.wait()

    def wait(self):
        until(lambda: self.shown() is not None or not self.hidden("finished"))

    def hidden(self, name):
        return self.browser.execute_script(f"return document.getElementById('{name}').hidden")

    def shown(self):
        text = self.browser.execute_script(
            "return document.getElementById('item').hidden ? '' :"
            " document.getElementById('question').textContent"
        )
        found = re.match(r"Number (\d+)", text or "")
        return found[1] if found else None

    def press(self, key):
        self.browser.find_element("tag name", "body").send_keys(key)

    def label(self, *, wrongly=False):
        before = self.shown()
        right = bool(self.truth[before]) != wrongly
        self.press("1" if right else "0")
        until(lambda: self.shown() != before or not self.hidden("finished"))
        return before

    def progress(self):
        return self.browser.find_element("id", "progress").text


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_loop_on_a_real_pool(shared_data, tmp_path, browser, kind):  # noqa: PLR0915
    pool, truth, rows = pool_of(shared_data, tmp_path, kind)
    before = hashlib.sha256(pool.read_bytes()).hexdigest()

    planned = document(tmp_path / "plan.json", "plan", pool, "--claim", "ece<0.25")
    assert planned["plans"][0]["needed"]["calibrated"]["one_look"] < 300
    assert planned["claims"][0]["id"] == "plan.labels_needed"

    server, address = serve(pool)
    ann = Person(browser, address, "ann", truth)
    ann.open()
    page = browser.page_source
    assert MODEL not in page
    assert "confidence" not in page.lower()
    assert browser.execute_script("return window.hacked") is None
    assert HOSTILE in browser.find_element("id", "question").text.replace("\u202e", "\u202e")
    first = [ann.label() for _ in range(15)]
    assert len(set(first)) == 15
    assert "points" in ann.progress()

    # Undo shows the item again, and the label is made anew.
    ann.press("z")
    until(lambda: ann.shown() == first[-1])
    assert ann.label() == first[-1]

    # The server is killed; the label that was pressed meanwhile is kept and sent again.
    server.kill()
    server.wait()
    waiting = ann.shown()
    ann.press("1" if truth[waiting] else "0")
    until(lambda: "does not answer" in browser.find_element("id", "trouble").text)
    server, again = serve(pool)
    assert again == address
    ann.wait()
    until(lambda: ann.shown() != waiting)
    first.append(waiting)
    first += [ann.label() for _ in range(24)]

    # A second person gets other items, but for the overlap; there they disagree once.
    bob = Person(browser, address, "bob", truth)
    bob.open()
    second, disagreed = [], None
    for _ in range(40):
        shown = bob.shown()
        wrongly = disagreed is None and shown in first
        second.append(bob.label(wrongly=wrongly))
        if wrongly:
            disagreed = shown
    shared = set(first) & set(second)
    assert disagreed in shared
    assert 2 <= len(shared) < 20

    status = document(tmp_path / "status.json", "label", "status", pool)
    assert status["people"]["conflicts"] == 1
    browser.find_element("id", "settle").click()
    until(lambda: bob.shown() == disagreed)
    bob.press("1" if truth[disagreed] else "0")
    until(lambda: bob.shown() != disagreed)

    # On a phone nothing is cut off and the buttons are in reach.
    browser.find_element("id", "back").click()
    browser.set_window_size(360, 740)
    ann.open()
    wide = browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert wide
    right = browser.find_element("css selector", "[data-label=right]").rect
    assert right["height"] >= 44
    last = ann.shown()
    browser.find_element("css selector", "[data-label=right]").click()
    until(lambda: ann.shown() != last)
    server.terminate()
    server.wait()

    status = document(tmp_path / "status.json", "label", "status", pool, "--precision", "0.1")
    people = status["people"]
    assert people["conflicts"] == 0
    assert people["pairs"] == len(shared)
    assert people["kappa"]["low"] < people["kappa"]["value"] <= people["kappa"]["high"]
    accuracy = status["results"][0]["accuracy"]
    whole = rows["correct"].mean()
    assert accuracy["low"] - 0.05 < whole < accuracy["high"] + 0.05

    # The rest is labelled in a spreadsheet.
    batch = tmp_path / "batch.csv"
    calibrant("label", "next", pool, "--size", 80, "--who", "ann", "--out", batch)
    sheet = pl.read_csv(batch, infer_schema=False)
    filled = [str(truth[name]) for name in sheet["question_id"]]
    sheet.with_columns(pl.Series("correct", filled)).write_csv(batch)
    calibrant("label", "add", pool, batch, "--who", "ann")

    # What the labels say: every id and answer is text, and every label is the right one.
    labelled = tmp_path / "labelled.csv"
    calibrant("label", "export", pool, "--out", labelled)
    out = pl.read_csv(labelled, infer_schema=False)
    assert out["question_id"].str.len_chars().min() == 4
    clicked = {row["question_id"]: float(row["correct"]) for row in out.to_dicts()}
    wrong = [name for name, value in clicked.items() if value != truth[name]]
    assert len(wrong) <= 1  # the one that was clicked on the phone without looking

    # The audit reads the labels beside the pool; the exported table says the same.
    audited = document(tmp_path / "audit.json", "audit", pool)["results"][0]
    assert audited["n"] == len(clicked) >= 100
    exported = document(tmp_path / "exported.json", "audit", labelled, "--weights", "label_weight")
    value = exported["results"][0]["metrics"]["accuracy"]["value"]
    assert audited["metrics"]["accuracy"]["value"] == pytest.approx(value)
    assert audited["metrics"]["accuracy"]["low"] < whole < audited["metrics"]["accuracy"]["high"]

    stream = tmp_path / "stream.csv"
    rows.select(
        "question_id",
        pl.col("model").cast(pl.String),
        pl.col("verbal_numerical_confidence").alias("confidence"),
        "correct",
    ).write_csv(stream)
    watched = document(tmp_path / "m.json", "monitor", stream, "--baseline", pool)["results"][0]
    assert watched["reference"] == f"the baseline of {len(clicked)} labels"
    assert watched["alarm"] is None
    calibrant("label", "export", pool, "--out", tmp_path / "all.parquet", "--history")
    history = pl.read_parquet(tmp_path / "all.parquet")
    assert history.filter(pl.col("label") == "undo").height == 1
    assert history["final"].sum() == 1
    assert hashlib.sha256(pool.read_bytes()).hexdigest() == before
