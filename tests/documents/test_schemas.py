"""Documents keep what their schema says: stored ones, and new ones of every verb."""

import gzip
import json
import re
import signal
from importlib.resources import files

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import calibrant as cal
from calibrant.answers.semantics.verdict import agreement
from calibrant.apps.serve import serve
from calibrant.core.document import kind_of, load_document, newest_version
from calibrant.core.errors import SchemaError
from calibrant.findings.documents import FIELDS, document_schema
from calibrant.findings.documents.__main__ import FOLDER, schema_files
from calibrant.findings.documents.fields import fields_of
from calibrant.report.result import Result
from calibrant.verbs.init import init
from calibrant.verbs.models import models
from calibrant.verbs.run import run
from calibrant.verbs.study.analysis import analyse
from collect.endpoint import Oracle
from collect.studies import write_study
from judged import ratings
from support import ROOT, schema_errors

# Kept and read by one class each, which checks them; no verb returns one.
FILES_OF_THEIR_OWN = {"ensemble", "monitor_state", "policy", "serve_state"}
STORED = sorted((ROOT / "tests" / "golden" / "documents").glob("*.json.gz"))


def test_the_schema_files_are_current():
    assert {path.name for path in FOLDER.glob("*.json")} == set(schema_files())
    for name, text in schema_files().items():
        assert (FOLDER / name).read_bytes() == text, "run python -m calibrant.findings.documents"


def test_the_schema_files_are_shipped():
    shipped = files("calibrant.findings.documents") / "schemas" / "audit.json"
    assert json.loads(shipped.read_text())["title"] == "calibrant.audit/1"


@pytest.mark.parametrize("kind", FIELDS)
def test_every_schema_is_one(kind):
    Draft202012Validator.check_schema(document_schema(kind))
    assert type(Result({"schema": f"calibrant.{kind}/1"})) is not Result


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name.partition(".")[0])
def test_stored_documents_keep_the_schema_and_are_read_by_attribute(path):
    document = json.loads(gzip.decompress(path.read_bytes()))
    if document["schema"] == f"calibrant.{kind_of(document)}/{newest_version(kind_of(document))}":
        assert schema_errors(document) == []
    result = Result(document)
    assert issubclass(type(result), FIELDS[result.kind])
    for name in fields_of(FIELDS[result.kind]):
        getattr(result, name)
    assert any(document.get(key) for key in ("results", "sem_ece", "methods"))


