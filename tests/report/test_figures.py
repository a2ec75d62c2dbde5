"""Figures of every kind of document: drawn, explained, and shown in the gallery."""

import re

import numpy as np
import pytest

from calibrant.core.document import plain
from calibrant.report.figures import figure_svg, figures_of
from calibrant.report.figures.semantic import pooled_figures
from documents import KINDS, document_of
from support import ROOT

# Kinds that have nothing to draw.
WITHOUT = {"analysis", "decide", "demo", "methods", "report", "serve"}
GALLERY = ROOT / "docs" / "studies" / "gallery.md"


def kind_of_figure(name):
    return re.sub(r"-\d+$", "", name)


def all_figures():
    return {
        kind_of_figure(figure.name): figure
        for kind in KINDS
        for figure in figures_of(plain(document_of(kind)))
    }


@pytest.mark.parametrize("kind", sorted(set(KINDS) - WITHOUT))
def test_every_kind_has_figures_that_can_be_drawn(kind):
    found = figures_of(plain(document_of(kind)))
    assert found
    for figure in found:
        assert "<path" in figure_svg(figure)
        assert figure.caption.endswith(".")


def parts_of(spec):
    yield spec
    for child in [*spec.get("layer", []), *spec.get("vconcat", [])]:
        yield from parts_of(child)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - WITHOUT))
def test_every_figure_shows_its_numbers_on_hover(kind):
    for figure in figures_of(plain(document_of(kind))):
        tips = [
            tip
            for part in parts_of(figure.spec)
            for tip in part.get("encoding", {}).get("tooltip", [])
        ]
        assert any(tip["type"] == "quantitative" for tip in tips), figure.name


def values_of(spec):
    for part in parts_of(spec):
        yield from part.get("data", {}).get("values", [])


def test_labelling_shows_every_batch_and_every_bin_with_a_label():
    document = plain(document_of("label"))
    running, gaps = figures_of(document)
    entry = document["results"][0]
    shown = [row["labels"] for row in values_of(running.spec)]
    assert shown == [step["labels"] for step in entry["history"]]
    assert shown[-1] == 120
    bins = {round(row["from"], 6) for row in values_of(gaps.spec) if "from" in row}
    assert bins == {round(part["bin"][0], 6) for part in entry["gaps"] if part["labels"]}


def test_monitoring_shows_the_alarm_where_it_went_off():
    document = plain(document_of("monitor"))
    (figure,) = figures_of(document)
    alarms = {row["when"] for row in values_of(figure.spec) if row.get("state") == "alarm"}
    assert alarms == {document["results"][0]["alarm"]["when"]}
    limits = [row["alarm at"] for row in values_of(figure.spec) if "alarm at" in row]
    assert limits == [pytest.approx(np.log10(document["results"][0]["limit"]))]


def test_a_pair_is_drawn_in_a_view_of_its_verdict_and_coloured_by_it():
    document = plain(document_of("compare"))
    for pair, outcome in zip(document["pairs"], ("shown", "depends", "undecided"), strict=True):
        pair["outcome"] = outcome
    scatter = figures_of(document)[0]
    points = [row for row in values_of(scatter.spec) if "aligned" in row]
    equal = [pair["gaps"]["os_mean"]["ece"]["value"] for pair in document["pairs"]] * 2
    assert [row["aligned"] for row in points] == equal
    states = ["one is better", "depends on the accuracy", "equivalent or undecided"]
    assert [row["state"] for row in points] == states * 2


def test_models_are_drawn_as_answered_and_odds_shifted():
    document = plain(document_of("compare"))
    rows = [row for row in values_of(figures_of(document)[1].spec) if "view" in row]
    own = document["results"][0]
    drawn = {row["view"]: row["value"] for row in rows if row["model"] == own["model"]}
    views = {
        "as answered": "raw",
        "at the weakest accuracy": "os_weakest",
        "at the strongest accuracy": "os_strongest",
    }
    assert drawn == {name: own["views"][view]["ece"]["value"] for name, view in views.items()}


def test_the_intervals_of_gaps_lie_inside_of_their_axis():
    document = plain(document_of("compare"))
    document["pairs"][0]["gaps"]["os_mean"]["ece"] |= {"low": -0.9, "high": 0.95}
    scatter = figures_of(document)[0]
    domains = [
        part["encoding"]["y"]["scale"]["domain"]
        for part in parts_of(scatter.spec)
        if "y" in part.get("encoding", {})
    ]
    assert all(low < -0.9 and high > 0.95 for low, high in domains)


