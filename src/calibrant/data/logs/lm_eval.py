"""Sample files of lm-evaluation-harness: ``samples_<task>_<time>.jsonl``.

A file has one row per question and filter; here every question appears once. All repeats in
``resps`` become draws; a filter's way to the answer is read in the results file. A multiple-choice
row holds the log-likelihood of each option: their softmax is the confidence in the likeliest.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.data.logs import exchange, json_text
from calibrant.data.logs.exchange import Exchange, LoggedGrade, NoAnswerError, Raw
from calibrant.data.logs.log import FILTERED_ONLY, ForeignLog
from calibrant.data.logs.recognise import ROWS, fits

KIND = "lm-eval"
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")
_GRADES = ("acc", "exact_match", "em", "exact", "correct")
_QUESTION_KEYS = ("question", "query", "prompt", "input", "text", "problem")


def read_lm_eval(log: ForeignLog) -> None:
    """Read a samples file; model and expected size come from the results file beside it."""
    path, target = log.path, log.options.filter
    about, settings, log.expected = _run(path, log)
    documents: dict[str, dict[str, Raw]] = {}
    for number, row in json_text.json_lines(path, log):
        if not fits(row, ROWS[KIND]):
            log.problem(f"line {number}", "not a row of a samples file")
            continue
        name, by_filter = _filter(row), documents.setdefault(str(row["doc_id"]), {})
        if name in by_filter:
            why = f"doc_id {row['doc_id']} of the filter {name!r} is there already: left out"
            log.problem(f"line {number}", why)
        by_filter.setdefault(name, row)
    _check_filters(log, documents)

    def exchanges(document: tuple[str, Mapping[str, Raw]]) -> Iterable[Exchange]:
        question, by_filter = document
        rows = [row for name, row in by_filter.items() if target in (None, name)]
        if not rows:
            raise NoAnswerError(f"no row of the filter {target!r}")
        return _document(log, rows, replace(about, question_id=question), settings)

    exchange.read_exchanges(
        log, ((f"doc_id {item[0]}", item) for item in documents.items()), exchanges
    )
    if log.expected is not None and len(documents) < log.expected:
        missing = f"{log.expected - len(documents)} of the {log.expected} questions of the run"
        log.problem(path.name, f"{missing} are not in the file")


def _filter(row: Raw) -> str:
    return str(row.get("filter", "none"))


def _check_filters(log: ForeignLog, documents: Mapping[str, Mapping[str, Raw]]) -> None:
    """List the filters that do not have a row for every question: their grades are lost."""
    filters = list(dict.fromkeys(name for rows in documents.values() for name in rows))
    target = log.options.filter
    if target not in (None, *filters):
        hint = f"the file has: {', '.join(filters)}"
        raise InputError(f"there is no filter {target!r}", hint=hint)
    for name in filters:
        without = [question for question, rows in documents.items() if name not in rows]
        if without:
            text = ", ".join([*without[:5], *([".."] if len(without) > 5 else [])])
            of_all = f"no row for {len(without)} of the {len(documents)} questions"
            log.problem(f"filter {name}", f"{of_all}: doc_id {text}")


def _run(path: Path, log: ForeignLog) -> tuple[Exchange, Raw, int | None]:
    """Return model and task, the task's settings and its questions, by the file beside it."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return Exchange("", None, task=path.stem.removeprefix("samples_")), {}, None
    task = match["task"]
    neighbour = path.with_name(f"results_{match['time']}.json")
    # The harness names the folder after the model.
    folder = path.resolve().parent.name
    try:
        results = json_text.load_json(neighbour.read_bytes())
        if not isinstance(results, dict):
            raise ValueError("not an object")
    except (OSError, ValueError) as error:
        results = {}
        if neighbour.is_file():
            log.note(
                f"{neighbour.name} cannot be read ({error!s:.60}): the model's name is that of the "
                "folder, and how many questions the run had is not known"
            )
    config = results.get("config") or {}
    model = str(results.get("model_name") or config.get("model") or folder)
    expected = ((results.get("n-samples") or {}).get(task) or {}).get("effective")
    settings = (results.get("configs") or {}).get(task) or {}
    return Exchange("", None, model, task=task), settings, expected


def _document(
    log: ForeignLog, rows: Sequence[Raw], about: Exchange, settings: Raw
) -> Iterable[Exchange]:
    first = rows[0]
    # Replies are texts, or pairs of a log-likelihood and whether greedy decoding would say it.
    response = first["resps"][0][0]
    pairs = isinstance(response, list | tuple) and len(response) == 2
    if pairs and len(first["resps"]) == 1:
        raise NoAnswerError("the log-likelihood of one continuation is no confidence in an answer")
    request = _asked(first)
    document = first["doc"] if isinstance(first.get("doc"), Mapping) else {}
    texts = (document[key] for key in _QUESTION_KEYS if isinstance(document.get(key), str))
    choices = [option.strip() for _, option in request] if pairs else []
    # The target of a choice is the place of the option.
    target = first.get("target")
    right = target if isinstance(target, list) else json_text.as_text(target)
    place = _place(target)
    choice = choices[place] if place is not None and place < len(choices) else None
    about = replace(
        about,
        question=next(texts, request[0][0] if request else ""),
        references=right if choice is None else choice,
        choices=choices,
    )
    if choices:
        return [_choice(about, first, log.options)]
    return _replies(log, about, rows, settings)


