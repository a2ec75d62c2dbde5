"""Pages and pictures need no renderer; files of charts say what to install."""

import base64
import gzip
import sys

import pytest
import vl_convert

import calibrant as cal
from calibrant.core.document import load_document
from calibrant.core.errors import MissingDependencyError
from calibrant.report.page.vega import packed_vega, vega_script
from calibrant.report.pictures import picture_of
from calibrant.report.pictures.picture import save_picture
from calibrant.workflows.report import write_report


@pytest.fixture
def audited(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    path = tmp_path / "audit.json"
    confidence = [0.5 + i / 200 for i in range(90)]
    cal.audit(confidence, [int(i % 3 > 0) for i in range(90)], resamples=20).to_json(path)
    return path


def test_the_shipped_script_is_vega():
    text = vega_script()
    assert text == vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    assert gzip.decompress(base64.b64decode(packed_vega())).decode() == text


def test_a_page_needs_no_renderer(audited, tmp_path):
    write_report(audited, html=tmp_path / "page.html")
    assert "vega" in (tmp_path / "page.html").read_text()


def test_a_picture_as_svg_needs_no_renderer(audited, tmp_path):
    picture = picture_of(load_document(audited))
    (path,) = save_picture(picture, tmp_path, formats=["svg"])
    assert path.read_text().startswith("<svg")


def test_files_of_charts_say_what_to_install(audited, tmp_path):
    with pytest.raises(MissingDependencyError, match=r"pip install 'calibrant\[figures\]'"):
        write_report(audited, figures=tmp_path / "figures")