def test_mixes_go_from_few_to_many_even_where_a_line_begins_late():
    document = plain(document_of("multi_answer"))
    for entry in document["results"]:
        entry["mixes"][0]["auroc"]["value"] = None
    document["results"][-1]["mixes"][0]["auroc"]["value"] = 0.5
    by_mix = next(figure for figure in figures_of(document) if figure.name == "by-mix-1")
    assert by_mix.spec["encoding"]["x"]["sort"] == ["1", "1+2", "1+2+4"]


def test_a_gap_is_drawn_no_farther_than_its_bin_allows():
    document = plain(document_of("label"))
    part = next(part for part in document["results"][0]["gaps"] if part["labels"])
    part["standard_error"] = 3.0
    _, gaps = figures_of(document)
    row = next(row for row in values_of(gaps.spec) if row.get("from") == part["bin"][0])
    assert (row["low"], row["high"]) == (-part["bin"][1], 1 - part["bin"][0])


def test_groups_are_named_by_what_they_are():
    titles = [figure.title for figure in figures_of(plain(document_of("audit_by_group")))]
    assert "small / topic=law" in titles


def test_a_cascade_has_a_readout_for_every_point_of_every_curve():
    document = plain(document_of("cascade"))
    (figure,) = figures_of(document)
    rows = figure.spec["usermeta"]["readout"]["rows"]
    curves = [len(strategy["curve"]) for strategy in document["results"][0]["strategies"]]
    assert len(rows) == sum(curves)
    assert {row["count"] for row in rows} == set(curves)


def test_the_gallery_shows_every_kind_of_figure():
    text = GALLERY.read_text(encoding="utf-8")
    shown = {
        kind_of_figure(name) for name in re.findall(r"\(gallery-[a-z_]+-([a-z0-9-]+)\.svg\)", text)
    }
    assert set(all_figures()) - shown == set()


def test_the_gallery_has_its_pictures_and_they_are_small():
    text = GALLERY.read_text(encoding="utf-8")
    names = re.findall(r"\((gallery-[\w-]+\.(?:svg|png))\)", text)
    assert names
    for name in names:
        assert (GALLERY.parent / name).stat().st_size < 200_000


def test_words_of_an_exported_picture_keep_their_colour():
    """Whoever paints the outline of letters last would cover them with it."""
    from calibrant.report.pictures.lines import Chart, Mark, Series, line_chart
    from calibrant.report.pictures.svg import standalone

    chart = Chart(
        "two", "x", "y", [Series("a", "first", [(0, 0), (1, 1)])], [Mark("m", 0.5, 0.5, "second")]
    )
    svg = standalone(line_chart(chart, wide=True), plain=True)
    rule = re.search(r"\.picture \.label \{([^}]*)\}", svg)[1]
    assert "stroke" not in rule
    assert ".picture .second .label { fill: #b83a07; }" in svg
    assert "paint-order" not in svg


def test_pale_colours_of_an_exported_picture_are_those_of_the_page(tmp_path):
    from PIL import Image

    from calibrant.report.pictures.picture import Picture, save_picture
    from calibrant.report.pictures.svg import Drawing

    drawing = Drawing(40, 40, "one cell")
    drawing.open_group("second", "worse")
    drawing.rect(0, 0, 40, 40, "pale")
    drawing.close_group()
    picture = Picture("", "", lambda wide: drawing.svg())
    (path,) = save_picture(picture, tmp_path, formats=("png",))
    # A sixth of the orange, on white paper.
    assert Image.open(path).convert("RGB").getpixel((20, 20)) == pytest.approx(
        (244, 223, 215), abs=3
    )


def test_draws_of_several_models_have_a_diagram_each_and_one_for_all():
    bins = [{"confidence": 0.9, "rate": 0.6, "low": 0.5, "high": 0.7, "n": 40}]
    shown = {"sem1": bins, "sem2": bins}
    (one,) = pooled_figures({"models": 2, "reliability": shown}, 2)
    assert one.name == "meaning-reliability-3"
    assert one.title.startswith("All 2 models")
    assert {row["estimator"] for row in one.spec["data"]["values"]} == {"Sem1", "Sem2"}
    assert pooled_figures({"models": 1, "reliability": shown}, 1) == []
    assert pooled_figures(None, 1) == []
