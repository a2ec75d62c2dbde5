"""Log-probs are believed only where their tokens spell the text of the draw."""

import pytest
from aiohttp import web

from calibrant.data.texts import MISSPELT, spells
from clients.sessions import questions


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["Par", "is"], "Paris"),
        ([" Par", "is", "\n"], "Paris"),
        (["▁The", "▁city"], "The city"),
        (["ĠThe", "Ġcity", "Ċ"], "The city"),
        (["Paris", "<|eot_id|>"], "Paris"),
        (["Paris", "<|im_end|>", "</s>"], "Paris"),
        (["a ", "<|im_end|>"], "a <|im_end|>"),
        (["caf", "é"], "café"),
        (["caf", "Ã©"], "café"),
        (["æĹ¥", "æľ¬"], "日本"),
        (["caf", "\ufffd", "\ufffd", "!"], "café!"),
        (["<0xF0>", "<0x9F>", "<0x98>", "<0x80>", " yes"], "😀 yes"),
        (["bytes:\\xf0\\x9f", "bytes:\\x98\\x80", " yes"], "😀 yes"),
        (["<|im_end|>"], ""),
        ([""], ""),
    ],
)
def test_the_dialects_of_tokenizers_spell_their_text(tokens, text):
    assert spells(tokens, text)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["Lon", "don"], "Paris"),
        (["Par"], "Paris"),
        (["Par", "is", "."], "Paris"),
        (["I", " think", " Paris"], "Paris"),
        (["日", "本"], "中国"),
        (["caf", "\ufffd", "?"], "café!"),
        (["token_id:17", "token_id:4"], "Paris"),
        (["Hello"], ""),
    ],
)
def test_tokens_of_another_text_are_told(tokens, text):
    assert not spells(tokens, text)


def test_a_text_may_be_cut_at_its_stop():
    assert spells(["Paris", "END of"], "Paris", stop=("END",))
    assert spells(["Paris", "\n\nQ"], "Paris", stop=("\n\n",))
    assert not spells(["Paris", " and", " Rome"], "Paris", stop=("END",))


def test_long_tokens_come_to_an_end():
    """A million characters: work that grows with the square of the length would hang here."""
    assert not spells(["<|a|>" * 200_000, "x"], "y" * 200_000)


def answer(tokens, text="Paris"):
    content = [{"token": token, "logprob": -0.5, "top_logprobs": []} for token in tokens]
    return {
        "id": "c",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"content": text},
                "logprobs": {"content": content},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": len(tokens)},
    }


def test_the_draw_is_kept_and_its_log_probs_are_refused_with_a_finding(server, session):
    server.behaviour.fault = lambda number, body: web.json_response(
        answer(["Lon", "don"] if number == 2 else ["Par", "is"])
    )
    one = session()
    asks = questions(3, draws=1, logprobs=True)
    outcomes = one.run(asks).values()
    draws = [draw.completion for outcome in outcomes for draw in outcome.draws]
    assert [draw.text for draw in draws] == ["Paris"] * 3
    assert sorted(draw.logprobs_refused or "" for draw in draws) == ["", "", MISSPELT]
    assert sum(draw.logprobs is None for draw in draws) == 1
    found = one.findings
    assert found["logprobs-refused"].count == 1
    assert "do not spell" in found["logprobs-refused"].message
