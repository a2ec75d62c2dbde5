"""Small result documents of every kind, from fixed seeds: what snapshots and pages are made of."""

import datetime as dt
import functools
import json
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import calibrant as cal
from calibrant.answers.semantics import annotate
from calibrant.bench.evaluate import bench_evaluate
from calibrant.bench.make import bench_check, bench_mace
from calibrant.data import Study
from calibrant.labels import leaderboard
from calibrant.verbs.cascade import cascade
from calibrant.verbs.compare import compare
from calibrant.verbs.decide import decide
from calibrant.verbs.groups import groups
from calibrant.verbs.judge import judge
from calibrant.verbs.label import label_status
from calibrant.verbs.methods import methods
from calibrant.verbs.monitor import monitor
from calibrant.verbs.plan import plan
from calibrant.verbs.study.analysis import study_document
from judged import ratings
from support import model_scores


def _scores(n=300, models=("small", "large"), methods=("verb",)):
    table = model_scores(models, methods, n)
    # Ids and grades as a study has them.
    number = pl.col("question_id").str.slice(1).cast(pl.Int64).cast(pl.String)
    return table.with_columns(
        ("q" + number).alias("question_id"), pl.col("correct").cast(pl.Float64)
    )


def audit_document():
    table = _scores(methods=("verb", "number_of_classes"))
    return cal.audit(table, resamples=100).to_dict()


def audit_by_group_document():
    return cal.audit(_scores(), by=["topic"], resamples=100).to_dict()


def compare_document():
    return compare(_scores(models=("small", "middle", "large")), resamples=100).to_dict()


def groups_document():
    table = _scores(n=600, models=("small",))
    return groups(table, features=["topic", "hard"]).to_dict()


def cascade_document():
    options = {"models": ["small", "large"], "price": {"small": 1, "large": 8}, "random_splits": 6}
    return cascade(_scores(n=400), features=["hard"], **options).to_dict()


def decide_document():
    table = _scores(n=600, models=("small",))
    return decide(table, max_error=0.3).to_dict()


def mend_document():
    return cal.mend(_scores(n=600, models=("small",))).to_dict()


def plan_document():
    return plan(_scores(), precision=0.05, rank="accuracy").to_dict()


def label_document():
    table = _scores(models=("small",)).with_row_index("row")
    known = pl.col("row") < 120
    table = table.with_columns(
        judge=pl.when(pl.col("row") % 10 == 0).then(1 - pl.col("correct")).otherwise("correct"),
        correct=pl.when(known).then("correct"),
        label_batch=pl.when(known).then(pl.col("row") // 40 + 1).cast(pl.Int64),
    ).drop("row")
    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder) / "pool.parquet"
        table.write_parquet(pool)
        document = label_status(pool, precision=0.1, judge="judge", existing="random").to_dict()
    return {**document, "source": "pool.parquet", "input": []}


def monitor_document():
    rng = np.random.default_rng(0)
    day = np.arange(3000) // 100
    p = rng.beta(5, 1, 3000)
    y = rng.random(3000) < np.clip(p - 0.05 - np.where(day >= 20, 0.2, 0.0), 0, 1)
    start = dt.date(2026, 1, 1)
    table = pl.DataFrame(
        {
            "time": [start + dt.timedelta(days=int(k)) for k in day],
            "confidence": p,
            "correct": y.astype(int),
        }
    )
    return monitor(table, time="time", baseline_rows=1000, precision=0.05).to_dict()


