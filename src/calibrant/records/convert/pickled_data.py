"""The plain data in a pickle, without running it.

A pickle is a program for a small stack machine. Loading one can call any function; here the
instructions are only looked at. Lists, dicts, tuples, texts and numbers are built, and everything
that would call a function is left as a mark.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calibrant.records.limits import limit, limit_hint


@dataclass(frozen=True, slots=True)
class NotPlain:
    """What stands in the place of an object that only running the pickle would make."""

    name: str


class _Mark:
    """The place on the stack where a group of items begins."""


_DICTS = frozenset({"collections defaultdict", "collections OrderedDict"})
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
            if name in _ACTIONS:
                _ACTIONS[name](stack)
            elif name.endswith("PUT"):
                memo[int(str(argument))] = stack[-1]
            elif name == "MEMOIZE":
                memo[len(memo)] = stack[-1]
            elif name.endswith("GET"):
                stack.append(memo[int(str(argument))])
            elif name in ("GLOBAL", "PERSID"):
                stack.append(NotPlain(str(argument)))
            elif name in _CONSTANTS:
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
        item, done = waiting.pop()
        if not isinstance(item, list | tuple | dict) or id(item) in sizes:
            continue
        parts = [*item.keys(), *item.values()] if isinstance(item, dict) else item
        if done:
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


def _tuple_of(count: int) -> Callable[[_Stack], None]:
    def action(stack: _Stack) -> None:
        items = tuple(stack[-count:])
        del stack[-count:]
        stack.append(items)

    return action


def _call(arguments: int) -> Callable[[_Stack], None]:
    """Put a mark, or an empty dict for the kinds of dict, in the place of a call."""

    def action(stack: _Stack) -> None:
        function = stack[-arguments - 1]
        del stack[-arguments - 1 :]
        name = function.name if isinstance(function, NotPlain) else repr(function)
        stack.append({} if name in _DICTS else NotPlain(name))

    return action


def _named(stack: _Stack) -> None:
    module, name = stack[-2:]
    del stack[-2:]
    stack.append(NotPlain(f"{module} {name}"))


def _dict_of_group(stack: _Stack) -> None:
    items = _group(stack)
    stack.append(dict(_pairs(items)))


def _set_item(stack: _Stack) -> None:
    items = stack[-2:]
    del stack[-2:]
    _update(stack, items)


_ACTIONS: dict[str, Callable[[_Stack], None]] = {
    "MARK": lambda stack: stack.append(_Mark()),
    "POP": lambda stack: stack.__delitem__(-1),
    "POP_MARK": lambda stack: _group(stack).clear(),
    "DUP": lambda stack: stack.append(stack[-1]),
    "NONE": lambda stack: stack.append(None),
    "NEWTRUE": lambda stack: stack.append(True),
    "NEWFALSE": lambda stack: stack.append(False),
    "EMPTY_LIST": lambda stack: stack.append([]),
    "EMPTY_DICT": lambda stack: stack.append({}),
    "EMPTY_TUPLE": lambda stack: stack.append(()),
    "EMPTY_SET": lambda stack: stack.append(NotPlain("builtins set")),
    "LIST": lambda stack: stack.append(_group(stack)),
    "TUPLE": lambda stack: stack.append(tuple(_group(stack))),
    "DICT": _dict_of_group,
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "APPEND": lambda stack: _extend(stack, [stack.pop()]),
    "APPENDS": lambda stack: _extend(stack, _group(stack)),
    "ADDITEMS": lambda stack: _group(stack).clear(),
    "SETITEM": _set_item,
    "SETITEMS": lambda stack: _update(stack, _group(stack)),
    "STACK_GLOBAL": _named,
    "REDUCE": _call(1),
    "NEWOBJ": _call(1),
    "NEWOBJ_EX": _call(2),
    "BUILD": lambda stack: stack.__delitem__(-1),
    "BINPERSID": lambda stack: stack.__setitem__(-1, NotPlain("a tensor")),
}
_CONSTANTS = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    }
)
