"""Results of simple-evals: ``*_allresults.json`` and the HTML report of a run.

Both hold every question as a piece of HTML with the conversation, the right answer, the answer
that was taken from the reply, and the score. A confidence is what the reply itself states in the
line ``Confidence: 85%`` that BrowseComp and Humanity's Last Exam ask for: their grader writes 100
where there is none, so what the grader says is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.exchange import Draws, Exchange, add_exchange, grade_value
from calibrant.records.convert.json_text import load_json, readable_samples
from calibrant.records.convert.log import ForeignLog, LogBuilder, as_text
from calibrant.records.convert.options import ReadOptions
from calibrant.records.convert.stated_in_text import stated_percent

KIND = "simple-evals"
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
    builder = LogBuilder(KIND, str(path))
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
