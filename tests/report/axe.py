"""axe-core, the checker of accessibility: fetched once with npm, and skipped loudly without it."""

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

VERSION = "4.10.3"
FOLDER = Path(tempfile.gettempdir()) / f"calibrant-axe-{VERSION}"


@functools.cache
def axe_script():
    path = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("NO NPM: install npm to check pages with axe-core")
        FOLDER.mkdir(exist_ok=True)
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", f"axe-core@{VERSION}"]
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=600)
        if done.returncode or not path.is_file():
            pytest.skip(f"NO AXE-CORE: npm could not fetch it: {done.stderr[-300:]}")
    return path.read_text(encoding="utf-8")


# Before a drawing axe finds no background ("incomplete"), so that no text in one is ever called a
# violation; looking for it took a third of the time.
OUTSIDE_DRAWINGS = "axe.configure({rules: [{id: 'color-contrast', selector: ':not(svg *)'}]})"
# Of the rows of a table that differ in nothing but their words, six are looked at.
WITHOUT_REPEATS = """
for (const body of document.querySelectorAll('tbody')) {
  const seen = {};
  for (const row of [...body.rows]) {
    const markup = row.outerHTML.replace(/>[^<]*</g, '><');
    seen[markup] = (seen[markup] || 0) + 1;
    if (seen[markup] > 6) row.remove();
  }
}
"""


def serious_violations(browser):
    """What axe calls serious or critical on the open page, as (rule, first element)."""
    browser.set_script_timeout(120)
    browser.execute_script(axe_script())
    browser.execute_script(OUTSIDE_DRAWINGS)
    browser.execute_script(WITHOUT_REPEATS)
    return browser.execute_async_script(
        "const done = arguments[0];"
        "axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations"
        ".filter(v => v.impact === 'serious' || v.impact === 'critical')"
        ".map(v => [v.id, v.nodes[0].html.slice(0, 200)])))"
    )
