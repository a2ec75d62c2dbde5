"""Inputs of the golden documents: fixed tables, written into the present folder where need be."""

import datetime as dt
import shutil
from pathlib import Path

import numpy as np
import polars as pl

import calibrant as cal
from calibrant.data import Study
from support import ROOT, model_scores, two_models

FIXTURES = ROOT / "tests" / "ecosystem" / "fixtures"


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


def days():
    rng = np.random.default_rng(0)
    day = np.arange(900) // 30
    p = rng.beta(5, 1, 900).round(3)
    y = rng.random(900) < np.clip(p - 0.05 - np.where(day >= 20, 0.3, 0.0), 0, 1)
    start = dt.date(2026, 1, 1)
    when = [start + dt.timedelta(days=int(k)) for k in day]
    return pl.DataFrame({"time": when, "confidence": p, "correct": y.astype(int)})


def written(table, name):
    table.write_csv(name)
    return name


def sampled(questions=12, size=8):
    """Sums with a list of sampled answers and the right one."""
    rng = np.random.default_rng(2)
    rows = []
    for number in range(questions):
        shares = rng.dirichlet(np.full(3, 0.5))
        answers = [str(10 + number + step) for step in rng.choice(3, size, p=shares)]
        rows.append(
            {
                "id": f"q{number:02}",
                "question": f"{number} + 10?",
                "gold": str(10 + number),
                "answers": answers,
            }
        )
    return pl.DataFrame(rows)


def samples_jsonl():
    sampled().write_ndjson("samples.jsonl")
    return "samples.jsonl"


def pool():
    """A table without outcomes, and beside it the outcomes that labels will show."""
    table = model_scores(("small",), n=200)
    table.drop("correct").write_csv("pool.csv")
    return "pool.csv", dict(table.select("question_id", "correct").iter_rows())


def partly_labelled():
    """Return a table with one batch labelled and handed in."""
    path, truth = pool()
    cal.label_next(path, out="batch.csv", size=60, who="ann")
    batch = pl.read_csv("batch.csv", infer_schema=False)
    filled = [str(truth[question]) for question in batch["question_id"]]
    batch.with_columns(correct=pl.Series(filled)).write_csv("batch.csv")
    return path


def multi_answer_scores():
    """Scores by number of right answers: two methods of two models."""
    one = two_models(60)
    other = one.with_columns(method=pl.lit("verb"), confidence=two_models(60, 1)["confidence"])
    return pl.concat([one, other])


def benchmark():
    cal.bench_mace("questions.jsonl", domains=["math"], k=[1, 2], per_k=3, limit=100)
    return "questions.jsonl"


def fixture(name):
    place = FIXTURES / name
    (shutil.copytree if place.is_dir() else shutil.copy)(place, name)
    return name
