"""Which files `make quick` leaves out: `python tests/slow.py REPORT.xml` writes the list anew.

The report is what `pytest --junitxml=REPORT.xml` writes about a whole run.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).with_suffix(".txt")
SECONDS = 2.0


def slow_files(report: str) -> list[str]:
    """Return the test files that took longer than the limit, by name."""
    taken: Counter[str] = Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        taken[str(case.get("classname"))] += float(case.get("time") or 0)
    files = [name.replace(".", "/") + ".py" for name, time in taken.items() if time > SECONDS]
    return sorted(name for name in files if name.startswith("tests/"))


if __name__ == "__main__":
    LIST.write_text("\n".join(slow_files(sys.argv[1])) + "\n")
