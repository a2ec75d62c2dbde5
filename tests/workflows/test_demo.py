"""The demo without its model: its questions, its study, and how much it asks for."""

import tomllib

import polars as pl
import pytest

from calibrant.collect import parse_config
from calibrant.collect.probes import POOL, PROBES
from calibrant.collect.prompts import PromptBook
from calibrant.workflows import demo

# Calls at 1.8 a second on two cores take about seven minutes; installing takes the rest of ten.
MOST_DRAWS = 800


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "questions.jsonl"
    demo._write_questions(path, 0)
    return pl.read_ndjson(path)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    return parse_config(
        tomllib.loads(demo._STUDY.format(seed=3)), folder=folder, source="study.toml"
    )


def test_the_questions_cover_both_domains_and_every_number_of_answers(questions):
    counted = {row[:2]: row[2] for row in questions.group_by("domain", "k").len().rows()}
    assert counted == {
        **{("language", k): 3 for k in (1, 2, 4, 6)},
        **{("math", k): 2 for k in (1, 2, 4, 6)},
    }
    assert questions["question_id"].n_unique() == questions.height == 20


def test_a_question_has_as_many_references_as_it_says(questions):
    assert questions["references"].list.len().to_list() == questions["k"].to_list()


def test_the_study_asks_one_model_in_two_ways_for_every_method(config):
    assert [model.name for model in config.models] == ["few-shot", "plain"]
    assert len({model.model for model in config.models}) == 1
    assert config.methods is None
    assert config.candidate_pool
    assert config.semantics.embeddings
    assert config.seed == 3
    assert config.sampling.draws == 8
    prompts = [
        PromptBook(config.for_model(model).prompts, folder=config.folder).find("answer", "open")
        for model in config.models
    ]
    assert [len(prompt.examples) > 0 for prompt in prompts] == [True, False]


def test_the_demo_asks_for_little_enough_to_fit_its_time(config, questions):
    own = sum(config.sampling.times(name) for name in PROBES if name != POOL)
    pool = len(config.models)
    draws = questions.height * len(config.models) * (own + pool)
    assert draws <= MOST_DRAWS


def test_the_same_seed_gives_the_same_questions(questions, tmp_path):
    demo._write_questions(tmp_path / "again.jsonl", 0)
    assert pl.read_ndjson(tmp_path / "again.jsonl").equals(questions)
