"""Pages and charts need no renderer; png and pdf files say what to install."""

import sys
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.core.errors import MissingDependencyError
from calibrant.verbs.write_report import write_report


@pytest.fixture
def audited(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    path = tmp_path / "audit.json"
    confidence = [0.5 + i / 200 for i in range(90)]
    cal.audit(confidence, [int(i % 3 > 0) for i in range(90)], resamples=20).to_json(path)
    return path


def test_a_page_needs_no_renderer(audited, tmp_path):
    write_report(audited, html=tmp_path / "page.html")
    assert "<svg" in (tmp_path / "page.html").read_text()


def test_charts_as_svg_need_no_renderer(audited, tmp_path):
    written = write_report(audited, figures=tmp_path / "charts", formats=["svg"])["written"]
    names = [path.rpartition("/")[2] for path in written]
    assert names == ["answer.svg", "floors.svg", "reliability-1.svg"]
    assert all(Path(path).read_text().startswith("<svg") for path in written)


def test_png_and_pdf_files_say_what_to_install(audited, tmp_path):
    with pytest.raises(MissingDependencyError, match=r"pip install 'calibrant\[figures\]'"):
        write_report(audited, figures=tmp_path / "figures")
