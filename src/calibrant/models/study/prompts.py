"""Questions as they are asked: by prompts that one can override, kept with a policy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from msgspec import Struct, structs

from calibrant.core.document import load_toml
from calibrant.core.errors import InputError, did_you_mean
from calibrant.data import Study
from calibrant.models.protocol import Message
from calibrant.models.study.config import PromptsConfig, StudyConfig, parse_config
from calibrant.models.study.probes import NEEDS, PROBES
from calibrant.models.study.settings import NEEDED, Settings

FIELDS = ("question", "choices", "answer", "candidates", "k", "confidence", "verdict")
_FIELD = re.compile(r"\{(\w+)\}")
_ONLY_FIELD = re.compile(r"\s*\{(\w+)\}\s*")

# Which shipped prompt serves a purpose, where it is not called as the purpose (``plain``) or
# ``short_`` and the purpose; `answer` also by the kind of question.
DEFAULTS = {
    "plain": {
        "answer": "open",
        "answer.choice": "choice",
        "answer.number": "reasoning",
        "answer.binary": "binary",
    },
    "short": {"answer": "short", "answer.choice": "short_choice", "answer.binary": "binary"},
}


class Prompt(Struct, frozen=True):
    r"""A prompt: an optional system text, worked examples, and the user's turn.

    Fields in braces are filled in: ``{question}``, ``{choices}`` (one lettered line per option),
    ``{answer}`` (the answer asked about), ``{candidates}`` (one line per candidate), ``{k}``.
    Other braces, such as those of ``\boxed{A}``, stay as they are written. `shows` tells whether
    ``{answer}`` is the extracted answer or the whole response.
    """

    name: str
    user: str
    max_tokens: Annotated[int, {"low": 1}]
    system: str = ""
    reply: str = "{answer}"
    stop: tuple[str, ...] = ()
    examples: tuple[Mapping[str, str], ...] = ()
    accepts_examples: bool = False
    shows: Annotated[str, {"choices": ("answer", "response")}] = "answer"

    def messages(self, values: Mapping[str, str]) -> tuple[Message, ...]:
        """Return the conversation for one question."""
        turns = [Message("system", self.system)] if self.system else []
        for example in self.examples:
            display = {**values, **example}
            turns.append(Message("user", _fill(self.user, display)))
            turns.append(Message("assistant", _fill(self.reply, display)))
        turns.append(Message("user", _fill(self.user, values)))
        return tuple(turns)


class PromptBook(Struct):
    """The prompts of one study, looked up by purpose and kind of question.

    Examples
    --------
    >>> book = PromptBook(PromptsConfig(style="short"), folder=Path("."))
    >>> book.find("answer", "open").name
    'short'
    """

    config: PromptsConfig
    folder: Path
    _loaded: dict[str, Prompt] = {}

    def find(self, prompt: str, kind: str) -> Prompt:
        """Return the prompt for a purpose's prompt key and a kind of question."""
        style = self.config.style
        usual = DEFAULTS[style].get(prompt, prompt if style == "plain" else f"short_{prompt}")
        default = DEFAULTS[style].get(f"{prompt}.{kind}", usual)
        name = self.config.chosen.get(prompt, default)
        if name not in self._loaded:
            loaded = load_prompt(name, folder=self.folder)
            if loaded.accepts_examples and self.config.examples:
                # The study's own in place of those of the prompt.
                visible = tuple(
                    {"question": e.question, "answer": e.answer, "confidence": f"{e.confidence:g}"}
                    for e in self.config.examples
                )
                loaded = structs.replace(loaded, examples=visible)
            self._loaded[name] = loaded
        return self._loaded[name]


def shipped_prompts() -> list[str]:
    """Return the names of the prompts that come with calibrant."""
    folder = resources.files("calibrant.models.study") / "prompts"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir())


def load_prompt(name: str, *, folder: Path) -> Prompt:
    """Return a shipped prompt by name, or one's own by path (relative to the study)."""
    if name in shipped_prompts():
        file = resources.files("calibrant.models.study") / "prompts" / f"{name}.toml"
        return _parse(file.read_text(encoding="utf-8"), name=name, source=f"prompt {name}")
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"there is no prompt {name!r}: neither a shipped one nor the file {path}",
            hint=did_you_mean(name, shipped_prompts()),
        )
    return _parse(path.read_bytes(), name=name, source=str(path))


