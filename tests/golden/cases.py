"""Whole documents by verb and kind of input, from fixed tables and seeds.

Every case runs in an empty folder and names its files by relative paths, so that a document holds
no path of the machine.
"""

import calibrant as cal
from golden.tables import (
    benchmark,
    csv,
    days,
    draws,
    fixture,
    jsonl,
    multi_answer_scores,
    parquet,
    partly_labelled,
    pool,
    sampled,
    samples_jsonl,
    study,
    written,
)
from judged import pairs, ratings
from support import model_scores

QUESTIONS = 150
RESAMPLES = 50


def audit(data, *more, **options):
    return cal.audit(data, *more, resamples=RESAMPLES, **options)


def compare(data, **options):
    return cal.compare(data, resamples=RESAMPLES, **options)


def status():
    path = partly_labelled()
    cal.label_add(path, "batch.csv", who="ann")
    return cal.label_status(path)


def graded_study():
    cal.grade(sampled(), out="graded")
    return "graded"


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
    "audit-inspect": lambda: audit(fixture("inspect.json")),
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
        written(model_scores(("small",), n=400), "g.csv"), features=["topic", "hard"]
    ),
    "groups-dataframe": lambda: cal.groups(
        model_scores(("small",), n=400), features=["topic", "hard"]
    ),
    "cascade-csv": lambda: cal.cascade(
        written(model_scores(n=400), "c.csv"),
        features=["hard"],
        models=["small", "large"],
        price={"small": 1, "large": 8},
        random_splits=4,
    ),
    "cascade-dataframe": lambda: cal.cascade(
        model_scores(n=300),
        features=["hard"],
        models=["small", "large"],
        price=[1, 8],
        random_splits=2,
        strategies=["value", "confidence"],
        guarantee=0.1,
    ),
    "plan-numbers": lambda: cal.plan(precision=0.05, error_rate=0.2),
    "plan-csv": lambda: cal.plan(csv(), precision=0.05, rank="accuracy"),
    "plan-claim": lambda: cal.plan(pool()[0], claim="ece<0.1"),
    "plan-rank": lambda: cal.plan(model_scores(("small", "middle", "large")), rank="brier"),
    "plan-preset": lambda: cal.plan(
        error_rate=0.1, preset="fda-samd", drift=0.01, start="2026-01-01", groups=4
    ),
    "monitor-dataframe": lambda: cal.monitor(days(), every=100, baseline=days()[:300]),
    "judge-csv": lambda: cal.judge(
        written(ratings(), "r.csv"),
        judge=["judge"],
        human=["expert1", "expert2"],
        features=["words"],
    ),
    "judge-pairs": lambda: cal.judge(
        pairs(), judge=["judge"], human=["person"], swapped="other_order"
    ),
    "mend-csv": lambda: cal.mend(csv()),
    "decide-csv": lambda: cal.decide(csv(), only_model="small", max_error=0.3),
    "decide-costs": lambda: cal.decide(
        model_scores(("small",)), costs={"wrong": 10, "ask": 1}, features=["hard"]
    ),
    "decide-study": lambda: cal.decide(study(), only_model="large", max_error=0.2),
    "label-next": lambda: cal.label_next(pool()[0], out="batch.csv", size=20, who="ann"),
    "label-add": lambda: cal.label_add(partly_labelled(), "batch.csv", who="ann"),
    "label-status": status,
    "grade-jsonl": lambda: cal.grade(samples_jsonl()),
    "grade-dataframe": lambda: cal.grade(sampled(), out="graded"),
    "audit-samples": lambda: audit(sampled(), samples="answers", reference="gold"),
    "bench-mace": lambda: cal.bench_mace(domains=["math", "language"], per_k=2, limit=100),
    "bench-check": lambda: cal.bench_check(benchmark()),
    "bench-evaluate": lambda: cal.bench_evaluate(
        multi_answer_scores(), reference="consistency", resamples=100
    ),
    "import-inspect": lambda: cal.import_logs(fixture("inspect.json"), "imported"),
    "import-csv": lambda: cal.import_logs(fixture("uqlm.csv"), "scores.csv"),
    "import-openai": lambda: cal.import_logs(fixture("openai_evals.jsonl"), "imported.parquet"),
    "methods-all": cal.methods,
    "methods-study": lambda: cal.methods(graded_study()),
    "monitor-csv": lambda: cal.monitor(
        written(days(), "days.csv"), time="time", baseline_rows=300, precision=0.05
    ),
}
RAY_CASES = {
    "audit-streamed": lambda engine: audit(parquet(), engine=engine, by=["topic"]),
}
