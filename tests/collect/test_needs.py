"""What the methods need decides what is asked, each thing once."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from calibrant.answers.confidence import METHODS
from calibrant.answers.confidence import NEEDS as DECLARED
from calibrant.core.errors import CapabilityError
from calibrant.models.protocol import Capabilities
from calibrant.models.study.config import parse_config
from calibrant.models.study.plan import select_probes
from calibrant.models.study.probes import NEEDS, PROBES

FULL = Capabilities(native_n=8, logprobs=True, top_logprobs=20, seed=True)
BARE = Capabilities()
CONFIG = parse_config(
    {
        "questions": "q",
        "sampling": {"draws": 8},
        "models": [{"name": "m", "client": "embedded"}],
    },
    folder=Path(),
    source="study.toml",
)
ALL = {name: METHODS[name].needs for name in METHODS}


def select(methods, able=FULL, config=CONFIG, kinds=("open",)):
    return select_probes({m: ALL[m] for m in methods}, config, able, kinds=kinds, model="m")


def test_every_input_that_a_method_can_need_is_known():
    # The chance of an answer without its question: a chat endpoint scores no given text.
    assert set(NEEDS) == set(DECLARED) - {"greedy_alone"}
    assert {need.probe for need in NEEDS.values()} <= set(PROBES)


@pytest.mark.parametrize(
    ("methods", "draws"),
    [
        (["consistency"], {"samples": 8}),
        (["verb"], {"verb": 1}),
        (["consistency_verb"], {"verb_samples": 8}),
        (["self_ask_cand"], {"greedy": 1, "samples": 8, "self_ask_cand": 1}),
        (["p_true_prob"], {"greedy": 1, "p_true": 1}),
        (["p_true_consistency"], {"greedy": 1, "p_true": 8}),
        (["p_true_prob", "p_true_consistency"], {"greedy": 1, "p_true": 8}),
        (["perplexity"], {"greedy": 1}),
        (["sca", "consistency", "sem1", "sem2"], {"samples": 8}),
    ],
)
def test_shared_probes(methods, draws):
    assert select(methods).wanted.draws == draws


def test_log_probs_are_asked_for_only_where_a_method_reads_them():
    assert select(["consistency"]).wanted.logprobs == frozenset()
    assert select(["sca", "verb"]).wanted.logprobs == {"samples"}
    assert select(["p_true_prob"]).wanted.top == {"p_true"}


def test_all_methods_of_an_endpoint_without_log_probs():
    selection = select(ALL, able=BARE)
    assert selection.unavailable["sca"] == "the endpoint gives no log-probs"
    assert "consistency" not in selection.unavailable
    assert selection.wanted.logprobs == frozenset()
    assert selection.wanted.draws["p_true"] == 8


def test_a_named_method_that_cannot_be_served_is_an_error_before_anything_is_sent():
    config = replace(CONFIG, methods=("sca",))
    with pytest.raises(CapabilityError, match="the method sca cannot be used with the model m"):
        select(["sca"], able=BARE, config=config)


def test_options_need_choices():
    assert "option_softmax" in select(ALL).unavailable
    assert "option_softmax" not in select(ALL, kinds=("choice",)).unavailable
    assert "yes_no_ratio" not in select(ALL, kinds=("binary",)).unavailable


def test_candidate_pool():
    wanted = select(["verb"], config=replace(CONFIG, candidate_pool=True)).wanted
    assert wanted.draws == {"greedy": 1, "verb": 1, "p_true_pool": 1}
