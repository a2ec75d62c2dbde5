"""Charts of every kind of document: described once, drawn wide and narrow, shown in the gallery."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from msgspec import convert, structs

from calibrant.core.document import plain
from calibrant.findings.documents.audits import PooledMeanings
from calibrant.report.charts import answer_of, charts_of, further_of
from calibrant.report.charts.chart import (
    Axis,
    Band,
    Cell,
    Chart,
    CountMarks,
    Dot,
    Item,
    Line,
    Names,
    Panel,
    ReferenceLine,
)
from calibrant.report.charts.draw import draw, save_chart
from calibrant.report.charts.reliability import meaning_charts
from calibrant.report.charts.svg import short_number, standalone
from documents import KINDS, document_of
from support import ROOT

# Kinds that have nothing to draw.
WITHOUT = {"analysis", "bench", "demo", "methods", "report", "semantics", "serve"}
GALLERY = ROOT / "docs" / "studies" / "gallery.md"
SHARE = Axis("share", low=0, high=1)


def kind_of_chart(name):
    return re.sub(r"-\d+$", "", name)


def charts(kind):
    return {chart.name: chart for chart in charts_of(plain(document_of(kind)))}


def marks(chart, kind):
    return [mark for panel in chart.panels for mark in panel.marks if isinstance(mark, kind)]


@pytest.mark.parametrize("kind", sorted(set(KINDS) - WITHOUT))
@pytest.mark.parametrize("wide", [True, False])
def test_every_chart_is_drawn_inside_of_its_frame(kind, wide):
    found = charts_of(plain(document_of(kind)))
    assert found
    # Two files of one name would be one.
    assert len({chart.name for chart in found}) == len(found)
    for chart in found:
        assert chart.caption.endswith(".")
        root = ElementTree.fromstring(draw(chart, wide=wide))
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        assert width == (760 if wide else 350)
        for mark in root.iter():
            places = [mark.attrib.get(name, "0") for name in ("x", "cx")]
            assert all(-2 <= float(place) <= width + 2 for place in places), (
                chart.name,
                mark.attrib,
            )
            tall = [mark.attrib.get(name, "0") for name in ("y", "cy")]
            assert all(-2 <= float(place) <= height + 2 for place in tall), (
                chart.name,
                mark.attrib,
            )
            for pair in re.findall(r"[-\d.]+[ ,][-\d.]+", mark.attrib.get("d", "")):
                x, y = map(float, re.split("[ ,]", pair))
                assert -2 <= x <= width + 2
                assert -2 <= y <= height + 2


@pytest.mark.parametrize("kind", sorted(set(KINDS) - WITHOUT))
def test_every_chart_tells_its_numbers_on_hover(kind):
    for chart in charts_of(plain(document_of(kind))):
        root = ElementTree.fromstring(draw(chart))
        titles = [part.text for part in root.iter() if part.tag.endswith("title")]
        assert any(re.search(r"\d", title) for title in titles), chart.name


def test_a_place_of_the_chart_is_that_of_its_number():
    """The renderer is right: a dot at a quarter of the axes stands at a quarter of the plane."""
    chart = Chart("c", "t", "", SHARE, SHARE, [Dot(0.25, 0.75, 0.5, 1.0), Line([(0, 0), (1, 1)])])
    root = ElementTree.fromstring(draw(chart))
    x0, x1, y0, y1 = map(float, root.attrib["data-plot"].split())
    (dot,) = [part for part in root.iter() if part.attrib.get("class") == "mark"]
    assert float(dot.attrib["cx"]) == pytest.approx(x0 + (x1 - x0) / 4, abs=0.1)
    assert float(dot.attrib["cy"]) == pytest.approx(y0 + (y1 - y0) * 3 / 4, abs=0.1)
    (stick,) = [part.attrib["d"] for part in root.iter() if part.attrib.get("class") == "stick"]
    _, low, high = map(float, re.findall(r"[\d.]+", stick))
    assert (low, high) == pytest.approx((y0 + (y1 - y0) / 2, y1), abs=0.1)


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
@pytest.mark.parametrize("values", [(0.001, 12.0), (0.5, 0.5), (1e-4, 1e-3)])
def test_every_scale_takes_every_number_it_is_for(scale, values):
    axis = Axis("x", short_number, scale=scale)
    places = [(value, value) for value in ((0.0, *values) if scale == "symlog" else values)]
    root = ElementTree.fromstring(draw(Chart("c", "t", "", axis, axis, [Line(places, tips="abc")])))
    x0, x1, y0, y1 = map(float, root.attrib["data-plot"].split())
    dots = [part.attrib for part in root.iter() if part.attrib.get("class") == "hit"]
    across = [float(dot["cx"]) for dot in dots]
    assert across == sorted(across)
    assert all(x0 <= x <= x1 for x in across)
    assert all(y1 <= float(dot["cy"]) <= y0 for dot in dots)
    assert sum(part.attrib.get("class") == "tick" for part in root.iter()) >= 2


def test_thresholds_of_masses_have_a_chart():
    document = plain(document_of("multi_answer"))
    curve = [{"threshold": t, "auroc": a} for t, a in ((0.0, 0.6), (0.02, 0.7), (9.0, 0.65))]
    document["tuning"] = [{"model": "small", "method": "sca", "curve": curve}]
    document["masses"] = [{"model": "small", "edges": [0, 0.5, 1], "counts": [9, 4, 1]}]
    document["coverage"] = [
        {"model": "small", "k": k, "coverage": {"value": v, "low": None, "high": None}}
        for k, v in ((1, 0.8), (2, 1.1))
    ]
    found = {chart.name: chart for chart in further_of(document)}
    assert {"tau-1", "masses-1", "coverage-1"} <= set(found)
    for name in ("tau-1", "masses-1", "coverage-1"):
        for wide in (True, False):
            ElementTree.fromstring(draw(found[name], wide=wide))


def test_rows_stand_in_their_order_and_items_of_one_row_below_each_other():
    items = [Item("b", bar=(0, 0.5)), Item("a", bar=(0, 1.0)), Item("a", "second", bar=(0, 0.25))]
    chart = Chart("c", "t", "", SHARE, Names(["a", "b"]), items)
    root = ElementTree.fromstring(draw(chart))
    bars = [part.attrib for part in root.iter() if part.attrib.get("class") == "fill"]
    widths = [float(bar["width"]) for bar in bars]
    assert [width / widths[0] for width in widths] == pytest.approx([1, 0.25, 0.5], abs=0.01)
    tops = [float(bar["y"]) for bar in bars]
    assert tops == sorted(tops)


def test_cells_carry_their_keys_and_missing_ones_are_said():
    cells = [Cell("a", "x", "+3", "over_confident", 2, "a tip", "key of a")]
    chart = Chart("c", "t", "", Names(["x", "y"]), Names(["a"]), cells)
    for wide in (True, False):
        svg = draw(chart, wide=wide)
        assert 'data-key="key of a"><title>a tip</title>' in svg
        assert svg.count(">–<") == 1


def test_a_phone_may_be_shown_another_chart():
    other = Chart("c", "t", "", Names(["x"]), Names(["a"]), [Cell("a", "x", "only here")])
    chart = Chart("c", "t", "", SHARE, Names(["a"]), [Item("a", bar=(0, 1))], narrow=other)
    assert "only here" in draw(chart, wide=False)
    assert "only here" not in draw(chart)


def test_labelling_shows_every_batch_and_every_bin_with_a_label():
    entry = plain(document_of("label"))["results"][0]
    found = charts("label")
    least = entry["history"][-1]["labels"] / 10
    (line,) = marks(found["answer"], Line)
    shown = [step["labels"] for step in entry["history"] if step["labels"] >= least]
    assert [labels for labels, _ in line.places] == shown
    assert shown[-1] == 120
    keys = {dot.key for dot in marks(found["gaps-1"], Dot)}
    bins = [part["bin"] for part in entry["gaps"] if part["labels"]]
    assert keys == {f"bin:{low:g}:{high:g}" for low, high in bins}


def test_monitoring_shows_the_alarm_where_it_went_off():
    entry = plain(document_of("monitor"))["results"][0]
    found = charts("monitor")
    alarms = [dot.key for dot in marks(found["answer"], Dot) if dot.shape == "diamond"]
    whose = f"{entry['model']}␟{entry['method']}"
    assert alarms == [f"{whose}␟watched = {entry['alarm']['when']}"]
    (limit,) = marks(found["evidence-1"], ReferenceLine)
    assert limit.at == pytest.approx(np.log10(entry["limit"]))


def test_a_pair_is_drawn_in_a_view_of_its_verdict_and_coloured_by_it():
    document = plain(document_of("compare"))
    for pair, outcome in zip(document["pairs"], ("better", "reversal", "undecided"), strict=True):
        pair["verdict"] = outcome
    document["pairs"][0]["gaps"]["sos"]["ece"] |= {"low": -0.9, "high": 0.95}
    scatter = further_of(document)[0]
    dots = marks(scatter, Dot)
    equal = [pair["gaps"]["sos"]["ece"]["value"] for pair in document["pairs"]]
    assert [dot.y for dot in dots] == equal
    assert [dot.tone for dot in dots] == ["first", "second", "plain"]
    # The intervals lie inside of their axis.
    assert scatter.y.low < -0.9
    assert scatter.y.high > 0.95


def test_mixes_go_from_few_to_many_even_where_a_line_begins_late():
    document = plain(document_of("multi_answer"))
    for entry in document["results"]:
        entry["mixes"][0]["auroc"]["value"] = None
    document["results"][-1]["mixes"][0]["auroc"]["value"] = 0.5
    by_mix = next(chart for chart in further_of(document) if chart.name == "by-mix-1")
    assert by_mix.x.names == ["1", "1+2", "1+2+4"]


def test_a_gap_is_drawn_no_farther_than_its_bin_allows():
    document = plain(document_of("label"))
    part = next(part for part in document["results"][0]["gaps"] if part["labels"])
    part["standard_error"] = 3.0
    (gaps,) = further_of(document)
    dot = next(dot for dot in marks(gaps, Dot) if dot.key.startswith(f"bin:{part['bin'][0]:g}:"))
    assert (dot.low, dot.high) == (part["bin"][0] - 1, part["bin"][1])


def test_above_zero_is_over_confident_wherever_a_gap_is_drawn():
    watched = plain(document_of("monitor"))
    history = watched["results"][0]["history"]
    shown = {dot.tip.partition(":")[0]: dot for dot in marks(answer_of(watched), Dot)}
    for row in history:
        dot, says = shown[row["when"]], row["mean_confidence"]["value"]
        assert dot.y == pytest.approx(says - row["accuracy"]["value"], abs=1e-9)
        assert dot.low <= dot.y <= dot.high


def test_groups_are_named_by_what_they_are():
    titles = [chart.title for chart in charts("audit_by_group").values()]
    assert "small / topic=law" in titles


def test_every_setting_of_a_cascade_can_be_read():
    document = plain(document_of("cascade"))
    lines = marks(answer_of(document), Line)
    curves = [len(strategy["curve"]) for strategy in document["results"][0]["strategies"]]
    assert [len(line.tips) for line in lines] == curves[: len(lines)]
    assert all("setting" in tip and "cost" in tip for line in lines for tip in line.tips)


def test_a_diagram_counts_all_rows_and_names_its_bins():
    document = plain(document_of("audit"))
    entry = next(entry for entry in document["results"] if entry.get("reliability"))
    diagram = charts("audit")["reliability-1"]
    (counts,) = marks(diagram, CountMarks)
    assert sum(counts.counts) == entry["n"]
    assert len(marks(diagram, Dot)) == len(entry["reliability"]["bins"])
    (band,) = marks(diagram, Band)
    assert band.places[-1][0] == entry["reliability"]["curve"]["confidence"][-1]


def test_the_gallery_shows_every_kind_of_chart():
    text = GALLERY.read_text(encoding="utf-8")
    shown = {
        kind_of_chart(name) for name in re.findall(r"\(gallery-[a-z_]+-([a-z0-9-]+)\.svg\)", text)
    }
    found = {kind_of_chart(name) for kind in KINDS for name in charts(kind)} - {"answer"}
    assert found - shown == set()


def test_the_gallery_has_its_pictures_and_they_are_small():
    text = GALLERY.read_text(encoding="utf-8")
    names = re.findall(r"\((gallery-[\w-]+\.(?:svg|png))\)", text)
    assert names
    for name in names:
        assert (GALLERY.parent / name).stat().st_size < 200_000


def test_words_of_an_exported_chart_keep_their_colour():
    """Whoever paints the outline of letters last would cover them with it."""
    line = Line([(0, 0), (1, 1)], name="a")
    chart = Chart("two", "Two", "", SHARE, SHARE, [line, Dot(0.5, 0.5, tone="second", label="m")])
    svg = standalone(draw(chart), plain=True)
    rule = re.search(r"\.picture \.label \{([^}]*)\}", svg)[1]
    assert "stroke" not in rule
    assert ".picture .second .label { fill: #b83a07; }" in svg
    assert "paint-order" not in svg


def test_pale_colours_of_an_exported_chart_are_those_of_the_page(tmp_path):
    from PIL import Image

    cell = Chart("c", "t", "", Names(["x"]), Names(["a"]), [Cell("a", "x", "", "second", 1)])
    (path,) = save_chart(cell, tmp_path, formats=("png",))
    image = Image.open(path).convert("RGB")
    # A seventh of the orange, on white paper, left of the middle of the cell.
    assert image.getpixel((image.width // 2, 100)) == pytest.approx((245, 227, 220), abs=3)


def test_draws_of_several_models_have_a_diagram_each_and_one_for_all():
    bins = [{"confidence": 0.9, "rate": 0.6, "low": 0.5, "high": 0.7, "n": 40}]
    shown = {"sem1": bins, "sem2": bins}
    pooled = convert({"models": 2, "reliability": shown}, PooledMeanings)
    (one,) = meaning_charts([], pooled)
    assert one.title.startswith("All 2 models")
    assert [words for _, _, words in one.legend] == ["all draws (Sem1)", "held-out draws (Sem2)"]
    assert list(meaning_charts([], structs.replace(pooled, models=1))) == []
    assert list(meaning_charts([])) == []


def test_panels_share_their_rows():
    first = Chart("c", "t", "", SHARE, Names(["a"]), [Item("a", bar=(0, 1), tip="one")])
    both = replace(first, more=[Panel(SHARE, [Item("a", bar=(0, 0.5), tip="two")], "more")])
    svg = draw(both)
    assert svg.count(">a<") == 1
    assert "one" in svg
    assert "two" in svg


def test_the_interval_of_a_meaning_is_drawn_at_every_value_and_not_between_rows_of_a_table():
    known = document_of("mend")["results"][0]["map"]
    (band,) = marks(charts("mend")["answer"], Band)
    says, low, high = np.transpose(band.places)
    assert says.tolist() == list(known["knots"])
    for shares, ends in ((low, known["low"]), (high, known["high"])):
        assert np.log(shares / (1 - shares)) == pytest.approx(np.array(ends))
