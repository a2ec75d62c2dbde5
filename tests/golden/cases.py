"""Whole documents by verb and kind of input, from fixed tables and seeds.

Every case runs in an empty folder and names its files by relative paths, so that a document holds
no path of the machine.
"""

import datetime as dt
import shutil
from pathlib import Path

import numpy as np
import polars as pl

import calibrant as cal
from calibrant.records import Study
from support import ROOT, model_scores

FIXTURES = ROOT / "tests" / "ecosystem" / "fixtures"
QUESTIONS = 150
RESAMPLES = 50


def draws(questions=40, size=8):
    rng = np.random.default_rng(1)
    rows = []
    for question in range(questions):
        weights = rng.dirichlet([3, 1, 0.5])
        for draw, place in enumerate(rng.choice(3, size=size, p=weights)):
            rows.append(
                {
                    "question_id": f"q{question:02}",
                    "model": "small",
                    "draw": draw,
                    "class_id": int(place),
                    "correct": float(place == 0),
                    "answer": ("Paris", "Lyon", "Rome")[place],
                }
            )
    return pl.DataFrame(rows)


def study():
    """A study folder with scores, in the present folder."""
    made = Study(Path("study"))
    made.path.mkdir()
    made.config_path.write_text('name = "golden"\n')
    made.table_path("scores").parent.mkdir(exist_ok=True)
    made.write("scores", model_scores())
    return "study"


def csv():
    model_scores().write_csv("scores.csv")
    return "scores.csv"


def jsonl():
    model_scores().write_ndjson("scores.jsonl")
    return "scores.jsonl"


def parquet():
    model_scores().write_parquet("scores.parquet", row_group_size=100)
    return "scores.parquet"


def inspect_log():
    shutil.copy(FIXTURES / "inspect.json", "inspect.json")
    return "inspect.json"


def days():
    rng = np.random.default_rng(0)
    day = np.arange(900) // 30
    p = rng.beta(5, 1, 900).round(3)
    y = rng.random(900) < np.clip(p - 0.05 - np.where(day >= 20, 0.3, 0.0), 0, 1)
    start = dt.date(2026, 1, 1)
    when = [start + dt.timedelta(days=int(k)) for k in day]
    return pl.DataFrame({"time": when, "confidence": p, "correct": y.astype(int)})


def audit(data, *more, **options):
    return cal.audit(data, *more, resamples=RESAMPLES, **options)


def compare(data, **options):
    return cal.compare(data, resamples=RESAMPLES, **options)


def arrays():
    table = model_scores(models=("small",))
    return table["confidence"].to_numpy(), table["correct"].to_numpy()


CASES = {
    "audit-arrays": lambda: audit(*arrays()),
    "audit-csv": lambda: audit(csv(), by=["topic"]),
    "audit-jsonl": lambda: audit(jsonl()),
    "audit-parquet": lambda: audit(parquet()),
    "audit-dataframe": lambda: audit(model_scores(methods=("verb", "number_of_classes"))),
    "audit-pandas": lambda: audit(model_scores().to_pandas()),
    "audit-study": lambda: audit(study()),
    "audit-inspect": lambda: audit(inspect_log()),
    "audit-draws": lambda: audit(draws()),
    "audit-recalibrated": lambda: audit(csv(), recalibrate="platt"),
    "audit-streamed": lambda: audit(parquet(), engine="local", by=["topic"]),
    "compare-csv": lambda: compare(csv(), by=["topic"]),
    "compare-dataframe": lambda: compare(model_scores(models=("small", "middle", "large"))),
    "compare-tables": lambda: compare(
        [model_scores(("small",)), model_scores(("small", "large"))[QUESTIONS:]]
    ),
    "compare-study": lambda: compare(study()),
    "groups-csv": lambda: cal.groups(
        _written(model_scores(("small",), n=400), "g.csv"), features=["topic", "hard"]
    ),
    "groups-dataframe": lambda: cal.groups(
        model_scores(("small",), n=400), features=["topic", "hard"]
    ),
    "cascade-csv": lambda: cal.cascade(
        _written(model_scores(n=400), "c.csv"),
        features=["hard"],
        models=["small", "large"],
        price={"small": 1, "large": 8},
        random_splits=4,
    ),
    "plan-numbers": lambda: cal.plan(precision=0.05, error_rate=0.2),
    "plan-csv": lambda: cal.plan(csv(), precision=0.05, rank="accuracy"),
    "monitor-csv": lambda: cal.monitor(
        _written(days(), "days.csv"), time="time", baseline_rows=300, precision=0.05
    ),
}
RAY_CASES = {
    "audit-streamed": lambda engine: audit(parquet(), engine=engine, by=["topic"]),
}


def _written(table, name):
    table.write_csv(name)
    return name
