"""The step after a decision is one that can be taken."""

import shlex

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.cli.main import app
from calibrant.findings.claims.next_step import next_step
from calibrant.report.captions import without_folders
from calibrant.verbs.audit import audit
from calibrant.verbs.cascade import cascade
from calibrant.verbs.compare import compare
from calibrant.verbs.decide import decide


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    rng = np.random.default_rng(3)
    n = 600
    said = rng.uniform(0.3, 1, (2, n))
    right = (rng.random((2, n)) < said * np.array([[0.85], [1.0]])).astype(int)
    table = pl.DataFrame(
        {
            "question_id": [f"q{i}" for i in range(n)] * 2,
            "model": ["small"] * n + ["large one"] * n,
            "p": said.ravel(),
            "correct": right.ravel(),
        }
    )
    path = tmp_path_factory.mktemp("next") / "scores.csv"
    table.write_csv(path)
    return path


def taken(document, folder, monkeypatch, *, ends=0):
    """Run the step as it stands, from any folder; what it saves goes to `folder`."""
    _, command = next_step(document)
    monkeypatch.chdir(folder)
    words = shlex.split(command)
    assert words[0] == "calibrant"
    from click.testing import CliRunner

    run = CliRunner().invoke(app, words[1:])
    assert run.exit_code == ends, (command, run.output)
    return command


@pytest.mark.parametrize(
    ("models", "verb"),
    [({"over": 400, "true": 400}, "mend"), ({"true": 2000}, "decide"), ({"over": 30}, "plan")],
)
def test_a_map_is_kept_and_without_one_the_step_is_another(tmp_path, monkeypatch, models, verb):
    rng = np.random.default_rng(1)
    parts = []
    for name, n in models.items():
        said = rng.uniform(0.3, 1, n)
        right = (rng.random(n) < said - (0.25 if name == "over" else 0)).astype(int)
        parts.append(pl.DataFrame({"model": name, "p": said, "correct": right}))
    path = tmp_path / "scores.csv"
    pl.concat(parts).write_csv(path)
    found = cal.mend(path, confidence="p").to_dict()
    command = taken(found, tmp_path, monkeypatch)
    assert command.startswith(f"calibrant {verb} ")
    if verb == "mend":
        assert cal.load_mend(tmp_path / "mend.json", model="over").verdict == "mended"
        again = cal.mend(path, confidence="p", save=tmp_path / "mend.json").to_dict()
        assert taken(again, tmp_path, monkeypatch).startswith("calibrant decide ")


def test_nothing_certified_leads_to_a_limit_that_can_be_reached(scores, monkeypatch):
    found = decide(scores, confidence="p", max_error=0.01, only_model="small").to_dict()
    assert not found["results"][0]["certified"]
    command = taken(found, scores.parent, monkeypatch)
    assert float(command.split("--max-error ")[1].split()[0]) > 0.05
    assert "--confidence p" in command
    assert "--only-model small" in command


def test_few_labels_lead_to_labels_and_not_to_a_limit_of_most_answers(scores, monkeypatch):
    few = scores.parent / "few.csv"
    pl.read_csv(scores).filter(pl.col("model") == "large one").head(33).write_csv(few)
    found = decide(few, confidence="p", max_error=0.1).to_dict()
    assert not found["results"][0]["certified"]
    command = taken(found, scores.parent, monkeypatch)
    assert command.startswith("calibrant plan ")
    assert "--max-error" not in command


def test_a_policy_by_costs_is_not_watched_for_a_promise(scores, monkeypatch, tmp_path):
    """Monitoring refuses it: it promises no error."""
    for costs in ({"wrong": 3, "ask": 1}, {"wrong": 10_000, "ask": 1}):
        found = decide(
            scores,
            confidence="p",
            costs=costs,
            only_model="large one",
            only_method="p",
            save=tmp_path / "p.json",
        ).to_dict()
        command = taken(found, tmp_path, monkeypatch)
        assert "--policy" not in command


def test_a_certified_limit_is_saved_then_watched(scores, monkeypatch, tmp_path):
    one = scores.parent / "one.csv"
    pl.read_csv(scores).filter(pl.col("model") == "large one").write_csv(one)
    found = decide(one, confidence="p", max_error=0.4).to_dict()
    assert "--save policy.json" in taken(found, scores.parent, monkeypatch)
    saved = decide(one, confidence="p", max_error=0.4, save=tmp_path / "p.json").to_dict()
    policy = shlex.quote(str(tmp_path / "p.json"))
    assert taken(saved, scores.parent, monkeypatch).endswith(f"--policy {policy}")


@pytest.mark.parametrize("wanted", [{"accuracy": 0.6}, {"guarantee": 0.05}, {"budget": 0.7}])
def test_a_cascade_is_saved_for_what_it_was_asked(scores, monkeypatch, wanted):
    made = cascade(
        scores,
        confidence="p",
        models=["small", "large one"],
        price=[1, 10],
        random_splits=2,
        **wanted,
    ).to_dict()
    command = taken(made, scores.parent, monkeypatch)
    ((name, value),) = wanted.items()
    assert f"--{name} {value:g} --save policy.json" in command
    assert command.count("--budget") == (name == "budget")


def test_weights_are_left_out_where_the_next_verb_takes_none(scores, monkeypatch):
    weighted = scores.parent / "weighted.csv"
    one = pl.read_csv(scores).filter(pl.col("model") == "small")
    one.with_columns((1 + pl.col("p")).alias("w")).write_csv(weighted)
    found = audit(weighted, confidence="p", weights="w").to_dict()
    command = taken(found, scores.parent, monkeypatch)
    assert command.startswith("calibrant mend ")
    assert "--weights" not in command