def _parse(text: bytes | str, *, name: str, source: str) -> Prompt:
    table = Settings(load_toml(text, source=source), source=source)
    examples = table.raw("examples", [])
    table.raw("about", "")
    return table.fill(
        Prompt,
        name=name,
        user=_checked(table, "user"),
        reply=_checked(table, "reply", "{answer}"),
        examples=tuple({key: str(value) for key, value in item.items()} for item in examples),
        accepts_examples=table.flag("study_examples", False),
    )


def _checked(table: Settings, key: str, default: Any = NEEDED) -> str:
    text: str = table.text(key, default)
    for name in _FIELD.findall(text):
        if name.islower() and len(name) > 1 and name not in FIELDS:
            hint = did_you_mean(name, FIELDS)
            table.refuse(key, f"there is no field {{{name}}}", hint=hint)
    return text


def _fill(text: str, values: Mapping[str, str]) -> str:
    # One pass: text from a model that happens to contain {question} is not filled in again.
    # A line that holds nothing but an empty field ({choices} of an open question) goes.
    lines = [
        line
        for line in text.strip("\n").split("\n")
        if not (match := _ONLY_FIELD.fullmatch(line)) or values.get(match[1], line)
    ]
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), "\n".join(lines))


def listed(candidates: Sequence[str]) -> str:
    """Return the candidates, one line each."""
    return "\n".join(f"- {candidate}" for candidate in candidates)


KINDS = ("open", "choice", "number", "binary")
_refused = partial(InputError, source="questions")


class PlannedQuestion(Struct, frozen=True):
    """One row of the questions table, as far as asking needs it."""

    question_id: str
    text: str
    kind: str = "open"
    choices: tuple[str, ...] = ()
    turns: tuple[Message, ...] = ()
    """The conversation whose last turn is the question; it may hold images."""


def iterate_questions(frame: pl.DataFrame) -> Iterator[PlannedQuestion]:
    """Yield the rows of a questions table."""
    target = ("question_id", "text", "kind", "choices", "messages")
    columns = [name for name in target if name in frame.columns]
    for number, row in enumerate(frame.select(columns).iter_rows(named=True), 1):
        kind = row.get("kind") or ("choice" if row.get("choices") else "open")
        if kind not in KINDS:
            raise _refused(f"kind is one of {', '.join(KINDS)}, got {kind!r}", row=number)
        turns = _turns(row.get("messages"), number)
        choices = tuple(row.get("choices") or ())
        yield PlannedQuestion(row["question_id"], row["text"], kind, choices, turns)


def _turns(messages: str | None, number: int) -> tuple[Message, ...]:
    if messages is None:
        return ()
    try:
        turns = msgspec.json.decode(messages, type=tuple[Message, ...])
    except msgspec.DecodeError as error:
        rule = f"messages is a list of turns with role and content: {error}"
        raise _refused(rule, row=number) from None
    if not turns or turns[-1].role != "user":
        raise _refused("the last of messages is what the user asks", row=number)
    return turns


