"""What OpenAI's tools write: logs of evals (``oaieval``), results of simple-evals.

The grade of a sample of evals is its ``match``, or the score of a
model that graded it. simple-evals holds every question as a piece of HTML; a confidence is what the
reply itself states in the line ``Confidence: 85%`` that some of its tasks ask for: their grader
writes 100 where there is none, so what the grader says is not read.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import zip_longest
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.data.logs import exchange, json_text
from calibrant.data.logs.log import ForeignLog, stated_percent
from calibrant.data.logs.recognise import kind_by

# -- evals: one event per line, a run's description first ------------------------------------------


@dataclass(slots=True)
class _Sample:
    """The events of one sample of one run."""

    run: str
    name: str
    request: exchange.Raw = field(default_factory=dict)
    graded: dict[str, object] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def add(self, data: exchange.Raw, kind: object) -> None:
        """Take in an event."""
        if kind == "sampling":
            self.request = data
        elif kind in ("match", "metrics"):
            self.graded |= data
        elif kind == "error":
            self.errors.append(str(data.get("message") or data))


def read_openai_evals(log: ForeignLog) -> None:
    """Read the samples of the runs in a log; a sample that several runs have is drawn again."""
    runs: dict[str, exchange.Raw] = {}
    samples: dict[tuple[str, str], _Sample] = {}
    for number, row in json_text.json_lines(log.path, log):
        if isinstance(described := row.get("spec"), Mapping):
            runs[str(described.get("run_id"))] = described
        elif row.get("sample_id") is not None and isinstance(data := row.get("data"), Mapping):
            key = str(row.get("run_id")), str(row["sample_id"])
            samples.setdefault(key, _Sample(*key)).add(data, row.get("type"))
        elif "final_report" not in row:
            log.problem(f"line {number}", "not the layout of an event")
    if not samples:
        raise InputError(
            "this log of OpenAI's evals holds no events of samples",
            hint="a run that ended early leaves its description and its report only: run it again",
        )
    exchange.read_exchanges(
        log,
        ((f"sample {sample.name}", sample) for sample in samples.values()),
        lambda sample: [_sample(sample, runs.get(sample.run, {}), log.options.grade)],
    )


def _sample(sample: _Sample, run: exchange.Raw, grade: str | None) -> exchange.Exchange:
    request, graded = sample.request, sample.graded
    if sample.errors:
        raise exchange.NoAnswerError(f"it failed: {sample.errors[0]!r:.120}")
    models = run.get("completion_fns") or ["model"]
    expected = graded.get("expected")
    right = expected if isinstance(expected, list) else [expected]
    reply = graded.get("sampled", request.get("sampled"))
    return exchange.Exchange(
        question_id=sample.name,
        question=exchange.plain_text(request.get("prompt") or graded.get("prompt") or ""),
        answer=exchange.plain_text(reply[0] if isinstance(reply, list) and reply else reply),
        model=str(models[0]),
        grade=_sample_grade(graded, grade),
        confidence=graded.get(exchange.CONFIDENCE, request.get(exchange.CONFIDENCE)),
        tokens=exchange.response_logprobs(request),
        task=json_text.as_text(run.get("eval_name")),
        references=[str(item) for item in right if item is not None],
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
        if not reply:
            raise exchange.NoAnswerError("the item has no answer of a model")
        results = exchange.named_items(item["results"])
        grades = {name: result.get("score", result.get("passed")) for name, result in results}
        grade = exchange.grade_among(grades, log.options.grade)
        fields = exchange.mapping_in(item.get("datasource_item"))
        return [
            exchange.Exchange(
                question_id=str(item.get("datasource_item_id")),
                question=exchange.plain_text(request[-1]) if request else "",
                answer=exchange.plain_text(reply[-1]),
                model=str(sample.get("model") or "model"),
                grade=grade._replace(opinions={**fields, **grades}),
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
        references=[right] if right and right != "None" else (),
    )


def _messages(html: str) -> list[str]:
    return [unescape(text) for _, text in _MESSAGE.findall(html)]
