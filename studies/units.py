"""Rows inside units on real runs: an agent of LangGraph, and fields that the embedded model reads.

The agent runs in another Python, named by CALIBRANT_AGENTS_PYTHON, that has langchain, langgraph
and langchain-openai, against a small server of this machine. What ran is kept in CALIBRANT_RUNS.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import calibrant as cal
from studies._page import ROOT, StudyPage

RUNS = Path(os.environ.get("CALIBRANT_RUNS", Path(tempfile.gettempdir()) / "calibrant_units"))
AGENTS, INVOICES = 400, int(os.environ.get("CALIBRANT_INVOICES", "40"))
SEED = 62
VENDORS = ("Miller and Sons", "Nordic Timber", "Casa Verde", "Atlas Tools", "Lumen Works",
           "Harbour Foods", "Birch Press", "Delta Optics")  # fmt: skip
CITIES = ("Oslo", "Porto", "Lyon", "Graz", "Turku", "Bergen", "Malaga", "Ghent")
GOODS = ("desks", "lamps", "chairs", "cables", "boxes", "filters")
FIELDS = {
    "number": "What is the invoice number?",
    "vendor": "Which company sent the invoice?",
    "city": "To which city were the goods delivered?",
    "total": "How many euros are due?",
}
STUDY = """name = "invoices"
questions = "questions.jsonl"
methods = ["perplexity", "sequence_probability"]
[prompts]
style = "short"
[[models]]
name = "smollm2-135m"
client = "embedded"
"""


def invoices(rng):
    """Yield questions: a text and one of its fields."""
    for number in range(INVOICES):
        vendor, city, goods = rng.choice(VENDORS), rng.choice(CITIES), rng.choice(GOODS)
        count, price = int(rng.integers(2, 20)), int(rng.integers(3, 90))
        code = int(rng.integers(1000, 9999))
        seat = rng.choice([name for name in CITIES if name != city])
        parts = [
            f"Invoice {code} of {vendor}, {seat}.",
            f"{count} {goods} at {price} euros each were delivered to {city}.",
            f"Amount due: {count * price} euros within {int(rng.choice([14, 30, 60]))} days.",
        ]
        if rng.random() < 0.4:
            order = int(rng.integers(1000, 9999))
            parts.insert(1, f"Order {order}, your reference {int(rng.integers(100, 999))}.")
        truth = {"number": code, "vendor": vendor, "city": city, "total": count * price}
        for name, ask in FIELDS.items():
            yield {
                "question_id": f"d{number}/{name}",
                "text": f"{' '.join(parts)} {ask}",
                "references": [[str(truth[name])]],
                "kind": "number" if name in ("number", "total") else "open",
                "doc": f"d{number}",
                "field": name,
            }


def extraction(page):
    """Fields of invoices, read by the embedded model: from its tokens to a promise."""
    folder = RUNS / "invoices"
    folder.mkdir(parents=True, exist_ok=True)
    questions = list(invoices(np.random.default_rng(SEED)))
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)) + "\n")
    (folder / "study.toml").write_text(STUDY)
    cal.run(folder)
    scores = pl.read_parquet(folder / "tables" / "scores.parquet")
    place = pl.DataFrame(questions).select("question_id", "doc", "field")
    table = scores.filter(pl.col("method") == "perplexity").join(place, on="question_id")
    long = table.select("doc", "field", "confidence", "correct").drop_nulls()
    page.heading("Fields of invoices, read by the embedded model")
    whole = long.group_by("doc").agg(pl.col("correct").min())["correct"].mean()
    page.text(
        f"SmolLM2-135M read {len(FIELDS)} fields of {long['doc'].n_unique()} invoices, which were "
        f"written by rule. The confidence is the average probability of its tokens. "
        f"{100 * long['correct'].mean():.0f} % of the fields are right and {100 * whole:.0f} % of "
        "the invoices."
    )
    rows = []
    for limit in (0.1, 0.3, 0.5):
        for name, options in (("whole invoices", {"unit": "doc"}),
                              ("fields, by invoices", {"cluster": "doc"})):  # fmt: skip
            found = cal.decide(long, max_error=limit, **options)
            rows.append([f"{limit:.0%}", name, _promised(found["results"][0])])
    page.table(["limit", "promise about", "what is promised"], rows)
    fields = cal.decide(long, unit="doc", max_error=0.1)["results"][0]["unit"]["fields"]
    page.text("The table of fields on the page of `decide`, the most over-confident first:")
    page.table(
        ["field", "says", "right", "gap, points"],
        [[f["field"], f"{f['says']:.0%}", _percent(f["right"]), f"{100 * f['gap']:+.1f}"]
         for f in fields],
    )  # fmt: skip


def agents(page):
    """Runs of an agent of LangGraph: import, audit, decide, and what the promise is worth."""
    folder = RUNS / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "agent_langchain.jsonl"
    if not trace.exists():
        writer = ROOT / "tests" / "ecosystem" / "writers" / "agent_run.py"
        subprocess.run(
            [os.environ["CALIBRANT_AGENTS_PYTHON"], writer, folder, str(AGENTS)], check=True
        )
    log = cal.import_logs(trace, out=folder / "study")["results"][0]
    steps = pl.read_parquet(folder / "study" / "steps.parquet")
    page.heading("Runs of an agent")
    page.text(
        f"An agent of LangGraph with two tools ran {log['draws']} times against a server that "
        "calls tools by rule; LangChain's tracer recorded it. `calibrant import` made "
        f"{log['draws']} answers and {log['steps']:,} steps of it, each with its run's outcome."
    )
    (by_run,), plain = cal.audit(steps, unit="run")["results"], cal.audit(steps)
    # Without runs and their order nothing tells that steps belong together.
    mixed = steps.select("confidence", "correct").sample(fraction=1, shuffle=True, seed=SEED)
    by_row = cal.audit(mixed)["results"][0]
    page.table(
        ["audit", "over-confident by, points"],
        [
            ["steps as rows: runs and their order taken away", _points(by_row)],
            ["no option: runs are noticed", _points(plain["results"][0])],
            ["`--unit run`", _points(by_run)],
        ],
    )
    names = steps["run"].unique(maintain_order=True)
    first = steps.filter(pl.col("run").is_in(names[: len(names) // 2].implode()))
    later = steps.filter(~pl.col("run").is_in(names[: len(names) // 2].implode()))
    rows = []
    for limit in (0.1, 0.2):
        policy = folder / "stop.json"
        entry = cal.decide(first, unit="run", stop=True, max_error=limit, save=policy)["results"][0]
        loaded: Any = cal.load_policy(policy)
        stops = loaded.stops
        runs = later.group_by("run", maintain_order=True).agg("confidence", pl.first("correct"))
        stopped = np.array([stops(said) for said in runs["confidence"].to_list()])
        good = runs["correct"].to_numpy()[stopped]
        rows.append([f"{limit:.0%}", entry["n"], f"{entry['answered']['value']:.0%}",
                     f"{entry['unit']['steps_saved']:.0%}", f"{stopped.mean():.0%}",
                     f"{good.mean():.0%} of {good.size}"])  # fmt: skip
    page.text("Half of the runs certify, the other half checks what was promised:")
    page.table(
        ["limit", "runs that certify", "stopped", "steps saved", "of the others stopped",
         "of these would have succeeded"], rows,
    )  # fmt: skip


def _promised(entry):
    if entry["certified"]:
        return f"{entry['answered']['value']:.0%} pass, from {entry['threshold']:.3g} on"
    more = entry["labels_needed"]
    return "nothing" if more is None else f"nothing yet; about {more:,} labels would do"


def _percent(estimate):
    return f"{estimate['value']:.0%} [{100 * estimate['low']:.0f}, {100 * estimate['high']:.0f}]"


def _points(block):
    gap = block["metrics"]["confidence_gap"]
    return f"{100 * gap['value']:.1f} [{100 * gap['low']:.1f}, {100 * gap['high']:.1f}]"


def main():
    page = StudyPage("units", "Rows inside units: real runs")
    agents(page)
    extraction(page)
    page.write()


if __name__ == "__main__":
    main()
