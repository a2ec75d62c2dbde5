"""Names and what they stand for: loaded on first use, optional packages, registries, methods."""

import importlib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from calibrant.core.errors import InputError, MissingDependencyError, require_known

_IMPORT = re.compile(r"^ *from (\S+) import \(?\s*(\w+) as (\w+),?\s*\)?$", re.MULTILINE)


def data_beside(module: str, name: str) -> dict[str, Any]:
    """Return what a TOML file beside a module of the package holds."""
    return tomllib.loads((Path(module).parent / name).read_text(encoding="utf-8"))


def lazy_exports(
    package: str,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package that imports names when asked for.

    The names are written once, as imports that only type checkers run: every line
    ``from calibrant.core.arrays import named_stream as named_stream`` of the package's source.

    A name that is also the name of a module of the package must be imported by the package
    itself: whoever imports the module first would otherwise bind the module under that name.

    Parameters
    ----------
    package
        ``__name__`` of the package.

    Examples
    --------
    >>> find, names, public = lazy_exports("calibrant.core")
    >>> find("named_stream").__name__, find("errors").__name__, "named_stream" in public
    ('named_stream', 'calibrant.core.errors', True)
    >>> find("other")
    Traceback (most recent call last):
    ...
    AttributeError: module 'calibrant.core' has no attribute 'other'
    """
    spec = sys.modules[package].__spec__
    # Read from its file: a loader need not hand out the source, and that of pytest does not.
    source = Path(spec.origin).read_text("utf-8") if spec is not None and spec.origin else ""
    home = {here: (module, exists) for module, exists, here in _IMPORT.findall(source)}

    def find(name: str) -> Any:
        module, exists = home.get(name, (package, name))
        try:
            value = importlib.import_module(f"{package}.{exists}" if module == package else module)
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{exists}":
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        value = value if module == package else getattr(value, exists)
        # Bound as an import would bind it, so that it is looked for once.
        setattr(sys.modules[package], name, value)
        return value

    # What a package hands on is what it shows: not the machinery that does it.
    public = sorted(home)
    return find, lambda: public, public


def optional_import(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module` or say what to install.

    Parameters
    ----------
    module
        Dotted module name.
    extra
        The extra of calibrant that brings it.
    purpose
        What it is needed for, in words that complete 'needed for ...'.

    Examples
    --------
    >>> optional_import("no_such_module", extra="ray", purpose="running on a cluster")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.MissingDependencyError: no_such_module is needed for running on a cluster
      -> pip install 'calibrant[ray]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise
        raise MissingDependencyError(
            f"{module} is needed for {purpose}\n  -> pip install 'calibrant[{extra}]'"
        ) from error


def registered(kind: str) -> dict[str, str]:
    """Return what packages register in their `registered.toml`: places in them, by name.

    A package of an upper floor is found without being named, or loaded, below it.

    Parameters
    ----------
    kind
        ``claims``, ``tables`` or ``charts``.

    Examples
    --------
    >>> registered("charts")
    {'multi_answer': 'calibrant.bench.charts.charts'}
    """
    root = Path(__file__).parent.parent
    return {
        name: f"{root.name}.{file.parent.name}.{place}"
        for file in sorted(root.glob("*/registered.toml"))
        for name, place in data_beside(str(file), file.name)[kind].items()
    }


def function_at(place: str) -> Callable[..., Any]:
    """Return the function at ``package.module.function``; its module is loaded.

    Examples
    --------
    >>> function_at("calibrant.core.names.registered") is registered
    True
    """
    module, _, name = place.rpartition(".")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


T = TypeVar("T")


class Registry(dict[str, T]):
    """Names to entries, in order of registration.

    Examples
    --------
    >>> colours: Registry[int] = Registry("colour")
    >>> colours.add("red", 1)
    >>> colours["rde"]
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: there is no colour 'rde'
      -> did you mean 'red'?
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def add(self, name: str, entry: T) -> None:
        """Register `entry`; a name is given once."""
        if name in self:
            raise InputError(f"the {self.kind} {name!r} is registered already")
        self[name] = entry

    def arrange(self, names: Iterable[str]) -> None:
        """Put the entries into this order; each name must be registered."""
        arranged = {name: self[name] for name in names}
        self.clear()
        self.update(arranged)

    def __missing__(self, name: str) -> NoReturn:
        require_known([name], self, f"there is no {self.kind} {{}}")
        raise KeyError(name)


METHOD_WORDS: dict[str, str] = json.loads(
    resources.files(__package__).joinpath("method_words.json").read_text(encoding="utf-8")
)


def method_words(name: str | None) -> str:
    """Return what a method is, in a few words; nothing for a column of the reader's own.

    Examples
    --------
    >>> method_words("verb"), method_words("my_column")
    ('stated confidence', '')
    """
    return METHOD_WORDS.get(name or "", "")


def method_name(name: str, *, aside: bool = False) -> str:
    """Return a method as a sentence calls it: its name, and what it is where that is known.

    Parameters
    ----------
    name
        Name of the method.
    aside
        Whether the sentence stands in parentheses already.

    Examples
    --------
    >>> method_name("verb"), method_name("verb", aside=True), method_name("my_column")
    ('verb (stated confidence)', 'verb: stated confidence', 'my_column')
    """
    words = method_words(name)
    if not words:
        return name
    return f"{name}: {words}" if aside else f"{name} ({words})"


def method_legend(names: Iterable[str | None]) -> list[str]:
    """Return every known method once with its words, in the order given.

    Examples
    --------
    >>> method_legend(["verb", "perplexity", "my_column", "verb"])
    ['verb: stated confidence', 'perplexity: average token probability']
    """
    methods = dict.fromkeys(name for name in names if name and method_words(name))
    return [method_name(name, aside=True) for name in methods]


# Ends the name of a method whose numbers are made as the authors' published ones were.
PAPER = ":paper"


def ranking_methods() -> frozenset[str]:
    """Return the methods whose score ranks answers and is no probability.

    Their variants as published are among them: `sca:paper` exceeds 1 as `sca` does.

    Examples
    --------
    >>> sorted({"consistency", "eigv", "sca:paper"} & ranking_methods())
    ['eigv', 'sca:paper']
    """
    facts = catalogue()["methods"].items()
    names = frozenset(name for name, notes in facts if not notes.get("probability", True))
    return names | {f"{name}{PAPER}" for name in names}


@lru_cache(maxsize=1)
def catalogue() -> dict[str, Any]:
    """Return what `methods.toml` says of methods and of the inputs that they need."""
    return data_beside(__file__, "methods.toml")
