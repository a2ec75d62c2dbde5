"""What tools that run tests write: OpenAI's evals and simple-evals, DeepEval, HLE.

The grade of a sample of evals is its ``match``, or the score of a model that graded it. The grader
of simple-evals writes a confidence of 100 where the reply states none, so only the reply's own line
``Confidence: 85%`` is read; the judge of HLE is told to do the same. The score of a metric is the
opinion of a judge about the answer, never the confidence of the model that gave it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import zip_longest
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.data.logs import exchange, json_text
from calibrant.data.logs.log import ForeignLog, stated_percent
from calibrant.data.logs.opinions import JUDGE, numbered_name
from calibrant.data.logs.recognise import kind_by, kind_of_row

# -- evals: one event per line, a run's description first ------------------------------------------


def read_openai_evals(log: ForeignLog) -> None:
    """Read the samples of the runs in a log; a sample that several runs have is drawn again."""
    runs: dict[str, exchange.Raw] = {}
    samples: dict[tuple[str, str], dict[str, Any]] = {}
    for number, row in json_text.json_lines(log.path, log):
        if isinstance(described := row.get("spec"), Mapping):
            runs[str(described.get("run_id"))] = described
        elif row.get("sample_id") is not None and isinstance(data := row.get("data"), Mapping):
            key = str(row.get("run_id")), str(row["sample_id"])
            events, kind = samples.setdefault(key, {"graded": {}}), row.get("type")
            if kind in ("match", "metrics"):
                events["graded"] |= data
            elif kind == "error":
                events.setdefault("error", str(data.get("message") or data))
            elif kind == "sampling":
                events["request"] = data
        elif "final_report" not in row:
            log.problem(f"line {number}", "not the layout of an event")
    if not samples:
        raise InputError(
            "this log of OpenAI's evals holds no events of samples",
            hint="a run that ended early leaves its description and its report only: run it again",
        )
    exchange.read_exchanges(
        log,
        ((f"sample {name}", (name, runs.get(run, {}), x)) for (run, name), x in samples.items()),
        lambda sample: [_sample(log.options.grade, *sample)],
    )


def _sample(
    grade: str | None, name: str, run: exchange.Raw, events: exchange.Raw
) -> exchange.Exchange:
    request, graded = events.get("request", {}), events["graded"]
    if "error" in events:
        raise exchange.NoAnswerError(f"it failed: {events['error']!r:.120}")
    models = run.get("completion_fns") or ["model"]
    reply = graded.get("sampled", request.get("sampled"))
    return exchange.Exchange(
        question_id=name,
        question=exchange.plain_text(request.get("prompt") or graded.get("prompt") or ""),
        answer=exchange.plain_text(reply[0] if isinstance(reply, list) and reply else reply),
        model=str(models[0]),
        grade=_sample_grade(graded, grade),
        confidence=graded.get(exchange.CONFIDENCE, request.get(exchange.CONFIDENCE)),
        tokens=exchange.response_logprobs(request),
        task=json_text.as_text(run.get("eval_name")),
        references=graded.get("expected"),
    )


def _sample_grade(graded: exchange.Raw, name: str | None) -> exchange.LoggedGrade:
    if name is None and "correct" not in graded:
        # A grading model gives a choice, and a score where the eval says what choices are worth.
        score = exchange.grade_value(graded.get("score"))
        if score is not None:
            return exchange.LoggedGrade(score, None, "score", graded)
        if "choice" in graded:
            why = f"the grading model chose {graded['choice']!r:.40}, without a score"
            return exchange.LoggedGrade(None, why, None, graded)
    return exchange.grade_among(graded, name)


# -- Evals of the platform: output items of a run, each with the results of its graders ------------


def read_openai_graders(log: ForeignLog) -> None:
    """Read output items; people's labels are fields of the item that was asked about."""

    def exchanges(item: exchange.Raw) -> list[exchange.Exchange]:
        sample = item.get("sample") or {}
        exchange.refuse_failed(sample, "sample")
        reply, request = sample.get("output") or (), sample.get("input") or ()
        fields = exchange.mapping_in(item.get("datasource_item"))
        text = exchange.plain_text(reply[-1] if reply else fields.get("sample.output_text"))
        # What people and judges said of an answer is read also where the log leaves it out.
        if not text and not log.options.opinions:
            raise exchange.NoAnswerError("the item has no answer of a model")
        grades: dict[str, Any] = {}
        for result in item["results"]:
            place = numbered_name(str(result["name"]), grades)
            grades[place] = result.get("score", result.get("passed"))
        log.roles.update(dict.fromkeys(map(exchange.beside_answer, grades), JUDGE))
        grade, names = exchange.grade_among(grades, log.options.grade), (*grades, *exchange.ABOUT)
        own = {f"item.{name}" if name in names else name: x for name, x in fields.items()}
        return [
            exchange.Exchange(
                question_id=json_text.as_text(item.get("datasource_item_id")),
                question=exchange.plain_text(request[-1]) if request else "",
                answer=text or None,
                model=str(sample.get("model") or "model"),
                grade=grade._replace(opinions={**own, **grades}),
            )
        ]

    exchange.read_exchanges(log, exchange.log_rows(log), exchanges)


