"""One answer to one question, and the values that a tool keeps beside it under names.

What a tool calls a score is an opinion about an answer. It is a grade where its name says that it
tells right from wrong, or where the user names it; it is never the confidence of the model. A
confidence is a value named ``confidence``, or the log-probabilities of the tokens of the answer.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from calibrant.core.errors import InputError
from calibrant.data.logs import json_text
from calibrant.data.logs.log import ForeignLog, believed_tokens
from calibrant.data.tables import read_table

Raw: TypeAlias = Mapping[str, Any]
"""An object of a log as its tool wrote it: a field may be missing, or of another kind."""
CONFIDENCE = "confidence"
ABOUT = ("question_id", "question", "model", "answer")
"""Columns that say what an opinion is about."""
GRADES = ("correct", "is_correct", "correctness", "accuracy", "acc", "exact_match", "em")
"""Names that tell right from wrong in every tool, most telling first."""

_RIGHT = frozenset({"yes", "true", "correct", "pass", "passed", "right", "c"})
_WRONG = frozenset({"no", "false", "incorrect", "fail", "failed", "wrong", "i"})
_SAID = ("parts", "content", "text", "answer", "output", "response", "completion", "value")

Draws = Counter[tuple[str, str]]
"""How many answers of each question and model have been added."""
# What a reader trips over where a value is not of the kind that its tool writes.
_OTHER_LAYOUT = (LookupError, TypeError, AttributeError, ValueError, SyntaxError)


class LoggedGrade(NamedTuple):
    """A grade in [0, 1], or why there is none, who gave it, and all that was said.

    Opinions are values by name, or `Opinion`s where the log says who gave them.
    """

    correct: float | None = None
    reason: str | None = None
    grader: str | None = None
    opinions: Raw | Sequence[NamedTuple] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, the answer of a model, and what is known about the answer.

    Parameters
    ----------
    question, answer, model
        As the log has them. Answers to the same question are draws of it.
    grade
        Whether the answer is right.
    confidence
        What the model is said to have stated, as logged.
    tokens
        Log-probabilities of the tokens of the answer, each with its text where that is known.
    question_id, task, references, choices
        Where the log has them; a reference may be one text or several.
    text
        The whole reply, where the answer is a part of it.
    draw
        Number of the draw, where the log has one; else draws are counted.
    scores
        Confidences by method, as fractions.
    details
        Further columns of a draw.
    """

    question: str
    answer: str | None
    model: str = "model"
    grade: LoggedGrade = field(default_factory=LoggedGrade)
    confidence: Any = None
    tokens: Sequence[Any] | None = None
    question_id: str | None = None
    task: str | None = None
    references: Any = None
    choices: Sequence[str] = ()
    text: str | None = None
    draw: int | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    details: Raw = field(default_factory=dict)


class NoAnswerError(Exception):
    """A row has the layout of its tool and no answer of use: its call failed, for example."""


def refuse_failed(row: Raw, what: str) -> None:
    """Take a row with an error for one without an answer."""
    if row.get("error"):
        raise NoAnswerError(f"the {what} failed: {row['error']!r:.120}")


def read_exchanges(
    log: ForeignLog, rows: Iterable[tuple[str, Any]], exchanges: Callable[[Any], Iterable[Exchange]]
) -> None:
    """Add what each row of a log says; a row of another layout is listed, and the next one read.

    Parameters
    ----------
    log
        Takes questions, draws and confidences; its kind says what a row is called.
    rows
        Places as messages name them, and rows.
    exchanges
        What a row says. It is read whole before any of it is added.
    """
    draws: Draws = Draws()
    words = json_text.KINDS[log.kind]
    for place, row in rows:
        try:
            row_exchanges = list(exchanges(row))
        except NoAnswerError as error:
            log.problem(place, str(error))
            continue
        except InputError:
            raise
        except _OTHER_LAYOUT as error:
            log.problem(place, f"not the layout of {words['row']}: {error!r:.120}")
            continue
        for item in row_exchanges:
            _add(log, item, draws, place)
    if "nothing" in words and not draws:
        first = next(iter(log.problems), None)
        why = "" if first is None else f"; {first.place}: {first.reason}"
        raise InputError(f"{words['nothing']}{why}")


