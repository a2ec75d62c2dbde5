"""Logs of Inspect: ``.eval`` archives and JSON files, read without Inspect."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.data.logs import exchange, json_text
from calibrant.data.logs.agent_turns import AgentTurn, add_run
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.log import ForeignLog
from calibrant.data.logs.opinions import PEOPLE, Opinion
from calibrant.data.logs.zip_entries import ZipEntries

VERSIONS = (2, 3)
"""Versions of the log format that this reader knows: 3 pools messages of events, which are not
read here; input, output, scores and metadata of a sample are as in 2."""


_HEADS = ("header.json", "_journal/start.json")


def read_inspect(log: ForeignLog) -> None:
    """Read an Inspect log, an archive or JSON."""
    with log.path.open("rb") as file:
        packed = file.read(2) == b"PK"
    if not packed:
        head = json_text.read_json(log.path, log, rows="samples")
        if not isinstance(head, dict):
            raise InputError("a log of Inspect is an object")
        _add_all(log, head, head.get("samples") or [])
        return
    with ZipEntries(log.path) as archive:
        if not archive.complete:
            log.note("the archive has no directory: its writer was stopped, or the file is cut")
        head = next(_objects(archive, [n for n in _HEADS if n in archive.entries], log), None)
        if not head:
            log.note("the log's header cannot be read: model and task are not known")
        samples = (n for n in archive.entries if n.startswith("samples/") and n.endswith(".json"))
        _add_all(log, head or {}, _objects(archive, samples, log))


def _objects(archive: ZipEntries, names: Iterable[str], log: ForeignLog) -> Iterator[exchange.Raw]:
    """Yield entries that are objects of JSON, and note why others cannot be read."""
    for name in names:
        try:
            content = json_text.load_json(archive.read(archive.entries[name]))
        except InputError:
            raise
        except ValueError as error:
            log.problem(name, str(error))
            continue
        if isinstance(content, dict):
            yield content
        else:
            log.problem(name, f"an object is expected, got {type(content).__name__}")


def _add_all(log: ForeignLog, head: exchange.Raw, samples: Iterable[Any]) -> None:
    version = head.get("version", VERSIONS[0])
    if version not in VERSIONS:
        versions = " and ".join(map(str, VERSIONS))
        raise InputError(
            f"this reader knows versions {versions} of Inspect's logs, got {version!r}",
            hint="convert the log with a version of Inspect that writes one of these",
        )
    spec = head.get("eval") or {}
    config = {**(head.get("plan") or {}).get("config", {}), **spec.get("model_generate_config", {})}
    about = exchange.Exchange(
        question="",
        answer=None,
        model=str(spec.get("model", "model")),
        task=str(spec.get("task", "task")),
        details={"temperature": json_text.finite_number(config.get("temperature"))},
    )
    earlier: set[tuple[str, int]] = set()
    scorer = log.options.grade

    def exchanges(sample: exchange.Raw) -> Iterator[exchange.Exchange]:
        nonlocal scorer
        scorer = scorer or graded_scorer(sample, log)
        _count_unanswered(log, sample)
        draw = _sample(about, sample, scorer, log.options)
        yield draw
        grade = None if draw.grade is None else draw.grade.correct
        turns = list(_turns(sample))
        if any(turn.tools for turn in turns):
            add_run(log, f"{sample['id']} epoch {sample['epoch']}", about.model, grade, turns)
        earlier.add((str(sample["id"]), int(sample["epoch"])))

    rows = ((_place(exchange.mapping_in(sample)), sample) for sample in samples)
    exchange.read_exchanges(log, rows, exchanges)
    if not earlier and not log.problems:
        raise InputError("the log holds no samples", hint="was it made with --no-log-samples?")
    if not earlier:
        first = log.problems[0]
        raise InputError(f"no sample can be read; {first.place}: {first.reason}")
    _note_missing(log, head, spec, earlier)


def _count_unanswered(log: ForeignLog, sample: exchange.Raw) -> None:
    scores = sample.get("scores") or {} if log.options.opinions else {}
    missing = sum(score.get("value") == "N" for score in scores.values())
    log.counts["scores are N (no answer): they count as empty"] += missing


def _place(sample: exchange.Raw) -> str:
    return f"samples/{sample.get('id')}_epoch_{sample.get('epoch')}.json"


def _note_missing(
    log: ForeignLog, head: exchange.Raw, spec: exchange.Raw, observed: set[Any]
) -> None:
    """List the samples that the header promises and the log does not hold."""
    status = head.get("status")
    if status not in (None, "success"):
        log.note(f"the evaluation ended with status {status!r}")
    total = (head.get("results") or {}).get("total_samples")
    if isinstance(total, int) and total != len(observed):
        log.note(f"its results are those of {total:,} samples; {len(observed):,} could be read")
    ids = (spec.get("dataset") or {}).get("sample_ids")
    epochs = (spec.get("config") or {}).get("epochs") or 1
    if not ids:
        if isinstance(total, int):
            log.expected, log.expected_unit = total, "draws"
        return
    log.expected, log.expected_unit = len(ids) * epochs, "draws"
    if log.expected == len(observed):
        return
    names = {problem.place for problem in log.problems}
    for question in ids:
        for epoch in range(1, epochs + 1):
            place = _place({"id": question, "epoch": epoch})
            if (str(question), epoch) not in observed and place not in names:
                log.problem(place, "not in the log")


def is_inspect_archive(path: Path) -> bool:
    """Return whether a zip file holds an Inspect log."""
    try:
        with ZipEntries(path) as archive:
            return any(n in _HEADS or n.startswith("samples/") for n in archive.entries)
    except (OSError, InputError):
        return False


_GRADE_KEYS = ("correct", "accuracy", "score", "grade")
_CONFIDENCE_KEYS = ("confidence", "stated_confidence", "verbalized_confidence")


def grade_of(value: Any) -> tuple[float | None, str | None]:
    """Return a score's value as a grade in [0, 1], or None and the reason.

    Examples
    --------
    >>> grade_of("C"), grade_of("I"), grade_of({"correct": "I", "confidence": 0.9})
    ((1.0, None), (0.0, None), (0.0, None))
    >>> grade_of("N")
    (None, 'no answer')
    """
    if isinstance(value, Mapping):
        part = next((key for key in _GRADE_KEYS if key in value), None)
        if part is not None:
            return grade_of(value[part])
        return None, f"a score with the parts {', '.join(map(str, value))}, none a grade"
    grade = 0.5 if value == "P" else exchange.grade_value(value)
    if grade is not None:
        return grade, None
    if value is None or value != value:  # NaN
        return None, "not scored"
    number = exchange.number_in(value)
    if number is not None:
        return None, f"a grade outside 0 to 1: {number:g}"
    return None, "no answer" if value == "N" else f"not a grade: {value!r:.40}"


def graded_scorer(sample: exchange.Raw, log: ForeignLog) -> str | None:
    """Return the first scorer of a sample that gives a grade."""
    scores = sample.get("scores")
    names = [
        name
        for name, score in (scores.items() if isinstance(scores, Mapping) else ())
        if isinstance(score, Mapping) and grade_of(score.get("value"))[0] is not None
    ]
    if len(names) > 1 and not log.options.opinions:
        log.note(
            f"graded by the scorer {names[0]!r}; the log also has {', '.join(names[1:])} "
            "(choose another as grade)"
        )
    return names[0] if names else None


def _sample(
    about: exchange.Exchange,
    sample: exchange.Raw,
    scorer: str | None,
    options: ReadOptions,
) -> exchange.Exchange:
    """Return a sample as one draw; `about` is what the header says of all of them."""
    attachments = sample.get("attachments") or {}
    output, scores = sample.get("output") or {}, sample.get("scores") or {}
    choice = (output.get("choices") or [{}])[0]
    text = _resolved(_content_text((choice.get("message") or {}).get("content")), attachments)
    score = scores.get(scorer) if scorer is not None else None
    answer = json_text.as_text((score or {}).get("answer"))
    usage, tokens = output.get("usage") or {}, (choice.get("logprobs") or {}).get("content") or []
    first = (tokens[0].get("top_logprobs") if tokens else None) or ()
    top = [{"token": entry["token"], "logprob": entry["logprob"]} for entry in first]
    return replace(
        about,
        question_id=str(sample["id"]),
        question=_resolved(_input_text(sample.get("input")), attachments),
        text=text,
        answer=text if answer is None else _resolved(answer, attachments),
        draw=int(sample["epoch"]) - 1,
        grade=exchange.LoggedGrade(*_grade(sample, score, scorer), scorer, list(_opinions(scores))),
        tokens=tokens,
        # Inspect accepts any of the texts.
        references=sample.get("target"),
        choices=sample.get("choices") or (),
        scores=_stated(scores, options),
        details={
            "finish_reason": choice.get("stop_reason"),
            "first_token_top_logprobs": top or None,
            **about.details,
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
        },
    )


def _turns(sample: exchange.Raw) -> Iterator[AgentTurn]:
    """Yield the replies of a sample: the tools that each calls, and its tokens where these are."""
    tokens = {}
    for event in sample.get("events") or ():
        if event.get("event") == "model":
            (choice, *_) = (event.get("output") or {}).get("choices") or [{}]
            name = (choice.get("message") or {}).get("id")
            tokens[name] = (choice.get("logprobs") or {}).get("content")
    for message in sample.get("messages") or ():
        if message.get("role") == "assistant":
            calls = message.get("tool_calls") or ()
            tools = [str(call.get("function")) for call in calls]
            yield AgentTurn(tools, None, tokens.get(message.get("id")))


def _opinions(scores: exchange.Raw) -> Iterator[Opinion]:
    """Yield the value of each scorer, and what people put there; they may add a score, too."""
    for name, score in scores.items():
        before, people = None, []
        for edit in score.get("history") or [score]:
            value, origin = edit.get("value"), edit.get("provenance")
            if value == "UNCHANGED":  # an edit of the explanation alone
                continue
            value = grade_of(value)[0] if value in ("C", "I", "P", "N") else value
            if origin:
                about = str(origin.get("author") or ""), str(origin.get("timestamp") or "")
                people.append(Opinion(name, value, PEOPLE, *about, before))
            else:
                # Of edits that name nobody the last one is the scorer's.
                before = None if value != value else value
        if before is not None:
            yield Opinion(name, before)
        yield from people


def _grade(
    sample: exchange.Raw, score: exchange.Raw | None, scorer: str | None
) -> tuple[float | None, str | None]:
    if score is not None:
        return grade_of(score.get("value"))
    error = sample.get("error")
    if error:
        return None, f"the sample ended with an error: {str(error.get('message'))[:80]}"
    return None, "no scorer gives a grade" if scorer is None else f"not scored by {scorer!r}"


def _stated(scores: exchange.Raw, options: ReadOptions) -> dict[str, float]:
    """Return the confidences that scorers recorded, by method."""
    confidences: dict[str, float] = {}
    for name, score in scores.items():
        places = [score.get("metadata") or {}]
        if isinstance(score.get("value"), Mapping):
            places.append(score["value"])
        for place in places:
            for key in _CONFIDENCE_KEYS:
                number = json_text.finite_number(place.get(key))
                if number is None:
                    continue
                method = str(place.get("method", "verb" if key == "confidence" else key))
                place_name = method if method not in confidences else f"{method}:{name}"
                confidences[place_name] = options.fraction(number)
                break
    return confidences


def _content_text(content: Any) -> str | None:
    if content is None or isinstance(content, str):
        return content
    parts = [part.get("text") for part in content if part.get("type") == "text"]
    return "\n".join(part for part in parts if part)


def _input_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    texts = [_content_text(message.get("content")) for message in value or []]
    return "\n".join(text for text in texts if text)


def _resolved(text: str | None, attachments: Mapping[str, str]) -> str:
    """Return the text with references to the sample's attachments put back."""
    if text is None:
        return ""
    mark = "attachment://"
    for key, content in attachments.items() if mark in text else ():
        text = text.replace(mark + key, content)
    return text
