"""What a short command loads: most of its time is loading, so what it needs not stays out."""

import subprocess
import sys

import pytest

# Packages and modules that the audit of a plain table of confidences needs nothing of.
UNUSED = (
    "calibrant.models",
    "calibrant.models.study",
    "calibrant.comparison",
    "calibrant.answers.confidence",
    "calibrant.trust",
    "calibrant.apps.integrations",
    "calibrant.answers.semantics",
    "calibrant.data.questions",
    "calibrant.verbs.study",
    "calibrant.findings.claims.sem_ece",
    "calibrant.data.sources.drawn_labels",
    "calibrant.labels.pool",
    "calibrant.answers.logs",
    "calibrant.answers.graded_samples",
    "calibrant.answers.samples",
    "calibrant.data.sources.cell_source",
    "calibrant.data.sources.engines",
    "calibrant.metrics.recalibration.calibrators",
    "calibrant.metrics.scorers",
    "calibrant.metrics.recalibration.base",
    "calibrant.metrics.recalibration.calibrators",
    "calibrant.metrics.semantic",
    "calibrant.metrics.blocks.cell_block",
    "calibrant.labels.labelling",
    "calibrant.labels.watching",
    "calibrant.data.logs.log",
    "calibrant.data.label_store",
    "calibrant.models.ledger",
    "calibrant.report.charts",
    "calibrant.report.page",
    "altair",
    "httpx",
    "jinja2",
    "narwhals",
    "pandas",
    "pyarrow",
    "rich.progress",
    "rich.table",
    "scipy.stats",
    "sklearn",
    "sqlite3",
    "vl_convert",
)
RUN = """
import sys
from calibrant.cli.main import app
app.main(sys.argv[1:], prog_name="calibrant", standalone_mode=False)
print("\\n".join(sys.modules), file=sys.stderr)
"""


def loaded(*words):
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, words)], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "scores.csv"
    rows = [f"{i * 37 % 100 / 100},{int(i * 61 % 100 < i * 37 % 100)}" for i in range(200)]
    path.write_text("\n".join(["confidence,correct", *rows]))
    return path


def test_an_audit_of_a_plain_table_loads_what_it_needs(table):
    found = loaded("audit", table)
    assert {"calibrant.metrics.blocks.row_block", "polars"} <= found
    assert sorted(found.intersection(UNUSED)) == []


def test_a_table_with_methods_does_not_load_them(table, tmp_path):
    named = tmp_path / "named.csv"
    head, *rows = table.read_text().split()
    named.write_text("\n".join([f"{head},method", *(f"{row},verb" for row in rows)]))
    assert "calibrant.answers.confidence" not in loaded("audit", named)


def test_no_verb_loads_what_takes_seconds_before_it_works():
    heavy = ("altair", "matplotlib", "pandas", "scipy.optimize", "scipy.stats", "sklearn", "sympy")
    code = (
        "import sys\n"
        "from calibrant.cli import VERBS, verb_function\n"
        "for words in VERBS: verb_function(words)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
