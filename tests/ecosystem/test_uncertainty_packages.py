"""What LM-Polygraph and uqlm wrote, against an independent look at the same files."""

import ast
import json
import math
import pickle
import zipfile
from pathlib import Path

import polars as pl
import pytest

import calibrant as cal
from calibrant.answers.logs import foreign_tables
from calibrant.core.errors import InputError
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.polygraph import NotPlain, read_plain_data
from calibrant.data.logs.recognise import read_log, recognise
from calibrant.verbs.import_logs import import_logs
from ecosystem.raw_logs import auroc_by_pairs, binned_error, modal

FIXTURES = Path(__file__).parent / "fixtures"
POLYGRAPH, UQLM = FIXTURES / "lm_polygraph.pth", FIXTURES / "uqlm.csv"


class Anything:
    """Stands for what is not looked at."""

    def __init__(self, *_):
        pass

    def __setstate__(self, _):
        pass


class PlainOnly(pickle.Unpickler):
    """The standard loader, allowed to make nothing but dicts."""

    def find_class(self, module, name):
        return (lambda *_: {}) if (module, name) == ("collections", "defaultdict") else Anything


def saved_manager():
    with zipfile.ZipFile(POLYGRAPH) as archive, archive.open("lm_polygraph/data.pkl") as file:
        return PlainOnly(file).load()


@pytest.fixture(scope="module")
def manager():
    return saved_manager()


def test_a_saved_manager_is_read_as_the_standard_loader_reads_it(manager):
    with zipfile.ZipFile(POLYGRAPH) as archive:
        found = read_plain_data(archive.read("lm_polygraph/data.pkl"))
    for part in ("estimations", "gen_metrics", "stats"):
        assert found[part] == manager[part]


def test_uncertainties_that_are_logarithms_become_probabilities(manager):
    assert recognise(POLYGRAPH) == "lm-polygraph"
    right = manager["gen_metrics"]["sequence", "Accuracy"]
    assert 0 < sum(right) < len(right) == 24
    blocks = {b["method"]: b for b in cal.audit(POLYGRAPH, resamples=50)["results"]}
    for name, method in (
        ("MaximumSequenceProbability", "sequence_probability"),
        ("Perplexity", "perplexity"),
    ):
        confidence = [math.exp(-u) for u in manager["estimations"]["sequence", name]]
        metrics = blocks[method]["metrics"]
        assert blocks[method]["n"] == 24
        assert metrics["ece"]["value"] == pytest.approx(binned_error(confidence, right, 15))
        assert metrics["auroc"]["value"] == pytest.approx(auroc_by_pairs(confidence, right))
        assert metrics["accuracy"]["value"] == pytest.approx(sum(right) / 24)


def test_other_uncertainties_only_rank(manager):
    left_out = foreign_tables([POLYGRAPH])
    assert set(left_out.scores["method"]) == {"sequence_probability", "perplexity"}
    assert any("MeanTokenEntropy" in note for note in left_out.notes)
    tables = foreign_tables([POLYGRAPH], ranked=True)
    assert tables.ranking == {"MeanTokenEntropy", "LexicalSimilarity_rougeL"}
    entropy = tables.scores.filter(pl.col("method") == "MeanTokenEntropy")["confidence"]
    assert entropy.to_list() == [-u for u in manager["estimations"]["sequence", "MeanTokenEntropy"]]
    stated = {entry["method"]: entry["probability"] for entry in import_logs(POLYGRAPH)["scores"]}
    assert stated == {
        "sequence_probability": True,
        "perplexity": True,
        "MeanTokenEntropy": False,
        "LexicalSimilarity_rougeL": False,
    }


def test_what_only_ranks_is_kept_apart_from_the_scores(tmp_path):
    written = import_logs(POLYGRAPH, tmp_path / "study")["written"]
    ranking = pl.read_parquet(tmp_path / "study" / "ranking.parquet")
    assert str(tmp_path / "study" / "ranking.parquet") in written
    assert set(ranking["method"]) == {"MeanTokenEntropy", "LexicalSimilarity_rougeL"}
    audited = cal.audit(tmp_path / "study", resamples=20)
    methods = {block["method"] for block in audited["results"]}
    assert methods == {"sequence_probability", "perplexity"}
    import_logs(POLYGRAPH, tmp_path / "s.csv")
    assert pl.read_csv(tmp_path / "s.csv").height == 48
    assert pl.read_csv(tmp_path / "s.ranking.csv").height == 48


def resaved(path, **parts):
    """Write a saved manager with some parts replaced, as torch lays it out."""
    manager = saved_manager() | parts
    kept = {name: manager[name] for name in ("estimations", "gen_metrics", "stats")}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("any/data.pkl", pickle.dumps(kept, protocol=4))
    return path


