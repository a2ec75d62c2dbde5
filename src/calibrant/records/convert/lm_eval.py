"""Sample files of lm-evaluation-harness: ``samples_<task>_<time>.jsonl``.

A file has one row per question and filter; here every question appears once. All repeats in
``resps`` become draws; a filter's way to the answer is read in the results file. A multiple-choice
row holds the log-likelihood of each option: their softmax is the confidence in the likeliest.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert import json_text
from calibrant.records.convert.exchange import (
    Exchange,
    Grade,
    NoAnswerError,
    Raw,
    first_grade,
    most_likely,
    read_exchanges,
)
from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog
from calibrant.records.convert.recognise import ROWS, fits

KIND = "lm-eval"
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")
_GRADES = ("acc", "exact_match", "em", "exact", "correct")
_QUESTION_KEYS = ("question", "query", "prompt", "input", "text", "problem")


@dataclass(slots=True)
class _Run:
    """What the file beside the samples says about the run."""

    task: str
    model: str = "model"
    expected: int | None = None
    config: Raw = field(default_factory=dict)


def read_lm_eval(log: ForeignLog) -> None:
    """Read a samples file; model and expected size come from the results file beside it."""
    path, options = log.path, log.options
    run = _run(path, log)
    log.expected = run.expected
    documents: dict[str, dict[str, Raw]] = {}
    for number, row in json_text.json_lines(path, log):
        if not fits(row, ROWS[KIND]):
            log.problem(f"line {number}", "not a row of a samples file")
            continue
        name, own = _filter(row), documents.setdefault(str(row["doc_id"]), {})
        if name in own:
            told = f"doc_id {row['doc_id']} of the filter {name!r} is there already: left out"
            log.problem(f"line {number}", told)
        own.setdefault(name, row)
    filters = list(dict.fromkeys(name for own in documents.values() for name in own))
    _check_filter(filters, options)
    _note_missing_filters(log, documents, filters)

    def exchanges(document: tuple[str, Mapping[str, Raw]]) -> Iterable[Exchange]:
        question, own = document
        rows = [row for name, row in own.items() if options.filter in (None, name)]
        if not rows:
            raise NoAnswerError(f"no row of the filter {options.filter!r}")
        return _document(log, question, rows, run)

    places = ((f"doc_id {question}", (question, own)) for question, own in documents.items())
    read_exchanges(log, places, exchanges)
    if run.expected is not None and len(documents) < run.expected:
        log.problem(
            path.name,
            f"{run.expected - len(documents)} of the {run.expected} questions of the run are "
            "not in the file",
        )


def _filter(row: Raw) -> str:
    return str(row.get("filter", "none"))


def _note_missing_filters(
    log: ForeignLog, documents: Mapping[str, Mapping[str, Raw]], filters: Sequence[str]
) -> None:
    """List the filters that do not have a row for every question: their grades are lost."""
    for name in filters:
        without = [question for question, own in documents.items() if name not in own]
        if without:
            log.problem(
                f"filter {name}",
                f"no row for {len(without)} of the {len(documents)} questions: doc_id "
                f"{', '.join(without[:5])}{', ..' if len(without) > 5 else ''}",
            )


def _check_filter(filters: Sequence[str], options: json_text.ReadOptions) -> None:
    if options.filter is not None and options.filter not in filters:
        raise InputError(
            f"there is no filter {options.filter!r}", hint=f"the file has: {', '.join(filters)}"
        )


def _run(path: Path, log: ForeignLog) -> _Run:
    match = _NAME.fullmatch(path.name)
    run = _Run(match["task"] if match else path.stem.removeprefix("samples_"))
    if match is None:
        return run
    beside = path.with_name(f"results_{match['time']}.json")
    try:
        results = json_text.load_json(beside.read_bytes())
        if not isinstance(results, dict):
            raise ValueError("not an object")
    except (OSError, ValueError) as error:
        if beside.is_file():
            log.note(
                f"{beside.name} cannot be read ({error!s:.60}): the model's name is that of the "
                "folder, and how many questions the run had is not known"
            )
        # The harness names the folder after the model.
        run.model = path.resolve().parent.name
        return run
    config = results.get("config") or {}
    run.model = str(results.get("model_name") or config.get("model") or path.resolve().parent.name)
    run.config = (results.get("configs") or {}).get(run.task) or {}
    run.expected = ((results.get("n-samples") or {}).get(run.task) or {}).get("effective")
    return run


def _document(log: ForeignLog, question: str, rows: Sequence[Raw], run: _Run) -> Iterable[Exchange]:
    first = rows[0]
    pairs = _is_pair(first)
    if pairs and len(first["resps"]) == 1:
        raise NoAnswerError("the log-likelihood of one continuation is no confidence in an answer")
    asked = [_arguments(value) for value in _values(first)]
    choices = [option.strip() for _, option in asked] if pairs else []
    about = Exchange(
        question_id=question,
        question=_question_text(first, asked),
        answer=None,
        model=run.model,
        task=run.task,
        references=_references(first, choices),
        choices=choices,
    )
    if choices:
        return [_choice(about, first, log.options)]
    return _replies(log, about, rows, run)


def _values(row: Raw) -> list[Any]:
    given = row.get("arguments") or {}
    return list(given.values()) if isinstance(given, Mapping) else list(given)


def _arguments(value: Any) -> tuple[str, str]:
    """Return the prompt, and the continuation that was scored or the settings as text."""
    if isinstance(value, Mapping):
        return str(value.get("arg_0")), str(value.get("arg_1"))
    return str(value[0]), str(value[1])


def _question_text(row: Raw, asked: Sequence[tuple[str, str]]) -> str:
    document = row.get("doc")
    held = document if isinstance(document, Mapping) else {}
    texts = (held[key] for key in _QUESTION_KEYS if isinstance(held.get(key), str))
    return next(texts, asked[0][0] if asked else "")


def _references(row: Raw, choices: Sequence[str]) -> list[str]:
    target = row.get("target")
    if isinstance(target, list):
        return [str(text) for text in target]
    text = json_text.as_text(target)
    if text is not None and text.isdecimal() and int(text) < len(choices):
        return [choices[int(text)]]  # the target of a choice is the place of the option
    return [text] if text else []


def _is_pair(row: Raw) -> bool:
    """Return whether replies are (log-likelihood, greedy) pairs rather than texts."""
    response = row["resps"][0][0]
    return isinstance(response, list | tuple) and len(response) == 2


def _grade(row: Raw, wanted: str | None) -> Grade:
    """Return the grade, the reason where there is none, and the metric that gave it."""
    return first_grade(row, [wanted] if wanted else [*_GRADES, *map(str, row.get("metrics") or [])])


def _choice(about: Exchange, row: Raw, options: json_text.ReadOptions) -> Exchange:
    logs = [float(response[0][0]) for response in row["resps"]]
    # Mutual-information accuracy asks every option a second time, without the question.
    if len(set(about.choices)) * 2 == len(logs):
        logs = logs[: len(logs) // 2]
    chosen, share = most_likely(logs)
    return replace(
        about,
        answer=about.choices[chosen],
        draw=0,
        grade=_choice_grade(row, chosen, options),
        scores={"option_softmax": share},
    )


def _choice_grade(row: Raw, chosen: int, options: json_text.ReadOptions) -> Grade:
    """Return the grade of the most likely option: the harness's, or else from the target."""
    if options.grade not in (None, "acc"):
        raise InputError(
            f"{options.grade!r} may judge another option than the most likely one, which is the "
            "one that the confidence is about",
            hint="multiple choice is graded by acc",
        )
    if "acc" in row:
        return _grade(row, "acc")
    target = json_text.as_text(row.get("target"))
    if target is not None and target.isdecimal():
        return Grade(float(int(target) == chosen), None, "target")
    return Grade(None, "neither acc nor the place of the right option is in the file")