# -- simple-evals: *_allresults.json, and the HTML report of a run ---------------------------------

_PROMPT, _SAMPLED, _RESULTS = (
    f"<h3>{title}</h3>" for title in ("Prompt conversation", "Sampled message", "Results")
)
_MESSAGE = re.compile(
    r'<div class="message (\w+)">.*?<div class="content">\s*<pre>(.*?)</pre>', re.DOTALL
)
_RESULT = re.compile(r"<p>(Correct Answer|Extracted Answer|Score): (.*?)</p>", re.DOTALL)


def read_simple_evals(log: ForeignLog) -> None:
    """Read all results, or a report; the same question asked again is another draw of it."""
    log.note("simple-evals does not name the model: it is called 'model'")
    task, pages, talks = _examples(log.path, log)
    rows = json_text.numbered("example", zip_longest(pages, talks[: len(pages)]))
    exchange.read_exchanges(log, rows, lambda example: [_example(task, *example)])


def _examples(path: Path, log: ForeignLog) -> tuple[str | None, Sequence[Any], Sequence[Any]]:
    """Return the name of the task, the examples as HTML, and their conversations."""
    data = path.read_bytes()
    if data.lstrip().startswith(b"<") and kind_by("page", data) == "simple-evals":
        return None, data.decode("utf-8", errors="replace").split(_PROMPT)[1:], ()
    results = json_text.read_json(path, log, rows="htmls")
    pages = results.get("htmls") if isinstance(results, Mapping) else None
    if not isinstance(pages, list) or not pages:
        raise InputError(
            "no examples are in this file of simple-evals, only totals",
            hint="give the file *_allresults.json, or the HTML report",
        )
    talks = results.get("convos") if isinstance(results.get("convos"), list) else []
    return json_text.as_text(results.get("task_name")), pages, talks


def _example(task: str | None, page: Any, talk: Any) -> exchange.Exchange:
    if not isinstance(page, str):
        raise TypeError("an example is a page")
    request, _, tail = page.partition(_SAMPLED)
    sampled, _, results = tail.partition(_RESULTS)
    if "Score:" not in results:
        raise exchange.NoAnswerError("it is cut off before its score")
    prompts, replies = _messages(request), _messages(sampled)
    fields = {name: unescape(value.strip()) for name, value in _RESULT.findall(results)}
    reply = replies[-1] if replies else str(talk[-1]["content"]) if talk else ""
    correct, right = exchange.grade_value(fields.get("Score")), fields.get("Correct Answer")
    selection, confidence = fields.get("Extracted Answer"), stated_percent(reply)
    reason = None if correct is not None else f"the score is {fields.get('Score')!r:.40}"
    return exchange.Exchange(
        question=prompts[-1] if prompts else "",
        answer=reply if selection in (None, "None", "") else selection,
        grade=exchange.LoggedGrade(correct, reason, "score"),
        scores={} if confidence is None else {"stated": confidence},
        task=task,
        references=right if right != "None" else None,
    )


def _messages(html: str) -> list[str]:
    return [unescape(text) for _, text in _MESSAGE.findall(html)]


# -- DEEPEVAL_RESULTS_FOLDER and .deepeval ---------------------------------------------------------


def read_deepeval(log: ForeignLog) -> None:
    """Read a test run; cases with the same input are draws of one question."""
    content = json_text.read_json(log.path, log, rows="testCases")
    # The folder .deepeval wraps the run.
    run = content.get("testRunData", content) if isinstance(content, Mapping) else None
    if not isinstance(run, Mapping) or not isinstance(run.get("testCases"), list):
        raise InputError("a test run of DeepEval has a list of test cases")
    log.expect_sum([run.get("testPassed"), run.get("testFailed")])
    if run.get("conversationalTestCases"):
        count = len(run["conversationalTestCases"])
        log.problem("conversationalTestCases", f"{count} conversations have no single answer")
    settings = run.get("hyperparameters")
    model = settings.get("model") if isinstance(settings, Mapping) else None
    exchange.read_exchanges(
        log,
        json_text.numbered("test case", run["testCases"]),
        lambda case: [_case(case, str(model or "model"), log.options.grade)],
    )


