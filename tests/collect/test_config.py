"""study.toml: every mistake is answered with file, key and rule."""

import tomllib
from pathlib import Path

import pytest

from calibrant.core.errors import InputError
from calibrant.data import Study
from calibrant.models.study.config import load_config, parse_config

GOOD = """
questions = "q.jsonl"
[[models]]
name = "small"
client = "embedded"
"""


def parse(text):
    return parse_config(tomllib.loads(text), folder=Path("f"), source="f/study.toml")


def test_defaults():
    config = parse(GOOD)
    assert config.questions.path == Path("f/q.jsonl")
    assert config.methods is None
    assert (config.sampling.draws, config.sampling.temperature) == (20, 1.0)
    assert config.prompts.style == "plain"
    assert not config.budget.capped


def test_everything_said():
    config = parse(
        'methods = ["verb", "consistency", "verb"]\nseed = 3\ncandidate_pool = true\n'
        + GOOD
        + """
[sampling]
draws = 10
votes = 5
restatements = 2
topk = 2
[sampling.max_tokens]
answer = 16
[prompts]
style = "short"
verb = "mine.toml"
[[prompts.examples]]
question = "2+2?"
answer = "4"
confidence = 0.99
[budget]
max_cost = 1.5
when = "stop"
prices = "p.toml"
"""
    )
    assert config.methods == ("verb", "consistency")
    times = config.sampling.times
    assert [times(p) for p in ("samples", "greedy", "p_true", "verb_samples", "self_ask")] == [
        10, 1, 5, 2, 1,
    ]  # fmt: skip
    assert config.prompts.chosen == {"verb": "mine.toml"}
    assert config.prompts.examples[0].confidence == 0.99
    assert config.budget.prices == Path("f/p.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "[sampling]\ndrwas = 3", "sampling.drwas: there is no such setting\n"
         "  -> did you mean 'draws'"),
        ("question = 'x'\n" + GOOD, "question: there is no such setting\n  -> did you mean 'quest"),
        (GOOD + "[sampling]\ndraws = 0", "sampling.draws: is a whole number of at least 1, got 0"),
        (GOOD + "[sampling]\ndraws = 2.5", "sampling.draws: is a whole number"),
        (GOOD + "[sampling]\ntemperature = 3", "sampling.temperature: is a number from 0 to 2"),
        (GOOD + "[sampling]\ntemperature = 0", "draws at temperature 0 are all the same"),
        (GOOD + "[sampling.max_tokens]\nansewr = 3", "sampling.max_tokens.ansewr: there is no"),
        (GOOD + "[prompts]\nstyle = 'long'", "prompts.style: is one of plain, short"),
        (GOOD + "[budget]\nmax_cost = -1", "budget.max_cost: is a number of at least 0"),
        (GOOD.replace("embedded", "embeded"), "models[1].client: is one of"),
        (GOOD + GOOD.split("\n", 2)[2], "every model has a name of its own, got 'small' twice"),
        ("questions = 'q'", "models: a study asks at least one model"),
        (GOOD.replace('questions = "q.jsonl"', ""), "questions: this setting is needed"),
        ("methods = []\n" + GOOD, 'methods: is "all" or a list'),
        (
            GOOD.replace('"q.jsonl"', '{path = "q", tabular = {target = "y", positive = 1, '
            'question = "?", columns = {age = "old"}}}'),
            "questions.tabular.columns.age: is a sentence with {value}",
        ),
    ],
)  # fmt: skip
def test_mistakes(text, message):
    with pytest.raises(InputError) as error:
        parse(text)
    assert "f/study.toml: " in str(error.value)
    assert message in str(error.value)


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "study.toml").write_text("questions = ")
    with pytest.raises(InputError, match=r"study\.toml: not valid TOML"):
        load_config(Study(tmp_path))


def test_one_model_in_two_configurations(tmp_path):
    values = {
        "questions": "q.jsonl",
        "sampling": {"temperature": 1.0},
        "prompts": {"style": "short"},
        "models": [
            {"name": "few-shot", "client": "embedded"},
            {
                "name": "plain",
                "client": "embedded",
                "temperature": 0.7,
                "prompts": {"style": "plain"},
            },
        ],
    }
    config = parse_config(values, folder=tmp_path, source="study.toml")
    first, second = (config.for_model(model) for model in config.models)
    assert (first.prompts.style, first.sampling.temperature) == ("short", 1.0)
    assert (second.prompts.style, second.sampling.temperature) == ("plain", 0.7)
