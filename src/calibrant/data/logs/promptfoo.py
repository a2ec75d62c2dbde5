"""Results of promptfoo: ``promptfoo eval -o out.json`` or ``out.jsonl``.

A test without assertions passes by default: it has no grade. A grader that failed gave no verdict,
whatever number stands in its place.
"""

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.data.logs import exchange, json_text
from calibrant.data.logs.log import ForeignLog
from calibrant.data.logs.opinions import JUDGE, PEOPLE, numbered_name
from calibrant.data.logs.recognise import ROWS, fits

_ERROR = 2
"""`failureReason` of a call that failed; 0 is a pass, 1 a failed assertion."""
_MANUAL = "Manual result (overrides all other grading results)"
"""Reason of a result that a person changed; a number from them has no component of its own."""
_PASSING = 0.5
_NOT_CORRECTNESS = frozenset(json_text.KINDS["promptfoo"]["others"].split())
"""Assertions about how fast, dear or well formed an answer is, not about whether it is right."""


def read_promptfoo(log: ForeignLog) -> None:
    """Read results; repeats of a test are draws of one question."""
    rows = _results(log.path, log)
    by_text = _names_by_text(row for _, row in rows)
    several = len({str(row.get("promptIdx")) for _, row in rows if isinstance(row, dict)}) > 1

    def exchanges(row: exchange.Raw) -> Iterator[exchange.Exchange]:
        response = row.get("response") or {}
        if row.get("failureReason") == _ERROR or response.get("error"):
            why = response.get("error") or row.get("error")
            raise exchange.NoAnswerError(f"the call failed: {why!r:.120}")
        if response.get("cached"):
            log.note("some replies come from promptfoo's cache: repeats of those are copies")
        scores = _scores(row, by_text, log)
        yield _result(row, response, scores, log.options.grade, several_prompts=several)

    exchange.read_exchanges(log, rows, exchanges)


# -- assertions: their own results, by metric or kind ----------------------------------------------


def _parts(row: Any) -> Iterator[tuple[str, exchange.Raw, exchange.Raw]]:
    """Yield name, assertion and result; parts of a set follow it, which has no assertion itself."""
    graded = exchange.mapping_in(exchange.mapping_in(row).get("gradingResult"))
    for item in map(exchange.mapping_in, graded.get("componentResults") or ()):
        if about := exchange.mapping_in(item.get("assertion")):
            yield str(about.get("metric") or about.get("type")), about, item


def _has_failed(item: exchange.Raw) -> bool:
    return bool(exchange.mapping_in(item.get("metadata")).get("graderError"))


def _names_by_text(rows: Iterable[Any]) -> set[str]:
    """Return the names that a test has several times, and that few texts tell apart.

    Where every test has texts of its own, only the place in the test is common to all.
    """
    tests = [[(name, about.get("value")) for name, about, _ in _parts(row)] for row in rows]
    names = [Counter(name for name, _ in test) for test in tests]
    texts = Counter(name for name, _ in {(name, str(x)) for test in tests for name, x in test})
    several = {name for test in names for name, number in test.items() if number > 1}
    return {name for name in several if 2 * texts[name] <= sum(name in test for test in names)}


def _scores(row: exchange.Raw, by_text: set[str], log: ForeignLog) -> dict[str, Any]:
    """Return the score of each assertion, and what a person put in place of all of them."""
    graded = exchange.mapping_in(row.get("gradingResult"))
    scores: dict[str, Any] = {}
    human = graded.get("score") if graded.get("reason") == _MANUAL else None
    verdicts = []
    for name, about, item in _parts(row):
        kind = str(about.get("type"))
        if kind == "human":
            human = item.get("score")
            continue
        label = f"{name}: {textwrap.shorten(str(about.get('value')), 60)}"
        place = numbered_name(label if name in by_text else name, {*scores, "human"})
        scores[place] = None if _has_failed(item) else item.get("score")
        verdicts += [] if _has_failed(item) else [bool(item.get("pass"))]
        if kind.removeprefix("not-") not in _NOT_CORRECTNESS:
            log.roles[place] = JUDGE
    failed = len(scores) - len(verdicts)
    log.counts["verdicts are left empty: their grader failed"] += failed
    for name, value in (row.get("namedScores") or {}).items():
        # A grader that failed counts as 0 in these.
        scores.setdefault(name, None if failed else value)
    if human is not None:
        scores["human"], log.roles["human"] = human, PEOPLE
        if verdicts:
            log.corrections["human"].append((human >= _PASSING) != all(verdicts))
    return scores