def _add(log: ForeignLog, item: Exchange, draws: Draws, place: str) -> None:
    """Add a question, its next draw, and the confidences that the log holds for it."""
    question = item.question if item.question_id is None else item.question_id
    draw = draws[question, item.model] if item.draw is None else item.draw
    draws[question, item.model] += 1
    right = item.references if isinstance(item.references, list | tuple) else [item.references]
    aliases = [str(text) for text in right if text not in (None, "")]
    log.question(
        question_id=question,
        text=item.question,
        references=[aliases] if aliases else None,
        kind="choice" if item.choices else "open",
        choices=list(item.choices) or None,
        domain=item.task,
    )
    reply = item.answer if item.text is None else item.text
    tokens = believed_tokens(log, item.tokens or (), reply)
    row: dict[str, object] = {"question_id": question, "model": item.model, "task": item.task}
    row |= {"draw": draw, "answer": item.answer, "correct": item.grade.correct}
    log.draw(
        **{name: x for name, x in item.details.items() if tokens or "logprobs" not in name},
        **row,
        reason=item.grade.reason,
        grader=item.grade.grader,
        text=reply if log.options.texts else None,
        token_logprobs=tokens,
    )
    if log.options.opinions:
        about = dict(zip(ABOUT, (question, item.question, item.model, item.answer), strict=True))
        opinions = item.grade.opinions
        if isinstance(opinions, Mapping):
            about |= {beside_answer(name): x for name, x in flat(opinions)}
        else:
            log.opinions_of_rows.append((about, opinions))
        log.opinions.append(about)
    scores = dict(item.scores)
    if tokens:
        total = math.fsum(tokens)
        scores["perplexity"] = math.exp(total / len(tokens))
        scores["sequence_probability"] = math.exp(total)
    if item.confidence is not None:
        stated_confidence = number_in(item.confidence)
        if stated_confidence is None:
            log.problem(place, f"the confidence is no number: {item.confidence!r:.40}")
        else:
            scores["stated"] = log.options.fraction(stated_confidence)
    for method, confidence in scores.items():
        log.score(**row, method=method, confidence=confidence)


