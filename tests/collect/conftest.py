"""The endpoint that the tests of this folder share."""

import pytest

from collect.endpoint import Oracle


@pytest.fixture(scope="session")
def oracle():
    """An endpoint that answers at once."""
    with Oracle() as server:
        yield server
