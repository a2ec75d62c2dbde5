"""Logs of which every row is one answer: frames of ragas, tables of MLflow, experiments of
LangSmith, Braintrust and DSPy, samples of Every Eval Ever, outputs of batches.

A row has a question, an answer, perhaps a right answer, and named scores. Which score is the grade
is known by its name or named by the user; a confidence is a value of that name. The other scores
are opinions about the answer: never a confidence. Batches hold no grades.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from calibrant.data.logs import exchange
from calibrant.data.logs.json_text import KINDS, ReadOptions, as_text, named_lines
from calibrant.data.logs.log import FILTERED_ONLY, ForeignLog
from calibrant.data.logs.opinions import Opinion, by_name, opinions_in

_QUESTIONS = ("user_input", "question", "request", "inputs")
_ANSWERS = ("response", "answer", "outputs", "predictions")
_REFERENCES = ("reference", "ground_truth", "expected_response/value", "ground_truths", "targets")
# What experiments call them besides.
_INPUTS = ("input", *_QUESTIONS, "prompt", "query")
_OUTPUTS = ("output", *_ANSWERS, "prediction", "completion")
_EXPECTED = ("expected", *_REFERENCES, "target", "label", "expected_output")
_MODELS = ("model", "model_name", "ls_model_name")
_NO_SCORES = frozenset(KINDS["ragas"]["others"].split())
_UNGRADED = exchange.LoggedGrade(None, "a batch output holds no grades")


def _read(
    exchanges: Callable[[ReadOptions, exchange.Raw], Iterable[exchange.Exchange]], log: ForeignLog
) -> None:
    rows = list(exchange.log_rows(log))
    log.expected, log.expected_unit = len(rows) + len(log.problems), "rows"
    exchange.read_exchanges(log, rows, partial(exchanges, log.options))


def _read_batch(
    exchanges: Callable[[exchange.Raw], Iterable[exchange.Exchange]], log: ForeignLog
) -> None:
    log.note(f"{_UNGRADED.reason}: import it and grade the draws")
    exchange.read_exchanges(log, named_lines(log.path, log), exchanges)


# -- frames of ragas, tables of MLflow -------------------------------------------------------------


def _table_row(options: ReadOptions, row: exchange.Raw) -> Iterator[exchange.Exchange]:
    roles = (_QUESTIONS, _ANSWERS, _REFERENCES)
    request, reply, right = (exchange.first_of(row, names) for names in roles)
    if request is None or reply is None:
        raise exchange.NoAnswerError("there is no question, or no answer")
    no_scores = {name for names in (*roles, _NO_SCORES) for name in names}
    scores: dict[str, Any] = {}
    for column, value in row.items():
        # MLflow adds ``/value``, ``/score`` and a version to the name of a score.
        name = column.removesuffix("/value").removesuffix("/score")
        base, _, last = name.rpartition("/")
        if column not in no_scores:
            version = last[:1] == "v" and last[1:].isdecimal()
            scores[base if base and version else name] = value
    assessments = row.get("assessments") or ()  # what people and judges said of a trace of MLflow
    for item in assessments:
        if item.get("expectation") and right is None:
            right = item["expectation"]["value"]
    opinions = [Opinion(name, value, "") for name, value in scores.items()]
    opinions += opinions_in(assessments)
    scores = by_name(opinions)
    target_names = options.columns.get("confidence", exchange.CONFIDENCE)
    confidence = scores.pop(target_names, None)
    grade = exchange.grade_among(scores, options.grade or options.columns.get("correct"))
    yield exchange.Exchange(
        question=exchange.plain_text(request),
        answer=exchange.plain_text(reply),
        model=str(row.get(options.columns.get("model", "model")) or "model"),
        grade=grade._replace(opinions=opinions),
        confidence=exchange.mapping_in(reply).get(target_names)
        if confidence is None
        else confidence,
        references=exchange.plain_text(right),
    )


read_ragas = read_mlflow = partial(_read, _table_row)

# -- experiments: the frame of LangSmith, the rows of Braintrust and DSPy --------------------------


def _langsmith(options: ReadOptions, row: exchange.Raw) -> Iterator[exchange.Exchange]:
    """Read a row; repetitions of an example are draws of one question."""
    parts: dict[str, dict[str, object]] = {}
    for name, value in row.items():
        part, _, inner = name.partition(".")
        if inner and value is not None:
            parts.setdefault(part, {})[inner] = value
    request, reply, right, scores, about = (
        parts.get(name, {}) for name in ("inputs", "outputs", "reference", "feedback", "metadata")
    )
    exchange.refuse_failed(row, "run")
    yield exchange.Exchange(
        question_id=_text(row["example_id"]) or None,
        question=_one(request, _INPUTS),
        answer=_one(reply, _OUTPUTS),
        model=str(exchange.first_of({**about, **reply}, _MODELS) or "model"),
        grade=exchange.grade_among(scores, options.grade),
        confidence=reply.get(exchange.CONFIDENCE, scores.get(exchange.CONFIDENCE)),
        references=_one(right, _EXPECTED),
    )


def _braintrust(options: ReadOptions, row: exchange.Raw) -> Iterator[exchange.Exchange]:
    """Read a row; the same input again is another draw."""
    exchange.refuse_failed(row, "task")
    output, about = row["output"], exchange.mapping_in(row.get("metadata"))
    fields = output if isinstance(output, Mapping) else {}
    reply = exchange.first_of(fields, _OUTPUTS)
    yield exchange.Exchange(
        question=exchange.plain_text(row.get("input")),
        answer=_text(output if reply is None else reply),
        model=str(exchange.first_of(about, _MODELS) or "model"),
        grade=exchange.grade_among(exchange.mapping_in(row["scores"]), options.grade),
        confidence=fields.get(exchange.CONFIDENCE, about.get(exchange.CONFIDENCE)),
        tokens=exchange.response_logprobs(output),
        references=exchange.plain_text(row.get("expected") or ""),
    )


def _dspy(options: ReadOptions, row: exchange.Raw) -> Iterator[exchange.Exchange]:
    """Read a row: fields of the example and of the prediction, and the metric as the last one."""
    reply = {name.removeprefix("pred_"): x for name, x in row.items() if name.startswith("pred_")}
    right = {name.removeprefix("example_"): x for name, x in row.items() if name[:8] == "example_"}
    metric = list(row)[-1]
    request = exchange.first_of(row, _INPUTS)
    if not reply:
        raise ValueError("no field begins with pred_")
    if reply.get("answer", next(iter(reply.values()))) is None:
        raise exchange.NoAnswerError("the program gave no answer")
    peers = {name: x for name, x in row.items() if name not in (*_INPUTS, exchange.CONFIDENCE)}
    yield exchange.Exchange(
        question=_text(next(iter(row.values())) if request is None else request),
        answer=_one(reply, _OUTPUTS),
        model=str(exchange.first_of(row, _MODELS) or "model"),
        grade=exchange.grade_among(peers, options.grade or metric),
        confidence=row.get(exchange.CONFIDENCE, reply.get(exchange.CONFIDENCE)),
        references=_one(right, _OUTPUTS),
    )


def _one(values: exchange.Raw, names: Iterable[str]) -> str:
    """Return the value under the first of the names, or the only value there is."""
    by_name = exchange.first_of({str(name).casefold(): x for name, x in values.items()}, names)
    return _text(next(iter(values.values())) if by_name is None and len(values) == 1 else by_name)


def _text(value: Any) -> str:
    return "" if value is None else exchange.plain_text(value)


read_langsmith = partial(_read, _langsmith)
read_braintrust = partial(_read, _braintrust)
read_dspy = partial(_read, _dspy)

# -- samples of Every Eval Ever, the shared format of the EvalEval coalition -----------------------


def _sample(_: ReadOptions, row: exchange.Raw) -> Iterator[exchange.Exchange]:
    """Read a sample. Of several replies to it nobody knows which is graded: none is."""
    exchange.refuse_failed(row, "sample")
    request, replies, usage = row["input"], _replies(row), row.get("token_usage") or {}
    selection = [
        item["extracted_value"] for item in row["answer_attribution"] if item.get("is_terminal")
    ]
    only = len(replies) == 1
    correct = exchange.grade_value(row["evaluation"]["is_correct"]) if only else None
    for place, text in enumerate(replies):
        yield exchange.Exchange(
            question_id=str(row["sample_id"]),
            question=str(request["raw"]),
            text=text,
            answer=as_text(selection[0]) if selection and only else text,
            model=str(row["model_id"]),
            draw=None if only else place,
            grade=exchange.LoggedGrade(
                correct, FILTERED_ONLY if correct is None else None, "is_correct"
            ),
            confidence=(row.get("metadata") or {}).get(exchange.CONFIDENCE),
            task=str(row["evaluation_name"]),
            references=request.get("reference"),
            choices=[str(item) for item in request.get("choices") or ()],
            details=_spent(usage.get("input_tokens"), usage.get("output_tokens")),
        )


def _replies(row: exchange.Raw) -> list[str]:
    """Return the replies to a sample; of a conversation its last message."""
    raw = (row.get("output") or {}).get("raw") or []
    reply = [m.get("content") for m in row.get("messages") or () if m.get("role") == "assistant"]
    replies = ([raw] if isinstance(raw, str) else raw) or [text for text in reply if text][-1:]
    if not replies:
        raise exchange.NoAnswerError("there is no reply")
    return [str(text) for text in replies]


def _spent(prompt: Any, completion: Any, finish: Any = None) -> dict[str, object]:
    return {"finish_reason": finish, "prompt_tokens": prompt, "completion_tokens": completion}


read_every_eval_ever = partial(_read, _sample)

# -- outputs of batches: a line per request --------------------------------------------------------


def _ungraded(
    question: str, answer: str, model: Any, *spent: Any, **more: Any
) -> exchange.Exchange:
    """Return an answer of a batch; `spent` are tokens of prompt and answer, and why it ended."""
    return exchange.Exchange(
        question_id=question,
        question="",
        answer=answer,
        model=str(model),
        grade=_UNGRADED,
        details=_spent(*spent),
        **more,
    )


def _openai(row: exchange.Raw) -> Iterator[exchange.Exchange]:
    """Every choice is a draw of the question named by ``custom_id``."""
    question, response = str(row["custom_id"]), row["response"]
    if row.get("error") or response is None or response.get("status_code", 200) != 200:
        why = row.get("error") or (response or {}).get("body")
        raise exchange.NoAnswerError(f"the request {question} failed: {why!r:.120}")
    body = response["body"]
    usage = body.get("usage") or {}
    for choice in body.get("choices") or [_as_choice(body)]:
        yield _ungraded(
            question,
            choice["message"].get("content") or "",
            body["model"],
            usage.get("prompt_tokens", usage.get("input_tokens")),
            usage.get("completion_tokens", usage.get("output_tokens")),
            choice.get("finish_reason"),
            draw=int(choice["index"]),
            tokens=(choice.get("logprobs") or {}).get("content"),
        )


def _as_choice(body: exchange.Raw) -> exchange.Raw:
    """Return what the Responses interface answered as the choice of a chat completion."""
    messages = [item for item in body["output"] if item.get("type") == "message"]
    parts = [part for item in messages for part in item["content"] if "text" in part]
    tokens = [token for part in parts for token in part.get("logprobs") or ()]
    return {
        "index": 0,
        "message": {"content": "".join(str(part["text"]) for part in parts)},
        "logprobs": {"content": tokens},
        "finish_reason": "stop" if body.get("status") == "completed" else body.get("status"),
    }


def _anthropic(row: exchange.Raw) -> Iterator[exchange.Exchange]:
    question, result = str(row["custom_id"]), row["result"]
    if result["type"] != "succeeded":
        why = (result.get("error") or {}).get("error") or result["type"]
        raise exchange.NoAnswerError(f"the request {question} {result['type']}: {why!r:.120}")
    message = result["message"]
    usage = message.get("usage") or {}
    blocks = [block for block in message["content"] if block.get("type", "text") == "text"]
    yield _ungraded(
        question,
        "".join(str(block["text"]) for block in blocks),
        message.get("model") or "model",
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        message.get("stop_reason"),
    )


def _gemini(row: exchange.Raw) -> Iterator[exchange.Exchange]:
    question, response = str(row["key"]), row.get("response")
    if row.get("error") or not isinstance(response, Mapping):
        raise exchange.NoAnswerError(f"the request {question} failed: {row.get('error')!r:.120}")
    usage = response.get("usageMetadata") or {}
    for candidate in response["candidates"]:
        parts = candidate["content"]["parts"]
        tokens = (candidate.get("logprobsResult") or {}).get("chosenCandidates") or ()
        yield _ungraded(
            question,
            "".join(str(part.get("text", "")) for part in parts if not part.get("thought")),
            response.get("modelVersion") or "model",
            usage.get("promptTokenCount"),
            usage.get("candidatesTokenCount"),
            str(candidate.get("finishReason") or "").lower() or None,
            tokens=[{"token": item["token"], "logprob": item["logProbability"]} for item in tokens],
        )


read_openai_batch = partial(_read_batch, _openai)
read_anthropic_batch = partial(_read_batch, _anthropic)
read_gemini_batch = partial(_read_batch, _gemini)
