"""The site builds without a warning, code is code, and the reference leaves no public name out."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT

pytest.importorskip("mkdocstrings")
import mkdocs_hooks
from benchmarks.long_tables import FOLDERS, MOST, SHOWN, shorten

SOURCES = sorted((ROOT / "docs").rglob("*.md"))
OPENING = re.compile(r"^```", re.MULTILINE)
BLOCK = re.compile(r'<div class="(?:language-\w+ )?highlight">')


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def page(site: Path, source: str) -> str:
    path = Path(source)
    place = path.parent if path.stem == "index" else path.with_suffix("")
    return (site / place / "index.html").read_text(encoding="utf-8")


def test_every_fence_is_a_block_of_code(site):
    for source in SOURCES:
        name = str(source.relative_to(ROOT / "docs"))
        text = source.read_text(encoding="utf-8")
        shown = page(site, name)
        fences = len(OPENING.findall(text))
        assert fences % 2 == 0, f"{name}: a fence is not closed"
        blocks = len(BLOCK.findall(shown)) + shown.count('<pre class="')
        assert blocks >= fences // 2, f"{name}: {fences // 2} fences, {blocks} blocks of code"
        prose = re.sub(r"<(pre|code)\b.*?</\1>", "", shown, flags=re.DOTALL)
        assert "```" not in prose, f"{name}: a fence is shown as text"


@pytest.mark.parametrize("package", mkdocs_hooks.PACKAGES)
def test_every_public_name_is_in_the_reference(site, package):
    shown = html.unescape(page(site, f"{mkdocs_hooks.FOLDER}/{package}.md"))
    headings = set(re.findall(r'<span class="doc doc-object-name[^>]*>([\w.]+)</span>', shown))
    headings |= set(re.findall(r'<h2 id="[^"]*" class="doc doc-heading">\s*([\w.]+)', shown))
    bodies = shown.count('class="doc doc-object')
    names = mkdocs_hooks.public_names(package)
    assert names
    assert set(names) <= headings
    assert bodies >= len(names)


def test_every_public_name_is_on_the_page_for_a_checkout():
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w.]+)", page, re.MULTILINE))
    for package in mkdocs_hooks.PACKAGES:
        missing = set(mkdocs_hooks.public_names(package)) - listed
        assert not missing, f"{package}: run python mkdocs_hooks.py"


def test_every_public_package_has_a_page_in_the_menu():
    import calibrant

    modules = {
        f"calibrant.{name}"
        for name in calibrant.__all__
        if type(getattr(calibrant, name)).__name__ == "module"
    }
    # A package that hands on what its parts hold has their pages.
    pages = {package.rpartition(".")[0] for package in mkdocs_hooks.PACKAGES}
    assert modules <= pages | set(mkdocs_hooks.PACKAGES)
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for package in mkdocs_hooks.PACKAGES:
        assert f"{mkdocs_hooks.FOLDER}/{package}.md\n" in menu


def test_every_page_is_in_the_menu():
    evidence = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for source in SOURCES:
        name = str(source.relative_to(ROOT / "docs"))
        # Pages of single commands are reached from their index, those of scripts from 'Evidence'.
        assert name in menu or name.startswith("reference/cli/") or f"({name})" in evidence, name


def test_a_long_table_becomes_a_file_and_loses_no_row(tmp_path):
    rows = [f"| {number} | a \\| b, c |" for number in range(20)]
    page = tmp_path / "part.md"
    page.write_text("\n".join(["# Part", "", "| n | text |", "| --- | --- |", *rows, "", "End."]))
    for _ in range(2):  # a second time changes nothing
        shorten(page)
        link = "[All 20 rows](tables/part-1.csv)"
        assert page.read_text().splitlines()[-5:] == [rows[SHOWN - 1], "", link, "", "End."]
        kept = (tmp_path / "tables" / "part-1.csv").read_text().splitlines()
        assert kept == ["n,text", *(f'{number},"a | b, c"' for number in range(20))]


def test_generated_pages_hold_no_long_table():
    for page in (page for folder in FOLDERS for page in folder.glob("*.md")):
        tables = re.findall(r"(?:^\|.*\n)+", page.read_text(encoding="utf-8"), re.MULTILINE)
        rows = max((table.count("\n") - 2 for table in tables), default=0)
        assert rows <= MOST, f"{page.name}: its part of studies, simulations or benchmarks cuts it"
