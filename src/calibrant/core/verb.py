"""The declaration of a verb: its signature says what every option is called, takes and means.

A verb is one function. Its annotations carry an `Option` each; from them follow the checks of a
Python call, the command, its help, the tables of the documentation and the schema of its settings.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, wraps
from typing import Any, Literal, ParamSpec, TypeVar

from msgspec import Struct, structs

from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import Hint
from calibrant.core.machine import check_not_forked
from calibrant.core.places import check_kept
from calibrant.core.values import checked

INPUT, COMPUTE, OUTPUT, ADVANCED = "Input", "What to compute", "Output", "Advanced"
GROUPS = (INPUT, COMPUTE, OUTPUT, ADVANCED)

Kind = Literal["", "names", "several", "whole numbers", "numbers", "map", "map or numbers", "date",
               "name or number"]  # fmt: skip
Place = Literal["", "read", "write", "write with folders", "folder", "file or folder"]


class Option(Struct, frozen=True):
    """What an argument of a verb means, and which values it takes.

    Parameters
    ----------
    help
        What it does. Left out, the docstring of the verb says it: the first paragraph under the
        name of the argument; what only a reader of Python needs follows in further ones.
    metavar
        What goes there, in the help: ``COL``, ``PATH``, ``A,B,..``.
    group
        Where it stands in the help.
    min, max, above, below
        Ends of a range that are allowed, and ends that are not.
    unit
        What a number counts, for messages: ``seconds``.
    choices
        The words allowed.
    kind
        How a text on the command line is read where the type alone does not say it: ``names``
        (separated by commas), ``several`` (the option is given several times), ``whole numbers``,
        ``numbers``, ``map`` (name=number), ``map or numbers``, ``date``, ``name or number``.
    place
        A path: to ``read`` from, to ``write`` a file to (``write with folders``: folders above it
        are made), a ``folder`` to fill.
    example
        How the value is written, for messages.
    argument
        On the command line it is given without a name; with `several` values where `kind` says so.
    required
        The command needs it, although a call from Python does not.
    cli
        Name on the command line where it is not that of the argument.
    needs
        Another option without which this one would change nothing: given alone it is refused.

    Examples
    --------
    >>> Option("Equal-width bins.", min=1, max=100).group
    'What to compute'
    """

    help: str = ""
    metavar: str = ""
    group: str = COMPUTE
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()
    kind: Kind = ""
    place: Place = ""
    example: str = ""
    argument: bool = False
    required: bool = False
    cli: str = ""
    needs: str = ""


P = ParamSpec("P")
R = TypeVar("R")


class Supplied(Struct, frozen=True):
    """An argument that the command line fills in.

    ``progress``, ``steps``, ``alarms``, ``confirmation``.
    """

    by: str


class Check(Struct, frozen=True):
    """What a command may be asked to fail for, with exit code 1.

    Parameters
    ----------
    flag
        The option that asks for it; empty: it is always checked.
    help
        What the option does.
    failure
        Returns what fails in a document, or None.
    exit_code
        Exit status of the command where it fails.
    """

    flag: str
    help: str
    failure: Callable[[Mapping[str, Any]], str | None]
    exit_code: int = 1


class Parameter(Struct, frozen=True):
    """An argument of a verb with its declaration."""

    name: str
    option: Option
    base: Any
    default: Any

    @property
    def is_required(self) -> bool:
        """Whether a command must give it."""
        return self.option.required or self.default is inspect.Parameter.empty

    @property
    def shown_default(self) -> str:
        """The default as it is typed; empty where there is nothing to show."""
        value = self.default
        if isinstance(value, tuple | list):
            return ",".join(map(str, value))
        return str(value) if isinstance(value, int | float | str) and value is not False else ""

    @property
    def word(self) -> str:
        """Name on the command line, without dashes in front."""
        return (self.option.cli or self.name).replace("_", "-")

    def taken(self, value: Any) -> Any:
        """Return the value as the verb takes it, or refuse it."""
        # None means that it is not given, where it may stand at all.
        optional = types.NoneType in typing.get_args(self.base)
        if value is None and (optional or self.default is None or self.base is Any):
            return None
        return checked(self.option, self.name, value, self.type)

    @property
    def type(self) -> Any:
        """The type beside None."""
        parts = [part for part in typing.get_args(self.base) if part is not types.NoneType]
        is_union = typing.get_origin(self.base) in (types.UnionType, typing.Union)
        return parts[0] if is_union and len(parts) == 1 else self.base


def described(docstring: str) -> dict[str, str]:
    r"""Return what a docstring says of every argument, in its first paragraph.

    Examples
    --------
    >>> described("Parameters\n----------\nbins\n    How many\n    bins.\n\n    More.")
    {'bins': 'How many bins.'}
    """
    _, _, entries = inspect.cleandoc(docstring).partition("Parameters\n----------\n")
    arguments = re.finditer(r"^(\w.*)\n((?:    .*(?:\n|$))+)", entries, re.MULTILINE)
    return {
        name: " ".join(words.split())
        for names, words in (entry.groups() for entry in arguments)
        for name in names.split(", ")
    }


def _flat(
    function: Callable[..., Any], shared: Verb | None
) -> tuple[inspect.Signature, dict[str, Parameter]]:
    """Return the signature with shared options one by one, and the declarations of those."""
    signature = inspect.signature(function)
    *own, last = signature.parameters.values() or [None]
    if last is None or last.kind is not inspect.Parameter.VAR_KEYWORD or shared is None:
        return signature, {}
    unpacked = last.annotation
    if isinstance(unpacked, str):
        unpacked = eval(unpacked, function.__globals__)
    names = typing.get_args(unpacked)[0].__annotations__
    flat = [*own, *(shared.signature.parameters[name] for name in names)]
    return signature.replace(parameters=flat), {name: shared.parameters[name] for name in names}


class Verb(Struct, dict=True, eq=False):
    """A declared verb.

    Parameters
    ----------
    function
        The function itself, without checks.
    example
        A command that shows it.
    outputs
        The output options of its command: json, html, fail_if, junit. What a terminal shows of
        the result has options too: every command has full, those with a page have top and sort.
    checks
        What the command may be asked to fail for.
    resumable
        Whether the same command, given again after an interruption, goes on.
    shared
        Declaration of options that several verbs share: the function takes some of them as
        ``**options: Unpack[Options]``, and `Options` names those with their types.
    """

    function: Callable[..., Any]
    example: str
    outputs: tuple[str, ...]
    checks: tuple[Check, ...]
    resumable: bool
    shared: Verb | None
    signature: inspect.Signature = inspect.Signature()
    taken_over: dict[str, Parameter] = {}

    def __post_init__(self) -> None:
        view = ("full", "top", "sort") if "html" in self.outputs else ("full",)
        self.outputs = (*self.outputs, *view)
        self.signature, self.taken_over = _flat(self.function, self.shared)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Its options by argument, in the order of the signature."""
        declared, words = {}, described(self.function.__doc__ or "")
        for name, base, marks, default in self._annotated():
            options = [mark for mark in marks if isinstance(mark, Option)]
            if options:
                # A shared option that a verb declares anew: the verb has the last word.
                option = options[-1]
                metavar = option.metavar or "|".join(option.choices)
                option = structs.replace(
                    option, help=option.help or words.get(name, ""), metavar=metavar
                )
                declared[name] = Parameter(name, option, base, default)
        return declared | self.taken_over

    @property
    def defaults(self) -> dict[str, object]:
        """What stands where nobody says otherwise."""
        return {name: parameter.default for name, parameter in self.parameters.items()}

    @cached_property
    def supplied(self) -> dict[str, str]:
        """Arguments that the command line supplies by itself."""
        marked = ((name, mark) for name, _, marks, _ in self._annotated() for mark in marks)
        return {name: mark.by for name, mark in marked if isinstance(mark, Supplied)}

    def plain_signature(self) -> inspect.Signature:
        """Return the signature as readers of Python know it: types without declarations."""
        plain = []
        for name, parameter in self.signature.parameters.items():
            declared = self.parameters.get(name)
            base = declared.base if declared else parameter.annotation
            if typing.get_origin(base) is typing.Annotated:
                base = typing.get_args(base)[0]
            plain.append(parameter.replace(annotation=base))
        return self.signature.replace(parameters=plain)

    def _annotated(self) -> Iterator[tuple[str, Any, list[Any], Any]]:
        for name, parameter in inspect.signature(self.function).parameters.items():
            annotation = parameter.annotation
            if isinstance(annotation, str):
                try:
                    annotation = eval(annotation, self.function.__globals__)
                except NameError:
                    # Imported for type checkers alone: not an argument with a declaration.
                    continue
            if typing.get_origin(annotation) is typing.Annotated:
                base, *marks = typing.get_args(annotation)
                yield name, base, marks, parameter.default

    def call(self, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Call the verb with checked arguments."""
        check_not_forked()
        require_known(given, self.signature.parameters, "there is no option {}")
        bound = self.signature.bind(*args, **given)
        for name, parameter in self.taken_over.items():
            bound.arguments.setdefault(name, parameter.default)
        for name, value in bound.arguments.items():
            if name in self.parameters:
                bound.arguments[name] = self.parameters[name].taken(value)
        for name, value in bound.arguments.items():
            # An option that does nothing by itself is refused.
            declared = self.parameters.get(name)
            requirement = declared.option.needs if declared else ""
            alone = requirement and bound.arguments.get(requirement) is None
            if declared and alone and value != declared.default:
                rule = f"{{{name}}} changes nothing without {{{requirement}}}"
                hint = Hint(f"give {{{requirement}}}, or leave out {{{name}}}")
                raise InputError(Hint(rule), hint=hint)
        self.keep_inputs(bound.arguments)
        return self.function(*bound.args, **bound.kwargs)

    def keep_inputs(self, arguments: Mapping[str, Any], written: Iterable[Any] = ()) -> None:
        """Refuse to write over what is read; `written` are places beside the arguments'."""
        places = {name: self.parameters[name].option.place for name in self.parameters}
        out = [v for n, v in arguments.items() if places.get(n) and places[n] != "read"]
        out += written
        if any(value is not None for value in out):
            check_kept([v for n, v in arguments.items() if places.get(n) == "read"], out)


def verb(
    *,
    example: str = "",
    outputs: tuple[str, ...] = ("json", "html"),
    checks: tuple[Check, ...] = (),
    resumable: bool = False,
    shared: Verb | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function a verb: its arguments are checked by their annotations.

    Parameters
    ----------
    example, outputs, checks, resumable, shared
        See `Verb`.

    Examples
    --------
    >>> from typing import Annotated
    >>> @verb(example="calibrant count --bins 10")
    ... def count(bins: Annotated[int, Option("Bins.", min=1, max=100)] = 15) -> int:
    ...     return bins
    >>> count(), count(bins=20)
    (15, 20)
    >>> count(bins=1000)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: bins is a whole number from 1 to 100, got 1000
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        declared = Verb(function, example, outputs, checks, resumable, shared)
        run = declared.call

        def call(*args: Any, **given: Any) -> Any:
            return run(args, given)

        # With the globals of the verb's own module: doctest passes over functions that seem to
        # come from another one.
        clone = types.FunctionType(
            call.__code__, function.__globals__, function.__name__, None, call.__closure__
        )
        checked: Callable[P, R] = wraps(function)(clone)
        checked.__verb__ = declared  # type: ignore[attr-defined]
        checked.__signature__ = declared.plain_signature()  # type: ignore[attr-defined]
        return checked

    return declare


def declaration(function: Callable[..., Any]) -> Verb:
    """Return how a verb is declared."""
    declared: Verb = function.__verb__  # type: ignore[attr-defined]
    return declared
