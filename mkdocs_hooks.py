"""Pages of the Python reference: every public name, none by hand.

The site has a page per package, made when it is built; a checkout has all names on one page, which
``python mkdocs_hooks.py`` writes.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

FOLDER = "reference/python"
# Packages by what a reader looks for; the order is that of the menu.
PACKAGES = {
    "calibrant": "Verbs, results, errors",
    "calibrant.metrics": "Metrics",
    "calibrant.answers.confidence": "Confidence methods",
    "calibrant.answers.semantics": "Meanings and grades",
    "calibrant.comparison": "Comparison",
    "calibrant.trust": "Groups, decisions, cascades",
    "calibrant.labels": "Labels, plans, monitors",
    "calibrant.report": "Results and pages",
    "calibrant.findings.documents": "Typed documents",
    "calibrant.data": "Tables, studies, logs",
    "calibrant.data.questions": "Question sets",
    "calibrant.models.study": "Asking models",
    "calibrant.models": "Endpoints",
    "calibrant.apps.integrations": "Other tools",
    "calibrant.metrics.stats": "Statistics on arrays",
}
_ENTRY = """\
::: {place}
    options:
      heading: {name}
      toc_label: {name}
      heading_level: 2
      show_root_toc_entry: true
"""


def public_names(package: str) -> dict[str, str]:
    """Return the public names of a package, each with the place of its definition.

    A package without a list of its own offers the lists of its modules.
    """
    module = importlib.import_module(package)
    if not getattr(module, "__all__", None):
        return {
            f"{info.name.rpartition('.')[2]}.{name}": place
            for info in pkgutil.iter_modules(module.__path__, f"{package}.")
            for name, place in public_names_of(importlib.import_module(info.name)).items()
        }
    return public_names_of(module)


def public_names_of(module: ModuleType) -> dict[str, str]:
    """Return the public names of a module that are not modules themselves.

    A module without a list offers what it defines.
    """
    listed = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    values = {name: getattr(module, name) for name in listed}
    return {
        name: _place(module, name, value)
        for name, value in values.items()
        if not inspect.ismodule(value) and not name.startswith("__")
    }


def _place(module: ModuleType, name: str, value: Any) -> str:
    """Return where a name is defined; data has no such mark, so its module is looked for."""
    home, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if qualified and home and home.startswith("calibrant") and "<" not in qualified:
        return f"{home}.{qualified}"
    return f"{_home_of_data(module, name)}.{name}"


def _home_of_data(module: ModuleType, name: str) -> str:
    """Return the module below this one whose text gives the name its value."""
    package = module.__name__
    places = getattr(module, "__path__", None)
    found = pkgutil.walk_packages(places, f"{package}.") if places else ()
    for info in found:
        below = importlib.import_module(info.name)
        text = inspect.getsource(below)
        if any(line.startswith((f"{name} =", f"{name}:")) for line in text.splitlines()):
            return info.name
    return package


def page_of(package: str) -> str:
    """Return the page of a package as Markdown: functions and classes first, then data."""
    lines = [f"# {PACKAGES[package]}\n", f"Import these names from `{package}`.\n"]
    names = public_names(package)
    for name in sorted(names, key=lambda name: (name.rpartition(".")[2].isupper(), name.lower())):
        lines.append(_ENTRY.format(place=names[name], name=name))
    return "\n".join(lines)


def names_on_one_page() -> str:
    """Return all names with their arguments and first sentence, for a reader without the site."""
    lines = ["<!-- Written by `python mkdocs_hooks.py`. -->\n", "# Every name in Python\n"]
    lines.append("What arguments mean: `help(calibrant.audit)`, or [the commands](cli/index.md).\n")
    for package, title in PACKAGES.items():
        lines += [f"## {title}: `{package}`\n", "| name | what it does |", "| --- | --- |"]
        for name, place in sorted(public_names(package).items(), key=lambda item: item[0].lower()):
            value = _value(place)
            words = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
            words = "" if not callable(value) else words.replace("|", "\\|")
            lines.append(f"| `{name}{_arguments(value)}` | {words} |")
        lines.append("")
    return "\n".join(lines)


def _value(place: str) -> Any:
    module, _, name = place.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return getattr(_value(module), name)


def _arguments(value: Any) -> str:
    """Return the names of the arguments, as they may be given."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return ""
    shown, is_named = [], False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not is_named:
            shown.append("*")
        is_named = is_named or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        shown.append(f"{stars}{one.name}")
    return f"({', '.join(shown)})"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page per package."""
    for package in PACKAGES:
        name = f"{FOLDER}/{package}.md"
        files.append(File.generated(config, name, content=page_of(package)))
    return files


if __name__ == "__main__":
    page = Path("docs") / "reference" / "api.md"
    page.write_text(names_on_one_page(), encoding="utf-8")
