"""What the pages say of the tree is true: every file, module and folder that they name exists."""

import re
from importlib.util import find_spec

import pytest

from support import ROOT

SOURCE = ROOT / "src" / "calibrant"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("design/*.md"), *ROOT.glob("docs/**/*.md")])
# The changelog tells of what has gone.
PAGES = [page for page in PAGES if page.name != "CHANGELOG.md" and "gallery" not in page.parts]

PATHS = re.compile(r"`((?:src/calibrant|tests|studies|simulations|benchmarks|design)/[\w./-]*\w)`")
MODULES = re.compile(r"`(?:python -m )?calibrant((?:\.[a-z_]\w*)+)`")
ROOMS = re.compile(r"`(?P<path>(?:[a-z_]+/)+(?:[a-z_]+\.(?:py|toml))?)`")


def named_paths(text):
    """Paths in a page that claim to be of this tree: whole ones, and those within the package."""
    rooms = {folder.name for folder in SOURCE.iterdir() if folder.is_dir()}
    yield from (ROOT / path for path in PATHS.findall(text))
    for found in ROOMS.finditer(text):
        if found["path"].split("/")[0] in rooms:
            yield SOURCE / found["path"]


def is_attribute(words):
    """Whether a dotted name leads to a module, or to an attribute of one."""
    for length in range(len(words), 0, -1):
        try:
            if find_spec(".".join(["calibrant", *words[:length]])):
                return True
        except ModuleNotFoundError:
            continue
    import calibrant

    return words[0] in calibrant.__all__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    missing = [str(path.relative_to(ROOT)) for path in named_paths(text) if not path.exists()]
    names = (name[1:].split(".") for name in MODULES.findall(text))
    # Fields of a served answer are called `calibrant.shift`: one lower word may be a key.
    missing += [".".join(words) for words in names if len(words) > 1 and not is_attribute(words)]
    assert missing == []


def test_a_place_that_is_gone_is_found():
    text = "`src/calibrant/workflows/app.py` and `calibrant.workflows.app`, see `metrics/gone.py`"
    assert [path.exists() for path in named_paths(text)] == [False, False]
    assert not is_attribute(MODULES.findall(text)[0][1:].split("."))
