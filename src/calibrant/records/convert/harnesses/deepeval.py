"""Test runs of DeepEval, as ``DEEPEVAL_RESULTS_FOLDER`` and ``.deepeval`` hold them.

The grade is whether a test case passed all its metrics, or one metric that is named. The score of
a metric is the opinion of a judge about the answer, never the confidence of the model that gave
it; a confidence is a number that the test case has in its metadata as ``confidence``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.json_text import load_json, readable_samples
from calibrant.records.convert.log import ForeignLog, LogBuilder, as_text, finite_number
from calibrant.records.convert.options import ReadOptions

KIND = "deepeval"


def is_deepeval(head: bytes) -> bool:
    """Return whether the beginning of a file is that of a test run of DeepEval."""
    return b'"testCases"' in head and b'"metricsData"' in head


def read_deepeval(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a test run; cases with the same input are draws of one question."""
    builder = LogBuilder(KIND, str(path))
    run = _run(path, builder)
    settings = run.get("hyperparameters")
    model = settings.get("model") if isinstance(settings, Mapping) else None
    draws: Counter[str] = Counter()
    for number, case in enumerate(run["testCases"]):
        try:
            _add(builder, case, str(model or "model"), draws, options)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            builder.problem(f"test case {number + 1}", f"not the layout of a case: {error!r}")
    if run.get("conversationalTestCases"):
        count = len(run["conversationalTestCases"])
        builder.problem("conversationalTestCases", f"{count} conversations have no single answer")
    if not draws:
        first = next(iter(builder.problems), None)
        why = "it holds none" if first is None else f"{first.place}: {first.reason}"
        raise InputError(f"no test case can be read; {why}", source=str(path))
    return builder.finish()


def _run(path: Path, builder: LogBuilder) -> Mapping[str, Any]:
    data = path.read_bytes()
    try:
        found = load_json(data)
    except ValueError as error:
        builder.problem(path.name, f"the JSON is damaged: {error}; its end may be missing")
        found = readable_samples(data, rows="testCases")
    # The folder .deepeval wraps the run.
    run = found.get("testRunData", found) if isinstance(found, Mapping) else None
    if not isinstance(run, Mapping) or not isinstance(run.get("testCases"), list):
        raise InputError("a test run of DeepEval has a list of test cases", source=str(path))
    passed, failed = run.get("testPassed"), run.get("testFailed")
    if isinstance(passed, int) and isinstance(failed, int):
        builder.expected, builder.expected_unit = passed + failed, "draws"
    return run


def _add(
    builder: LogBuilder,
    case: Mapping[str, Any],
    model: str,
    draws: Counter[str],
    options: ReadOptions,
) -> None:
    question = str(case["input"])
    key = {"question_id": question, "model": model, "draw": draws[question]}
    draws[question] += 1
    expected = as_text(case.get("expectedOutput"))
    builder.question(
        question_id=question,
        text=question,
        references=None if expected is None else [[expected]],
        kind="open",
    )
    correct, reason = _grade(case, options.grade)
    said = as_text(case.get("actualOutput")) or ""
    builder.draw(
        **key,
        text=said if options.texts else None,
        answer=said,
        correct=correct,
        reason=reason,
        grader=options.grade or "all metrics",
    )
    held = case.get("metadata") or case.get("additionalMetadata") or {}
    stated = finite_number(held.get("confidence"))
    if stated is not None:
        builder.score(
            **key,
            method="stated",
            answer=said,
            confidence=options.fraction(stated),
            correct=correct,
        )


def _grade(case: Mapping[str, Any], name: str | None) -> tuple[float | None, str | None]:
    found = case.get("metricsData") or []
    chosen = [one for one in found if name is None or one.get("name") == name]
    if not chosen:
        known = ", ".join(str(one.get("name")) for one in found) or "none"
        return None, "no metric was run" if name is None else f"no metric {name!r}; it has: {known}"
    failed = next((one for one in chosen if one.get("error")), None)
    if failed is not None:
        return None, f"the metric {failed.get('name')} failed: {failed['error']!r:.80}"
    return float(all(bool(one["success"]) for one in chosen)), None
