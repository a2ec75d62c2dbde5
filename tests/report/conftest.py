"""A real browser for the tests of pages."""

from contextlib import ExitStack

import pytest

from browser import opened_browser


@pytest.fixture(scope="session")
def browsers(tmp_path_factory):
    """The browser that the tests share, in a list: a tab that crashed is replaced there."""
    with ExitStack() as opened:

        def another():
            return opened.enter_context(opened_browser(tmp_path_factory.mktemp("profile")))

        yield [another()], another


@pytest.fixture
def browser(browsers):
    held, another = browsers
    yield held[0]
    exceptions = pytest.importorskip("selenium.common.exceptions")
    try:
        held[0].execute_script("return 1")
    except exceptions.WebDriverException:
        # One crash fails the test that it happened in, and none after it.
        held[0] = another()
