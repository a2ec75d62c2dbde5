"""Whether a release is one thing: tag, package, citation and changelog name the same version.

python studies/release_check.py v0.3.0
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def versions(root=ROOT):
    """What each file says the version is."""
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    package = (root / "src/calibrant/core/version.py").read_text(encoding="utf-8")
    return {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text())["project"][
            "version"
        ],
        "core/version.py": re.search(r'__version__ = "(.+)"', package)[1],
        "CITATION.cff": re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1],
        "CHANGELOG.md": re.search(r"^## (\d\S*)", changelog, re.MULTILINE)[1],
    }


def days(root=ROOT):
    """The day of the newest release, as changelog and citation say it."""
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    return (
        re.search(r"^## \d\S* \((.+)\)", changelog, re.MULTILINE)[1],
        re.search(r"^date-released: (\S+)$", citation, re.MULTILINE)[1],
    )


def differences(tag, root=ROOT):
    """The files that name another version than the tag."""
    wanted = tag.removeprefix("v")
    return [f"{name} says {said}" for name, said in versions(root).items() if said != wanted]


if __name__ == "__main__":
    if wrong := differences(sys.argv[1]):
        sys.exit(f"The tag is {sys.argv[1]}, but {', '.join(wrong)}.")
    if len(set(days())) > 1:
        sys.exit(f"The changelog says {days()[0]}, the citation {days()[1]}.")
