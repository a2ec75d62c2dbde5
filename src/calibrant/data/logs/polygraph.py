"""Results of LM-Polygraph: the file that ``UEManager.save`` writes.

The file is a pickle in a zip archive. Its lists of numbers and texts are read without running it,
see `pickled_data`. LM-Polygraph states uncertainties; where one is the logarithm of a probability
it becomes that probability, otherwise its negative is kept as a score that only ranks.
"""

import math
import pickletools
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.data.formats import limit, limit_hint
from calibrant.data.logs.exchange import Exchange, LoggedGrade, read_exchanges
from calibrant.data.logs.json_text import finite_number
from calibrant.data.logs.log import ForeignLog

KIND = "lm-polygraph"
_LEVEL = "sequence"
_PARTS = ("estimations", "gen_metrics", "stats")
_BINARY = frozenset({0.0, 1.0})


_PROBABILITIES: dict[str, tuple[str, Callable[[float], float]]] = {
    "MaximumSequenceProbability": ("sequence_probability", lambda found: math.exp(-found)),
    "Perplexity": ("perplexity", lambda found: math.exp(-found)),
    "PTrue": ("p_true_prob", lambda found: math.exp(-found)),
    "Verbalized1S": ("verb", lambda found: 1.0 - found),
    "Verbalized2S": ("verb", lambda found: 1.0 - found),
}


def is_polygraph(path: Path) -> bool:
    """Return whether a zip file holds a saved manager of LM-Polygraph."""
    try:
        content = _pickle(path)
    except InputError:
        return False
    return all(name.encode() in content for name in _PARTS)


def read_lm_polygraph(log: ForeignLog) -> None:
    """Read a saved manager: one question and one greedy answer per input."""
    saved, model = _saved(log.path), log.path.stem
    stats = saved["stats"]
    inputs = stats.get("input_texts") or []
    if not inputs:
        raise InputError("the saved manager holds no inputs")
    log.expected = len(inputs)
    grades, grader = _grades(log, saved["gen_metrics"], len(inputs))
    replies = stats.get("greedy_texts") or stats.get("blackbox_greedy_texts") or []
    if len(replies) != len(inputs):
        log.problem("greedy_texts", f"{len(replies)} replies for {len(inputs)} inputs")
        replies = [None] * len(inputs)
    targets = stats.get("target_texts")
    if not isinstance(targets, list) or len(targets) != len(inputs):
        targets = [None] * len(inputs)
    scores = _scores(log, saved["estimations"], len(inputs))

    def exchanges(row: tuple[int, tuple[Any, ...]]) -> Iterator[Exchange]:
        place, (text, reply, target, grade, confidences) = row
        reason = None if grade is not None else "the file holds no grade of it"
        yield Exchange(
            question_id=str(place),
            question=str(text),
            answer=reply,
            model=model,
            task=KIND,
            draw=0,
            grade=LoggedGrade(grade, reason, grader),
            references=target,
            scores=confidences,
        )

    rows = enumerate(zip(inputs, replies, targets, grades, scores, strict=True))
    read_exchanges(log, ((f"input {row[0]}", row) for row in rows), exchanges)


def _pickle(path: Path) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            return archive.read(names[0]) if names else b""
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"the archive is damaged: {error}") from None


def _saved(path: Path) -> dict[str, Mapping[Any, Any]]:
    try:
        saved = read_plain_data(_pickle(path))
    except ValueError as error:
        raise InputError(f"the archive cannot be read: {error}") from None
    if not isinstance(saved, dict) or not all(isinstance(saved.get(p), dict) for p in _PARTS):
        raise InputError(f"a saved manager has {', '.join(_PARTS)}")
    return saved


