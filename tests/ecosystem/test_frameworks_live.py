"""Real evaluations, run where the frameworks are installed: `pip install inspect-ai lm-eval`."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.records.convert import ReadOptions, read_log
from calibrant.records.convert.inspect_log import read_inspect_with_framework
from ecosystem.raw_logs import binned_error, inspect_samples

HERE = Path(__file__).parent


def needs(module):
    return pytest.mark.skipif(
        importlib.util.find_spec(module) is None,
        reason=f"FRAMEWORK ABSENT: {module} is not installed; its stored logs are tested instead",
    )


# The frameworks warn about themselves; that is not what is tested here.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def run_inspect(task, model, folder, epochs, **options):
    from inspect_ai import eval as inspect_eval

    (log,) = inspect_eval(
        task,
        model=model,
        epochs=epochs,
        max_connections=1,
        max_samples=1,
        log_dir=str(folder),
        display="none",
        **options,
    )
    assert log.status == "success", log.error
    return log, Path(log.location.removeprefix("file://"))


@needs("inspect_ai")
def test_inspect_eval_with_ten_epochs_then_audit(tmp_path):
    from ecosystem import inspect_tasks

    _, path = run_inspect(inspect_tasks.capitals(8), inspect_tasks.mock(8, 10), tmp_path, 10)
    samples = list(inspect_samples(path))
    stated = [s["scores"]["stated_match"]["metadata"]["confidence"] for s in samples]
    right = [s["scores"]["stated_match"]["value"] == "C" for s in samples]
    blocks = {block["method"]: block for block in cal.audit(path, resamples=50)["results"]}
    assert blocks["verb"]["n"] == 80
    assert blocks["verb"]["metrics"]["ece"]["value"] == pytest.approx(
        binned_error(stated, right, 15)
    )


@needs("inspect_ai")
def test_our_reader_and_inspects_own_agree():
    for name in ("inspect.eval", "inspect.json"):
        path = HERE / "fixtures" / name
        fast, slow = read_log(path), read_inspect_with_framework(path, ReadOptions())
        for table in ("questions", "draws", "scores"):
            keys = ["question_id"] if table == "questions" else ["question_id", "draw"]
            left, right = getattr(fast, table).sort(keys), getattr(slow, table).sort(keys)
            assert left.equals(right), table


def contrary_task():
    """Half of the attempts are right with confidence 0, half wrong with confidence 1."""
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.solver import generate

    from calibrant.api.inspect_entry import verbalised

    samples = [Sample(id=str(i), input=f"Question {i}?", target="Paris") for i in range(6)]
    return Task(dataset=samples, solver=generate(), scorer=verbalised())


def contrary_replies():
    from ecosystem.inspect_tasks import reply

    for epoch in range(10):
        for _ in range(6):
            text = "Paris | 0.0" if epoch % 2 else "Rome | 1.0"
            yield reply(text, [-0.1] * len(text.split()))


@needs("inspect_ai")
def test_metrics_see_every_epoch(tmp_path):
    from inspect_ai.model import get_model

    model = get_model("mockllm/model", custom_outputs=contrary_replies())
    log, path = run_inspect(contrary_task(), model, tmp_path, 10)
    found = {
        name: metric.value for score in log.results.scores for name, metric in score.metrics.items()
    }
    # After averaging, confidence 0.5 meets accuracy 0.5: an error of 0 where every attempt is
    # as wrong about itself as can be.
    assert found["accuracy"] == 0.5
    assert found["ece"] == pytest.approx(1.0)
    assert found["ece_low"] > 0.5
    assert found["brier"] == pytest.approx(1.0)
    assert found["auroc"] == pytest.approx(0.0)
    assert found["ece_n"] == 60
    assert 0 <= found["sem2_ece"] <= 1
    audited = {b["method"]: b for b in cal.audit(path, resamples=50)["results"]}
    assert audited["verb"]["metrics"]["ece"]["value"] == pytest.approx(1.0)


@needs("inspect_ai")
def test_inspect_score_adds_confidences_to_an_old_log(tmp_path):
    target = tmp_path / "scored.eval"
    done = subprocess.run(
        [
            Path(sys.executable).parent / "inspect",
            "score",
            HERE / "fixtures" / "inspect.eval",
            "--scorer",
            "calibrant/logprob",
            "--action",
            "append",
            "--output-file",
            target,
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    scores = [sample["scores"]["logprob"] for sample in inspect_samples(target)]
    assert len(scores) == 80
    assert all(0 < score["metadata"]["confidence"] < 1 for score in scores)


@needs("inspect_ai")
def test_p_true_reads_the_verdicts_first_token(tmp_path):
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.solver import generate

    from calibrant.api.inspect_entry import p_true
    from ecosystem.inspect_tasks import reply

    outputs = [reply("Paris", [-0.3]), reply("True", [-0.25])] * 2
    task = Task(
        dataset=[Sample(id=i, input="Capital of France?", target="Paris") for i in (1, 2)],
        solver=generate(),
        scorer=p_true(),
    )
    model = get_model("mockllm/model", custom_outputs=outputs)
    _, path = run_inspect(task, model, tmp_path, 1)
    log = read_log(path)
    stated = log.scores.filter(log.scores["method"] == "p_true_prob")["confidence"]
    assert stated.to_list() == pytest.approx([0.7788, 0.7788], abs=1e-4)
    assert log.draws["correct"].to_list() == [1.0, 1.0]


@needs("lm_eval")
def test_lm_eval_then_audit(tmp_path):
    subprocess.run(
        [sys.executable, HERE / "lm_eval_run.py", tmp_path / "out"], check=True, capture_output=True
    )
    (path,) = (tmp_path / "out").rglob("samples_tiny_choice_*.jsonl")
    (results,) = (tmp_path / "out").rglob("results_*.json")
    reported = json.loads(results.read_text())["results"]["tiny_choice"]["acc,none"]
    block = cal.audit(path, resamples=50)["results"][0]
    assert block["n"] == 30
    assert block["metrics"]["accuracy"]["value"] == pytest.approx(reported)
