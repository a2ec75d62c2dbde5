"""Layouts of public question sets: how each one writes a question down.

Every layout, described in layouts.toml, turns one row of a file into one row of the ``questions``
table. A reference is one right answer with its aliases; sets whose lists mix aliases and further
right answers leave `k` open, because their number of right answers is not known.
"""

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from calibrant.core.imports import data_beside
from calibrant.core.registry import Registry
from calibrant.core.rng import named_stream

Row = Mapping[str, Any]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout.

    Parameters
    ----------
    name
        Name for ``questions.layout`` in study.toml.
    about
        Which files have it.
    columns
        Columns that must all be there.
    convert
        One row of the file to one row of the questions table.
    fits
        A look at the first row, where columns alone do not tell.
    """

    name: str
    about: str
    columns: frozenset[str]
    convert: Callable[[Row], dict[str, Any]]
    fits: Callable[[Row], bool] = bool

    def recognises(self, row: Row) -> bool:
        """Return whether a row has this layout."""
        return self.columns <= row.keys() and self.fits(row)


# -- pieces that several layouts share -------------------------------------------------------


def as_list(value: Any) -> list[Any]:
    """Return a list that a file holds as a list, or as JSON or Python text of one."""
    if value is None:
        return []
    if isinstance(value, str):
        text = value.strip()
        if not text.startswith("["):
            return [text] if text else []
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            value = ast.literal_eval(text)
    return list(value)


def texts(values: Iterable[Any]) -> list[str]:
    """Return the texts that are there, each once, in order."""
    cleaned = (str(value).strip() for value in values if value is not None)
    return list(dict.fromkeys(text for text in cleaned if text))


def one_answer(aliases: Iterable[Any]) -> list[list[str]]:
    """Return references with one right answer."""
    found = texts(aliases)
    return [found] if found else []


def merged(groups: Iterable[Iterable[Any]]) -> list[list[str]]:
    """Return references in which a group whose aliases are all in another one is that answer.

    Sharing one alias is not enough: two people may both be known as 'Lee'.

    Examples
    --------
    >>> merged([["China", "PRC"], ["Iran"], ["PRC"]])
    [['China', 'PRC'], ['Iran']]
    """
    result: list[list[str]] = []
    known: list[set[str]] = []
    for group in groups:
        aliases = texts(group)
        keys = {alias.casefold() for alias in aliases}
        if not keys or any(keys <= other for other in known):
            continue
        smaller = next((place for place, other in enumerate(known) if other < keys), None)
        if smaller is None:
            result.append(aliases)
            known.append(keys)
        else:
            result[smaller], known[smaller] = aliases, keys
    return result


def chosen(choices: Sequence[Any], right: int) -> dict[str, Any]:
    """Return the columns of a multiple-choice question; the letter is the first alias."""
    options = [str(choice) for choice in choices]
    return {
        "kind": "choice",
        "choices": options,
        "references": [[LETTERS[right], options[right]]],
        "k": 1,
    }


def shuffled(right: str, wrong: Sequence[str], key: object) -> dict[str, Any]:
    """Return the columns of a question whose file always puts the right option first.

    The order depends on `key` alone, so the same question has the same letters everywhere.
    """
    options = [right, *wrong]
    order = [int(place) for place in named_stream(0, "choices", key).permutation(len(options))]
    return chosen([options[place] for place in order], order.index(0))


# -- one row ---------------------------------------------------------------------------------


def _declared(told: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """Read a row by the fields of its layout."""
    identity, domain = (_first(row, told.get(name, ())) for name in ("id", "domain"))
    found: dict[str, Any] = {
        "question_id": None if identity is None else f"{told.get('prefix', '')}{identity}",
        "text": row[told["text"]],
        "domain": domain,
        "k": told.get("k"),
    }
    if "choices" in told:
        names = told["choices"]
        options = as_list(row[names]) if isinstance(names, str) else [row[name] for name in names]
        found |= chosen(options, _place(row[told["right"]]))
    elif "answers" in told:
        listed = as_list(row[told["answers"]])
        found["references"] = merged(_grouped(answer) for answer in listed)
        found["k"] = len(found["references"]) or None
    elif "answer" in told or "aliases" in told:
        single = [_field(row, name) for name in told.get("answer", ())]
        if "separator" in told:
            single = [part for text in single if text for part in text.split(told["separator"])]
        lists = [as_list(_field(row, name)) for name in told.get("aliases", ())]
        found["references"] = one_answer([*single, *(alias for held in lists for alias in held)])
    return found | {name: row.get(column) for name, column in told.get("features", {}).items()}


def _first(row: Row, names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _field(row: Row, name: str) -> Any:
    """Return a value, or one inside it."""
    column, _, inner = name.partition(".")
    return row[column].get(inner) if inner else row.get(column)


def _place(right: Any) -> int:
    """Return the place of an option, given as such or as a letter."""
    letter = right.strip() if isinstance(right, str) else ""
    return LETTERS.index(letter) if letter and letter in LETTERS else int(right)


def _grouped(answer: Any) -> Sequence[Any]:
    return answer if isinstance(answer, list | tuple) else [answer]


_LISTS = ("references", "choices")


def _own(_: Mapping[str, Any], row: Row) -> dict[str, Any]:
    references = [texts(_grouped(item)) for item in as_list(row.get("references"))]
    choices = [str(choice) for choice in as_list(row.get("choices"))]
    found = {**row, "references": references, "choices": choices}
    return {name: value for name, value in found.items() if value or name not in _LISTS}


def _gpqa(told: Mapping[str, Any], row: Row) -> dict[str, Any]:
    wrong = texts(row.get(f"Incorrect Answer {number}") for number in (1, 2, 3))
    key = row.get("Record ID") or row["Question"]
    return _declared(told, row) | shuffled(str(row["Correct Answer"]).strip(), wrong, key)


def _truthfulqa_mc(told: Mapping[str, Any], row: Row) -> dict[str, Any]:
    targets = row["mc1_targets"]
    if "choices" in targets:
        targets = dict(zip(targets["choices"], targets["labels"], strict=True))
    right = [text for text, label in targets.items() if label]
    wrong = [text for text, label in targets.items() if not label]
    return _declared(told, row) | shuffled(right[0], wrong, row["question"])


def _ambignq(told: Mapping[str, Any], row: Row) -> dict[str, Any]:
    annotations = row["annotations"]
    if isinstance(annotations, Mapping):  # model hubs turn the list of tables into a table of lists
        names = list(annotations)
        columns = (annotations[name] for name in names)
        annotations = [dict(zip(names, item, strict=True)) for item in zip(*columns, strict=True)]
    groups: list[list[Any]] = []
    for annotation in annotations:
        pairs = annotation["qaPairs"] if annotation["type"] != "singleAnswer" else [annotation]
        held = pairs["answer"] if isinstance(pairs, Mapping) else [pair["answer"] for pair in pairs]
        groups += map(as_list, held)
    return _declared(told, row) | {"references": merged(groups)}


def _simpleqa_csv(told: Mapping[str, Any], row: Row) -> dict[str, Any]:
    held = ast.literal_eval(row["metadata"]) if row["metadata"] else {}
    about = {"domain": held.get("topic"), "answer_type": held.get("answer_type")}
    return _declared(told, row) | about


def _hle(told: Mapping[str, Any], row: Row) -> dict[str, Any]:
    # Multiple-choice questions list their options in the text; the answer is the letter.
    listed = re.findall(r"^([A-Z])[.)]\s+(.+?)\s*$", str(row["question"]), re.MULTILINE)
    options = dict(listed) if row["answer_type"] == "multipleChoice" else {}
    right = one_answer([row["answer"], options.get(str(row["answer"]).strip())])
    return _declared(told, row) | {"references": right, "has_image": bool(row.get("image"))}


_READERS: dict[str, Callable[[Mapping[str, Any], Row], dict[str, Any]]] = {
    "own": _own,
    "gpqa": _gpqa,
    "truthfulqa_mc": _truthfulqa_mc,
    "ambignq": _ambignq,
    "simpleqa_csv": _simpleqa_csv,
    "hle": _hle,
}
_FITS: dict[str, Callable[[Row], bool]] = {
    "triviaqa": lambda row: isinstance(row["answer"], Mapping) and "aliases" in row["answer"],
    "coverageqa": lambda row: any(isinstance(one, list | tuple) for one in as_list(row["answers"])),
    "nq_open": lambda row: (
        isinstance(row["answer"], list | tuple)
        or (isinstance(row["answer"], str) and row["answer"].strip().startswith("["))
    ),
}
LAYOUTS: Registry[Layout] = Registry("layout")
for _name, _told in data_beside(__file__, "layouts.toml").items():
    _read = partial(_READERS.get(_told.get("convert", ""), _declared), _told)
    _columns, _fits = frozenset(_told["columns"]), _FITS.get(_name, bool)
    LAYOUTS.add(_name, Layout(_name, _told["about"], _columns, _read, _fits))
