"""Layouts of public question sets: how each one writes a question down.

Every layout turns one row of a file into one row of the ``questions`` table. A reference is one
right answer with its aliases; sets whose lists mix aliases and further right answers leave `k`
open, because their number of right answers is not known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

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


LAYOUTS: Registry[Layout] = Registry("layout")


def _layout(
    name: str, about: str, *columns: str, fits: Callable[[Row], bool] = bool
) -> Callable[[Callable[[Row], dict[str, Any]]], Callable[[Row], dict[str, Any]]]:
    def register(convert: Callable[[Row], dict[str, Any]]) -> Callable[[Row], dict[str, Any]]:
        LAYOUTS.add(name, Layout(name, about, frozenset(columns), convert, fits))
        return convert

    return register


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


# -- the layouts, the most telling columns first ---------------------------------------------


@_layout("questions", "calibrant's own table, also the output of `bench`", "question_id", "text")
def _own(row: Row) -> dict[str, Any]:
    result = dict(row)
    references = as_list(row.get("references"))
    if references:
        result["references"] = [
            texts(item if isinstance(item, list | tuple) else [item]) for item in references
        ]
    else:
        result.pop("references", None)
    choices = as_list(row.get("choices"))
    if choices:
        result["choices"] = [str(choice) for choice in choices]
    else:
        result.pop("choices", None)
    return result


@_layout("popqa", "PopQA (Mallen et al.)", "possible_answers", "question", "s_pop")
def _popqa(row: Row) -> dict[str, Any]:
    return {
        "question_id": f"popqa-{row['id']}" if row.get("id") is not None else None,
        "text": row["question"],
        "references": one_answer(as_list(row["possible_answers"])),
        "domain": row.get("prop"),
        "subject_popularity": row.get("s_pop"),
    }


@_layout("mmlu_pro", "MMLU-Pro (Wang et al.)", "question", "options", "answer_index", "category")
def _mmlu_pro(row: Row) -> dict[str, Any]:
    return {
        "question_id": f"mmlu-pro-{row['question_id']}" if "question_id" in row else None,
        "text": row["question"],
        **chosen(as_list(row["options"]), int(row["answer_index"])),
        "domain": row["category"],
    }


@_layout(
    "mmlu", "MMLU (Hendrycks et al.), as published on model hubs", "question", "choices", "answer"
)
def _mmlu(row: Row) -> dict[str, Any]:
    answer = row["answer"]
    right = LETTERS.index(answer) if isinstance(answer, str) and answer in LETTERS else int(answer)
    return {
        "text": row["question"],
        **chosen(as_list(row["choices"]), right),
        "domain": row.get("subject"),
    }


@_layout(
    "mmlu_csv",
    "MMLU (Hendrycks et al.), the original files without a header",
    "question", "A", "B", "C", "D", "letter",
)  # fmt: skip
def _mmlu_csv(row: Row) -> dict[str, Any]:
    return {
        "text": row["question"],
        **chosen([row[letter] for letter in "ABCD"], "ABCD".index(row["letter"].strip())),
    }


@_layout("gpqa", "GPQA (Rein et al.)", "Question", "Correct Answer", "Incorrect Answer 1")
def _gpqa(row: Row) -> dict[str, Any]:
    wrong = texts(row.get(f"Incorrect Answer {number}") for number in (1, 2, 3))
    key = row.get("Record ID") or row["Question"]
    return {
        "question_id": f"gpqa-{row['Record ID']}" if row.get("Record ID") else None,
        "text": row["Question"],
        **shuffled(str(row["Correct Answer"]).strip(), wrong, key),
        "domain": row.get("High-level domain") or row.get("Subdomain"),
    }


@_layout("truthfulqa_mc", "TruthfulQA (Lin et al.), multiple choice", "question", "mc1_targets")
def _truthfulqa_mc(row: Row) -> dict[str, Any]:
    targets = row["mc1_targets"]
    if "choices" in targets:
        pairs = list(zip(targets["choices"], targets["labels"], strict=True))
    else:
        pairs = list(targets.items())
    right = [text for text, label in pairs if label]
    wrong = [text for text, label in pairs if not label]
    return {"text": row["question"], **shuffled(right[0], wrong, row["question"])}


@_layout(
    "truthfulqa", "TruthfulQA (Lin et al.), open", "question", "correct_answers", "best_answer"
)
def _truthfulqa(row: Row) -> dict[str, Any]:
    return {
        "text": row["question"],
        "references": one_answer([row["best_answer"], *as_list(row["correct_answers"])]),
        "domain": row.get("category"),
    }


@_layout(
    "truthfulqa_csv", "TruthfulQA (Lin et al.), the original file", "Question", "Correct Answers"
)
def _truthfulqa_csv(row: Row) -> dict[str, Any]:
    listed = str(row["Correct Answers"]).split(";")
    return {
        "text": row["Question"],
        "references": one_answer([row.get("Best Answer"), *listed]),
        "domain": row.get("Category"),
    }


@_layout("freshqa", "FreshQA (Vu et al.)", "question", "answer_0", "fact_type")
def _freshqa(row: Row) -> dict[str, Any]:
    return {
        "question_id": f"freshqa-{row['id']}" if row.get("id") is not None else None,
        "text": row["question"],
        "references": one_answer(row.get(f"answer_{number}") for number in range(10)),
        "domain": row["fact_type"],
        "false_premise": row.get("false_premise"),
        "effective_year": row.get("effective_year"),
    }


@_layout(
    "triviaqa", "TriviaQA (Joshi et al.), as published on model hubs", "question", "answer",
    fits=lambda row: isinstance(row["answer"], Mapping) and "aliases" in row["answer"],
)  # fmt: skip
def _triviaqa(row: Row) -> dict[str, Any]:
    answer = row["answer"]
    return {
        "question_id": row.get("question_id"),
        "text": row["question"],
        "references": one_answer([answer.get("value"), *as_list(answer["aliases"])]),
        "k": 1,
    }


@_layout("triviaqa_json", "TriviaQA (Joshi et al.), the original files", "Question", "Answer")
def _triviaqa_json(row: Row) -> dict[str, Any]:
    answer = row["Answer"]
    return {
        "question_id": row.get("QuestionId"),
        "text": row["Question"],
        "references": one_answer([answer.get("Value"), *answer.get("Aliases", [])]),
        "k": 1,
    }


@_layout("ambignq", "AmbigNQ (Min et al.)", "question", "annotations")
def _ambignq(row: Row) -> dict[str, Any]:
    annotations = row["annotations"]
    if isinstance(annotations, Mapping):  # model hubs turn the list of tables into a table of lists
        names = list(annotations)
        columns = (annotations[name] for name in names)
        annotations = [dict(zip(names, item, strict=True)) for item in zip(*columns, strict=True)]
    groups: list[list[Any]] = []
    for annotation in annotations:
        if annotation["type"] == "singleAnswer":
            groups.append(as_list(annotation["answer"]))
        else:
            groups.extend(_pair_answers(annotation["qaPairs"]))
    return {"question_id": row.get("id"), "text": row["question"], "references": merged(groups)}


def _pair_answers(pairs: Any) -> list[list[Any]]:
    if isinstance(pairs, Mapping):
        return [as_list(answer) for answer in pairs["answer"]]
    return [as_list(pair["answer"]) for pair in pairs]


@_layout("webquestions", "WebQuestions (Berant et al.)", "qText", "answers")
def _webquestions(row: Row) -> dict[str, Any]:
    references = merged([answer] for answer in as_list(row["answers"]))
    return {
        "question_id": row.get("qId"),
        "text": row["qText"],
        "references": references,
        "k": len(references) or None,
    }


@_layout(
    "coverageqa", "CoverageQA: many right answers, each with its aliases", "question", "answers",
    fits=lambda row: any(isinstance(item, list | tuple) for item in as_list(row["answers"])),
)  # fmt: skip
def _coverageqa(row: Row) -> dict[str, Any]:
    references = merged(as_list(row["answers"]))
    return {"text": row["question"], "references": references, "k": len(references)}


@_layout("webquestions_hub", "WebQuestions, as published on model hubs", "question", "answers")
def _webquestions_hub(row: Row) -> dict[str, Any]:
    references = merged([answer] for answer in as_list(row["answers"]))
    return {"text": row["question"], "references": references, "k": len(references) or None}


@_layout(
    "simpleqa_csv", "SimpleQA (Wei et al.), the original file", "metadata", "problem", "answer"
)
def _simpleqa_csv(row: Row) -> dict[str, Any]:
    metadata = ast.literal_eval(row["metadata"]) if row["metadata"] else {}
    return {
        "text": row["problem"],
        "references": one_answer([row["answer"]]),
        "domain": metadata.get("topic"),
        "answer_type": metadata.get("answer_type"),
        "k": 1,
    }


@_layout(
    "hle", "Humanity's Last Exam (Phan et al.)", "question", "answer", "answer_type", "raw_subject"
)
def _hle(row: Row) -> dict[str, Any]:
    # Multiple-choice questions list their options in the text; the answer is the letter.
    listed = re.findall(r"^([A-Z])[.)]\s+(.+?)\s*$", str(row["question"]), re.MULTILINE)
    options = dict(listed) if row["answer_type"] == "multipleChoice" else {}
    return {
        "question_id": f"hle-{row['id']}" if row.get("id") is not None else None,
        "text": row["question"],
        "references": one_answer([row["answer"], options.get(str(row["answer"]).strip())]),
        "domain": row.get("category"),
        "subject": row["raw_subject"],
        "answer_type": row["answer_type"],
        "has_image": bool(row.get("image")),
        "k": 1,
    }


@_layout(
    "nq_open", "NQ-open (Lee et al.)", "question", "answer",
    fits=lambda row: isinstance(row["answer"], list | tuple)
    or (isinstance(row["answer"], str) and row["answer"].strip().startswith("[")),
)  # fmt: skip
def _nq_open(row: Row) -> dict[str, Any]:
    return {"text": row["question"], "references": one_answer(as_list(row["answer"]))}


@_layout("simpleqa", "SimpleQA and other tables of question and answer", "question", "answer")
def _simpleqa(row: Row) -> dict[str, Any]:
    return {
        "question_id": row.get("question_id", row.get("id")),
        "text": row["question"],
        "references": one_answer([row["answer"]]),
        "domain": row.get("topic"),
        "answer_type": row.get("answer_type"),
        "k": 1,
    }
