"""In a suite of pytest: assert that a model is calibrated, and keep what the tests have found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.report.result import AccuracyResult, AuditResult

OPTION = "--calibrant-report"
NOT_CALIBRATED = ("claim:audit.over_confident=shown", "claim:audit.under_confident=shown")
_found: list[dict[str, Any]] = []


def assert_calibrated(
    data: Any,
    correct: Any = None,
    *,
    fail_if: str | Sequence[str] = NOT_CALIBRATED,
    allow_undecided: bool = False,
    **options: Any,
) -> AuditResult | AccuracyResult:
    """Audit confidences inside a test, and fail it where a condition holds.

    Parameters
    ----------
    data, correct
        What `calibrant.audit` takes: two arrays, a table, a path, a log.
    fail_if
        Conditions as the command line takes them: ``"ece>0.05"``,
        ``"claim:audit.over_confident=shown"``. By default the test fails where confidence is shown
        to be too high or too low.
    allow_undecided
        Let pass what too few labels leave undecided.
    **options
        Further options of `calibrant.audit`.

    Returns
    -------
    AuditResult
        The audit, for further assertions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> said = rng.uniform(0.5, 1, 4000)
    >>> result = assert_calibrated(said, rng.random(4000) < said, fail_if="ece>0.05")
    >>> assert_calibrated(said, rng.random(4000) < said - 0.2)
    ... # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    AssertionError: not calibrated
    """
    # Loaded here: pytest loads this file in every suite beside which calibrant is installed.
    from calibrant.findings.claims.checks import failed_checks, parse_check
    from calibrant.verbs.audit import audit

    result = audit(data, correct, **options) if correct is not None else audit(data, **options)
    texts = [fail_if] if isinstance(fail_if, str) else list(fail_if)
    document = result.to_dict()
    failed = failed_checks(
        document, [parse_check(text) for text in texts], allow_undecided=allow_undecided
    )
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" (")[0]
    _found.append({"test": test, "fail_if": texts, "failed": failed, "audit": document})
    if failed:
        raise AssertionError("not calibrated:\n" + "\n".join(f"  {line}" for line in failed))
    return result


def pytest_addoption(parser: Any) -> None:
    """Add the option that keeps what was found."""
    parser.getgroup("calibrant").addoption(
        OPTION,
        metavar="PATH",
        default=None,
        help="write the audits of all assert_calibrated calls to this JSON file",
    )


def pytest_sessionfinish(session: Any) -> None:
    """Write the report, where one is wanted."""
    path = session.config.getoption(OPTION)
    if path is None:
        return
    from calibrant.core.document import dump_document
    from calibrant.core.places import writing

    with writing(path):
        Path(path).write_bytes(dump_document({"results": _found}))
