"""Completions as bytes: what goes into the ledger comes out of it, of this version and before."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from calibrant.models.codec import decode_completion, encode_completion
from calibrant.models.protocol import Completion, Usage
from calibrant.models.replies import TokenLogprob, TokenLogprobs

values = st.floats(-50.0, 0.0)
alternatives = st.lists(st.tuples(st.text(max_size=4), values), max_size=3).map(tuple)
entries = st.lists(st.builds(TokenLogprob, st.text(max_size=4), values, alternatives), max_size=6)


def completion_of(logprobs):
    return Completion("Paris", "stop", Usage(9, 1), logprobs, model="m", sampler={"top_p": 1.0})


@given(entries.map(tuple))
def test_log_probs_and_alternatives_come_back_as_they_were(logprobs):
    stored = decode_completion(encode_completion(completion_of(logprobs)))
    assert tuple(stored.logprobs) == logprobs
    assert stored == completion_of(TokenLogprobs.of(logprobs))
    assert encode_completion(stored) == encode_completion(completion_of(logprobs))


@given(entries.filter(bool))
def test_columns_are_a_sequence_of_entries(logprobs):
    columns = TokenLogprobs.of(logprobs)
    assert len(columns) == len(logprobs)
    assert columns[-1] == logprobs[-1]
    assert columns[1:] == tuple(logprobs[1:])
    assert tuple(columns.part(0, len(columns) - 1)) == tuple(logprobs[:-1])


def test_alternatives_as_they_were_written_before_are_read():
    body = orjson.loads(encode_completion(completion_of(None)))
    body |= {"tokens": ["Par", "is"], "logprobs": [-0.2, -0.1]}
    body["top"] = [[["Par", -0.2], ["Lon", -2.0]], []]
    assert tuple(decode_completion(orjson.dumps(body)).logprobs) == (
        TokenLogprob("Par", -0.2, (("Par", -0.2), ("Lon", -2.0))),
        TokenLogprob("is", -0.1),
    )
