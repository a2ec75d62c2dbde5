"""Who scored an answer? What judges and people said becomes columns, one for each annotator."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from itertools import chain, count
from typing import Any, NamedTuple

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.data.logs import exchange
from calibrant.data.logs.log import ForeignLog

JUDGE, PEOPLE = "judge", "people"
_ROLES = dict.fromkeys(("human", "annotation", "app"), PEOPLE)
_ROLES |= dict.fromkeys(("llm", "eval", "llm_judge", "ai_judge", "model"), JUDGE)
# How Phoenix, MLflow, LangSmith and Langfuse call the same things.
_NAMES = ("annotation_name", "assessment_name", "name", "key")
_ANNOTATORS = ("identifier", "source_id")
_PERSONS = ("authorUserName", "authorUserId", "author_user_id", "user_name", "user_id")
_TIMES = ("updatedAt", "updated_at", "modified_at", "last_update_time", "timestamp", "created_at")
_ITEMS = ("run_id", "span_id", "observationId", "observation_id", "traceId", "trace_id")
_VALUES = ("result.score", "score", "value", "result.label", "label")


class Opinion(NamedTuple):
    """A value under a name, and who gave it: people, a judge, or what the tool calls it.

    `before` is the verdict that a person saw and put theirs in place of.
    """

    name: str
    value: Any
    role: str = JUDGE
    annotator: str = ""
    time: str = ""
    before: Any = None


def opinion_in(item: exchange.Raw) -> Opinion | None:
    """Return the opinion that an object of a log or a row of a table holds, or None.

    Examples
    --------
    >>> opinion_in({"name": "ok", "source": "ANNOTATION", "value": 1.0, "authorUserId": "ann"})
    Opinion(name='ok', value=1.0, role='people', annotator='ann', time='', before=None)
    """
    name = exchange.first_of(item, _NAMES)
    kind = item.get("dataType") or item.get("data_type")
    # Corrections and expectations are better answers, no verdicts.
    if name is None or kind == "CORRECTION" or item.get("expectation"):
        return None
    source = exchange.mapping_in(item.get("feedback_source") or item.get("source"))
    role = item.get("annotator_kind") or source.get("source_type") or source.get("type")
    role = str(role or item.get("source") or "").lower()
    role = _ROLES.get(role, role)
    # Of a judge the user is who ran it.
    names = (*_ANNOTATORS, *_PERSONS) if role == PEOPLE else _ANNOTATORS
    annotator = str(exchange.first_of({**item, **source}, names) or "")
    text = item.get("stringValue") or item.get("string_value")
    inner = exchange.mapping_in(item.get("feedback") or item.get("result"))
    value = exchange.first_of(inner or item, _VALUES) if not text or kind == "NUMERIC" else text
    if value is None:  # a comment alone
        return None
    # Without a Z whole seconds come before their parts.
    time = str(exchange.first_of(item, _TIMES) or "").removesuffix("Z")
    return Opinion(str(name), value, role, annotator.removeprefix("px-app:"), time)


def numbered_name(name: str, names: Container[str]) -> str:
    """Return a name that is not among `names`: with a number where it is.

    Examples
    --------
    >>> numbered_name("llm-rubric", {"llm-rubric": 1.0})
    'llm-rubric 2'
    """
    places = (f"{name} {place}" for place in count(2))
    return next(place for place in chain([name], places) if place not in names)


def opinions_in(items: Iterable[Any] | None) -> list[Opinion]:
    """Return the opinions among the objects of a list."""
    rows = (opinion_in(item) for item in items or () if isinstance(item, Mapping))
    return [opinion for opinion in rows if opinion is not None]


def read_scores(log: ForeignLog) -> None:
    """Read a list of scores that names the item of each: a row per item."""
    if not log.options.opinions:
        hint = Hint("compare judge and people: {call}", call=Call("judge", str(log.path)))
        raise InputError("a list of scores holds no answers of a model", hint=hint)
    rows: dict[str, list[Opinion]] = {}
    for place, row in exchange.log_rows(log):
        item, opinion = exchange.first_of(row, _ITEMS), opinion_in(row)
        if item is None or opinion is None:
            log.problem(place, "it names no item, or holds no score")
        else:
            rows.setdefault(str(item), []).append(opinion)
    log.opinions_of_rows = [({"question_id": item}, opinions) for item, opinions in rows.items()]
    log.opinions = [row for row, _ in log.opinions_of_rows]


def newest(opinions: Iterable[Opinion]) -> list[Opinion]:
    """Return the last opinion of each annotator; without times the first, as tools list them."""
    latest: dict[tuple[str, str, str], Opinion] = {}
    for opinion in opinions:
        key = opinion.name, opinion.role, opinion.annotator
        if key not in latest or opinion.time > latest[key].time:
            latest[key] = opinion
    return list(latest.values())


def by_name(opinions: Iterable[Opinion]) -> dict[str, Any]:
    """Return one value per name, a person's where there is one."""
    values: dict[str, Any] = {}
    for opinion in sorted(newest(opinions), key=lambda opinion: opinion.role != PEOPLE):
        values.setdefault(opinion.name, opinion.value)
    return values


def add_columns(log: ForeignLog) -> None:
    """Write the opinions into the rows of a log; a name with several annotators has a column each.

    The roles that the log states are kept, and what was left out is counted.
    """
    annotators = {
        (opinion.name, opinion.role == PEOPLE, opinion.role, opinion.annotator)
        for _, opinions in log.opinions_of_rows
        for opinion in opinions
    }
    totals = Counter(annotator[:2] for annotator in annotators)
    for row, opinions in log.opinions_of_rows:
        latest = newest(opinions)
        log.counts["older scores of the same annotator are left out"] += len(opinions) - len(latest)
        for opinion in latest:
            several = totals[opinion.name, opinion.role == PEOPLE] > 1
            mark = f"{opinion.role}: {opinion.annotator}" if opinion.annotator else opinion.role
            mark = f" ({mark if several else opinion.role})" if opinion.role else ""
            is_plain = not several and opinion.role != PEOPLE
            column = exchange.beside_answer(opinion.name) + ("" if is_plain else mark)
            _add_cells(log, row, column, opinion)


def _add_cells(log: ForeignLog, row: dict[str, str | None], column: str, opinion: Opinion) -> None:
    """Write an opinion into its column, or its parts into a column each."""
    cells = dict(exchange.flat({column: opinion.value}))
    before = dict(exchange.flat({column: opinion.before}))
    row.update(cells)
    for name, value in cells.items():
        if opinion.role in (JUDGE, PEOPLE):
            log.roles[name] = opinion.role
        elif opinion.role:
            log.note(f"{name}: the log says {opinion.role!r}, not whether people scored it")
        if value is not None and (old := before.get(name)) is not None:
            numbers = exchange.number_in(value), exchange.number_in(old)
            changed = value != old and (None in numbers or numbers[0] != numbers[1])
            log.corrections[name].append(changed)