# -- a result --------------------------------------------------------------------------------------


def _results(path: Path, log: ForeignLog) -> list[tuple[str, Any]]:
    data = path.read_bytes()
    first = json_text.json_or_none(data.partition(b"\n")[0])
    if isinstance(first, dict) and fits(first, ROWS["promptfoo"]):
        return list(json_text.named_lines(path, log))
    try:
        document = json_text.load_json(data)
    except ValueError as error:
        raise InputError(
            f"the JSON of promptfoo is cut or damaged: {error}",
            hint="write it again: promptfoo export eval EVAL_ID -o FILE.json",
        ) from None
    results = document.get("results") if isinstance(document, Mapping) else None
    if not isinstance(results, Mapping) or not isinstance(results.get("results"), list):
        raise InputError("promptfoo's results are missing: not its layout")
    stats = results.get("stats") or {}
    log.expect_sum([stats.get(name) for name in ("successes", "failures", "errors")])
    return list(json_text.numbered("result", results["results"]))


def _result(
    row: exchange.Raw,
    response: exchange.Raw,
    scores: exchange.Raw,
    grade: str | None,
    *,
    several_prompts: bool,
) -> exchange.Exchange:
    provider = row["provider"]
    name = provider if isinstance(provider, str) else provider.get("label") or provider["id"]
    tokens, usage = response.get("logProbs"), response.get("tokenUsage") or {}
    details = {"prompt_tokens": usage.get("prompt"), "completion_tokens": usage.get("completion")}
    return exchange.Exchange(
        question_id=json.dumps(row.get("vars") or {}, sort_keys=True, ensure_ascii=False),
        question=str((row.get("prompt") or {}).get("raw") or ""),
        answer=json_text.as_text(response.get("output")) or "",
        model=f"{name} (prompt {row['promptIdx']})" if several_prompts else str(name),
        grade=exchange.LoggedGrade(*_test_grade(row, scores, grade), "assertions", scores),
        confidence=(response.get("metadata") or {}).get(exchange.CONFIDENCE),
        tokens=tokens if isinstance(tokens, list) else None,
        details=details,
    )


def _test_grade(
    row: exchange.Raw, scores: exchange.Raw, name: str | None
) -> tuple[float | None, str | None]:
    graded = row.get("gradingResult") or {}
    if name is not None:
        value = json_text.finite_number(scores.get(name))
        return (value, None) if value is not None else (None, f"no score named {name!r}")
    assertions = graded.get("componentResults")
    if not assertions:
        # promptfoo lets a test without assertions pass; nobody looked at the answer.
        return None, "the test has no assertion"
    if "human" not in scores and any(_has_failed(item) for _, _, item in _parts(row)):
        return None, "a grader failed: it says nothing about the answer"
    kinds = [str((item.get("assertion") or {}).get("type") or "") for item in assertions]
    about = [kind.removeprefix("not-") not in _NOT_CORRECTNESS for kind in kinds]
    if not any(about):
        return None, f"no assertion is about the answer being right: {', '.join(kinds)}"
    if all(about):
        return float(bool(row["success"])), None
    passing = [bool(item["pass"]) for item, says in zip(assertions, about, strict=True) if says]
    return float(all(passing)), None