def _asked(row: Raw) -> list[tuple[str, str]]:
    """Return prompts, each with the continuation that was scored or the settings as text."""
    setting = row.get("arguments") or {}
    pairs: list[tuple[str, str]] = []
    for value in setting.values() if isinstance(setting, Mapping) else setting:
        names = isinstance(value, Mapping)
        first, second = (value.get(f"arg_{n}") if names else value[n] for n in (0, 1))
        pairs.append((str(first), str(second)))
    return pairs


def _grade(row: Raw, target: str | None) -> LoggedGrade:
    """Return the grade, the reason where there is none, and the metric that gave it."""
    return exchange.first_grade(
        row, [target] if target else [*_GRADES, *map(str, row.get("metrics") or [])]
    )


def _choice(about: Exchange, row: Raw, options: json_text.ReadOptions) -> Exchange:
    logs = [float(response[0][0]) for response in row["resps"]]
    # Mutual-information accuracy asks every option a second time, without the question.
    if len(set(about.choices)) * 2 == len(logs):
        logs = logs[: len(logs) // 2]
    choice, share = exchange.most_likely(logs)
    return replace(
        about,
        answer=about.choices[choice],
        draw=0,
        grade=_choice_grade(row, choice, options),
        scores={"option_softmax": share},
    )


def _choice_grade(row: Raw, choice: int, options: json_text.ReadOptions) -> LoggedGrade:
    """Return the grade of the most likely option: the harness's, or else from the target."""
    if options.grade not in (None, "acc"):
        raise InputError(
            f"{options.grade!r} may judge another option than the most likely one, which is the "
            "one that the confidence is about",
            hint="multiple choice is graded by acc",
        )
    if "acc" in row:
        return _grade(row, "acc")
    place = _place(row.get("target"))
    if place is None:
        return LoggedGrade(None, "neither acc nor the place of the right option is in the file")
    return LoggedGrade(float(place == choice), None, "target")


def _place(target: object) -> int | None:
    text = str(target)
    return int(text) if text.isdecimal() else None


def _replies(
    log: ForeignLog, about: Exchange, rows: Sequence[Raw], config: Raw
) -> Iterator[Exchange]:
    answers = texts = [str(text) for text in rows[0]["resps"][0]]
    grades: dict[str, LoggedGrade] = {}
    for row in rows:
        filtered = row["filtered_resps"]
        graded = json_text.as_text(filtered[0] if isinstance(filtered, list) else filtered) or ""
        grade = _grade(row, log.options.grade)
        if grade.correct is None:
            grade = LoggedGrade(None, FILTERED_ONLY, grade.grader)
        grades.setdefault(graded, grade)
    if len(texts) == 1:
        # One reply: the filtered answer is its answer, however the filter found it.
        answers = list(grades)[:1]
    elif (read := way_of_filter(log, config, _filter(rows[0]))) is not None:
        answers = [read(text) for text in texts]
    elif not any(answer in grades for answer in answers):
        log.note("the filter's answers cannot be found among the repeats: their grades are unknown")
    settings = config.get("generation_kwargs") or {}
    for draw, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        yield replace(
            about,
            text=text,
            answer=answer,
            draw=draw,
            grade=grades.get(answer, LoggedGrade(None, FILTERED_ONLY)),
            details={"temperature": json_text.finite_number(settings.get("temperature"))},
        )


_CHOOSING = ("take_first", "take_first_k", "majority_vote")
_STEPS: dict[str, Callable[[str], str]] = {
    "lowercase": str.lower,
    "uppercase": str.upper,
    "remove_whitespace": str.lstrip,
}
_NOT_FOUND = "[invalid]"


def way_of_filter(log: ForeignLog, config: Raw, name: str) -> Callable[[str], str] | None:
    """Return how a filter reads an answer, up to the step that chooses among repeats.

    None where it is not known; a step that is not known here is noted.

    Parameters
    ----------
    log
        Takes the note.
    config
        The task's settings from the results file.
    name
        Name of the filter.

    Examples
    --------
    >>> step = {"function": "regex", "regex_pattern": "#### ([0-9]+)"}
    >>> config = {"filter_list": [{"name": "strict", "filter": [step]}]}
    >>> read = way_of_filter(ForeignLog(KIND, Path("samples.jsonl")), config, "strict")
    >>> read("so it is #### 42"), read("it is 42")
    ('42', '[invalid]')
    """
    listed = config.get("filter_list") or []
    entry = next((entry for entry in listed if entry.get("name") == name), None)
    if entry is None:
        return str if name == "none" and config else None
    steps: list[Callable[[str], str]] = []
    for setting in entry.get("filter") or []:
        function = str(setting.get("function"))
        if function in _CHOOSING:
            break
        step = _regex(setting) if function == "regex" else _STEPS.get(function)
        if step is None:
            log.note(f"the filter {name!r} uses {function!r}: repeats are read as they stand")
            return None
        steps.append(step)
    return lambda reply: reduce(lambda text, step: step(text), steps, reply)


def _regex(setting: Raw) -> Callable[[str], str] | None:
    try:
        pattern = re.compile(str(setting.get("regex_pattern", r"#### (\-?[0-9\.\,]+)")))
    except re.error:
        return None
    place = int(setting.get("group_select", 0))
    fallback = str(setting.get("fallback", _NOT_FOUND))

    def answer(text: str) -> str:
        try:
            match = pattern.findall(text)[place]
        except IndexError:
            return fallback
        if isinstance(match, tuple):
            match = next(filter(None, match), None)
        return fallback if match is None else str(match).strip()

    return answer
