"""Tables in terminals of any width: nothing cut, no number parted from its interval."""

import re

import pytest
from rich.cells import cell_len

from calibrant.core.document import plain
from calibrant.report import render_text
from calibrant.report.cells import Number, Paragraph, Table
from calibrant.report.tables import document_blocks
from calibrant.report.terminal._fit import _wrapped, fitted
from documents import KINDS, document_of

INTERVAL = re.compile(r"\[[-\d.]+, [-\d.]+\]")
WIDTHS = (60, 80, 100, 120, 200)


def drawn(table, width):
    from rich.console import Console

    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        for part in fitted(table, width):
            console.print(part)
    return capture.get()


def tables_in(table, width):
    from rich.table import Table as RichTable

    return sum(isinstance(part, RichTable) for part in fitted(table, width))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_line_fits_and_every_interval_is_whole(kind, width):
    document = plain(document_of(kind))
    assert max(map(cell_len, render_text(document, width=width).splitlines()), default=0) <= width
    for block in document_blocks(document):
        if isinstance(block, Paragraph):
            continue
        cells = " ".join(str(cell) for row in block.rows for cell in row[block.labels :])
        shown = drawn(block, width)
        assert sorted(INTERVAL.findall(shown)) == sorted(
            [*INTERVAL.findall(cells), *INTERVAL.findall(" ".join((block.title, block.note)))]
        )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_cell_is_shown_at_any_width(kind, width):
    for block in document_blocks(plain(document_of(kind))):
        if isinstance(block, Paragraph):
            continue
        shown = re.sub(r"[\s│┃]+", "", drawn(block, width))
        for row in block.rows:
            for cell in row[block.labels :]:
                number = cell.head if isinstance(cell, Number) else str(cell)
                assert re.sub(r"\s+", "", number) in shown, (block.title, cell)


WIDE = Table(
    ("model", "verdict", *(f"metric {i}" for i in range(6))),
    (("a-long-model-name-2026", "over confident", *[Number(0.123, 0.1, 0.15)] * 6),),
    title="Title",
    note="Note.",
    labels=2,
)


def test_intervals_stand_beside_their_number_where_there_is_room():
    assert tables_in(WIDE, 220) == 1
    assert "0.123 [0.100, 0.150]" in drawn(WIDE, 220)


def test_intervals_go_below_before_columns_go_to_another_table():
    assert tables_in(WIDE, 150) == 1
    shown = drawn(WIDE, 150)
    assert "0.123 [" not in shown
    assert shown.count("[0.100, 0.150]") == 6


def test_a_narrow_terminal_gets_several_tables_with_the_names_repeated():
    parts = tables_in(WIDE, 70)
    assert parts > 1
    shown = drawn(WIDE, 70)
    assert shown.count("a-long-model-name-2026") == parts
    assert f"Title ({parts} of {parts})" in shown
    assert shown.count("Note.") == 1


def test_a_suffix_stays_with_its_number():
    tie = Number(-0.051, -0.054, -0.049, mark="tie")
    table = Table(("pair", *"abcdef"), (("x", *[tie] * 6),))
    assert "-0.051 tie" in drawn(table, 110)


def test_words_are_broken_between_words_first():
    assert _wrapped("Turbo - gpt-4o-mini", 14) == "Turbo -\ngpt-4o-mini"
    assert _wrapped("first_run_consistency", 12) == "first_run_\nconsistency"
    assert _wrapped("short", 20) == "short"


def test_what_a_terminal_would_obey_is_shown_as_a_mark():
    hostile = "red \x1b[31m, back \x08, bell \x07, turned \u202eabc"
    table = Table(("x", "n"), ((hostile, "1"),), title=hostile, note=hostile)
    shown = drawn(table, 120)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown.replace("\n", ""))
    assert "\ufffd[31m" in shown


def test_wide_letters_count_as_two():
    table = Table(("model", "n"), (("日本語の長いモデル名" * 6, "1"),))
    assert max(map(cell_len, drawn(table, 60).splitlines())) <= 60


def test_a_table_without_rows_or_of_words_alone_is_drawn():
    assert "a" in drawn(Table(("a", "b"), ()), 80)
    words = Table(("a", "b"), (("word " * 40, "other " * 10),), labels=2)
    assert max(map(len, drawn(words, 60).splitlines())) <= 60


def test_a_further_table_repeats_as_many_names_as_tell_its_rows_apart():
    cell = Number(0.123, 0.1, 0.146)
    rows = tuple((model, method, *[cell] * 6) for model in "ab" for method in ("verb", "sem1"))
    table = Table(("model", "method", *(f"number {i}" for i in range(6))), rows, labels=2)
    text = drawn(table, 50)
    parts = text.count("model")
    assert parts > 1
    assert text.count("method") == parts
    assert text.count("sem1") == 2 * parts
