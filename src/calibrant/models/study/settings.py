"""Reading one table of a settings file: every mistake names the file, the key and the rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_origin

from msgspec import NODEFAULT, Struct, structs

from calibrant.core.errors import InputError, did_you_mean

NEEDED: Any = object()
"""In place of a default: the setting must be given."""
T = TypeVar("T", bound=Struct)


class Settings:
    """A table of settings whose keys are taken one by one.

    `finish` refuses the keys that nobody took, so a misspelt key never goes unnoticed.

    Parameters
    ----------
    values
        The table as parsed from TOML.
    source
        File that messages name.
    path
        Dotted path of this table inside the file, empty for the file itself.
    folder
        What files named in it are relative to.

    Examples
    --------
    >>> settings = Settings({"drwas": 8}, source="study.toml", path="sampling")
    >>> settings.whole("draws", 20, low=1)
    20
    >>> settings.finish()
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: study.toml: sampling.drwas: there is no such setting
      -> did you mean 'draws'?
    """

    def __init__(self, values: Any, *, source: str, path: str = "", folder: Path = Path()) -> None:
        self.source, self.path, self.folder = source, path, folder
        self._taken: set[str] = set()
        if not isinstance(values, Mapping):
            self.refuse("", f"is a table of settings, got {values!r}")
        self._values = dict(values)

    def name(self, key: str) -> str:
        """Return the dotted name of a key."""
        return ".".join(part for part in (self.path, key) if part)

    def refuse(self, key: str, rule: str, *, hint: str | None = None) -> NoReturn:
        """Raise the error that names file, key and rule."""
        raise InputError(f"{self.name(key)}: {rule}", source=self.source, hint=hint)

    def has(self, key: str) -> bool:
        """Return whether the key is given; it counts as taken."""
        self._taken.add(key)
        return key in self._values

    def fill(self, kind: type[T], **values: Any) -> T:
        """Return a structure of these settings, each by its type and bounds, and finish.

        A field of another structure is a table, a tuple of them an array of tables.

        Parameters
        ----------
        kind
            The structure; ``Annotated[int, {"low": 1}]`` gives a field bounds, or choices.
        **values
            Fields that were read in another way.
        """
        readers: dict[Any, Callable[..., Any]] = {
            int: self.whole,
            float: self.real,
            str: self.text,
            bool: self.flag,
            tuple[str, ...]: self.texts,
            Path: self.place,
            Mapping: self.mapping,
            Any: self.raw,
        }
        for item in structs.fields(kind):
            if item.name in values:
                continue
            hint, bounds = item.type, {}
            if get_origin(hint) is Annotated:
                hint, bounds = get_args(hint)
            kinds = (hint, get_origin(hint), *get_args(hint))
            types = (part for part in kinds if isinstance(part, type))
            inner = next((part for part in types if issubclass(part, Struct)), None)
            if inner is None:
                read = next(readers[part] for part in kinds if part in readers)
                default = NEEDED if item.required else item.default
                if item.default_factory is not NODEFAULT:
                    default = item.default_factory()
                values[item.name] = read(item.name, default, **bounds)
            elif tuple in kinds:
                tables = self.tables(item.name)
                values[item.name] = tuple(table.fill(inner) for table in tables)
            elif self.has(item.name) or item.default is not None:
                values[item.name] = self.table(item.name).fill(inner)
        self.finish()
        return kind(**values)

    def raw(self, key: str, default: Any = NEEDED) -> Any:
        """Return the value as it stands."""
        self._taken.add(key)
        if key in self._values:
            return self._values[key]
        if default is NEEDED:
            near = get_close_matches(key, self._values, 1, cutoff=0.8)
            hint = f"there is {near[0]!r}: did you mean {key!r}?" if near else None
            self.refuse(key, "this setting is needed", hint=hint)
        return default

    def _checked(self, key: str, default: Any, rule: str, fits: Callable[[Any], bool]) -> Any:
        value = self.raw(key, default)
        if value is not default and not fits(value):
            self.refuse(key, f"{rule}, got {value!r}")
        return value

    def text(self, key: str, default: Any = NEEDED, *, choices: Sequence[str] | None = None) -> Any:
        """Return a text, one of `choices` where they are given."""
        rule = "is a text that is not empty"
        value = self._checked(key, default, rule, lambda v: isinstance(v, str) and bool(v.strip()))
        if choices is not None and value is not default and value not in choices:
            rule = f"is one of {', '.join(choices)}, got {value!r}"
            self.refuse(key, rule, hint=did_you_mean(value, list(choices)))
        return value

    def whole(self, key: str, default: Any = NEEDED, *, low: int = 0) -> Any:
        """Return a whole number from `low` upwards."""
        rule = f"is a whole number of at least {low}"
        return self._checked(key, default, rule, lambda v: type(v) is int and v >= low)

    def real(
        self, key: str, default: Any = NEEDED, *, low: float = 0.0, high: float = math.inf
    ) -> Any:
        """Return a number within the bounds."""
        bounds = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        value = self._checked(key, default, f"is a number {bounds}",
                              lambda v: type(v) in (int, float) and low <= v <= high)  # fmt: skip
        return value if value is default else float(value)

    def flag(self, key: str, default: Any = NEEDED) -> Any:
        """Return true or false."""
        return self._checked(key, default, "is true or false", lambda v: isinstance(v, bool))

    def texts(self, key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        """Return a list of texts."""

        def listed(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)

        return tuple(self._checked(key, default, "is a list of texts", listed))

    def place(self, key: str, default: Any = NEEDED) -> Any:
        """Return a path, relative to the folder."""
        value = self.text(key, default)
        return value if value is default else self.folder / value

    def mapping(self, key: str, default: Any = NEEDED) -> dict[str, Any]:
        """Return a table as it stands."""
        return self._table(key, self.raw(key, default)).rest()

    def table(self, key: str) -> Settings:
        """Return a table inside this one, empty where it is not given."""
        return self._table(key, self.raw(key, {}))

    def _table(self, key: str, values: Any) -> Settings:
        return Settings(values, source=self.source, path=self.name(key), folder=self.folder)

    def tables(self, key: str) -> list[Settings]:
        """Return an array of tables (``[[key]]`` in TOML)."""
        value = self.raw(key, [])
        if not isinstance(value, list):
            self.refuse(key, f"is written as [[{self.name(key)}]], got {value!r}")
        return [self._table(f"{key}[{place}]", item) for place, item in enumerate(value, 1)]

    def rest(self) -> dict[str, Any]:
        """Return the keys that were not taken, and take them."""
        remaining = {key: value for key, value in self._values.items() if key not in self._taken}
        self._taken.update(remaining)
        return remaining

    def finish(self) -> None:
        """Refuse keys that nobody took."""
        for key in self._values:
            if key not in self._taken:
                self.refuse(
                    key, "there is no such setting", hint=did_you_mean(key, sorted(self._taken))
                )