def _grades(
    log: ForeignLog, metrics: Mapping[Any, Any], count: int
) -> tuple[list[float | None], str | None]:
    """Return the grades of one generation metric: the one named, or else the first right-or-wrong.

    A metric with values in between is a matter of degree and must be asked for.
    """
    grades = {
        name: [finite_number(value) for value in values]
        for (level, name), values in metrics.items()
        if level == _LEVEL and len(values) == count
    }
    by_name = log.options.grade
    if by_name is not None and by_name not in grades:
        names = ", ".join(grades) or "none"
        raise InputError(
            f"there is no generation metric {by_name!r}", hint=f"the file has: {names}"
        )
    confidence = {name: set(values) - {None} for name, values in grades.items()}
    binary = [name for name, values in confidence.items() if values and values <= _BINARY]
    choice = by_name or next(iter(binary), None)
    peers = [name for name in grades if name != choice]
    if choice is None:
        log.note(
            "no generation metric of the file says right or wrong "
            f"(choose one by grade: {', '.join(grades) or 'none'})"
        )
        return [None] * count, None
    if peers:
        log.note(f"graded by {choice!r}; the file also has {', '.join(peers)} (choose by grade)")
    return grades[choice], choice


def _scores(log: ForeignLog, estimations: Mapping[Any, Any], count: int) -> list[dict[str, float]]:
    """Return the confidences of each input by method."""
    scores: list[dict[str, float]] = [{} for _ in range(count)]
    for (level, name), values in estimations.items():
        if level != _LEVEL:
            log.note(f"{name} is about each {level}, not about an answer: not read")
            continue
        if len(values) != count:
            why = f"{len(values)} values for {count} inputs: no way to match"
            log.problem(f"estimator {name}", why)
            continue
        method, confidence_of = _PROBABILITIES.get(name, (name, float.__neg__))
        if name not in _PROBABILITIES:
            log.ranking.add(method)
        for place, value in enumerate(values):
            number = finite_number(value)
            if number is None:
                log.problem(f"estimator {name}, input {place}", "no number")
            else:
                scores[place][method] = confidence_of(number)
    return scores


@dataclass(frozen=True, slots=True)
class NotPlain:
    """What stands in the place of an object that only running the pickle would make."""

    name: str


class _Mark:
    """The place on the stack where a group of items begins."""


_DICTS = frozenset({"collections defaultdict", "collections OrderedDict"})
_OBJECT = pickletools.anyobject
_IGNORED = frozenset({"PROTO", "FRAME", "STOP"})
_Stack = list[Any]


