"""What OpenAI's tools write: batch outputs, logs of evals, results of simple-evals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.believed import believed_tokens, stated_percent
from calibrant.records.convert.exchange import (
    CONFIDENCE,
    Draws,
    Exchange,
    add_exchange,
    grade_among,
    grade_value,
    plain_text,
    response_logprobs,
)
from calibrant.records.convert.json_text import (
    ReadOptions,
    as_text,
    json_lines,
    load_json,
    readable_samples,
)
from calibrant.records.convert.log import ForeignLog, LogBuilder


def is_openai_batch(row: Mapping[str, Any]) -> bool:
    """Return whether a jsonl file that begins with this row is a batch output."""
    return "custom_id" in row and "response" in row


def read_openai_batch(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a batch output; every choice is a draw of the question named by ``custom_id``."""
    builder = LogBuilder("openai-batch", str(path))
    builder.note("a batch output holds no grades: import it and grade the draws")
    for number, row in json_lines(path, builder):
        try:
            _add(builder, row, options)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            builder.problem(f"line {number}", f"not the layout of a response: {error!r}")
    return builder.finish()


def _add(builder: LogBuilder, row: Mapping[str, Any], options: ReadOptions) -> None:
    question = str(row["custom_id"])
    response = row["response"]
    if row.get("error") or response is None or response.get("status_code", 200) != 200:
        why = row.get("error") or (response or {}).get("body")
        builder.problem(f"custom_id {question}", f"the request failed: {why!r:.120}")
        return
    body = response["body"]
    usage = body.get("usage") or {}
    builder.question(question_id=question, text="", kind="open")
    for choice in body["choices"]:
        content = (choice.get("logprobs") or {}).get("content") or []
        text = choice["message"].get("content") or ""
        tokens = believed_tokens(builder, content, text)
        key = {"question_id": question, "model": str(body["model"]), "draw": int(choice["index"])}
        builder.draw(
            **key,
            text=text if options.texts else None,
            answer=text,
            reason="a batch output holds no grades",
            finish_reason=choice.get("finish_reason"),
            token_logprobs=tokens,
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
        )
        if tokens:
            mean = math.fsum(tokens) / len(tokens)
            builder.score(**key, method="perplexity", answer=text, confidence=math.exp(mean))


_GRADED = ("match", "metrics")


@dataclass(slots=True)
class _Sample:
    """The events of one sample of one run."""

    run: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    graded: dict[str, Any] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def is_openai_evals(row: Mapping[str, Any]) -> bool:
    """Return whether a jsonl file that begins with this row is a log of OpenAI's evals."""
    described = row.get("spec")
    if isinstance(described, Mapping) and "completion_fns" in described:
        return True
    return {"run_id", "event_id", "sample_id", "type", "data"} <= set(row)


def read_openai_evals(path: Path, options: ReadOptions) -> ForeignLog:
    """Read the samples of the runs in a log; a sample that several runs have is drawn again."""
    builder = LogBuilder("openai-evals", str(path))
    runs: dict[str, Mapping[str, Any]] = {}
    samples: dict[tuple[str, str], _Sample] = {}
    for number, row in json_lines(path, builder):
        if isinstance(described := row.get("spec"), Mapping):
            runs[str(described.get("run_id"))] = described
        elif "final_report" not in row:
            _add_event(builder, f"line {number}", row, samples)
    if not samples:
        raise InputError(
            "this log of OpenAI's evals holds no events of samples",
            source=str(path),
            hint="a run that ended early leaves its description and its report only: run it again",
        )
    draws: Draws = Draws()
    for (_, name), sample in samples.items():
        _add_sample(builder, name, sample, runs.get(sample.run, {}), draws, options)
    return builder.finish()


def _add_event(
    builder: LogBuilder,
    place: str,
    row: Mapping[str, Any],
    samples: dict[tuple[str, str], _Sample],
) -> None:
    data, kind = row.get("data"), row.get("type")
    if row.get("sample_id") is None or not isinstance(data, Mapping):
        builder.problem(place, "not the layout of an event")
        return
    run = str(row.get("run_id"))
    sample = samples.setdefault((run, str(row["sample_id"])), _Sample(run))
    if kind == "sampling":
        sample.asked = data
    elif kind in _GRADED:
        sample.graded |= data
    elif kind == "error":
        sample.errors.append(str(data.get("message") or data))


def _add_sample(
    builder: LogBuilder,
    name: str,
    sample: _Sample,
    run: Mapping[str, Any],
    draws: Draws,
    options: ReadOptions,
) -> None:
    asked, graded = sample.asked, sample.graded
    if sample.errors:
        builder.problem(f"sample {name}", f"it failed: {sample.errors[0]!r:.120}")
        return
    models = run.get("completion_fns") or []
    correct, reason, grader = _grade(graded, options.grade)
    expected = graded.get("expected")
    said = graded.get("sampled", asked.get("sampled"))
    add_exchange(
        builder,
        Exchange(
            question_id=name,
            question=plain_text(asked.get("prompt") or graded.get("prompt") or ""),
            answer=plain_text(said[0] if isinstance(said, list) and said else said),
            model=str(models[0] if models else "model"),
            correct=correct,
            reason=reason,
            grader=grader,
            confidence=graded.get(CONFIDENCE, asked.get(CONFIDENCE)),
            tokens=response_logprobs(asked),
            task=as_text(run.get("eval_name")),
            references=[str(one) for one in expected]
            if isinstance(expected, list)
            else [str(expected)]
            if expected is not None
            else (),
        ),
        draws,
        options,
        place=f"sample {name}",
    )


