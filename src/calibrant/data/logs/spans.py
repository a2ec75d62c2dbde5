"""Spans of OpenTelemetry with gen_ai attributes, and runs as tracers of LangChain keep them.

A span is read as its SDK prints it (`to_json`, the console exporter) or as OTLP writes it in JSON.
Content is taken where the instrumentation recorded it: attributes or events, by the convention of
today or the one before. What people and judges said are events `gen_ai.evaluation.result`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from calibrant.data.logs import exchange
from calibrant.data.logs.agent_turns import AgentTurn, Runs, Turn, add_run
from calibrant.data.logs.json_text import ReadOptions, joined_objects, numbered
from calibrant.data.logs.log import FILTERED_ONLY, ForeignLog
from calibrant.data.logs.opinions import Opinion, by_name, opinions_in

_OWN = "calibrant."
"""Before the method in the name of an evaluation that calibrant itself wrote."""
_SAID = ("gen_ai.output.messages", "gen_ai.completion", ("gen_ai.choice",))
_CALLS = ("tool_call", "function")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model")


class _Span(NamedTuple):
    """A span: its trace, its own id and those around it, its attributes and those of its events."""

    trace: str
    id: str
    parent: str | None
    start: str
    attributes: dict[str, object]
    events: list[tuple[str, dict[str, object]]]


def read_otel(log: ForeignLog) -> None:
    """Read spans; the same input asked again is another draw of it."""
    spans = [span for row in joined_objects(log.path, log) for span in _spans(row)]
    runs = Runs(map(_turn, spans))
    answers = [span for span in spans if span.id in runs.steps]
    reply, options = _by_span(runs, spans, log), log.options
    rows = numbered("answer", answers)
    exchange.read_exchanges(log, rows, lambda span: _exchanges(span, reply[span.id], options))
    by_id = {span.id: span for span in spans}
    opinions = {place: _plain(values) for place, values in reply.items()}
    runs.add_to(log, opinions, lambda place: _model(by_id[place]))


def _plain(opinions: exchange.Raw) -> dict[str, Any]:
    """Return what was said of a reply by others than calibrant."""
    return {name: value for name, value in opinions.items() if not name.startswith(_OWN)}


def _model(span: _Span) -> str:
    return str(exchange.first_of(span.attributes, _MODELS) or "model")


def _turn(span: _Span) -> Turn:
    operation = span.attributes.get("gen_ai.operation.name")
    tools = _tools(span)
    return Turn(
        span.id,
        span.trace,
        span.parent,
        span.start,
        reply=bool(tools or _replies(span)),
        tools=tools,
        is_agent=operation in ("invoke_agent", "create_agent"),
        is_tool=operation == "execute_tool",
    )


def _tools(span: _Span) -> tuple[str, ...]:
    """Return the tools that a reply calls, by the convention of today or the ones before."""
    matches: list[str] = []
    for message in _messages(span, *_SAID):
        inner = exchange.json_in(message) if isinstance(message, str) else message
        if not isinstance(inner, Mapping):
            continue
        parts = [*(inner.get("parts") or ()), *(inner.get("tool_calls") or ())]
        calls = [p for p in parts if isinstance(p, Mapping) and p.get("type") in _CALLS]
        matches += [
            str(exchange.first_of({**p, **(p.get("function") or {})}, ("name",))) for p in calls
        ]
    return tuple(matches)


def _spans(row: exchange.Raw) -> Iterator[_Span]:
    for resource in row.get("resourceSpans") or ():
        for scope in resource.get("scopeSpans") or ():
            for span in scope.get("spans") or ():
                yield _span(span["traceId"], span["spanId"], span.get("parentSpanId"), span)
    if isinstance(row.get("context"), Mapping):
        yield _span(
            row["context"]["trace_id"], row["context"]["span_id"], row.get("parent_id"), row
        )


def _span(trace: Any, span_id: Any, parent: Any, row: exchange.Raw) -> _Span:
    events = row.get("events") or ()
    names = [(str(event["name"]), _attributes(event.get("attributes"))) for event in events]
    start = str(row.get("start_time") or row.get("startTimeUnixNano") or "")
    around = str(parent) if parent else None
    return _Span(str(trace), str(span_id), around, start, _attributes(row.get("attributes")), names)


def _attributes(attributes: Any) -> dict[str, object]:
    """Return attributes by name; OTLP lists them, each value under the name of its type."""
    if isinstance(attributes, Mapping):
        return dict(attributes)
    return {str(item["key"]): next(iter(item["value"].values()), None) for item in attributes or ()}


def _messages(span: _Span, attribute: str, older: str, events: Iterable[str]) -> list[Any]:
    """Return messages: one attribute, attributes with a number each, or events."""
    everywhere = [span.attributes, *(body for _, body in span.events)]
    whole = next((body[attribute] for body in everywhere if body.get(attribute)), None)
    if whole is not None:
        messages = exchange.json_in(whole) if isinstance(whole, str) else whole
        return messages if isinstance(messages, list) else [whole]
    numbers = (f"{older}.{number}.content" for number in range(len(span.attributes)))
    listed = [span.attributes[name] for name in numbers if span.attributes.get(name)]
    return listed or [
        body.get("message") or body.get("content") for name, body in span.events if name in events
    ]


def _replies(span: _Span) -> list[str]:
    messages = _messages(span, *_SAID)
    return [text for text in map(exchange.plain_text, messages) if text]


def _by_span(runs: Runs, spans: list[_Span], log: ForeignLog) -> Mapping[str, dict[str, object]]:
    """Return what was said of each reply: in its span, of its id, or around it."""
    value_given: dict[str, dict[str, object]] = defaultdict(dict)
    by_reply = {
        span.attributes.get("gen_ai.response.id"): span.id for span in spans if _turn(span).reply
    }
    missing: Counter[str] = Counter()
    for span in spans:
        nearest = runs.judged(span.id)
        for event, body in span.events:
            if event != "gen_ai.evaluation.result" or "gen_ai.evaluation.name" not in body:
                continue
            name, reply = str(body["gen_ai.evaluation.name"]), body.get("gen_ai.response.id")
            place = nearest if reply is None else by_reply.get(reply, nearest)
            values = (body.get(f"gen_ai.evaluation.score.{part}") for part in ("value", "label"))
            if place is None:
                missing[name] += 1
            else:
                value_given[place][name] = next((x for x in values if x is not None), None)
    for name, count in missing.items():
        why = f"{count} of these name no answer, and their trace has none or several"
        log.problem(f"evaluation {name}", why)
    return value_given


def _exchanges(
    span: _Span, statement: exchange.Raw, options: ReadOptions
) -> Iterator[exchange.Exchange]:
    events = ("gen_ai.user.message", "gen_ai.prompt")
    request = _messages(span, "gen_ai.input.messages", "gen_ai.prompt", events)
    # Results of tools come after what a person asked last.
    people = [m for m in request if isinstance(m, Mapping) and m.get("role") in ("user", "human")]
    own = {
        name.removeprefix(_OWN): number
        for name, value in statement.items()
        if name.startswith(_OWN) and (number := exchange.number_in(value)) is not None
    }
    peers = _plain(statement)
    confidence = peers.pop(exchange.CONFIDENCE, None)
    replies, grade = _replies(span), exchange.grade_among(peers, options.grade)
    only = len(replies) == 1
    for reply in replies:
        yield exchange.Exchange(
            question=exchange.plain_text((people or request)[-1]) if request else "",
            answer=reply,
            model=_model(span),
            grade=grade if only else exchange.LoggedGrade(None, FILTERED_ONLY),
            confidence=confidence if only else None,
            scores=own if only else {},
        )


# -- runs of LangChain -----------------------------------------------------------------------------


_RUN_MODELS = ("model_name", "ls_model_name")


def read_langchain(log: ForeignLog) -> None:
    """Read runs, with their children inside or as rows of their own: one answer per whole run."""
    traces: dict[str, list[exchange.Raw]] = defaultdict(list)
    for _, row in exchange.log_rows(log):
        for run in _inside(row):
            traces[str(run.get("trace_id") or run.get("id"))].append(run)
    missing: Counter[str] = Counter()
    rows = numbered("run", traces.values())
    exchange.read_exchanges(log, rows, lambda runs: [_run(runs, log, missing)])
    for name, count in missing.items():
        log.problem(f"feedback {name}", f"{count} of these are about steps, and grade no answer")


def _inside(run: exchange.Raw) -> Iterator[exchange.Raw]:
    yield run
    for child in run.get("child_runs") or ():
        yield from _inside(child)


def _run(runs: list[exchange.Raw], log: ForeignLog, missing: Counter[str]) -> exchange.Exchange:
    whole = next((run for run in runs if not run.get("parent_run_id")), runs[0])
    exchange.refuse_failed(whole, "run")
    calls = [run for run in runs if run["run_type"] in ("llm", "chat_model") and run["outputs"]]
    calls.sort(key=lambda run: str(run.get("start_time") or ""))
    generation = generation_of(calls[-1]["outputs"]) if calls else {}
    about = _about(generation)
    turns = [_step(generation_of(call["outputs"])) for call in calls]
    steps = any(turn.tools for turn in turns)
    if turns and turns[-1].tools:
        raise exchange.NoAnswerError(f"it ends with a call of {', '.join(turns[-1].tools)}")
    outputs = exchange.mapping_in(whole["outputs"])
    extra, inner = (exchange.mapping_in(x) for x in (whole.get("extra"), outputs.get("output")))
    # An opinion is about the answer unless it stands on a step or a tool.
    of_steps = [*(calls[:-1] if steps else ()), *(r for r in runs if r["run_type"] == "tool")]
    missing.update(opinion.name for run in of_steps for opinion in _feedback(run, log))
    of_answer = [run for run in runs if run is not whole and run not in of_steps]
    opinions = [opinion for run in (whole, *of_answer) for opinion in _feedback(run, log)]
    about_run = exchange.mapping_in(extra.get("metadata"))
    values = {**about_run, **by_name(opinions)}
    opinions += [Opinion(name, value, "") for name, value in about_run.items()]
    confidence = exchange.first_of({**outputs, **inner}, (exchange.CONFIDENCE,))
    model = str(exchange.first_of({**values, **about}, _RUN_MODELS) or "model")
    grade = exchange.grade_among(values, log.options.grade)
    if steps:
        add_run(log, str(whole.get("id")), model, grade.correct, turns)
    return exchange.Exchange(
        question=_words(whole["inputs"]),
        answer=_words(generation if whole in calls else outputs),
        model=model,
        grade=grade._replace(opinions=opinions),
        confidence=values.get(exchange.CONFIDENCE, confidence),
        tokens=generation_tokens(generation),
    )


def _about(generation: exchange.Raw) -> exchange.Raw:
    message = _unwrapped(generation.get("message") or {})
    return exchange.mapping_in(message.get("response_metadata"))


def generation_tokens(generation: exchange.Raw) -> list[Any] | None:
    """Return the tokens of a generation of LangChain, with their log-probs."""
    own = exchange.response_logprobs(exchange.mapping_in(generation.get("generation_info")))
    return own or exchange.response_logprobs(_about(generation))


def _step(generation: exchange.Raw) -> AgentTurn:
    message = _unwrapped(generation.get("message") or {})
    more = exchange.mapping_in(message.get("additional_kwargs"))
    calls = message.get("tool_calls") or more.get("tool_calls") or ()
    names = [exchange.mapping_in(call.get("function")) or call for call in calls]
    return AgentTurn(
        [str(call.get("name")) for call in names], tokens=generation_tokens(generation)
    )


def generation_of(outputs: Any) -> exchange.Raw:
    """Return the first generation of a call, of which a list of lists is kept."""
    calls = exchange.mapping_in(outputs).get("generations") or [{}]
    return exchange.mapping_in(calls[0][0] if isinstance(calls[0], list) else calls[0])


def _feedback(run: exchange.Raw, log: ForeignLog) -> Iterator[Opinion]:
    """Yield what LangSmith adds to a run: means of feedback by name, and who gave it."""
    for name, item in exchange.mapping_in(run.get("feedback_stats")).items():
        values = exchange.mapping_in(item)
        several = log.options.opinions and (values.get("n") or 1) > 1
        log.counts["means of several scores are left empty: give the table of feedback"] += several
        sources = list(values.get("sources") or ())
        source = sources[0] if len(sources) == 1 else None
        word = next(iter(exchange.mapping_in(values.get("values"))), None)
        cell = {} if several else {"score": values.get("avg"), "value": word}
        yield from opinions_in([{"key": name, "feedback_source": source, **cell}])


def _unwrapped(message: Any) -> exchange.Raw:
    """Return the fields of a message, which LangChain keeps as the arguments of its class."""
    fields = exchange.mapping_in(message)
    return exchange.mapping_in(fields.get("kwargs")) or fields


def _words(value: Any) -> str:
    """Return the words of inputs or outputs: of the last message, however it is wrapped."""
    if isinstance(value, list) and value:
        return _words(value[-1])
    if not isinstance(value, Mapping):
        return exchange.plain_text(value)
    fields = _unwrapped(value)
    inner = exchange.first_of(fields, ("messages", "output", "input"))
    return exchange.plain_text(fields) if inner is None else _words(inner)
