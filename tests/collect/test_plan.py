"""Requests depend on the study and the question alone."""

from pathlib import Path

import pytest

from calibrant.core.errors import BudgetError, InputError
from calibrant.models.protocol import Capabilities
from calibrant.models.study.config import parse_config
from calibrant.models.study.costs import load_prices, study_prices
from calibrant.models.study.plan import AskPlanner, Subject, Wanted
from calibrant.models.study.probes import PROBES
from calibrant.models.study.prompts import PlannedQuestion, PromptBook

ABLE = Capabilities(native_n=8, logprobs=True, top_logprobs=5, seed=True)
QUESTIONS = [PlannedQuestion("a", "Who?"), PlannedQuestion("b", "Which?", "choice", ("x", "y"))]


def config(**changes):
    values = {
        "questions": "q",
        "prompts": {"style": "short"},
        "models": [{"name": "m", "client": "openai", "model": "gpt-4o-mini-2024-07-18"}],
        **changes,
    }
    return parse_config(values, folder=Path(), source="study.toml")


def asker(study=None, able=ABLE, **draws):
    study = study or config()
    wanted = Wanted(
        draws or {"greedy": 1, "samples": 4, "p_true": 4, "self_ask": 1},
        logprobs=frozenset({"samples", "p_true"}),
        top=frozenset({"p_true"}),
    )
    book = PromptBook(study.prompts, folder=study.folder)
    return AskPlanner(study, study.models[0], wanted, able, book)


def test_first_turn_goes_probe_by_probe_so_that_prompts_share_their_beginning():
    asks = list(asker().first_turn(QUESTIONS))
    assert [(ask.purpose, ask.tag.question.question_id, ask.draws) for ask in asks] == [
        ("answer", "a", 4), ("answer", "b", 4), ("greedy", "a", 1), ("greedy", "b", 1),
    ]  # fmt: skip
    sampled, greedy = asks[0].request, asks[2].request
    assert (greedy.temperature, greedy.seed, greedy.logprobs) == (0.0, None, False)
    assert (sampled.temperature, sampled.logprobs, sampled.top_logprobs) == (1.0, True, 0)
    assert "A. x\nB. y" in asks[1].request.messages[-1].content


def test_seeds_differ_by_question_purpose_model_and_study_and_by_nothing_else():
    def seeds(study):
        return [ask.request.seed for ask in asker(study).first_turn(QUESTIONS)][:2]

    base = config()
    assert seeds(base) == seeds(config(sampling={"draws": 9}))
    renamed = config(models=[{"name": "other", "client": "openai"}])
    found = [*seeds(base), *seeds(config(seed=1)), *seeds(renamed)]
    assert len(set(found)) == len(found)
    assert all(0 <= seed < 2**31 for seed in found)
    unable = asker(able=Capabilities(logprobs=True)).first_turn(QUESTIONS)
    assert {ask.request.seed for ask in unable} == {None}


def test_second_turn_asks_about_the_answer_and_leaves_out_questions_without_one():
    subject = Subject("Lima", "I think: Lima", ("Lima", "Quito"))
    asks = list(asker(p_true=4, self_ask_cand=1).second_turn(QUESTIONS, {"a": subject}))
    assert [(ask.purpose, ask.tag.about) for ask in asks] == [
        ("p_true", "Lima"), ("self_ask_cand", "Lima"),
    ]  # fmt: skip
    assert "Proposed answer: Lima" in asks[0].request.messages[-1].content
    assert "- Lima\n- Quito" in asks[1].request.messages[-1].content
    # No more alternatives are asked for than the endpoint can show.
    assert asks[0].request.top_logprobs == 5


def test_a_prompt_may_show_the_whole_response():
    study = config(prompts={"self_ask": "self_ask_boxed"})
    subject = Subject("Lima", "I think: Lima")
    ask = next(iter(asker(study, self_ask=1).second_turn(QUESTIONS, {"a": subject})))
    assert ask.tag.about == "I think: Lima"


def test_a_verdict_on_ones_own_answer_serves_the_pool_as_well():
    subject = Subject("Lima", "Lima")
    own = next(iter(asker(p_true=4).second_turn(QUESTIONS, {"a": subject})))
    made = asker(p_true_pool=1)
    made = AskPlanner(
        made.config,
        made.model,
        Wanted({"p_true_pool": 1}, frozenset({"p_true_pool"}), frozenset({"p_true_pool"})),
        ABLE,
        made.book,
    )
    pooled = list(made.pool_turn(QUESTIONS, {"a": ["Lima", "Quito"]}))
    assert [ask.tag.position for ask in pooled] == [0, 1]
    assert (pooled[0].request, pooled[0].purpose) == (own.request, own.purpose)
    assert pooled[0].tag.probe is PROBES["p_true_pool"]


def test_prices(tmp_path):
    assert study_prices(config())["m"] == load_prices()["gpt-4o-mini"]
    unknown = {"models": [{"name": "m", "client": "openai", "model": "mine"}]}
    assert study_prices(config(**unknown))["m"] is None
    with pytest.raises(BudgetError, match="the price of m is unknown"):
        study_prices(config(**unknown, budget={"max_cost": 1}))
    (tmp_path / "p.toml").write_text("[mine]\nprompt = 1\ncompletion = 2\n")
    study = config(**unknown, budget={"max_cost": 1, "prices": str(tmp_path / "p.toml")})
    assert study_prices(study)["m"].cost(1e6, 1e6) == 3.0
    (tmp_path / "p.toml").write_text("[mine]\nprompt = 1\n")
    with pytest.raises(InputError, match=r"mine\.completion: this setting is needed"):
        study_prices(study)