def multi_answer_document():
    rng = np.random.default_rng(3)
    n = 240
    k = np.tile([1, 2, 4], n // 3)
    right = rng.random(n) < 0.3 + 0.1 * k
    methods = {"consistency": right * 0.4 + 0.5 / k, "verb": right * 0.1 + 0.7}
    rows = [
        pl.DataFrame(
            {
                "question_id": [f"q{i}" for i in range(n)],
                "model": "small",
                "method": name,
                "confidence": np.clip(value + rng.normal(0, 0.1, n), 0, 1),
                "correct": right.astype(float),
                "k": k,
                "domain": np.where(np.arange(n) < n // 2, "math", "language"),
            }
        )
        for name, value in methods.items()
    ]
    return bench_evaluate(
        pl.concat(rows), reference="consistency", resamples=100, items=100
    ).to_dict()


def bench_document():
    return bench_mace(domains=["math", "language"], per_k=3, seed=0, limit=100).to_dict()


def bench_check_document(folder):
    path = folder / "questions.jsonl"
    bench_mace(path, domains=["math"], k=[1, 2], per_k=3, seed=0)
    return bench_check(path).to_dict()


def sem_ece_document():
    rng = np.random.default_rng(1)
    rows = []
    for question in range(60):
        weights = rng.dirichlet([3, 1, 0.5])
        for draw, place in enumerate(rng.choice(3, size=12, p=weights)):
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
    return cal.audit(pl.DataFrame(rows), resamples=100).to_dict()


def semantics_document():
    texts = ["Paris", "paris.", "Lyon", "I do not know.", "The capital is Paris", "Rome | Paris"]
    draws = pl.DataFrame(
        {
            "question_id": ["q"] * len(texts),
            "model": ["m"] * len(texts),
            "purpose": ["answer"] * len(texts),
            "draw": list(range(len(texts))),
            "text": texts,
        }
    )
    questions = pl.DataFrame(
        {"question_id": ["q"], "text": ["Capital of France?"], "references": [[["Paris"]]]}
    )
    document = annotate(draws, questions).document
    judged = {"judge": "a-judge", "judge_calls": 7, "judge_calls_refused": 1}
    return {**document, **judged, "conflicts": 1, "conflict_examples": [("Lyon", "Rome")]}


def study_result(folder):
    """A study folder with draws and grades; versions of packages are pinned for the snapshot."""
    study = Study(folder / "study")
    study.path.mkdir()
    study.config_path.write_text(
        'name = "two capitals"\nquestions = "q.jsonl"\n'
        '[prompts]\nstyle = "short"\n[[models]]\nname = "small"\nclient = "embedded"\n'
    )
    question = {"question_id": "q", "text": "Capital of France?", "references": [["Paris"]]}
    (study.path / "q.jsonl").write_text(json.dumps(question) + "\n")
    draws = pl.DataFrame(
        {
            "question_id": ["q"] * 4,
            "model": ["small"] * 4,
            "purpose": ["greedy", "answer", "answer", "verb"],
            "draw": [0, 0, 1, 0],
            "text": ["Paris", "Paris", "Rome", "Paris | 0.9"],
            "finish_reason": ["stop", "stop", "length", "stop"],
            "prompt_tokens": [10, 10, 0, 30],
            "completion_tokens": [2, 2, 3, 6],
            "cost": [0.0, 0.0, 0.0, 0.0],
        }
    )
    semantics = draws.select("question_id", "model", "purpose", "draw").with_columns(
        class_id=pl.Series([0, 0, 1, 0]),
        correct=pl.Series([True, True, False, True]),
        grader=pl.lit("rules"),
    )
    study.table_path("draws").parent.mkdir(exist_ok=True)
    study.write("draws", draws)
    study.write("semantics", semantics)
    document = study_document(study)
    fixed = {"version": "0", "study": "study", "versions": {"calibrant": "0", "python": "3"}}
    return {**document, **fixed}


def leaderboard_document():
    table = _scores(models=("small", "middle", "large"))
    scores = {
        str(name): (part["confidence"].to_numpy(), part["correct"].to_numpy())
        for (name,), part in table.partition_by("model", as_dict=True).items()
    }
    return dict(leaderboard(scores, metric="accuracy", resamples=100))


def methods_document():
    return methods().to_dict()


KINDS = {
    "analysis": lambda: {
        "schema": "calibrant.analysis/1",
        "done": ["audit", "plan"],
        "left_out": [{"part": "compare", "reason": "one model only"}],
    },
    "audit": audit_document,
    "audit_by_group": audit_by_group_document,
    "bench": bench_document,
    "cascade": cascade_document,
    "compare": compare_document,
    "decide": decide_document,
    "demo": lambda: {
        "schema": "calibrant.demo/1",
        "study": "demo",
        "report": "demo/report.html",
        "seconds": 12.0,
        "parts": {"recorded": {"report": "demo/report.html", "seconds": 12.0}},
        "counts": [{"model": "plain", "draws_new": 5, "draws_cached": 1_000}],
        "done": ["audit"],
        "left_out": [{"part": "groups", "reason": "20 rows are too few"}],
        "next": ["calibrant audit demo"],
    },
    "groups": groups_document,
    "label": label_document,
    "judge": lambda: judge(
        ratings(), judge=["judge"], human=["expert1", "expert2"], features=["words"]
    ).to_dict(),
    "leaderboard": leaderboard_document,
    "mend": mend_document,
    "methods": methods_document,
    "monitor": monitor_document,
    "multi_answer": multi_answer_document,
    "plan": plan_document,
    "report": lambda: {"schema": "calibrant.report/1", "written": ["report.html"]},
    "sem_ece": sem_ece_document,
    "semantics": semantics_document,
    "serve": lambda: {
        "schema": "calibrant.serve/1",
        "source": "policy.json",
        "results": [{"questions": 201, "cost": 840.0, "answered_by": {"large": 61, "small": 140}}],
        "claims": [],
    },
}
WITH_FOLDER = {"bench_check": bench_check_document, "study": study_result}


@functools.cache
def document_of(kind):
    """A document of this kind without a folder, made once."""
    return KINDS[kind]()


# Lists of what was done: there is nothing to see in them.
WITHOUT_PICTURE = {"analysis", "bench", "demo", "methods", "report", "semantics", "serve"}
