"""Pages and short views name files without folders, and say what their pictures are about."""

import re

import numpy as np
import polars as pl
import pytest

import calibrant
from calibrant.findings.claims.data import data_warnings
from calibrant.report.cells import Table
from calibrant.report.charts import answer_of
from calibrant.report.charts.chart import Axis, Chart, Dot, Line
from calibrant.report.charts.draw import draw
from calibrant.report.tables import document_blocks


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    rng = np.random.default_rng(2)
    said = rng.uniform(0.3, 1, (2, 400))
    right = rng.random((2, 400)) < said * np.array([[0.7], [1.0]])
    table = pl.DataFrame(
        {
            "question_id": [f"q{i}" for i in range(400)] * 2,
            "model": ["small"] * 400 + ["large"] * 400,
            "confidence": said.ravel(),
            "correct": right.astype(int).ravel(),
        }
    )
    path = tmp_path_factory.mktemp("a_folder") / "runs.csv"
    table.write_csv(path)
    return path


@pytest.mark.parametrize("verb", ["audit", "compare"])
def test_tables_are_named_without_folders(scores, verb):
    options = {"resamples": 100} if verb == "compare" else {}
    found = getattr(calibrant, verb)(scores, **options)
    titles = [b.title for b in document_blocks(found.to_dict()) if isinstance(b, Table)]
    assert not [title for title in titles if "/" in title and "a_folder" in title]
    assert [title for title in titles if title.endswith("of runs, confidence: confidence")]
    # The document itself, folded at the end, keeps the place.
    shown = re.sub(r"<pre>.*?</pre>|<script.*?</script>", "", found.to_html(), flags=re.DOTALL)
    assert "a_folder" not in shown


def test_a_matrix_says_what_its_signs_and_what_its_score_are_about(scores):
    picture = answer_of(calibrant.compare(scores, resamples=100).to_dict())
    assert "Signs: the verdict on each pair" in picture.caption
    assert "Score: skill" in picture.caption


def test_a_second_batch_is_said_to_be_written(scores, tmp_path):
    pool, batch = tmp_path / "pool.csv", tmp_path / "batch.csv"
    pl.read_csv(scores).filter(pl.col("model") == "large").drop("correct").write_csv(pool)
    calibrant.label_next(pool, batch, size=60)
    filled = pl.read_csv(batch, infer_schema=False).with_columns(pl.lit("1").alias("correct"))
    filled.write_csv(batch)
    calibrant.label_add(pool, batch)
    text = " ".join(str(calibrant.label_next(pool, tmp_path / "b2.csv", size=20)).split())
    assert "Batch 2 with 20 items" in text


def test_the_value_now_stands_at_its_height(tmp_path, scores):
    pool, batch = tmp_path / "pool.csv", tmp_path / "batch.csv"
    truth = pl.read_csv(scores).filter(pl.col("model") == "small")
    truth.drop("correct").write_csv(pool)
    calibrant.label_next(pool, batch, size=150)
    outcome = dict(truth.select("question_id", pl.col("correct").cast(pl.String)).iter_rows())
    rows = pl.read_csv(batch, infer_schema=False)
    marked = [outcome[question] for question in rows["question_id"]]
    rows.with_columns(pl.Series("correct", marked)).write_csv(batch)
    drawing = draw(answer_of(calibrant.label_add(pool, batch).to_dict()))
    ring = float(re.search(r'<circle[^>]*cy="([\d.]+)"[^>]*class="ring"', drawing)[1])
    name = float(re.search(r'<text[^>]*y="([\d.]+)"[^>]*>[^<]*points now', drawing)[1])
    assert 0 < ring - name < 20


def test_models_that_lack_rows_are_counted_from_a_share_that_is_said():
    def lost(name, share, p):
        rows = {"n": 1000 - share, "dropped": share, "expected": 1000, "accuracy": 0.5}
        told = {"missing_p": p, "missing_accuracy": 0.4, "kept_accuracy": 0.5}
        return {"model": name, "method": "p", **rows, **told}

    models = [lost("a", 550, 0.001), lost("b", 30, 0.5), lost("c", 5, 0.5)]
    (warning,) = _missing(models)
    assert warning["subject"]["models"] == ["a", "b"]
    assert warning["text"].startswith("2 models lack 1 % of their rows or more, up to 55 % (a).")
    assert not _missing(models[1:])


def _missing(models):
    return [warning for warning in data_warnings(models) if warning["id"] == "data.missing"]


@pytest.mark.parametrize(("cost", "inside"), [(0.4, True), (1.0, False)])
def test_the_name_of_a_point_keeps_clear_of_the_names_of_curves(cost, inside):
    curve = Line([(0.1, 0.6), (1.0, 0.7)], name="expected gain")
    mark = Dot(cost, 0.65, shape="ring", label="chosen", side="beside")
    drawing = draw(Chart("costs", "Costs", "", Axis("cost"), Axis("right"), [curve, mark]))
    ring = float(re.search(r'<circle[^>]*cx="([\d.]+)"', drawing)[1])
    name = float(re.search(r'<text[^>]*x="([\d.]+)"[^>]*>chosen', drawing)[1])
    assert (name > ring) == inside