def flat(opinions: Raw, above: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield what was said as text, parts of a score under a name each."""
    for name, value in opinions.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}/")
        elif not isinstance(value, list | tuple):
            yield f"{above}{name}", None if value is None or value != value else str(value)


def beside_answer(name: str) -> str:
    """Return the name of a score, another one where a column about the answer has it."""
    return f"{name} (score)" if name in ABOUT else name


def most_likely(logs: Sequence[float]) -> tuple[int, float]:
    """Return which option has the greatest log-likelihood, and its share of all of them.

    Examples
    --------
    >>> most_likely([-1.0, -1.0, -50.0])
    (0, 0.5)
    """
    choice = max(range(len(logs)), key=logs.__getitem__)
    share = 1.0 / math.fsum(math.exp(value - logs[choice]) for value in logs)
    if not math.isfinite(share):
        raise ValueError(f"log-likelihoods {logs} have no softmax")
    return choice, share


def number_in(value: Any) -> float | None:
    """Return a number, also one in a text: a CSV has no other values."""
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    return json_text.finite_number(value)


def first_grade(values: Raw, names: Iterable[str]) -> LoggedGrade:
    """Return the first grade among values of these names, why there is none, and its name."""
    tried = list(names)
    for name in tried:
        grade = grade_value(values.get(name))
        if grade is not None:
            return LoggedGrade(grade, None, name)
    return LoggedGrade(None, f"no metric between 0 and 1 among {', '.join(tried) or 'none'}")


def grade_among(values: Raw, name: str | None) -> LoggedGrade:
    """Return the grade among named values, the reason where there is none, and its name.

    Examples
    --------
    >>> grade_among({"helpfulness": 0.7, "correctness": "yes"}, None)[:3]
    (1.0, None, 'correctness')
    >>> grade_among({"helpfulness": 0.7}, None).reason
    'no value says right or wrong; name one as grade: helpfulness'
    """
    plain = {_plain(key): key for key in reversed(list(values))}
    target_names = GRADES if name is None else (name,)
    grader = next((plain[_plain(key)] for key in target_names if _plain(key) in plain), None)
    if grader is None:
        names = ", ".join(values) or "nothing was graded"
        why = "no value says right or wrong; name one as grade" if values else "no grade"
        reason = f"{why}: {names}" if name is None else f"no value {name!r}: {names}"
        return LoggedGrade(None, reason, None, values)
    value = values[grader]
    grade = grade_value(value)
    problem = "is empty" if value is None else f"is neither right nor wrong: {value!r:.40}"
    return LoggedGrade(grade, f"{grader} {problem}" if grade is None else None, grader, values)


def _plain(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")


def grade_value(value: Any) -> float | None:
    """Return a grade in [0, 1] of a flag, a number, a word or a list of one; else None.

    Examples
    --------
    >>> [grade_value(value) for value in (True, "incorrect", 0.5, 4, ["yes"], "CORRECT")]
    [1.0, 0.0, 0.5, None, 1.0, 1.0]
    """
    if isinstance(value, list | tuple):
        return grade_value(value[0]) if len(value) == 1 else None
    if isinstance(value, bool):
        return float(value)
    word = value.strip().casefold() if isinstance(value, str) else ""
    if word in _RIGHT or word in _WRONG:
        return float(word in _RIGHT)
    number = number_in(value)
    return number if number is not None and 0.0 <= number <= 1.0 else None


def log_rows(log: ForeignLog) -> Iterator[tuple[str, Raw]]:
    """Yield places and rows of a log that is a table of any kind, or objects of JSON."""
    path = log.path
    with path.open("rb") as file:
        head = file.read(4096).lstrip()
    if not head.startswith((b"{", b"[")):
        yield from json_text.numbered("row", read_table(path).iter_rows(named=True))
    elif head.startswith(b'{"columns"'):
        yield from json_text.numbered("row", _split_rows(path, log))
    else:
        yield from json_text.json_rows(path, log)


def _split_rows(path: Path, log: ForeignLog) -> Iterator[dict[Any, Any]]:
    """Yield the rows of a table that names its columns once."""
    try:
        table = json_text.load_json(path.read_bytes())
    except ValueError as error:
        raise InputError(f"the table is cut or damaged: {error}") from None
    columns = table["columns"]
    for number, row in enumerate(table.get("data", ()), start=1):
        if isinstance(row, list) and len(row) == len(columns):
            yield dict(zip(columns, row, strict=True))
        else:
            log.problem(f"row {number}", "it has other columns than the table says")


def mapping_in(value: Any) -> Raw:
    """Return a mapping, also one that is written as JSON; an empty one for anything else."""
    parsed = json_in(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, Mapping) else {}


def first_of(row: Raw, names: Iterable[str]) -> Any:
    """Return the value under the first of the names that has one."""
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def plain_text(value: Any) -> str:
    """Return the words of a prompt or an answer, however a tool wraps them.

    Examples
    --------
    >>> plain_text([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2"}])
    '2+2'
    >>> plain_text('{"content": "4"}'), plain_text({"a": 1})
    ('4', '{"a": 1}')
    """
    if isinstance(value, str):
        inner = json_in(value)
        return value if inner is None else plain_text(inner)
    if isinstance(value, list | tuple) and value:
        last = value[-1]
        return plain_text(last) if isinstance(last, Mapping) else _as_json(value)
    if isinstance(value, Mapping):
        if value.get("messages"):
            return plain_text(value["messages"])
        if value.get("choices"):
            return plain_text(value["choices"][:1])
        if isinstance(value.get("message"), Mapping):
            return plain_text(value["message"])
        content = next((value[key] for key in _SAID if value.get(key) is not None), None)
        if content is not None:
            return plain_text(content)
        if len(value) == 1 and isinstance(only := next(iter(value.values())), str):
            return only
        return _as_json(value)
    return json_text.as_text(value) or ""


def json_in(text: str) -> Any:
    """Return the object or list that a text is the JSON of, or None."""
    listed = text.lstrip().startswith(("{", "["))
    return json_text.json_or_none(text.encode()) if listed else None


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def response_logprobs(value: Any) -> list[Any] | None:
    """Return the tokens of a reply in the manner of OpenAI, or their log-probabilities alone.

    Examples
    --------
    >>> reply = {"choices": [{"logprobs": {"content": [{"token": "4", "logprob": -0.1}]}}]}
    >>> response_logprobs(reply), response_logprobs("4")
    ([{'token': '4', 'logprob': -0.1}], None)
    """
    reply = mapping_in(value)
    choices = reply.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        reply = choices[0]
    logprobs = reply.get("logprobs")
    if isinstance(logprobs, Mapping):
        logprobs = logprobs.get("content") or logprobs.get("token_logprobs")
    return logprobs if isinstance(logprobs, list) and logprobs else None