def read_plain_data(data: bytes) -> Any:
    r"""Return the data of a pickle; ValueError where it is cut or uses an unknown instruction.

    Examples
    --------
    >>> read_plain_data(b"(lp0\nF0.5\naVyes\na.")
    [0.5, 'yes']
    >>> read_plain_data(b"cos\nsystem\n(Vls\ntR.")
    NotPlain(name='os system')
    """
    stack: _Stack = []
    memo: dict[int, Any] = {}
    try:
        for instruction, argument, _ in pickletools.genops(data):
            name = instruction.name
            if name in _NEW:
                stack.append(_NEW[name]())
            elif name in _ACTIONS:
                _ACTIONS[name](stack)
            elif name.endswith("PUT"):
                memo[int(str(argument))] = stack[-1]
            elif name == "MEMOIZE":
                memo[len(memo)] = stack[-1]
            elif name.endswith("GET"):
                stack.append(memo[int(str(argument))])
            elif name in ("GLOBAL", "PERSID"):
                stack.append(NotPlain(str(argument)))
            elif argument is not None and instruction.stack_after[:1] not in ([], [_OBJECT]):
                # Numbers and texts: what names an object or a code would be of any kind.
                stack.append(argument)
            elif name not in _IGNORED:
                raise ValueError(f"the instruction {name} is not known")
        (result,) = stack
        _check_size(result)
    except (IndexError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise ValueError(f"the pickle is damaged: {error!r}") from None
    return result


def _check_size(data: Any) -> None:
    """Refuse data that refers to itself, or that grows without end by references to references.

    Six hundred bytes can stand for more items than a machine can count; walking over them would
    never end.
    """
    sizes: dict[int, int] = {}
    open_: set[int] = set()
    most = limit("plain_items")
    waiting: list[tuple[Any, bool]] = [(data, False)]
    while waiting:
        item, finished = waiting.pop()
        if not isinstance(item, list | tuple | dict) or id(item) in sizes:
            continue
        parts = [*item.keys(), *item.values()] if isinstance(item, dict) else item
        if finished:
            size = 1 + sum(sizes.get(id(part), 1) for part in parts)
            if size > most:
                hint = limit_hint("plain_items")
                raise ValueError(f"the data stands for more than {most:,} items ({hint})")
            sizes[id(item)] = size
            open_.discard(id(item))
        elif id(item) in open_:
            raise ValueError("the data refers to itself")
        else:
            open_.add(id(item))
            waiting.append((item, True))
            waiting += [(part, False) for part in parts if isinstance(part, list | tuple | dict)]


def _pairs(items: list[Any]) -> list[tuple[Any, Any]]:
    """Return keys with their values; a key is plain or a flat tuple, so that hashing it ends."""
    for key in items[::2]:
        if isinstance(key, tuple) and any(isinstance(part, tuple) for part in key):
            raise ValueError("a key of the data is nested")
    return list(zip(items[::2], items[1::2], strict=True))


def _group(stack: _Stack) -> list[Any]:
    """Take everything above the last mark off the stack."""
    place = len(stack) - 1
    while not isinstance(stack[place], _Mark):
        place -= 1
    items = stack[place + 1 :]
    del stack[place:]
    return items


def _extend(stack: _Stack, items: list[Any]) -> None:
    if isinstance(stack[-1], list):
        stack[-1].extend(items)


def _update(stack: _Stack, items: list[Any]) -> None:
    if isinstance(stack[-1], dict):
        stack[-1].update(_pairs(items))


def _last(stack: _Stack, count: int) -> list[Any]:
    """Take so many items off the stack."""
    items = stack[-count:]
    del stack[-count:]
    return items


def _call(arguments: int) -> Callable[[_Stack], None]:
    """Put a mark, or an empty dict for the kinds of dict, in the place of a call."""

    def action(stack: _Stack) -> None:
        function = stack[-arguments - 1]
        del stack[-arguments - 1 :]
        name = function.name if isinstance(function, NotPlain) else repr(function)
        stack.append({} if name in _DICTS else NotPlain(name))

    return action


_NEW: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
    "MARK": _Mark,
}
_ACTIONS: dict[str, Callable[[_Stack], None]] = {
    "POP": lambda stack: stack.__delitem__(-1),
    "POP_MARK": lambda stack: _group(stack).clear(),
    "DUP": lambda stack: stack.append(stack[-1]),
    "EMPTY_SET": lambda stack: stack.append(NotPlain("builtins set")),
    "LIST": lambda stack: stack.append(_group(stack)),
    "TUPLE": lambda stack: stack.append(tuple(_group(stack))),
    "DICT": lambda stack: stack.append(dict(_pairs(_group(stack)))),
    "TUPLE1": lambda stack: stack.append(tuple(_last(stack, 1))),
    "TUPLE2": lambda stack: stack.append(tuple(_last(stack, 2))),
    "TUPLE3": lambda stack: stack.append(tuple(_last(stack, 3))),
    "APPEND": lambda stack: _extend(stack, [stack.pop()]),
    "APPENDS": lambda stack: _extend(stack, _group(stack)),
    "ADDITEMS": lambda stack: _group(stack).clear(),
    "SETITEM": lambda stack: _update(stack, _last(stack, 2)),
    "SETITEMS": lambda stack: _update(stack, _group(stack)),
    "STACK_GLOBAL": lambda stack: stack.append(NotPlain("{} {}".format(*_last(stack, 2)))),
    "REDUCE": _call(1),
    "NEWOBJ": _call(1),
    "NEWOBJ_EX": _call(2),
    "BUILD": lambda stack: stack.__delitem__(-1),
    "BINPERSID": lambda stack: stack.__setitem__(-1, NotPlain("a tensor")),
}
