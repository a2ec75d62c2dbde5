"""Every method can be named in study.toml: a study collects what it needs, or says why not."""

from pathlib import Path

import numpy as np
import pytest
from tests.confidence.test_ensemble import world

from calibrant.answers.confidence import METHODS, Ensemble, Options, needs_of
from calibrant.core.errors import CalibrantError
from calibrant.models.protocol import Capabilities, Completion, Usage
from calibrant.models.replies import TokenLogprob
from calibrant.models.study.config import parse_config
from calibrant.models.study.plan import NEEDS, AskPlanner, Subject, Tag, select_probes
from calibrant.models.study.probes import PROBES
from calibrant.models.study.prompts import PlannedQuestion, PromptBook
from calibrant.models.study.runner import _likeliest

ABLE = Capabilities(logprobs=True, top_logprobs=20, seed=True)
MODELS = [{"name": "a", "client": "embedded"}, {"name": "b", "client": "embedded"}]
KINDS = ("open", "choice", "binary")


def config(folder: Path, **more):
    values = {"questions": "q.jsonl", "models": MODELS, **more}
    return parse_config(values, folder=folder, source="study.toml")


# A chat endpoint does not score a given text: pmi has its column from elsewhere.
@pytest.mark.parametrize("method", [name for name in METHODS if name != "pmi"])
def test_a_study_may_name_it(method: str, tmp_path: Path) -> None:
    more = {}
    if method == "ensemble":
        fitted = Ensemble.fit(world(100), ["perplexity", "consistency_greedy"])
        fitted.save(tmp_path / "stack.json")
        more = {"scoring": {"ensemble": "stack.json"}}
    study = config(tmp_path, methods=[method], **more)
    needs = needs_of(METHODS[method], Options(**study.scoring.given))
    assert set(needs) <= set(NEEDS)
    chosen = select_probes({method: needs}, study, ABLE, kinds=KINDS, model="a")
    assert not chosen.unavailable
    assert chosen.wanted.draws
    if method == "ensemble":
        assert "samples" in chosen.wanted.draws


def test_all_methods_leave_out_what_takes_many_calls(tmp_path: Path) -> None:
    study = config(tmp_path)
    needs = {name: METHODS[name].needs for name in METHODS}
    chosen = select_probes(needs, study, ABLE, kinds=KINDS, model="a")
    assert set(chosen.unavailable) == {
        "selfcheck_judge", "verified_mass", "panel_mean", "panel_vote", "ensemble", "pmi"
    }  # fmt: skip
    assert "selfcheck" not in chosen.wanted.draws


def test_what_no_endpoint_gives_is_said(tmp_path: Path) -> None:
    needs = {"pmi": METHODS["pmi"].needs}
    with pytest.raises(CalibrantError, match="greedy_alone, which a study does not collect"):
        select_probes(needs, config(tmp_path, methods=["pmi"]), ABLE, kinds=KINDS, model="a")


def test_a_panel_needs_a_second_model(tmp_path: Path) -> None:
    study = config(tmp_path, methods=["panel_mean"], models=MODELS[:1])
    with pytest.raises(CalibrantError, match="a panel needs a second model"):
        select_probes({"panel_mean": METHODS["panel_mean"].needs}, study, ABLE,
                      kinds=KINDS, model="a")  # fmt: skip


def test_selfcheck_asks_once_for_every_sample(tmp_path: Path) -> None:
    study = config(tmp_path, methods=["selfcheck_judge"])
    needs = {"selfcheck_judge": METHODS["selfcheck_judge"].needs}
    wanted = select_probes(needs, study, ABLE, kinds=KINDS, model="a").wanted
    book = PromptBook(study.prompts, folder=tmp_path)
    asker = AskPlanner(study, study.models[0], wanted, ABLE, book)
    question = PlannedQuestion("q", "Capital of Peru?", "open")
    subject = Subject("Lima", "Lima", (), ("Lima!", "Quito"))
    asks = list(asker.second_turn([question], {"q": subject}))
    assert [ask.tag.position for ask in asks] == [0, 1]
    texts = [ask.request.messages[-1].content for ask in asks]
    assert "Context: - Lima!" in texts[0]
    assert "Context: - Quito" in texts[1]
    assert all("Statement: Lima" in text for text in texts)


def test_scoring_options_of_a_study(tmp_path: Path) -> None:
    given = {"about": "greedy", "variant": "paper", "tau": 0.2, "similarity": "lexical"}
    assert config(tmp_path, scoring=given).scoring.given == given
    assert Options(**config(tmp_path, scoring=given).scoring.given).tau == 0.2
    for bad in ({"about": "best"}, {"tau": -1.0}, {"abuot": "greedy"}):
        with pytest.raises(CalibrantError):
            config(tmp_path, scoring=bad)


def test_five_alternatives_of_every_token_are_kept() -> None:
    top = tuple((f"t{i}", float(np.log(0.3 - i * 0.03))) for i in range(8))
    done = Completion("ab", "stop", Usage(1, 2), (TokenLogprob("a", top[0][1], top[::-1]),) * 2)
    question = PlannedQuestion("q", "?", "open")
    kept = _likeliest(Tag(question, PROBES["greedy"]), done)
    assert [one["token"] for one in kept[1]] == ["t0", "t1", "t2", "t3", "t4"]
    assert _likeliest(Tag(question, PROBES["samples"]), done) is None
