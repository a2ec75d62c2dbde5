"""Write the reference pages of the commands and the schemas of their options.

``python -m calibrant.cli.reference`` writes ``docs/reference/cli`` and ``core/verbs.json``; a test
holds them current.
"""

import inspect
import re
import sys
from collections import Counter
from collections.abc import Collection
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from calibrant.cli import GROUPS, VERBS, verb_function
from calibrant.cli.command import output_parameters
from calibrant.core.verb import GROUPS as HELP_GROUPS
from calibrant.core.verb import Parameter, Verb, declaration

VERBS_FILE = Path(__file__).parent.parent / "core" / "verbs.json"
"""Where a `Call` finds the options of all verbs without loading one."""

_HEAD = "<!-- Written by `python -m calibrant.cli.reference`; change the verb's signature. -->\n\n"
_ROW = "| {} | {} | {} |\n"
_TABLE = "| option | default | meaning |\n| --- | --- | --- |\n"
_FLAG = re.compile(r"--[\w-]+")
# Outputs that a result can write in Python too.
_WRITTEN = ("html", "json")
# An option that so many commands describe in the same words is described once, on the index.
_SHARED = 4

_SCREENS = {"label next": "label", "bench check": "bench_check", "bench mace": "bench"}
"""Texts of commands that are stored under another name."""
_MOST_LINES = 24

_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string"}
_LISTS = {"names": "string", "several": "string", "whole numbers": "integer", "numbers": "number"}
_KINDS: dict[str, dict[str, object]] = {
    kind: {"type": "array", "items": {"type": item}} for kind, item in _LISTS.items()
}
_KINDS |= {
    "map": {"type": "object", "additionalProperties": {"type": "number"}},
    "date": {"type": "string", "format": "date"},
    "name or number": {"type": ["string", "number"]},
}
_KINDS["map or numbers"] = {"anyOf": [_KINDS["map"], _KINDS["numbers"]]}
_ENDS = {
    "min": "minimum",
    "max": "maximum",
    "above": "exclusiveMinimum",
    "below": "exclusiveMaximum",
}


def reference_files(screens: Path) -> dict[str, str]:
    """Return the pages and schemas by file name.

    Parameters
    ----------
    screens
        Folder of what commands print first, ``audit.txt``: the tests hold these texts.
    """
    verbs = {words: declaration(verb_function(words)) for words in VERBS}
    counts = Counter(row for verb in verbs.values() for row in chain(*_rows(verb).values()))
    shared = {row for row, n in counts.items() if n >= _SHARED and row.startswith("| `--")}
    pages: dict[str, list[str]] = {}
    files: dict[str, str] = {}
    for words, verb in verbs.items():
        pages.setdefault(words.split()[0], []).append(_section(words, verb, shared, screens))
        name = words.replace(" ", "-")
        schema = orjson.dumps(options_schema(verb, words), option=orjson.OPT_INDENT_2)
        files[f"schemas/{name}.json"] = schema.decode() + "\n"
    for name, sections in pages.items():
        lead = f"{GROUPS[name]}\n\n" if name in GROUPS else ""
        files[f"{name}.md"] = f"{_HEAD}# calibrant {name}\n\n{lead}" + "\n".join(sections)
    files["index.md"] = _index(list(pages), sorted(shared))
    return files


