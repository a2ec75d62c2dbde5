"""A result in a notebook, as tables and charts of other libraries, and through pickle."""

import json
import os
import pickle

import numpy as np
import pytest
from hostile import hostile_document
from html_tags import tags_of
from notebooks import html_outputs, plain_outputs, run_notebook, write_notebook

import calibrant as cal
from calibrant.core.document import plain
from calibrant.core.errors import InputError
from calibrant.report.result import Result
from documents import KINDS, document_of
from support import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def result():
    return cal.audit([0.9, 0.8, 0.6, 0.7] * 50, [1, 0, 1, 1] * 50, resamples=50)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_a_view_without_scripts(kind):
    text = Result(plain(document_of(kind)))._repr_html_()
    names = {tag for tag, _ in tags_of(text)}
    assert "div" in names
    assert not names & {"script", "iframe", "img", "link", "object"}


def test_the_view_has_badge_sentence_picture_and_table(result):
    text = result._repr_html_()
    assert 'class="cal-badge miscalibrated"' in text
    assert "<svg" in text
    assert text.count("<tr>") == 2
    assert "Calibration error" in text


def test_text_in_a_kernel_brings_no_output_of_its_own(result, monkeypatch):
    # An empty output stood before every result.
    shown = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *parts: shown.append(parts))
    assert str(result).startswith("Audit")
    assert shown == []


def test_a_picture_in_a_dark_notebook_has_paper_of_its_own(result):
    for text in (result._repr_html_(), result.plot()._repr_html_()):
        assert "prefers-color-scheme" not in text
        assert "background: var(--p-paper)" in text


def test_the_next_step_in_python_is_a_call(tmp_path):
    path = tmp_path / "my answers.csv"
    rng = np.random.default_rng(0)
    rows = [f"q{i // 2},{'ab'[i % 2]},0.9,{int(rng.random() < 0.6)}" for i in range(400)]
    path.write_text("\n".join(["question_id,model,confidence,correct", *rows]))
    result = cal.decide(path, max_error=0.5)
    step = next(line for line in str(result).splitlines() if line.startswith("Next:"))
    assert step.startswith("Next:  calibrant.decide(")
    assert "calibrant.decide(&quot;" in result._repr_html_()


def test_the_chart_of_a_decision_is_that_of_the_promise():
    document = plain(document_of("decide"))
    entry = document["results"][0]
    worse = {**entry, "model": "z", "certified": False, "threshold": None}
    worse["answered"] = {**entry["answered"], "value": 0.0}
    for results in ([worse, entry], [entry, worse]):
        chart = Result({**document, "results": results}).plot().chart
        assert chart.title.endswith(f", {entry['model']} / {entry['method']}")


def test_hostile_text_is_text_in_a_notebook():
    text = Result(plain(hostile_document()))._repr_html_()
    for tag, attributes in tags_of(text):
        assert tag not in ("script", "img", "iframe")
        assert not any(name.startswith("on") for name in attributes)


def test_results_become_tables(result):
    for table in (result.to_polars(), result.to_pandas()):
        assert table.shape[0] == 1
        assert {"model", "ece", "ece_low", "ece_high", "n"} <= set(table.columns)
    assert result.to_polars()["ece"][0] == result["results"][0]["metrics"]["ece"]["value"]


def test_a_chart_shows_and_saves_itself(result, tmp_path):
    assert result.plot().chart.name == "answer"
    assert result.plot("reliability").chart.name == "reliability-1"
    plot = result.plot("floors")
    assert plot._repr_html_().startswith("<figure><svg ")
    for name in ("mine.svg", "mine.png"):
        plot.save(tmp_path / name)
    assert (tmp_path / "mine.svg").read_text() == plot.svg
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="written as svg, png, pdf, got 'gif'"):
        plot.save(tmp_path / "mine.gif")
    with pytest.raises(InputError, match="no chart 'flors'") as error:
        result.plot("flors")
    assert "floors" in str(error.value)


def test_kinds_without_a_chart_say_so():
    with pytest.raises(InputError, match="has no chart"):
        Result({"schema": "calibrant.analysis/1", "done": [], "left_out": []}).plot()


def test_a_result_goes_through_pickle(result):
    again = pickle.loads(pickle.dumps(result))  # noqa: S301
    assert again.to_dict() == result.to_dict()
    assert again.kind == "audit"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_of_the_documentation_shows_what_it_shows_now(path, monkeypatch):
    """Write it again with CALIBRANT_SNAPSHOTS=write."""
    monkeypatch.setenv("COLUMNS", "80")
    stored, now = json.loads(path.read_text(encoding="utf-8")), run_notebook(path)
    if os.environ.get("CALIBRANT_SNAPSHOTS") == "write":
        write_notebook(now, path)
        stored = now
    assert plain_outputs(stored) == plain_outputs(now)
    assert html_outputs(stored).count("<svg") == html_outputs(now).count("<svg") >= 2
