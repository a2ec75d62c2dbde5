"""Which files take long: `python tests/slow.py REPORT.xml` writes the list anew.

`make quick` leaves them out, and a whole run begins with the longest of them.

The report is what `pytest --junitxml=REPORT.xml` writes about a whole run.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).with_suffix(".txt")
SECONDS = 2.0


def slow_files(report: str) -> list[tuple[int, str]]:
    """Return the seconds and the names of test files that took longer than the limit."""
    taken: Counter[str] = Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        taken[str(case.get("classname"))] += float(case.get("time") or 0)
    files = {name.replace(".", "/") + ".py": time for name, time in taken.items()}
    return sorted(
        (round(time), name)
        for name, time in files.items()
        if time > SECONDS and name.startswith("tests/")
    )[::-1]


if __name__ == "__main__":
    LIST.write_text("".join(f"{time} {name}\n" for time, name in slow_files(sys.argv[1])))
