"""Run folders of HELM, and details of LightEval: a parquet file per task.

HELM grades the first completion of a request; the others are further draws, and so is a training
trial; a perturbed instance is a question of its own. LightEval keeps the log-likelihood of every
option of a choice: the softmax of the most likely one is the confidence. Of written answers it
keeps no probabilities. Two layouts are read: that of 0.9 and later, and the flat one before it.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from calibrant.core.errors import InputError
from calibrant.data.logs import exchange, json_text
from calibrant.data.logs.exchange import Exchange, LoggedGrade, NoAnswerError, Raw
from calibrant.data.logs.log import FILTERED_ONLY, ForeignLog
from calibrant.data.tables import UNREADABLE, reason_of

_STATE, _STATS = "scenario_state.json", "per_instance_stats.json"
_HELM_GRADES = [f"{how}exact_match" for how in ("", "quasi_", "prefix_", "final_number_")]
_NOT_GRADED = LoggedGrade(None, "not graded")
_Key = tuple[str, str, int]


def read_helm(log: ForeignLog) -> None:
    """Read a run folder."""
    path = log.path
    requests = _loaded(path / _STATE, log, rows="request_states")
    if not requests:
        raise InputError("no request of the run can be read", source=str(path / _STATE))
    whole = not log.problems
    grades, task = _grades(path / _STATS, log), _task(path, log)
    log.expected, log.expected_unit = len(requests) if whole else None, "requests"
    earlier: set[_Key] = set()

    def exchanges(request: Raw) -> Iterator[Exchange]:
        instance, trial = request["instance"], int(request["train_trial_index"])
        key = _key({**instance, "train_trial_index": trial}, instance["id"])
        earlier.add(key)
        yield from _completions(request, key, grades.get(key, _NOT_GRADED), task)

    rows = json_text.numbered("request", requests)
    exchange.read_exchanges(log, rows, exchanges)
    for key in grades if not whole else ():
        if key not in earlier:
            name, perturbation, trial = key
            place = f"instance {name}{f':{perturbation}' if perturbation else ''}, trial {trial}"
            log.problem(place, f"graded, but not in {_STATE}")


def _loaded(path: Path, log: ForeignLog, *, rows: str = "") -> list[Any]:
    """Return the rows of a JSON file; of a damaged one those before the damage."""
    content = json_text.read_json(path, log, rows=rows)
    content = content.get(rows) if rows and isinstance(content, dict) else content
    return content if isinstance(content, list) else []


def _task(path: Path, log: ForeignLog) -> str:
    place = path / "run_spec.json"
    if place.is_file():
        try:
            return str(json_text.load_json(place.read_bytes())["name"])
        except (ValueError, KeyError, TypeError) as error:
            log.note(f"run_spec.json cannot be read ({error!r:.60}): the folder names the task")
    return path.name


def _grades(path: Path, log: ForeignLog) -> dict[_Key, LoggedGrade]:
    if not path.is_file():
        log.problem(_STATS, "not in the folder: nothing is graded")
        return {}
    names = [log.options.grade] if log.options.grade else _HELM_GRADES
    grades: dict[_Key, LoggedGrade] = {}
    for row, entry in enumerate(_loaded(path, log), start=1):
        try:
            means = {stat["name"]["name"]: stat.get("mean") for stat in entry["stats"]}
            key = _key(entry, entry["instance_id"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            log.problem(f"{_STATS}, row {row}", f"not the layout of grades: {error!r}")
            continue
        grade = exchange.first_grade(means, names)
        if grades.setdefault(key, _NOT_GRADED) is _NOT_GRADED and grade.correct is not None:
            grades[key] = grade
    return grades


def _key(entry: Raw, instance: Any) -> _Key:
    perturbation = (entry.get("perturbation") or {}).get("name", "")
    return str(instance), str(perturbation), int(entry["train_trial_index"])


def _completions(request: Raw, key: _Key, grade: LoggedGrade, task: str) -> Iterator[Exchange]:
    name, perturbation, trial = key
    if request.get("reference_index") is not None:
        raise NoAnswerError(f"instance {name}: options asked one by one are not read")
    result = request.get("result") or {}
    if not result.get("success", True):
        raise NoAnswerError(f"instance {name}: the request failed: {result.get('error')}")
    mapping = request.get("output_mapping") or {}
    instance, completions = request["instance"], result.get("completions") or []
    for place, completion in enumerate(completions):
        text = str(completion["text"])
        yield Exchange(
            question_id=f"{name}:{perturbation}" if perturbation else name,
            question=instance["input"].get("text", ""),
            text=text,
            answer=mapping.get(text.strip(), text.strip()),
            model=str(request["request"]["model"]),
            draw=trial * len(completions) + place,
            grade=LoggedGrade(None, FILTERED_ONLY) if place else grade,
            tokens=completion.get("tokens"),
            task=task,
            references=[
                str(reference["output"].get("text"))
                for reference in instance.get("references") or []
                if "correct" in (reference.get("tags") or [])
            ],
            choices=list(mapping.values()),
        )


NESTED_COLUMNS = frozenset({"doc", "model_response", "metric"})
FLAT_COLUMNS = frozenset({"full_prompt", "predictions", "metrics", "gold_index"})
_METRICS = ("acc", "em", "exact_match", "qem", "extractive_match", "pem", "pqem")


class _Row(NamedTuple):
    """What both layouts say about a question."""

    name: str | None
    question: str
    choices: Sequence[str]
    gold: Sequence[int]
    texts: Sequence[str]
    logs: Sequence[float]
    metrics: Raw


def read_lighteval(log: ForeignLog) -> None:
    """Read the details of one task."""
    path, grade = log.path, log.options.grade
    try:
        table = pl.read_parquet(path)
    except UNREADABLE as error:
        raise InputError(
            f"the details of LightEval are cut or damaged: {reason_of(error)}",
            hint="a parquet file has its index at its end: fetch or write the file again",
        ) from None
    nested = set(table.columns) >= NESTED_COLUMNS
    if not nested and not set(table.columns) >= FLAT_COLUMNS:
        raise InputError("not the columns of LightEval's details")
    log.expected = table.height
    model, task = _model_and_task(path)
    # What all rows together show: options chosen, those of unequal likelihood, other grades.
    observed: Counter[str] = Counter()

    def exchanges(numbered: tuple[int, Raw]) -> Iterator[Exchange]:
        number, values = numbered
        row = _nested(values) if nested else _flat(values)
        about = Exchange(
            question_id=row.name or f"row {number}",
            question=row.question,
            answer=None,
            model=model,
            task=task,
            references=[
                row.choices[place].strip() for place in row.gold if 0 <= place < len(row.choices)
            ],
        )
        if row.choices and len(row.logs) >= len(row.choices) > 1:
            yield _choice(about, row, observed, grade)
        elif row.texts:
            # pass@k, maj@n and avg@n are about all samples of a question, not about one of them.
            single = LoggedGrade(None, FILTERED_ONLY)
            if len(row.texts) == 1:
                names = [item for item in _METRICS if item in row.metrics] or row.metrics
                single = exchange.first_grade(row.metrics, [grade] if grade else names)
            yield from (replace(about, grade=single, answer=text.strip()) for text in row.texts)
        else:
            raise NoAnswerError("neither a written answer nor log-likelihoods of several options")

    rows = enumerate(table.iter_rows(named=True), start=1)
    exchange.read_exchanges(log, ((f"row {row[0]}", row) for row in rows), exchanges)
    if observed["other grade"]:
        log.note(
            f"{observed['other grade']} of {observed['chosen']} questions have another grade in "
            "LightEval, whose metric may normalise by length: here the most likely option is graded"
        )
    if observed["chosen"] and not observed["spread"]:
        # The same number for every option of every question was never computed by a model.
        log.note(
            "all options have the same log-likelihood, which is a placeholder of the writer; it "
            "is not read as a confidence"
        )
        log.finish()
        log.scores = log.scores.filter(pl.col("method") != "option_softmax")


def _nested(values: Raw) -> _Row:
    doc, reply = values["doc"], values["model_response"]
    name = str(doc["id"]) if doc.get("id") not in (None, "") else None
    choices = [str(item) for item in doc.get("choices") or ()]
    texts = [str(item) for item in reply.get("text_post_processed") or reply.get("text") or ()]
    logs = [float(item) for item in reply.get("logprobs") or ()]
    gold, metrics = _places(doc.get("gold_index")), values["metric"] or {}
    return _Row(name, str(doc["query"]), choices, gold, texts, logs, metrics)


def _flat(values: Raw) -> _Row:
    choices = [str(item) for item in _listed(values.get("choices"))]
    predictions = _listed(values["predictions"])
    likely = [_loglikelihood(item) for item in predictions] if len(choices) > 1 else []
    logs = [item for item in likely if item is not None] if None not in likely else []
    texts = [] if logs else [str(item) for item in predictions]
    question = str(values.get("example") or values["full_prompt"])
    gold, metrics = _places(_listed(values.get("gold_index"))), values["metrics"] or {}
    return _Row(None, question, choices, gold, texts, logs, metrics)


def _listed(value: Any) -> list[Any]:
    """Return a list; some versions wrote lists as their text."""
    if isinstance(value, str):
        value = ast.literal_eval(value) if value.lstrip().startswith(("[", "(")) else [value]
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _loglikelihood(value: Any) -> float | None:
    """Return the log-likelihood of a prediction: a number, or the first of (number, greedy)."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "(")):
        value = ast.literal_eval(value)
    if isinstance(value, Mapping):
        value = next(iter(value.values()), None)
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return json_text.finite_number(value)


def _places(value: Any) -> list[int]:
    return [int(item) for item in (value if isinstance(value, list | tuple) else [value])]


def _model_and_task(path: Path) -> tuple[str, str]:
    """Return the names in ``details/MODEL/DATE/details_TASK_DATE.parquet``."""
    date = path.parent.name
    task = path.stem.removeprefix("details_").removesuffix(f"_{date}")
    parts = path.parts
    if "details" in parts[:-2]:
        place = len(parts) - 1 - parts[::-1].index("details")
        names = "/".join(parts[place + 1 : -2])
        return names or "model", task
    return "model", task


def _choice(about: Exchange, row: _Row, observed: Counter[str], grade: str | None) -> Exchange:
    # Twice as many: those behind are the options without the question.
    logs = row.logs[: len(row.choices)]
    choice, share = exchange.most_likely(logs)
    correct = float(choice in row.gold)
    theirs = exchange.grade_value(row.metrics.get(grade or "acc"))
    observed["chosen"] += 1
    observed["spread"] += max(logs) != min(logs)
    observed["other grade"] += theirs is not None and theirs != correct
    return replace(
        about,
        answer=row.choices[choice].strip(),
        grade=LoggedGrade(correct, None, "gold_index"),
        choices=[option.strip() for option in row.choices],
        scores={"option_softmax": share},
    )
