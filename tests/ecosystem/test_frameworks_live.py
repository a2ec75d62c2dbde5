"""Real evaluations by the frameworks' own commands, then `calibrant audit` of what they wrote."""

import json
import math
import re
import zipfile

import polars as pl
import pytest
import zstandard

from calibrant.data.logs.recognise import read_log
from ecosystem import frameworks
from ecosystem.chat_server import serving
from ecosystem.lm_eval_tasks import write_tasks
from ecosystem.raw_logs import auroc_by_pairs, binned_error, inspect_samples, modal

pytestmark = frameworks.needed
HERE = frameworks.HERE


def audited(log, folder):
    """Return the blocks of `calibrant audit LOG`, by method, and the whole document."""
    target = folder / "audit.json"
    frameworks.calibrant("audit", log, "--json", target)
    document = json.loads(target.read_text())
    return {block["method"]: block for block in document["results"]}, document


def value(block, metric):
    return block["metrics"][metric]["value"]


# -- Inspect -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def inspect_logs(tmp_path_factory):
    """One `inspect eval` of all tasks with the mock model, ten epochs: log by name of the task."""
    folder = tmp_path_factory.mktemp("inspect")
    frameworks.run(
        "inspect",
        *("eval", "inspect_tasks.py", "--epochs", 10, "--log-dir", folder / "logs"),
        *("--max-connections", 1, "--max-samples", 1, "--max-tasks", 1, "--display", "none"),
        cwd=HERE,
        home=folder,
    )
    return {path.name.split("_")[1]: path for path in (folder / "logs").glob("*.eval")}


def header(path):
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("header.json")
    data = path.read_bytes()[info.header_offset :]
    start = 30 + int.from_bytes(data[26:28], "little") + int.from_bytes(data[28:30], "little")
    packed = data[start : start + info.compress_size]
    return json.loads(zstandard.ZstdDecompressor().decompressobj().decompress(packed))


def reported(path):
    scores = header(path)["results"]["scores"]
    return {name: metric["value"] for score in scores for name, metric in score["metrics"].items()}


def test_inspect_eval_with_ten_epochs_then_audit(inspect_logs, tmp_path):
    path = inspect_logs["capitals"]
    samples = list(inspect_samples(path))
    assert len(samples) == 80
    stated = [s["scores"]["stated_match"]["metadata"]["confidence"] for s in samples]
    right = [s["scores"]["stated_match"]["value"] == "C" for s in samples]
    blocks, document = audited(path, tmp_path)
    verb = blocks["verb"]
    assert verb["n"] == 80
    assert value(verb, "ece") == pytest.approx(binned_error(stated, right, 15))
    squares = [(c - r) ** 2 for c, r in zip(stated, right, strict=True)]
    assert value(verb, "brier") == pytest.approx(sum(squares) / 80)
    assert value(verb, "auroc") == pytest.approx(auroc_by_pairs(stated, right))
    tokens = [s["output"]["choices"][0]["logprobs"]["content"] for s in samples]
    means = [math.exp(sum(t["logprob"] for t in row) / len(row)) for row in tokens]
    assert value(blocks["perplexity"], "ece") == pytest.approx(binned_error(means, right, 15))
    shares, graded = [], []
    for number in range(8):
        scores = [s["scores"]["stated_match"] for s in samples if s["id"] == f"city-{number}"]
        answer, share = modal([score["answer"] for score in scores])
        shares.append(share)
        graded.append(next(score["value"] == "C" for score in scores if score["answer"] == answer))
    assert value(blocks["consistency"], "ece") == pytest.approx(binned_error(shares, graded, 15))
    assert document["sem_ece"][0]["draws"] == 10
    assert document["dropped"] == {}


def test_metrics_see_every_epoch(inspect_logs, tmp_path):
    found = reported(inspect_logs["contrary"])
    # After averaging, confidence 0.5 meets accuracy 0.5: an error of 0 where every attempt is
    # as wrong about itself as can be.
    assert found["accuracy"] == 0.5
    assert found["ece"] == pytest.approx(1.0)
    assert found["ece_low"] > 0.5
    assert found["brier"] == pytest.approx(1.0)
    assert found["auroc"] == pytest.approx(0.0)
    assert found["ece_n"] == 60
    assert (found["sem_ece_questions"], found["sem_ece_left_out"]) == (6, 0)
    assert found["sem1_ece_low"] <= found["sem1_ece"] <= found["sem1_ece_high"]
    blocks, document = audited(inspect_logs["contrary"], tmp_path)
    assert value(blocks["verb"], "ece") == pytest.approx(1.0)
    semantic = document["sem_ece"][0]
    assert found["sem1_ece"] == pytest.approx(semantic["sem1"]["value"])
    # Random halves: another stream of random numbers, the same quantity.
    assert found["sem2_ece"] == pytest.approx(semantic["sem2"]["value"], abs=0.02)


def test_p_true_reads_the_verdicts_first_token(inspect_logs):
    log = read_log(inspect_logs["verdicts"])
    stated = log.scores.filter(log.scores["method"] == "p_true_prob")["confidence"]
    assert stated.to_list() == pytest.approx([math.exp(-0.25)] * 20)
    assert log.draws["correct"].to_list() == [1.0] * 20


def test_inspect_score_adds_confidences_to_an_old_log(inspect_logs, tmp_path):
    target = tmp_path / "scored.eval"
    frameworks.run(
        "inspect",
        *("score", inspect_logs["capitals"], "--scorer", "calibrant/logprob"),
        *("--action", "append", "--output-file", target),
        cwd=tmp_path,
        home=tmp_path,
    )
    samples = list(inspect_samples(target))
    scores = [sample["scores"]["logprob"] for sample in samples]
    assert len(scores) == 80
    confidence = [score["metadata"]["confidence"] for score in scores]
    right = [{"C": 1.0, "I": 0.0}[score["value"]] for score in scores]
    assert reported(target)["ece"] == pytest.approx(binned_error(confidence, right, 15))
    blocks, _ = audited(target, tmp_path)
    assert {"verb", "perplexity"} <= set(blocks)
    assert blocks["perplexity"]["n"] == 80


