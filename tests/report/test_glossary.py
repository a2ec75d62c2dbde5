"""Every number of a report explains itself: its column has a term in the glossary."""

import re

import pytest

from calibrant.core.document import plain
from calibrant.report.cells import Table
from calibrant.report.glossary import explain, glossary
from calibrant.report.tables import document_blocks
from documents import KINDS, document_of

# Counts of things.
NAMED_BY_DATA = re.compile(r"\d+ pairs$")


def columns():
    found = {}
    for kind in KINDS:
        for block in document_blocks(plain(document_of(kind))):
            if isinstance(block, Table):
                for name in block.columns[block.labels :]:
                    found.setdefault(name, kind)
    return found


@pytest.mark.parametrize(("name", "kind"), sorted(columns().items()))
def test_a_column_of_numbers_is_explained(name, kind):
    assert explain(name) or NAMED_BY_DATA.match(name), f"{name!r} of {kind} is not in the glossary"


def test_terms_are_sentences():
    for name, term in glossary().items():
        assert term.words[0].isupper(), name
        assert term.words.endswith("."), name


def test_terms_that_name_a_page_name_one_that_exists():
    from support import ROOT

    pages = {term.page for term in glossary().values() if term.page}
    missing = [page for page in pages if not (ROOT / "docs" / f"{page}.md").is_file()]
    assert missing == []
