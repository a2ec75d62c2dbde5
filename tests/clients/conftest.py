"""An endpoint and a ledger for every test."""

import pytest

from calibrant.models.ledger import Ledger
from clients.server import Endpoint
from clients.sessions import Session


@pytest.fixture
def server():
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture
def session(server, ledger):
    def make(**options):
        return Session(server, ledger, **options)

    return make