def test_several_models_lead_to_the_one_that_answers_most(scores, monkeypatch):
    found = decide(scores, confidence="p", max_error=0.4).to_dict()
    assert "--only-model 'large one'" in taken(found, scores.parent, monkeypatch)


def test_a_comparison_leads_to_what_the_most_accurate_may_answer_and_names_no_price(
    scores, monkeypatch
):
    compared = compare(scores, confidence="p", resamples=100).to_dict()
    command = taken(compared, scores.parent, monkeypatch)
    assert "--only-model 'large one'" in command
    assert "price" not in command


def test_a_cascade_leads_to_its_policy(scores, monkeypatch):
    made = cascade(
        scores, confidence="p", models=["small", "large one"], price=[1, 10], random_splits=2
    ).to_dict()
    assert "--save policy.json" in taken(made, scores.parent, monkeypatch)
    saved = cascade(
        scores,
        confidence="p",
        models=["small", "large one"],
        price=[1, 10],
        random_splits=2,
        save=scores.parent / "c.json",
    ).to_dict()
    place = shlex.quote(str(scores.parent / "c.json"))
    command = next_step(saved)[1]
    assert command == f"calibrant serve {place} --endpoint small=URL --endpoint 'large one=URL'"
    assert without_folders(command, saved) == command.replace(place, "c.json")


def test_files_given_together_stay_together(scores, monkeypatch, tmp_path):
    """Each step used to name the first file alone, or both as one name."""
    files = []
    for number, (_, part) in enumerate(pl.read_csv(scores).group_by("model", maintain_order=True)):
        files.append(tmp_path / f"my {number}.csv")
        part.write_csv(files[-1])
    both = shlex.join(map(str, files))
    audited = audit(files, confidence="p").to_dict()
    assert f"calibrant compare {both} --confidence p" in taken(audited, tmp_path, monkeypatch)
    compared = compare(files, confidence="p", resamples=100).to_dict()
    command = taken(compared, tmp_path, monkeypatch)
    assert f"calibrant decide {both} --confidence p" in command
    assert "decide 'my 0.csv' 'my 1.csv'" in without_folders(command, compared)
    decided = decide(files, confidence="p", max_error=0.4).to_dict()
    assert f"calibrant decide {both} --confidence p" in taken(decided, tmp_path, monkeypatch)
    result = decide(files, confidence="p", max_error=0.4)
    assert "Threshold for my 0 and my 1 · 1,200 rows" in str(result)


def test_a_cascade_of_few_questions_leads_to_what_few_questions_allow(scores, monkeypatch):
    few = pl.read_csv(scores).filter(pl.col("question_id").str.len_chars() < 3)
    path = scores.parent / "few.csv"
    pl.concat(
        [few, pl.read_csv(scores).slice(100, 30), pl.read_csv(scores).slice(700, 30)]
    ).write_csv(path)
    found = cascade(path, confidence="p", models=["small", "large one"], price=[1, 10]).to_dict()
    assert found["results"][0]["n"] == 40
    assert found["results"][0]["policy"]["rule"] is None
    assert "calibrant audit" in taken(found, scores.parent, monkeypatch)


def test_of_several_models_without_a_promise_none_is_saved(scores, monkeypatch):
    found = decide(scores, confidence="p", max_error=0.01).to_dict()
    assert [entry["certified"] for entry in found["results"]] == [False, False]
    command = taken(found, scores.parent, monkeypatch)
    assert "--only-model" in command
    assert "--save" not in command


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({"scale": "percent"}, {"confidence": pl.col("confidence") * 100}),
        ({"graded": True}, {"correct": pl.col("correct") / 2}),
        ({"repeats": True}, {"question_id": pl.col("question_id").str.head(2)}),
        ({"recalibrate": "platt"}, {"confidence": pl.col("confidence") * 7 - 3}),
    ],
)
@pytest.mark.parametrize("models", [["small"], ["small", "large one"]])
def test_a_table_that_is_read_in_a_way_of_its_own_leads_to_who_can_read_it(
    scores, tmp_path, monkeypatch, options, columns, models
):
    table = pl.read_csv(scores).rename({"p": "confidence"}).filter(pl.col("model").is_in(models))
    path = tmp_path / "read.csv"
    table.with_columns(**columns).write_csv(path)
    found = audit(path, resamples=20, **options).to_dict()
    taken(found, tmp_path, monkeypatch)
    if len(models) > 1 and options.keys() <= {"scale", "graded"}:
        compared = compare(path, resamples=20, **options).to_dict()
        step = next_step(compared)
        assert step is None or "--scale percent" in step.command
    call = audit(table.with_columns(**columns), resamples=20, **options)["next"]["command"]
    monkeypatch.chdir(tmp_path)
    eval(call, {"calibrant": cal, "table": table.with_columns(**columns)})


def test_after_a_limit_that_no_model_keeps_the_next_limit_is_one_that_can_be_kept(
    scores, tmp_path, monkeypatch
):
    document = decide(scores, max_error=0.02)
    assert not any(entry["certified"] for entry in document["results"])
    command = taken(document, tmp_path, monkeypatch)
    assert "--max-error 0.02" not in command
    assert "--only-model" in command


def test_after_comparing_models_without_information_no_threshold_is_looked_for(
    scores, tmp_path, monkeypatch
):
    rng = np.random.default_rng(5)
    table = pl.read_csv(scores).with_columns(pl.lit(rng.choice([0.7, 0.9], 1200)).alias("p"))
    table.write_csv(tmp_path / "said.csv")
    document = compare(tmp_path / "said.csv", confidence="p")
    assert all(row["uninformative"] for row in document["league"][0]["entries"])
    assert "calibrant mend" in taken(document, tmp_path, monkeypatch)