def _case(case: exchange.Raw, model: str, grade: str | None) -> exchange.Exchange:
    metadata = case.get("metadata") or case.get("additionalMetadata") or {}
    return exchange.Exchange(
        question=str(case["input"]),
        answer=json_text.as_text(case.get("actualOutput")) or "",
        model=model,
        grade=exchange.LoggedGrade(
            *_case_grade(case, grade),
            grade or "all metrics",
            {str(item.get("name")): item.get("score") for item in case.get("metricsData") or ()},
        ),
        confidence=metadata.get(exchange.CONFIDENCE),
        references=json_text.as_text(case.get("expectedOutput")),
    )


def _case_grade(case: exchange.Raw, name: str | None) -> tuple[float | None, str | None]:
    metrics = case.get("metricsData") or []
    choice = [item for item in metrics if name is None or item.get("name") == name]
    if not choice:
        names = ", ".join(str(item.get("name")) for item in metrics) or "none"
        return None, "no metric was run" if name is None else f"no metric {name!r}; it has: {names}"
    failed = next((item for item in choice if item.get("error")), None)
    if failed is not None:
        return None, f"the metric {failed.get('name')} failed: {failed['error']!r:.80}"
    return float(all(bool(item["success"]) for item in choice)), None


_DEFAULT = 100.0
"""What the judge writes where a response states no confidence."""


def read_hle(log: ForeignLog) -> None:
    """Read judged answers; entries that the judge has not answered are listed."""

    def exchanges(row: tuple[str, Any]) -> Iterator[exchange.Exchange]:
        question, entry = row
        verdicts = entry.get("judge_response") if isinstance(entry, Mapping) else None
        if not isinstance(verdicts, Mapping):
            raise exchange.NoAnswerError("not judged")
        yield _answer(log, question, entry, verdicts)

    entries = _entries(log.path, log)
    rows = ((f"question {name}", (name, entry)) for name, entry in entries.items())
    exchange.read_exchanges(log, rows, exchanges)


def _entries(path: Path, log: ForeignLog) -> dict[str, object]:
    """Return the entries by question; of a damaged file those before the damage."""
    data = path.read_bytes()
    # A file of lines begins with a whole entry.
    first = json_text.json_or_none(data.partition(b"\n")[0])
    if isinstance(first, dict) and kind_of_row(first) == "hle":
        lines = json_text.named_lines(path, log)
        entries: dict[str, object] = {str(row.get("id", place)): row for place, row in lines}
        log.expected = len(entries) + len(log.problems)
        return entries
    content = json_text.read_json(path, log)
    if isinstance(content, list):
        rows = [item for item in content if isinstance(item, dict)]
        content = {
            str(item.get("id", f"entry {position}")): item for position, item in enumerate(rows, 1)
        }
    if not isinstance(content, dict) or not content:
        raise InputError("no entry of the file can be read")
    if not log.problems:
        log.expected = len(content)
    else:
        read = sum(isinstance(item, dict) and "judge_response" in item for item in content.values())
        missing = data.count(b'"judge_response"') - read
        if missing:
            log.problem(path.name, f"at least {missing} of its entries cannot be read")
    return content


def _answer(
    log: ForeignLog, question: str, entry: exchange.Raw, verdicts: exchange.Raw
) -> exchange.Exchange:
    correct, text = (
        exchange.grade_value(str(verdicts.get("correct"))),
        str(entry.get("response", "")),
    )
    confidence = json_text.finite_number(verdicts.get("confidence"))
    made_up = confidence == _DEFAULT and text and "100" not in text and stated_percent(text) is None
    reason = None if correct is not None else f"the judge says {verdicts.get('correct')!r:.40}"
    if confidence is None:
        log.problem(f"question {question}", "the judge gives no confidence")
    elif made_up:
        why = "the response states no confidence; the judge writes 100 there, which is not read"
        log.problem(f"question {question}", why)
    return exchange.Exchange(
        question_id=question,
        question=str(entry.get("question", "")),
        text=text,
        answer=str(verdicts.get("model_answer", text)),
        model=str(entry.get("model", "model")),
        draw=0,
        grade=exchange.LoggedGrade(correct, reason, "judge"),
        scores={} if confidence is None or made_up else {"verb": confidence / 100.0},
        references=verdicts.get("correct_answer"),
    )
