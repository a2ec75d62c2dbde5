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
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120)
        if done.returncode or not path.is_file():
            pytest.skip(f"NO AXE-CORE: npm could not fetch it: {done.stderr[-300:]}")
    return path.read_text(encoding="utf-8")


def serious_violations(browser):
    """What axe calls serious or critical on the open page, as (rule, first element)."""
    browser.set_script_timeout(120)
    browser.execute_script(axe_script())
    return browser.execute_async_script(
        "const done = arguments[0];"
        "axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations"
        ".filter(v => v.impact === 'serious' || v.impact === 'critical')"
        ".map(v => [v.id, v.nodes[0].html.slice(0, 200)])))"
    )
