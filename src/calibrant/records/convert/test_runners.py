"""Test runners whose grade is that a test passed: promptfoo and DeepEval."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.believed import believed_tokens
from calibrant.records.convert.json_text import (
    ReadOptions,
    as_text,
    finite_number,
    json_lines,
    load_json,
    readable_samples,
)
from calibrant.records.convert.log import ForeignLog, LogBuilder

_ERROR = 2
"""`failureReason` of a call that failed; 0 is a pass, 1 a failed assertion."""


def is_promptfoo(head: bytes) -> bool:
    """Return whether the beginning of a file is that of promptfoo's results in JSON."""
    return b'"evalId"' in head and b'"results"' in head and b'"prompts"' in head


def is_promptfoo_row(row: Mapping[str, Any]) -> bool:
    """Return whether a jsonl file that begins with this row holds promptfoo's results."""
    return "promptIdx" in row and "testIdx" in row and "gradingResult" in row


def read_promptfoo(path: Path, options: ReadOptions) -> ForeignLog:
    """Read results; repeats of a test are draws of one question."""
    builder = LogBuilder("promptfoo", str(path))
    draws: Counter[tuple[str, str]] = Counter()
    rows = list(_rows(path, builder))
    several = len({str(row.get("promptIdx")) for _, row in rows if isinstance(row, dict)}) > 1
    for place, row in rows:
        try:
            _add(builder, row, draws, options, several)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            builder.problem(place, f"not the layout of a result: {error!r}")
    if not draws:
        first = next(iter(builder.problems), None)
        why = "it holds no results" if first is None else f"{first.place}: {first.reason}"
        raise InputError(f"no result can be read; {why}", source=str(path))
    return builder.finish()


def _rows(path: Path, builder: LogBuilder) -> Iterator[tuple[str, dict[str, Any]]]:
    with path.open("rb") as file:
        first = file.readline()
    try:
        one_per_line = is_promptfoo_row(load_json(first))
    except (ValueError, TypeError):
        one_per_line = False
    if one_per_line:
        for number, row in json_lines(path, builder):
            yield f"line {number}", row
        return
    try:
        document = load_json(path.read_bytes())
    except ValueError as error:
        raise InputError(
            f"the JSON of promptfoo is cut or damaged: {error}",
            source=str(path),
            hint="write it again: promptfoo export eval EVAL_ID -o FILE.json",
        ) from None
    results = document.get("results") if isinstance(document, Mapping) else None
    if not isinstance(results, Mapping) or not isinstance(results.get("results"), list):
        raise InputError("promptfoo's results are missing: not its layout", source=str(path))
    stats = results.get("stats") or {}
    counts = [stats.get(name) for name in ("successes", "failures", "errors")]
    known = [count for count in counts if isinstance(count, int)]
    if len(known) == len(counts):
        builder.expected, builder.expected_unit = sum(known), "draws"
    for number, row in enumerate(results["results"]):
        yield f"result {number + 1}", row


def _add(
    builder: LogBuilder,
    row: Mapping[str, Any],
    draws: Counter[tuple[str, str]],
    options: ReadOptions,
    several_prompts: bool,
) -> None:
    question = json.dumps(row.get("vars") or {}, sort_keys=True, ensure_ascii=False)
    provider = row["provider"]
    name = provider if isinstance(provider, str) else provider.get("label") or provider["id"]
    model = f"{name} (prompt {row['promptIdx']})" if several_prompts else str(name)
    key = {"question_id": question, "model": model, "draw": draws[question, model]}
    draws[question, model] += 1
    builder.question(question_id=question, text=_text(row), kind="open")
    response = row.get("response") or {}
    if row.get("failureReason") == _ERROR or response.get("error"):
        why = response.get("error") or row.get("error")
        builder.problem(f"{question}, draw {key['draw']}", f"the call failed: {why!r:.120}")
        return
    correct, reason = _grade(row, options.grade)
    said = as_text(response.get("output")) or ""
    tokens = believed_tokens(builder, _token_logprobs(response), None)
    usage = response.get("tokenUsage") or {}
    builder.draw(
        **key,
        text=said if options.texts else None,
        answer=said,
        correct=correct,
        reason=reason,
        grader="assertions",
        token_logprobs=tokens,
        prompt_tokens=usage.get("prompt"),
        completion_tokens=usage.get("completion"),
    )
    if response.get("cached"):
        builder.note("some replies come from promptfoo's cache: repeats of those are copies")
    score = {**key, "answer": said, "correct": correct}
    if tokens:
        mean = math.fsum(tokens) / len(tokens)
        builder.score(**score, method="perplexity", confidence=math.exp(mean))
    stated = finite_number((response.get("metadata") or {}).get("confidence"))
    if stated is not None:
        builder.score(**score, method="stated", confidence=options.fraction(stated))


def _text(row: Mapping[str, Any]) -> str:
    return str((row.get("prompt") or {}).get("raw") or "")


def _grade(row: Mapping[str, Any], name: str | None) -> tuple[float | None, str | None]:
    graded = row.get("gradingResult") or {}
    if name is not None:
        value = finite_number((row.get("namedScores") or {}).get(name))
        return (value, None) if value is not None else (None, f"no score named {name!r}")
    if not graded.get("componentResults"):
        # promptfoo lets a test without assertions pass; nobody looked at the answer.
        return None, "the test has no assertion"
    return float(bool(row["success"])), None


def _token_logprobs(response: Mapping[str, Any]) -> list[Any]:
    values = response.get("logProbs")
    return values if isinstance(values, list) else []


def is_deepeval(head: bytes) -> bool:
    """Return whether the beginning of a file is that of a test run of DeepEval."""
    return b'"testCases"' in head and b'"metricsData"' in head


def read_deepeval(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a test run; cases with the same input are draws of one question."""
    builder = LogBuilder("deepeval", str(path))
    run = _run(path, builder)
    settings = run.get("hyperparameters")
    model = settings.get("model") if isinstance(settings, Mapping) else None
    draws: Counter[str] = Counter()
    for number, case in enumerate(run["testCases"]):
        try:
            _add_case(builder, case, str(model or "model"), draws, options)
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


def _add_case(
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
    correct, reason = _case_grade(case, options.grade)
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


def _case_grade(case: Mapping[str, Any], name: str | None) -> tuple[float | None, str | None]:
    found = case.get("metricsData") or []
    chosen = [one for one in found if name is None or one.get("name") == name]
    if not chosen:
        known = ", ".join(str(one.get("name")) for one in found) or "none"
        return None, "no metric was run" if name is None else f"no metric {name!r}; it has: {known}"
    failed = next((one for one in chosen if one.get("error")), None)
    if failed is not None:
        return None, f"the metric {failed.get('name')} failed: {failed['error']!r:.80}"
    return float(all(bool(one["success"]) for one in chosen)), None
