"""Numbers of a table stay numbers until a terminal, a page or a file writes them."""

from html.parser import HTMLParser
from unittest import mock

import pytest

from calibrant.report import render_html, render_text
from calibrant.report.cells import Name, Number, Table, Text, estimate_cell, said_cell

DOCUMENT = {"schema": "calibrant.leaderboard/1", "results": [{"model": "a"}], "claims": []}
ROWS = (
    (Name("id-b", "b"), Number(0.1, 0, 0.2), said_cell(9, "9 of 20"), Number(-0.5, unit="points")),
    (Name("id-a", "a"), Number(None), said_cell(10, "10 of 20"), Number(0.001, unit="points")),
    (Text("c ...", "c and all the rest"), Number(2, unit="count"), said_cell(1, "1 of 20"), ""),
)  # fmt: skip
TABLE = Table(("name", "value", "known", "gap"), ROWS)


def lines(sort):
    with mock.patch("calibrant.report.terminal.document_blocks", return_value=[TABLE]):
        text = render_text(DOCUMENT, width=100, sort=sort)
    return [line.split()[0] for line in text.splitlines() if " of 20" in line]


@pytest.mark.parametrize(
    ("column", "order"), [("value", ["b", "c", "a"]), ("known", ["c", "b", "a"]), ("gap", "bac")]
)
def test_a_column_is_sorted_by_its_numbers_and_words_come_last(column, order):
    assert lines(column) == list(order)


def test_a_half_width_is_that_of_the_interval_and_not_of_its_rounded_ends():
    number = Number(0.5, 0.4506, 0.5494, unit="share", digits=1)
    assert number.write() == "50.0 % [45.1, 54.9]"
    assert number.write("half") == "50.0 ± 4.9 %"


def test_an_estimate_without_an_interval_says_so_and_keeps_its_mark():
    estimate = {"value": 0.5, "low": None, "high": 0.6}
    assert str(estimate_cell(estimate, mark="tie")) == "0.500 [no interval] tie"
    assert str(estimate_cell({**estimate, "value": None})) == "undefined"


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag == "td":
            self.found.append(dict(attrs))


def test_a_page_carries_the_numbers_and_ids_of_its_cells():
    with mock.patch("calibrant.report.page.parts.document_blocks", return_value=[TABLE]):
        page = render_html([{"schema": "calibrant.report/1", "written": []}])
    cells = Cells()
    cells.feed(page)
    assert [cell.get("data-value") for cell in cells.found[1:4]] == ["0.1", "9", "-0.5"]
    assert cells.found[0]["data-key"] == "id-b"
    # What has no value is sorted as a word.
    assert "data-value" not in cells.found[5]
