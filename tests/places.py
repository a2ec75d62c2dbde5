"""Where things are: the project, and the real data beside it."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def shared_data_folder() -> Path:
    return Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))