def test_values_that_cannot_be_matched_are_listed(tmp_path, manager):
    perplexity = list(manager["estimations"]["sequence", "Perplexity"])
    short = {
        ("sequence", "Perplexity"): [float("nan"), *perplexity[1:]],
        ("sequence", "MaximumSequenceProbability"): perplexity[:-8],
        ("token", "MaximumTokenProbability"): [[0.1]],
    }
    log = read_log(resaved(tmp_path / "a.pth", estimations=short))
    assert log.scores.height == 23
    places = [problem.place for problem in log.problems]
    assert places == ["estimator Perplexity, input 0", "estimator MaximumSequenceProbability"]
    assert any("MaximumTokenProbability" in note for note in log.notes)


def test_degrees_of_rightness_must_be_asked_for(tmp_path):
    degrees = {("sequence", "Rouge_rougeL"): [0.25] * 24}
    path = resaved(tmp_path / "b.pth", gen_metrics=degrees)
    assert read_log(path).draws["correct"].null_count() == 24
    assert set(read_log(path, options=ReadOptions(grade="Rouge_rougeL")).draws["correct"]) == {0.25}
    with pytest.raises(InputError, match="Rouge_rougeL"):
        read_log(path, options=ReadOptions(grade="Accuracy"))


def test_a_pickle_is_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "touched",))

    found = read_plain_data(pickle.dumps({"trap": Trap(), "kept": [1, 2.5, ("a", None)]}))
    assert not (tmp_path / "touched").exists()
    assert isinstance(found["trap"], NotPlain)
    assert found["kept"] == [1, 2.5, ("a", None)]
    stats = saved_manager()["stats"] | {"greedy_texts": Trap()}
    with pytest.raises((InputError, TypeError)):
        read_log(resaved(tmp_path / "trap.pth", stats=stats))
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_cut_manager_is_refused_with_a_message(tmp_path, share):
    data = POLYGRAPH.read_bytes()
    path = tmp_path / "cut.pth"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError):
        read_log(path, kind="lm-polygraph")
    with pytest.raises(InputError):
        read_log(path)


def test_uqlm_responses_and_samples_are_draws(tmp_path):
    table = pl.read_csv(UQLM)
    log = read_log(UQLM)
    assert (log.kind, log.expected, log.questions.height) == ("uqlm", 30, 30)
    assert log.draws.height == 30 * 6
    samples = [ast.literal_eval(text) for text in table["sampled_responses"]]
    second = log.draws.filter(pl.col("draw") == 2)["answer"].to_list()
    assert second == [row[1] for row in samples]
    # The grade is that of the response; a sample is graded only where it says the same.
    graded = log.draws.filter(pl.col("correct").is_not_null())
    assert set(graded["draw"]) == {0}
    import_logs(UQLM, tmp_path / "study")
    blocks = {b["method"]: b for b in cal.audit(tmp_path / "study", resamples=50)["results"]}
    confidence, right = table["exact_match"].to_list(), table["response_correct"].to_list()
    found = blocks["exact_match"]["metrics"]
    assert found["ece"]["value"] == pytest.approx(binned_error(confidence, right, 15))
    # uqlm's own number: how many of the samples are equal to the response.
    for row, response, stated in zip(samples, table["response"], confidence, strict=True):
        assert row.count(response) / 5 == pytest.approx(stated)
    first = [
        [response, *row].count(response) / 6
        for row, response in zip(samples, table["response"], strict=True)
    ]
    share = blocks["first_run_consistency"]["metrics"]
    assert share["mean_confidence"]["value"] == pytest.approx(sum(first) / 30)
    assert modal([table["response"][0], *samples[0]])[0] == "Paris"


def test_the_table_of_uqlm_is_audited_as_it_is():
    table = pl.read_csv(UQLM)
    options = {"confidence": "exact_match", "question": "prompt", "resamples": 50}
    result = cal.audit(UQLM, "response_correct", **options)
    expected = ((table["exact_match"] - table["response_correct"]) ** 2).mean()
    assert result["results"][0]["metrics"]["brier"]["value"] == pytest.approx(expected)


def test_rows_of_uqlm_that_cannot_be_read_are_listed(tmp_path):
    lines = UQLM.read_text().splitlines()
    lines[3] = lines[3].replace("['", "[(", 1)
    lines[5] = "only one cell"
    path = tmp_path / "uqlm.csv"
    path.write_text("\n".join(lines) + "\n")
    log = read_log(path, kind="uqlm")
    assert log.questions.height == 28
    assert log.expected == 30
    assert len(log.problems) == 2


def test_parquet_and_json_tables_of_uqlm(tmp_path):
    table = pl.read_csv(UQLM).with_columns(
        pl.col("sampled_responses").map_elements(ast.literal_eval, return_dtype=pl.List(pl.String))
    )
    table.write_parquet(tmp_path / "u.parquet")
    (tmp_path / "u.json").write_text(json.dumps(table.to_dicts()))
    whole = read_log(UQLM)
    for name in ("u.parquet", "u.json"):
        assert read_log(tmp_path / name).draws.equals(whole.draws)
