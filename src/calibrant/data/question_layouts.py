"""Layouts of public question sets: how each one writes a question down.

Every layout, described in the TOML file beside it, turns one row of a file into one row of the
``questions`` table. A reference is one right answer with its aliases; sets whose lists mix aliases
and further right answers leave `k` open, because their number of right answers is not known.
"""

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import orjson
from msgspec import UNSET, Struct, UnsetType, convert

from calibrant.core.arrays import named_stream
from calibrant.core.names import Registry, data_beside

Row = Mapping[str, Any]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class LayoutQuestion(Struct):
    """A row of a file as a row of the questions table; `features` are further columns."""

    question_id: Any = None
    text: Any = None
    domain: Any = None
    k: int | None = None
    references: list[list[str]] | None = None
    kind: str | UnsetType | None = UNSET
    choices: list[str] | None = None
    features: dict[str, Any] = {}

    def choose(self, options: Iterable[Any], right: int) -> "LayoutQuestion":
        """Make it multiple choice; the letter of the right option is its first alias."""
        self.choices = [str(option) for option in options]
        self.references = [[LETTERS[right], self.choices[right]]]
        self.kind, self.k = "choice", 1
        return self

    def shuffle(self, right: str, wrong: Sequence[str], key: object) -> "LayoutQuestion":
        """Make it multiple choice where the file always puts the right option first.

        The order depends on `key` alone, so the same question has the same letters everywhere.
        """
        options = [right, *wrong]
        order = named_stream(0, "choices", key).permutation(len(options)).tolist()
        return self.choose([options[place] for place in order], order.index(0))


class Layout(Struct, frozen=True, rename={"reader": "convert"}):
    """One layout, as the TOML file describes it; `name` is that of ``questions.layout``."""

    name: str
    about: str
    columns: frozenset[str]
    reader: str = ""
    id: tuple[str, ...] = ()
    prefix: str = ""
    text: str = ""
    answer: tuple[str, ...] = ()
    separator: str = ""
    aliases: tuple[str, ...] = ()
    answers: str = ""
    choices: str | tuple[str, ...] = ()
    right: str = ""
    domain: tuple[str, ...] = ()
    k: int | None = None
    features: dict[str, str] = {}

    def recognises(self, row: Row) -> bool:
        """Return whether a row has this layout."""
        return self.columns <= row.keys() and _FITS.get(self.name, bool)(row)

    def question(self, row: Row) -> LayoutQuestion:
        """Return a row of the file as a question."""
        return _READERS.get(self.reader, Layout.declared)(self, row)

    def declared(self, row: Row) -> LayoutQuestion:
        """Read a row by the fields of the layout."""
        identity, domain = (_first(row, names) for names in (self.id, self.domain))
        name = None if identity is None else f"{self.prefix}{identity}"
        question = LayoutQuestion(name, row[self.text], domain, self.k)
        question.features = {name: row.get(column) for name, column in self.features.items()}
        if self.choices:
            names = self.choices
            listed = as_list(row[names]) if isinstance(names, str) else [row[n] for n in names]
            question.choose(listed, _place(row[self.right]))
        elif self.answers:
            question.references = merged(_grouped(answer) for answer in as_list(row[self.answers]))
            question.k = len(question.references) or None
        elif self.answer or self.aliases:
            single = [_field(row, name) for name in self.answer]
            if self.separator:
                single = [part for text in single if text for part in text.split(self.separator)]
            lists = [as_list(_field(row, name)) for name in self.aliases]
            question.references = one_answer([*single, *chain.from_iterable(lists)])
        return question


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
    group = texts(aliases)
    return [group] if group else []


def merged(groups: Iterable[Iterable[Any]]) -> list[list[str]]:
    """Return references in which a group whose aliases are all in another one is that answer.

    Sharing one alias is not enough: two people may both be known as 'Lee'.

    Examples
    --------
    >>> merged([["China", "PRC"], ["Iran"], ["PRC"]])
    [['China', 'PRC'], ['Iran']]
    """
    result: list[list[str]] = []
    folded: list[set[str]] = []
    for group in groups:
        aliases = texts(group)
        keys = {alias.casefold() for alias in aliases}
        if not keys or any(keys <= peer for peer in folded):
            continue
        smaller = next((place for place, peer in enumerate(folded) if peer < keys), None)
        if smaller is None:
            result.append(aliases)
            folded.append(keys)
        else:
            result[smaller], folded[smaller] = aliases, keys
    return result


# -- one row ---------------------------------------------------------------------------------


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


def _own(_: Layout, row: Row) -> LayoutQuestion:
    references = [texts(_grouped(item)) for item in as_list(row.get("references"))]
    choices = [str(choice) for choice in as_list(row.get("choices"))]
    fields = LayoutQuestion.__struct_fields__
    own = {
        name: row[name] for name in ("question_id", "text", "domain", "k", "kind") if name in row
    }
    features = {name: value for name, value in row.items() if name not in fields}
    return LayoutQuestion(
        **own, references=references or None, choices=choices or None, features=features
    )


def _gpqa(layout: Layout, row: Row) -> LayoutQuestion:
    wrong = texts(row.get(f"Incorrect Answer {number}") for number in (1, 2, 3))
    key = row.get("Record ID") or row["Question"]
    return layout.declared(row).shuffle(str(row["Correct Answer"]).strip(), wrong, key)


def _truthfulqa_mc(layout: Layout, row: Row) -> LayoutQuestion:
    targets = row["mc1_targets"]
    if "choices" in targets:
        targets = dict(zip(targets["choices"], targets["labels"], strict=True))
    right = [text for text, label in targets.items() if label]
    wrong = [text for text, label in targets.items() if not label]
    return layout.declared(row).shuffle(right[0], wrong, row["question"])


def _ambignq(layout: Layout, row: Row) -> LayoutQuestion:
    annotations = row["annotations"]
    if isinstance(annotations, Mapping):  # model hubs turn the list of tables into a table of lists
        names = list(annotations)
        columns = (annotations[name] for name in names)
        annotations = [dict(zip(names, item, strict=True)) for item in zip(*columns, strict=True)]
    groups: list[list[Any]] = []
    for annotation in annotations:
        pairs = annotation["qaPairs"] if annotation["type"] != "singleAnswer" else [annotation]
        gold = pairs["answer"] if isinstance(pairs, Mapping) else [pair["answer"] for pair in pairs]
        groups += map(as_list, gold)
    question = layout.declared(row)
    question.references = merged(groups)
    return question


def _simpleqa_csv(layout: Layout, row: Row) -> LayoutQuestion:
    about = ast.literal_eval(row["metadata"]) if row["metadata"] else {}
    question = layout.declared(row)
    question.domain = about.get("topic")
    question.features["answer_type"] = about.get("answer_type")
    return question


def _hle(layout: Layout, row: Row) -> LayoutQuestion:
    # Multiple-choice questions list their options in the text; the answer is the letter.
    listed = re.findall(r"^([A-Z])[.)]\s+(.+?)\s*$", str(row["question"]), re.MULTILINE)
    options = dict(listed) if row["answer_type"] == "multipleChoice" else {}
    question = layout.declared(row)
    question.references = one_answer([row["answer"], options.get(str(row["answer"]).strip())])
    question.features["has_image"] = bool(row.get("image"))
    return question


_READERS: dict[str, Callable[[Layout, Row], LayoutQuestion]] = {
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
for _name, _told in data_beside(__file__, "question_layouts.toml").items():
    LAYOUTS.add(_name, convert({"name": _name, **_told}, Layout))
