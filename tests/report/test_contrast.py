"""Colours: words at least 4.5:1 (AA), edges of controls and marks of charts at least 3:1."""

import pytest
from colours import contrast, marks_of, palette_of

WORDS = ("--ink", "--soft", "--accent", "--good", "--bad")


def test_contrast_of_known_pairs():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["--paper", "--panel"])
@pytest.mark.parametrize("word", WORDS)
def test_words_are_readable(scheme, ground, word):
    colours = palette_of(scheme)
    assert contrast(colours[word], colours[ground]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_edges_of_controls_and_marks_of_charts_stand_out(scheme):
    paper = palette_of(scheme)["--paper"]
    assert contrast(palette_of(scheme)["--edge"], paper) >= 3
    drawn = {name: colour for name, colour in marks_of(scheme).items() if name != "--p-line"}
    ground = drawn.pop("--p-paper")
    assert {name for name, colour in drawn.items() if contrast(colour, ground) < 4.5} == set()


def test_both_schemes_define_the_same_colours():
    assert set(palette_of("light")) == set(palette_of("dark"))