def _grade(
    graded: Mapping[str, Any], name: str | None
) -> tuple[float | None, str | None, str | None]:
    if name is None and "correct" not in graded:
        # A grading model gives a choice, and a score where the eval says what choices are worth.
        score = grade_value(graded.get("score"))
        if score is not None:
            return score, None, "score"
        if "choice" in graded:
            return None, f"the grading model chose {graded['choice']!r:.40}, without a score", None
    return grade_among(graded, name)


_PROMPT, _SAMPLED, _RESULTS = (
    "<h3>Prompt conversation</h3>",
    "<h3>Sampled message</h3>",
    "<h3>Results</h3>",
)
_MESSAGE = re.compile(
    r'<div class="message (\w+)">.*?<div class="content">\s*<pre>(.*?)</pre>', re.DOTALL
)
_RESULT = re.compile(r"<p>(Correct Answer|Extracted Answer|Score): (.*?)</p>", re.DOTALL)


def is_simple_evals(head: bytes) -> bool:
    """Return whether the beginning of a file is that of all results of simple-evals."""
    return b'"htmls"' in head and b'"score"' in head


def is_simple_evals_page(head: bytes) -> bool:
    """Return whether the beginning of a file is that of a report of simple-evals."""
    start = head[:200].lstrip().lower()
    return start.startswith(b"<!doctype html") and _PROMPT.encode() in head


def read_simple_evals(path: Path, options: ReadOptions) -> ForeignLog:
    """Read all results, or a report; the same question asked again is another draw of it."""
    builder = LogBuilder("simple-evals", str(path))
    task, pages, conversations = _examples(path, builder)
    draws: Draws = Draws()
    for number, page in enumerate(pages, start=1):
        talk = conversations[number - 1] if number <= len(conversations) else None
        try:
            one = _exchange(page, talk, task)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            builder.problem(f"example {number}", f"not the layout of an example: {error!r:.120}")
            continue
        # What a reply states is turned into a fraction here, whatever the scale of the log.
        add_exchange(
            builder, one, draws, replace(options, scale="fraction"), place=f"example {number}"
        )
    if not draws:
        raise InputError("no example of simple-evals can be read", source=str(path))
    builder.note("simple-evals does not name the model: it is called 'model'")
    return builder.finish()


def _examples(path: Path, builder: LogBuilder) -> tuple[str | None, Sequence[Any], Sequence[Any]]:
    """Return the name of the task, the examples as HTML, and their conversations."""
    data = path.read_bytes()
    if is_simple_evals_page(data[:262_144]):
        return None, list(_from_page(data.decode("utf-8", errors="replace"), builder)), ()
    try:
        found = load_json(data)
    except ValueError as error:
        builder.problem(path.name, f"the JSON is damaged: {error}; its end may be missing")
        found = readable_samples(data, rows="htmls")
    pages = found.get("htmls") if isinstance(found, Mapping) else None
    if not isinstance(pages, list) or not pages:
        raise InputError(
            "no examples are in this file of simple-evals, only totals",
            source=str(path),
            hint="give the file *_allresults.json, or the HTML report",
        )
    talks = found.get("convos") if isinstance(found.get("convos"), list) else []
    return as_text(found.get("task_name")), pages, talks


def _from_page(text: str, builder: LogBuilder) -> Iterator[str]:
    """Yield the examples of a report; one that is cut off is listed."""
    _, *pieces = text.split(_PROMPT)
    for number, piece in enumerate(pieces, start=1):
        if _RESULTS not in piece or "Score:" not in piece:
            builder.problem(f"example {number}", "it is cut off before its score")
            continue
        yield _PROMPT + piece


def _exchange(page: Any, talk: Any, task: str | None) -> Exchange:
    if not isinstance(page, str) or _SAMPLED not in page:
        raise ValueError("there is no sampled message")
    asked, _, rest = page.partition(_SAMPLED)
    sampled, _, results = rest.partition(_RESULTS)
    prompts, replies = _messages(asked), _messages(sampled)
    held = {name: unescape(value.strip()) for name, value in _RESULT.findall(results)}
    reply = replies[-1] if replies else _last_message(talk)
    correct = grade_value(held.get("Score")) if "Score" in held else None
    if correct is None and "Score" in held:
        correct = _fraction(held["Score"])
    right = held.get("Correct Answer")
    return Exchange(
        question=prompts[-1] if prompts else "",
        answer=_extracted(held.get("Extracted Answer")) or reply,
        model="model",
        correct=correct,
        reason=None if correct is not None else f"the score is {held.get('Score')!r:.40}",
        grader="score",
        confidence=stated_percent(reply),
        task=task,
        references=[right] if right and right != "None" else (),
    )


def _messages(html: str) -> list[str]:
    return [unescape(text) for _, text in _MESSAGE.findall(html)]


def _last_message(talk: Any) -> str:
    return str(talk[-1]["content"]) if talk else ""


def _extracted(text: str | None) -> str | None:
    return None if text in (None, "None", "") else text


def _fraction(text: str) -> float | None:
    try:
        return grade_value(float(text))
    except ValueError:
        return None