def _replies(
    log: ForeignLog, about: Exchange, rows: Sequence[Raw], run: _Run
) -> Iterator[Exchange]:
    texts = [str(text) for text in rows[0]["resps"][0]]
    read, answers = _read_answers(log, rows, texts, run)
    grades: dict[str, Grade] = {}
    for row in rows:
        filtered = row["filtered_resps"]
        graded = json_text.as_text(filtered[0] if isinstance(filtered, list) else filtered) or ""
        grade = _grade(row, log.options.grade)
        held = Grade(None, FILTERED_ONLY, grade.grader) if grade.correct is None else grade
        grades.setdefault(graded, held)
    if len(texts) == 1:
        # One reply: the filtered answer is its answer, however the filter found it.
        answers = list(grades)[:1]
    elif not read and not any(answer in grades for answer in answers):
        log.note("the filter's answers cannot be found among the repeats: their grades are unknown")
    settings = run.config.get("generation_kwargs") or {}
    for draw, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        yield replace(
            about,
            text=text,
            answer=answer,
            draw=draw,
            grade=grades.get(answer, Grade(None, FILTERED_ONLY)),
            details={"temperature": json_text.finite_number(settings.get("temperature"))},
        )


def _read_answers(
    log: ForeignLog, rows: Sequence[Raw], texts: list[str], run: _Run
) -> tuple[bool, list[str]]:
    """Return the answer in each repeat, read in the way of the first filter where it is known."""
    name = _filter(rows[0])
    steps: Extraction | None = extraction(run.config, name)
    if steps is None:
        return False, texts
    if steps.unknown and len(texts) > 1:
        log.note(f"the filter {name!r} uses {steps.unknown!r}: repeats are read as they stand")
        return False, texts
    return True, [steps(text) for text in texts]