def test_our_reader_and_inspects_own_agree(inspect_logs, tmp_path):
    logs = [HERE / "fixtures" / "inspect.eval", HERE / "fixtures" / "inspect.json"]
    logs.append(inspect_logs["capitals"])
    frameworks.run("python", HERE / "read_with_inspect.py", *logs, cwd=tmp_path, home=tmp_path)
    for log in logs:
        fast = read_log(log)
        for table in ("questions", "draws", "scores"):
            slow = pl.read_parquet(tmp_path / f"{log.name}.{table}.parquet")
            keys = ["question_id"] if table == "questions" else ["question_id", "draw"]
            assert getattr(fast, table).sort(keys).equals(slow.sort(keys)), (log.name, table)


# -- lm-eval -------------------------------------------------------------------------------------


def run_lm_eval(folder, *arguments):
    write_tasks(folder / "tasks")
    frameworks.run(
        "lm_eval",
        *("run", *arguments, "--include_path", folder / "tasks"),
        *("--log_samples", "--output_path", folder / "out"),
        cwd=folder,
        home=folder,
    )
    (results,) = (folder / "out").rglob("results_*.json")
    logs = {
        re.sub(r"^samples_(.+)_\d{4}-.*", r"\1", path.name): path
        for path in (folder / "out").rglob("samples_*.jsonl")
    }
    return logs, json.loads(results.read_text())["results"]


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lm_eval_with_the_dummy_model_then_audit(tmp_path):
    logs, results = run_lm_eval(tmp_path, "--model", "dummy", "--tasks", "tiny_choice")
    confidence, right = [], []
    for row in rows_of(logs["tiny_choice"]):
        likely = [float(response[0][0]) for response in row["resps"]]
        confidence.append(math.exp(max(likely)) / sum(map(math.exp, likely)))
        right.append(likely.index(max(likely)) == int(row["target"]))
    blocks, _ = audited(logs["tiny_choice"], tmp_path)
    block = blocks["option_softmax"]
    assert block["n"] == 30
    assert value(block, "ece") == pytest.approx(binned_error(confidence, right, 15))
    assert value(block, "auroc") == pytest.approx(auroc_by_pairs(confidence, right))
    assert value(block, "accuracy") == pytest.approx(results["tiny_choice"]["acc,none"])
    # The metric that the task's YAML takes from calibrant.
    inside = results["tiny_choice"]["likelihood,none"]
    assert inside == pytest.approx(binned_error(confidence, right, 15))


def test_lm_eval_with_a_local_endpoint_then_audit(tmp_path):
    with serving() as (url, given):
        logs, results = run_lm_eval(
            tmp_path,
            *("--model", "local-chat-completions", "--model_args", f"model=adds,base_url={url}"),
            *("--apply_chat_template", "--tasks", "tiny_open,tiny_all"),
        )
    assert len(given) == 20 * 5 * 2
    shares, right = [], []
    for row in rows_of(logs["tiny_open"]):
        if row["filter"] == "majority":
            answer, share = modal(row["resps"][0])
            shares.append(share)
            right.append(answer == row["target"])
    blocks, _ = audited(logs["tiny_open"], tmp_path)
    found = blocks["consistency"]
    assert (found["model"], found["n"]) == ("adds", 20)
    assert value(found, "ece") == pytest.approx(binned_error(shares, right, 15))
    assert value(found, "accuracy") == pytest.approx(results["tiny_open"]["exact_match,majority"])
    # A metric of calibrant sees all repeats where the filter passes them on.
    pairs = [
        (share, float(answer == row["target"]))
        for row in rows_of(logs["tiny_all"])
        for answer, share in [modal(row["resps"][0])]
    ]
    inside = results["tiny_all"]
    assert inside["consistency_ece,all"] == pytest.approx(
        binned_error(*zip(*pairs, strict=True), 15)
    )
    assert inside["consistency_ece_low,all"] <= inside["consistency_ece,all"]
    assert inside["consistency_ece,all"] <= inside["consistency_ece_high,all"]
    assert inside["consistency_left_out,all"] == 0
    assert inside["consistency_auroc,all"] == pytest.approx(
        auroc_by_pairs(*map(list, zip(*pairs, strict=True)))
    )
    (written,) = (tmp_path / "out").rglob("results_*.json")
    upwards = json.loads(written.read_text())["higher_is_better"]["tiny_all"]
    assert upwards["consistency_auroc"] is upwards["consistency_auroc_low"] is True
    assert upwards["consistency_ece"] is upwards["consistency_left_out"] is False


# -- exports -------------------------------------------------------------------------------------


def test_mlflow_reads_what_is_exported(tmp_path):
    source = HERE / "fixtures" / "inspect.eval"
    frameworks.run("python", HERE / "export_to_tools.py", source, cwd=tmp_path, home=tmp_path)
    blocks, _ = audited(source, tmp_path)
    logged = json.loads((tmp_path / "mlflow.json").read_text())
    place = f"{blocks['verb']['model'].replace('/', '_')}/verb"
    assert logged["metrics"][f"{place}/ece"] == pytest.approx(value(blocks["verb"], "ece"))
    assert logged["metrics"][f"{place}/n"] == 80
    assert logged["artifact"]["schema"] == "calibrant.audit/1"
