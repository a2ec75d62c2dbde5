"""Prompts are files that can be read and overridden."""

from pathlib import Path

import pytest

from calibrant.core.errors import InputError
from calibrant.models.study.config import Example, PromptsConfig
from calibrant.models.study.probes import PROBES
from calibrant.models.study.prompts import DEFAULTS, PromptBook, load_prompt, shipped_prompts

HERE = Path()
VALUES = {
    "question": "Is {answer} red?",
    "choices": "A. yes\nB. no",
    "answer": "the {question}",
    "candidates": "- it",
    "k": "3",
}


@pytest.mark.parametrize("name", shipped_prompts())
def test_every_shipped_prompt_fills_all_its_fields(name):
    prompt = load_prompt(name, folder=HERE)
    text = "\n".join(message.content for message in prompt.messages(VALUES))
    for field in ("{choices}", "{candidates}", "{k}", "{confidence}", "{verdict}"):
        assert field not in text
    # What a model or a question says is never taken for a field.
    assert "Is {answer} red?" in text
    assert prompt.messages(VALUES)[-1].role == "user"


def test_every_probe_and_kind_has_a_prompt_in_every_style():
    for style in DEFAULTS:
        book = PromptBook(PromptsConfig(style=style), folder=HERE)
        for probe in PROBES.values():
            for kind in ("open", "choice", "number", "binary"):
                assert book.find(probe.prompt, kind).max_tokens >= 1


def test_the_three_answer_templates():
    def shown(name, **values):
        return load_prompt(name, folder=HERE).messages({**VALUES, **values})[-1].content

    assert r"\boxed{A}" in shown("choice")
    assert "A. yes\nB. no" in shown("choice")
    assert "<answer>" in shown("open")
    assert "<answer>" in shown("reasoning")
    assert "answer | 0.92" in shown("verb")
    assert "\n\n\n" not in shown("verb", choices="")
    assert shown("verb", choices="").endswith("red?")
    assert load_prompt("self_ask_boxed", folder=HERE).shows == "response"


def test_examples_of_the_study_replace_those_of_the_prompt():
    config = PromptsConfig(style="short", examples=(Example("2+2?", "4", 0.99),))
    book = PromptBook(config, folder=HERE)
    turns = book.find("verb", "open").messages({"question": "3+3?"})
    assert [turn.content for turn in turns if turn.role != "system"] == [
        "Question: 2+2?\nAnswer and probability:",
        "4 | 0.99",
        "Question: 3+3?\nAnswer and probability:",
    ]


def test_own_prompt_by_path(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'max_tokens = 5\nuser = "Q: {question}"\nsystem = "Be brief."'
    )
    book = PromptBook(PromptsConfig(chosen={"answer": "mine.toml"}), folder=tmp_path)
    turns = book.find("answer", "choice").messages({"question": "why?"})
    assert [(turn.role, turn.content) for turn in turns] == [
        ("system", "Be brief."),
        ("user", "Q: why?"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('max_tokens = 5\nuser = "{qestion}"', "user: there is no field {qestion}"),
        ('user = "x"', "max_tokens: this setting is needed"),
        ('max_tokens = 5\nuser = "x"\nstopp = []', "stopp: there is no such setting"),
        ("user = ", "not valid TOML"),
    ],
)
def test_mistakes_in_own_prompts(tmp_path, content, message):
    (tmp_path / "mine.toml").write_text(content)
    with pytest.raises(InputError) as error:
        load_prompt("mine.toml", folder=tmp_path)
    assert "mine.toml: " in str(error.value)
    assert message in str(error.value)
    with pytest.raises(InputError, match="did you mean 'short_verb'"):
        load_prompt("short_vreb", folder=tmp_path)
