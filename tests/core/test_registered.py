"""What upper floors register is found from below, by nobody naming them there."""

import re
import subprocess
import sys

import pytest

from calibrant.core.document import dump_document, plain
from calibrant.core.names import function_at, registered
from documents import WITH_FOLDER, document_of
from support import ROOT

SOURCE = ROOT / "src" / "calibrant"
ABOVE = re.compile(r"calibrant[./](apps|cli|verbs|bench|labels|answers)[./]\w+(?<!\d)")
FRESH = """
import sys
from calibrant.core.document import load_document
from calibrant.report import render_html, render_markdown
from calibrant.report.charts import charts_of
document = load_document(sys.argv[1])
assert not [name for name in sys.modules if name.startswith("calibrant.bench")]
print(render_markdown(document))
assert "<table" in render_html([document])
print(len(charts_of(document)))
"""
CHECKED = """
from calibrant.findings.claims.checks import failed_checks, parse_check
check = parse_check("claim:bench.questions_broken=shown")
document = {"claims": [{"id": "bench.questions_broken", "subject": {}, "outcome": "shown",
                        "text": "They do not hold."}]}
print(failed_checks(document, [check]))
"""


def fresh(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("floor", ["core", "metrics", "findings", "report"])
def test_no_module_of_an_upper_floor_is_named(floor):
    names = [
        (path.relative_to(SOURCE).as_posix(), found[0])
        for path in (SOURCE / floor).rglob("*.py")
        # Examples are no code: they may show who registers.
        for found in ABOVE.finditer(re.sub(r'""".*?"""', "", path.read_text(), flags=re.DOTALL))
    ]
    assert names == []


def test_whatever_is_registered_exists():
    for kind in ("tables", "charts"):
        assert registered(kind)
        assert all(callable(function_at(place)) for place in registered(kind).values())


@pytest.mark.parametrize("kind", ["bench", "bench_check", "multi_answer"])
def test_a_stored_document_is_rendered_without_its_verb(kind, tmp_path):
    stored = tmp_path / "stored.json"
    document = WITH_FOLDER[kind](tmp_path) if kind in WITH_FOLDER else document_of(kind)
    stored.write_bytes(dump_document(plain(document)))
    *text, pictures = re.sub(r"babel [\d.]+", "babel *", fresh(FRESH, stored)).splitlines()
    expected = (ROOT / "tests" / "report" / "snapshots" / f"{kind}.md").read_text()
    assert "\n".join(text).strip() == expected.strip()
    assert (int(pictures) > 0) is (kind == "multi_answer")


def test_a_claim_is_checked_without_its_verb():
    assert fresh(CHECKED).strip() == "['all: They do not hold.']"
