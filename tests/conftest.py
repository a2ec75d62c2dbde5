"""Fixtures that all tests share."""

from pathlib import Path

import pytest

from places import shared_data_folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that read it are skipped, loudly, where it is absent."""
    folder = shared_data_folder()
    if not folder.is_dir():
        pytest.skip(f"REAL DATA ABSENT: {folder} (set CALIBRANT_DATA to the folder that holds it)")
    return folder
