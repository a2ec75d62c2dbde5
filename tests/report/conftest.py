"""A real browser for the tests of pages."""

import pytest

from browser import opened_browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with opened_browser(tmp_path_factory.mktemp("profile")) as found:
        yield found
