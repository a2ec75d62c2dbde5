"""`calibrant report` as a person calls it."""

import json

import pytest
from click.testing import CliRunner

import calibrant as cal
from calibrant.cli.main import app
from calibrant.core.errors import CalibrantError

run = CliRunner().invoke


@pytest.fixture
def audited(tmp_path):
    path = tmp_path / "audit.json"
    cal.audit([0.9, 0.8, 0.6, 0.7] * 50, [1, 0, 1, 1] * 50, resamples=50).to_json(path)
    return path


def test_page_tables_and_figures_are_written(audited, tmp_path):
    done = run(
        app,
        [
            "report",
            str(audited),
            *("--html", str(tmp_path / "r.html")),
            *("--markdown", str(tmp_path / "r.md")),
            *("--figures", str(tmp_path / "figures")),
            *("--title", "My <title>"),
            *("--json", str(tmp_path / "r.json")),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "My &lt;title&gt;" in (tmp_path / "r.html").read_text()
    assert (tmp_path / "r.md").read_text().startswith("**Says 75 %, is right 75 %")
    written = json.loads((tmp_path / "r.json").read_text())["written"]
    assert {path.rsplit(".", 1)[1] for path in written} == {"html", "md", "svg", "png", "pdf"}


def test_without_a_place_to_write_to_it_shows_the_tables(audited, tmp_path):
    done = run(app, ["report", str(audited)])
    assert done.exit_code == 0, done.output
    assert "ECE" in done.output
    assert "--html" in done.output
    run(
        app,
        [
            "report",
            str(audited),
            "--markdown",
            str(tmp_path / "r.md"),
            "--json",
            str(tmp_path / "r"),
        ],
    )
    assert json.loads((tmp_path / "r").read_text())["documents"] == []


def test_a_document_of_an_unknown_kind_is_refused_with_its_name(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"schema": "calibrant.audits/1"}')
    done = run(app, ["report", str(path), "--markdown", str(tmp_path / "x.md")])
    assert isinstance(done.exception, CalibrantError)
    assert "calibrant.audits/1" in str(done.exception)


def test_text_that_is_no_json_is_refused_with_its_place(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{")
    done = run(app, ["report", str(path), "--html", str(tmp_path / "x.html")])
    assert isinstance(done.exception, CalibrantError)
    assert str(path) in str(done.exception)


def test_half_a_document_is_refused_with_its_place(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"schema": "calibrant.audit/1", "results": [{}]}')
    done = run(app, ["report", str(path), "--html", str(tmp_path / "x.html")])
    assert isinstance(done.exception, CalibrantError)
    assert "not a whole calibrant.audit/1 document" in str(done.exception)
    assert str(path) in str(done.exception)


@pytest.mark.parametrize(("given", "place"), [("nothing.json", "r.html"), (None, "no/such/r.html")])
def test_a_file_that_is_not_there_is_named(audited, tmp_path, given, place):
    path = audited if given is None else tmp_path / given
    done = run(app, ["report", str(path), "--html", str(tmp_path / place)])
    assert isinstance(done.exception, CalibrantError)
    assert str(tmp_path) in str(done.exception)
