"""A study whose grades err in a known way, and somebody who knows the truth to check them."""

import numpy as np
import polars as pl

from calibrant.core.arrays import named_stream
from calibrant.data import Study
from calibrant.data.label_schema import ItemKey
from calibrant.data.label_store import LabelStore
from calibrant.data.sources.drawn_labels import checks_path
from calibrant.metrics.stats.graded_estimates import Graded
from calibrant.metrics.stats.graded_summary import choose_checks

N = 600


def world(folder, *, wrong_accepts=0.15, gap=0.03, models=("m",), seed=0):
    """A study whose grader accepts wrong answers where it doubts; returns it and the truth."""
    rng = named_stream(seed, "grading world")
    draws, truth = [], {}
    for number, model in enumerate(models):
        confidence = rng.choice([0.6, 0.7, 0.8, 0.9], N)
        right = rng.random(N) < confidence - gap
        doubtful = rng.random(N) < 0.4
        accepts = wrong_accepts if number == 0 else 0.0
        grade = right | (doubtful & (rng.random(N) < accepts / 0.4))
        chance = np.where(doubtful, np.where(grade, 0.8, 0.2), np.where(grade, 0.99, 0.01))
        truth[model] = right
        draws.append(
            pl.DataFrame(
                {
                    "question_id": [f"q{i}" for i in range(N)],
                    "model": model,
                    "answer": [f"answer {i} of {model}" for i in range(N)],
                    "confidence": confidence,
                    "correct": grade,
                    "chance": chance,
                }
            )
        )
    table = pl.concat(draws).with_columns(purpose=pl.lit("answer"), draw=0, class_id=0)
    study = Study(folder)
    study.write("questions", table.select("question_id", text="question_id").unique())
    study.write("draws", table.select(*_KEY, "answer", text="answer"))
    own = table.with_columns(reason=pl.lit("attempted"), grader=pl.lit("phrase"))
    study.write("semantics", own.drop("answer", "confidence"))
    scores = table.select(*_KEY[:2], "answer", "confidence", pl.col("correct").cast(pl.Float64))
    study.write("scores", scores.with_columns(method=pl.lit("stated")))
    return study, truth, table


_KEY = ["question_id", "model", "purpose", "draw"]


def check(study, truth, table, checks=200):
    """Let somebody who knows the truth check grades, chosen as the page chooses them."""
    store = LabelStore(checks_path(study.path))
    for (model,), rows in table.partition_by("model", as_dict=True).items():
        columns = (rows[name].cast(pl.Float64).to_numpy() for name in ("confidence", "correct"))
        graded = Graded.of_chances(*columns, rows["chance"].to_numpy())
        picked = choose_checks(graded, checks, named_stream(1, "checks"))
        keys = [ItemKey(f"q{i}", f"answer {i} of {model}", model) for i in picked]
        store.add_wave(keys, [0.1] * len(keys), design="grades", frame=N)
    for item in store.take("ann", 10**6):
        right = truth[item.key.model][int(item.key.question_id[1:])]
        store.label(item.id, "ann", "right" if right else "wrong")