def with_turns(prompt: tuple[Message, ...], turns: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return a prompt inside a conversation: what was said before it, and images beside it."""
    if not turns:
        return prompt
    images = [part for part in turns[-1].parts if "text" not in part]
    request = Message("user", [*prompt[-1].parts, *images]) if images else prompt[-1]
    return (*prompt[:-1], *turns[:-1], request)


def distinct(answers: Iterable[str]) -> list[str]:
    """Return the answers that differ in more than case and spaces, in order.

    The rule is kept this simple on purpose: prompts are built from it, and a cleverer one would
    change prompts, and so buy draws again, whenever it became cleverer still.

    Examples
    --------
    >>> distinct(["Paris", "paris ", "Lyon"])
    ['Paris', 'Lyon']
    """
    by_plain: dict[str, str] = {}
    for answer in answers:
        by_plain.setdefault(plain_answer(answer), answer)
    return list(by_plain.values())


def most_frequent(answers: Sequence[str], count: int) -> list[str]:
    """Return the `count` most frequent distinct answers, the first seen among equals.

    Examples
    --------
    >>> most_frequent(["Lyon", "Paris", "paris"], 2)
    ['Paris', 'Lyon']
    """
    times = Counter(plain_answer(answer) for answer in answers)
    ranking = sorted(distinct(answers), key=lambda answer: -times[plain_answer(answer)])
    return ranking[:count]


def plain_answer(answer: str) -> str:
    """Return the answer without differences of case and spaces.

    Examples
    --------
    >>> plain_answer(" New  York")
    'new york'
    """
    return " ".join(answer.casefold().split())


_SETTINGS = ("seed", "sampling", "prompts", "semantics", "scoring")
_ALONE = 2
"""Turns that need one model only; the third asks about the answers of all models."""


def study_recipe(data: Any, method: str, needs: tuple[str, ...]) -> dict[str, Any]:
    """Return how the models of a study are asked, as plain data, or ``not_live``: why they cannot.

    Parameters
    ----------
    data
        What a verb was given.
    method
        The confidence method.
    needs
        What the method needs; empty where it is not one of ours.
    """
    path = Path(data) if isinstance(data, str | Path) else None
    folder = path.parent if path is not None and path.name == "study.toml" else path
    study = None if folder is None else Study(folder)
    read = {} if study is None else study.results().get("semantics", {})
    reason = _not_live(study, method, needs)
    if reason is None and read.get("verb") == "grade":
        reason = "`calibrant grade` read its answers; `calibrant run` reads them as they are served"
    if study is None or reason is not None:
        return {"method": method, "not_live": reason}
    values = {name: study.config[name] for name in _SETTINGS if name in study.config}
    models = {str(model["name"]): dict(model) for model in study.config["models"]}
    texts = {}
    for table in (values, *models.values()):
        for name in dict(table.get("prompts", {})).values():
            if isinstance(name, str) and (study.path / name).is_file():
                texts[name] = (study.path / name).read_text(encoding="utf-8")
    return {
        "method": method,
        "not_live": None,
        "settings": values,
        "models": models,
        "prompt_texts": texts,
        # Answers are told apart live as they were in the study, or the confidence is another one.
        "read_by": read.get("embedded") if read.get("clustering") == "hybrid" else None,
    }


def _not_live(study: Study | None, method: str, needs: tuple[str, ...]) -> str | None:
    if study is None or not study.config_path.is_file():
        return "the labels came from a table, not from a study"
    if "models" not in study.config:
        return "the study does not say how its models were asked"
    if not needs:
        return f"{method!r} is no method that can be asked for live"
    for name in needs:
        need = NEEDS.get(name)
        if need is None or PROBES[need.probe].turn > _ALONE or name == "ensemble":
            return f"the method {method} needs more than one model ({name})"
    semantics = study.config.get("semantics", {})
    if "judge" in semantics:
        return "a judge tells the study's answers apart, and it is not asked live"
    if semantics.get("embeddings") or study.config.get("scoring", {}).get("ensemble"):
        return "the study's scores need embeddings or an ensemble, which are not computed live"
    return None


def recipe_config(
    recipe: Mapping[str, Any], model: str, *, address: str | None, key_env: str | None,
    folder: Path, source: str,
) -> StudyConfig:  # fmt: skip
    """Return a study of one model that asks as the recipe says; prompts are written to `folder`."""
    entry = dict(recipe["models"][model])
    entry.pop("batch", None)  # a caller waits for seconds, not for a day
    if address is not None:
        entry["base_url"] = address
        entry["api_key_env"] = key_env or ""
    elif key_env is not None:
        entry["api_key_env"] = key_env
    for name, text in recipe["prompt_texts"].items():
        if name not in shipped_prompts():
            (folder / Path(name).name).write_text(text, encoding="utf-8")
    values = {
        **recipe["settings"],
        "questions": "unused.jsonl",
        "methods": [recipe["method"]],
        "models": [_with_files(entry)],
    }
    return parse_config(_with_files(values), folder=folder, source=source)


def _with_files(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings whose own prompts are looked for by their bare name."""
    prompts = table.get("prompts")
    if not isinstance(prompts, Mapping):
        return dict(table)
    bare = {k: Path(v).name if isinstance(v, str) else v for k, v in prompts.items()}
    return {**table, "prompts": bare}