_CHOOSING = ("take_first", "take_first_k", "majority_vote")
_NOT_FOUND = "[invalid]"


@dataclass(frozen=True, slots=True)
class Extraction:
    """Steps from a reply to its answer; `unknown` names a step that is not known here."""

    steps: tuple[Callable[[str], str], ...]
    unknown: str | None = None

    def __call__(self, text: str) -> str:
        """Return the answer in a reply."""
        for step in self.steps:
            text = step(text)
        return text


def extraction(config: Raw, name: str) -> Extraction | None:
    """Return the steps of a filter up to the one that chooses among repeats.

    Parameters
    ----------
    config
        The task's settings from the results file.
    name
        Name of the filter.

    Examples
    --------
    >>> step = {"function": "regex", "regex_pattern": "#### ([0-9]+)"}
    >>> found = extraction({"filter_list": [{"name": "strict", "filter": [step]}]}, "strict")
    >>> found("so it is #### 42"), found("it is 42")
    ('42', '[invalid]')
    """
    for entry in config.get("filter_list") or []:
        if entry.get("name") == name:
            break
    else:
        return Extraction(()) if name == "none" and config else None
    steps: list[Callable[[str], str]] = []
    for setting in entry.get("filter") or []:
        function = str(setting.get("function"))
        if function in _CHOOSING:
            break
        step = _step(function, setting)
        if step is None:
            return Extraction(tuple(steps), unknown=function)
        steps.append(step)
    return Extraction(tuple(steps))


def _step(function: str, setting: Raw) -> Callable[[str], str] | None:
    if function == "lowercase":
        return str.lower
    if function == "uppercase":
        return str.upper
    if function == "remove_whitespace":
        return str.lstrip
    if function != "regex":
        return None
    try:
        pattern = re.compile(str(setting.get("regex_pattern", r"#### (\-?[0-9\.\,]+)")))
    except re.error:
        return None
    place = int(setting.get("group_select", 0))
    fallback = str(setting.get("fallback", _NOT_FOUND))
    return lambda text: _match(pattern, text, place, fallback)


def _match(pattern: re.Pattern[str], text: str, place: int, fallback: str) -> str:
    found = pattern.findall(text)
    if not found:
        return fallback
    try:
        match = found[place]
    except IndexError:
        return fallback
    if isinstance(match, tuple):
        filled = [part for part in match if part]
        if not filled:
            return fallback
        match = filled[0]
    return str(match).strip()