def stored_verbs() -> str:
    """Return the options of every verb as a `Call` needs them: flag, what it takes, default."""
    lines = []
    for words in VERBS:
        verb = declaration(verb_function(words))
        options: dict[str, tuple[str, str, Any]] = {}
        for p in verb.parameters.values():
            if not p.option.argument:
                takes = p.option.kind or ("number" if p.type in (int, float) else "text")
                # None for what is required, too.
                default = p.default if isinstance(p.default, str | int | float | bool) else None
                options[p.name] = (p.word, "flag" if p.type is bool else takes, default)
        options |= {name: (name, "output", None) for name in verb.outputs if name in _WRITTEN}
        lines.append(f"{orjson.dumps(words).decode()}: {orjson.dumps(options).decode()}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _index(names: list[str], shared: list[str]) -> str:
    lines = [f"{_HEAD}# Commands\n", "| command | what it is for |", "| --- | --- |"]
    for name in names:
        summary = GROUPS.get(name) or VERBS[name].summary
        lines.append(f"| [`calibrant {name}`]({name}.md) | {summary} |")
    lines += ["\n## Options of several commands\n", _TABLE + "".join(shared)]
    return "\n".join(lines)


def _rows(verb: Verb) -> dict[str, list[str]]:
    """Return a row per option of a command, by group of its help."""
    declared = [*verb.parameters.values(), *output_parameters(verb).values()]
    rows = {
        group: [_row(parameter) for parameter in declared if parameter.option.group == group]
        for group in HELP_GROUPS
    }
    checks = [check for check in verb.checks if check.flag]
    rows["Output"] += [_ROW.format(f"`--{check.flag}`", "", check.help) for check in checks]
    return rows


def _section(words: str, verb: Verb, shared: Collection[str], screens: Path) -> str:
    """Return heading, summary, example, first screen and the tables of options of a command."""
    is_part = len(words.split()) > 1
    heading = f"## {words}\n\n{VERBS[words].summary}\n" if is_part else f"{VERBS[words].summary}\n"
    lines = [heading]
    if verb.example:
        lines.append(f"```\n{verb.example}\n```\n")
    screen = screens / f"{_SCREENS.get(words, words)}.txt"
    if screen.is_file():
        lines.append(f"What it says first:\n\n```text\n{_shell_text(screen)}```\n")
    level = "###" if is_part else "##"
    elsewhere = []
    for group, rows in _rows(verb).items():
        elsewhere += [f"`{_FLAG.findall(row)[0]}`" for row in rows if row in shared]
        own = [row for row in rows if row not in shared]
        if own:
            lines += [f"{level} {group}\n", _TABLE + "".join(own)]
    if elsewhere:
        place = "[Shared options](index.md#options-of-several-commands)"
        lines.append(f"{place}: {', '.join(elsewhere)}.\n")
    name = words.replace(" ", "-")
    lines.append(f"[JSON Schema](schemas/{name}.json)\n")
    return "\n".join(lines)


def _shell_text(screen: Path) -> str:
    """Return a first screen, cut where a table is long."""
    lines = screen.read_text(encoding="utf-8").splitlines()
    # What follows a result is spelled for Python where the document was made there.
    lines = [line for line in lines if not line.startswith(("Next:  calibrant.", "Data:"))]
    cut = lines[:_MOST_LINES]
    return "\n".join([*cut, *(["..."] if len(lines) > len(cut) else [])]) + "\n"


def _row(parameter: Parameter) -> str:
    option = parameter.option
    name = option.metavar if option.argument else f"--{parameter.word} {option.metavar}".strip()
    default = parameter.shown_default
    display = "required" if parameter.is_required else default and f"`{default}`"
    meaning = option.help.replace("|", "\\|")
    return _ROW.format(f"`{name.replace('|', '&#124;')}`", display, meaning)


def options_schema(verb: Verb, words: str) -> dict[str, Any]:
    """Return the schema of the options that a verb takes beside its data.

    Parameters
    ----------
    verb
        The declared verb.
    words
        What it is called on the command line.

    Examples
    --------
    >>> from typing import Annotated
    >>> from calibrant.core.verb import Option, declaration, verb
    >>> @verb()
    ... def count(bins: Annotated[int, Option("Bins.", min=1, max=9)] = 5) -> int:
    ...     return bins
    >>> options_schema(declaration(count), "count")["properties"]["bins"]
    {'description': 'Bins.', 'type': 'integer', 'minimum': 1, 'maximum': 9, 'default': 5}
    """
    values = {name: p for name, p in verb.parameters.items() if not p.option.argument}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Options of calibrant {words}",
        "type": "object",
        "properties": {name: _property(parameter) for name, parameter in values.items()},
        "required": [name for name, parameter in values.items() if parameter.is_required],
        "additionalProperties": False,
    }


def _property(parameter: Parameter) -> dict[str, object]:
    option, default = parameter.option, parameter.default
    is_list = isinstance(default, tuple | list)
    # A list may also be written as one text.
    plain = ["array", "string"] if is_list else _TYPES.get(parameter.type, "string")
    schema = {"description": option.help} | (_KINDS.get(option.kind) or {"type": plain})
    if option.choices:
        schema["enum"] = list(option.choices)
    ends = {name: getattr(option, end) for end, name in _ENDS.items()}
    schema |= {name: end for name, end in ends.items() if end is not None}
    if default is not inspect.Parameter.empty:
        kinds = schema.get("type")
        if default is None and kinds is not None:
            schema["type"] = [*(kinds if isinstance(kinds, list) else [kinds]), "null"]
        schema["default"] = list(default) if is_list else default
    return schema


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/cli")
    for name, text in reference_files(Path("tests/report/snapshots")).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    VERBS_FILE.write_text(stored_verbs(), encoding="utf-8")