def small(n=240):
    rng = np.random.default_rng(0)
    said = rng.uniform(0.4, 1, n)
    return {
        "question_id": [f"q{i}" for i in range(n // 2)] * 2,
        "model": ["small"] * (n // 2) + ["large"] * (n // 2),
        "method": ["verb"] * n,
        "confidence": said,
        "correct": (rng.random(n) < said - 0.1).astype(int),
        "topic": ["law", "sport"] * (n // 2),
        "hard": rng.random(n),
        "k": [1, 2] * (n // 2),
        "domain": ["math"] * n,
    }


def one_model(n=400):
    table = small(2 * n)
    return {name: values[:n] for name, values in table.items()}


def two_models(n=400):
    table = small(n)
    return {**table, "hard": np.tile(table["hard"][: n // 2], 2)}


def sampled():
    import polars as pl

    return pl.DataFrame(
        {"question": ["Capital of Peru?"], "gold": ["Lima"], "answers": [["Lima", "It is Lima."]]}
    )


def reported(folder):
    cal.audit(one_model(), resamples=20).to_json(folder / "audit.json")
    return cal.write_report(folder / "audit.json", html=folder / "page.html")


def ran(folder):
    with Oracle() as server:
        return run(write_study(folder / "study", server.url))


def part_of_study(name):
    def made(folder):
        ran(folder)
        return Result(load_document(folder / "study" / "results" / f"{name}.json"))

    return made


def served(folder):
    policy = folder / "policy.json"
    cal.decide(one_model(), max_error=0.5, save=policy)
    return serve(
        policy,
        endpoint=["small=http://127.0.0.1:9/v1"],
        ledger=folder / "served.sqlite",
        measured_by="perplexity",
        on_start=lambda *_: signal.raise_signal(signal.SIGINT),
    )


MADE = {
    "accuracy": lambda _: cal.audit({k: small()[k] for k in ("question_id", "model", "correct")}),
    "audit": lambda _: cal.audit(small(), resamples=20),
    "compare": lambda _: cal.compare(small(), resamples=50),
    "groups": lambda _: cal.groups(one_model(), features=["topic", "hard"]),
    "decide": lambda _: cal.decide(one_model(), max_error=0.5),
    "mend": lambda _: cal.mend(one_model()),
    "judge": lambda _: cal.judge(ratings(), judge=["judge"], human=["expert1", "expert2"]),
    "plan": lambda _: cal.plan(precision=0.05, error_rate=0.2),
    "monitor": lambda _: cal.monitor(one_model(), every=50),
    "label": lambda folder: cal.label_next(open_labels(folder), folder / "batch.csv", size=5),
    "bench": lambda _: cal.bench_mace(k=[1, 2], per_k=2),
    "bench_check": lambda folder: cal.bench_check(questions(folder)),
    "multi_answer": lambda _: cal.bench_evaluate(small(), reference="verb", tune=[]),
    "methods": lambda _: cal.methods(),
    "import_logs": lambda folder: cal.import_logs(written(folder), confidence="confidence"),
    "cascade": lambda _: cal.cascade(
        two_models(),
        features=["hard"],
        models=["small", "large"],
        price={"small": 1, "large": 8},
        random_splits=2,
    ),
    "grade": lambda _: cal.grade(sampled()),
    "models": lambda _: models(),
    "report": reported,
    "run": ran,
    "study": part_of_study("study"),
    "analysis": lambda folder: (ran(folder), analyse(folder / "study"))[1],
    "init": lambda folder: init(folder / "new"),
    "serve": served,
    "leaderboard": lambda _: Result(
        cal.labels.leaderboard({name: (p, p > 0.5) for name, p in two_columns().items()})
    ),
    "semantics": lambda _: Result(cal.grade(sampled())["semantics"]),
    "agreement": lambda _: Result(agreement([True, False, None, True] * 5, [1, 0, 1, 0] * 5)),
}
# Takes long, and is made once, by tests/workflows/test_demo.py, which checks it too.
MADE_ELSEWHERE = {"demo"}


def two_columns():
    rng = np.random.default_rng(1)
    return {name: rng.random(80) for name in ("a", "b")}


def test_every_kind_is_made_here():
    assert {*MADE, *MADE_ELSEWHERE} == set(FIELDS)


def test_every_document_of_the_program_has_a_schema():
    heads = re.compile(r'document_head\(\s*"(\w+)"|"calibrant\.(\w+)/\d"')
    named = {
        kind
        for path in (ROOT / "src" / "calibrant").rglob("*.py")
        for pair in heads.findall(path.read_text())
        for kind in pair
        if kind
    }
    assert named - set(FIELDS) == FILES_OF_THEIR_OWN


def written(folder):
    import polars as pl

    pl.DataFrame(one_model(20)).write_csv(folder / "scores.csv")
    return folder / "scores.csv"


def open_labels(folder):
    import polars as pl

    table = pl.DataFrame(one_model(40)).with_columns(correct=pl.lit(None, dtype=pl.Float64))
    table.write_csv(folder / "pool.csv")
    return folder / "pool.csv"


def questions(folder):
    cal.bench_mace(folder / "q.jsonl", k=[1], per_k=2)
    return folder / "q.jsonl"


@pytest.mark.parametrize("kind", MADE)
def test_new_documents_keep_the_schema(kind, tmp_path):
    result = MADE[kind](tmp_path)
    assert result.kind == kind
    assert schema_errors(result.to_dict()) == []
    for name in fields_of(FIELDS[kind]):
        getattr(result, name)


def test_a_result_is_a_mapping_with_attributes():
    result = cal.audit(one_model(), resamples=20)
    entry = result.results[0]
    assert entry.metrics.ece.high == result["results"][0]["metrics"]["ece"]["high"]
    assert entry.verification.passive_floor.value is not None
    assert "results" in dir(result)
    assert {**result}["schema"] == result.schema == "calibrant.audit/1"
    with pytest.raises(AttributeError, match="a result of audit has no 'resutls'; did you mean"):
        _ = result.resutls


def test_keys_that_were_added_later_are_passed_over_and_kept():
    document = cal.plan(precision=0.05, error_rate=0.2).to_dict()
    document = json.loads(json.dumps(document))
    document["new"] = 1
    document["results"][0]["newer"] = 2
    result = Result(document)
    assert result.results[0].passive_labels > 0
    assert result["results"][0]["newer"] == 2
    assert result.new == 1


def test_a_value_that_breaks_the_schema_is_named():
    result = Result({"schema": "calibrant.plan/1", "results": [{"error_rate": "high"}]})
    with pytest.raises(SchemaError, match="the key 'results' is not what its schema says"):
        _ = result.results


@pytest.mark.parametrize(
    ("schema", "kind"),
    [("calibrant.audit/1", "audit"), ("calibrant.monitor/1", "monitor"),
     ("calibrant.monitor/2", "monitor")],
)  # fmt: skip
def test_older_versions_are_read(schema, kind):
    assert kind_of({"schema": schema}) == kind


@pytest.mark.parametrize("schema", ["calibrant.audit/2", "calibrant.monitor/3", "audit/1", "",
                                    "calibrant.audit/", "calibrant.audit/x"])  # fmt: skip
def test_other_versions_are_refused(schema):
    with pytest.raises(SchemaError):
        kind_of({"schema": schema})
