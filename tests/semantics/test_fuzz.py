"""No text, however odd, raises an exception in any reader."""

import pytest
from benchmarks.growth import ends
from hypothesis import given, settings
from hypothesis import strategies as st
from simulations.text_storm import readers, run_storm

READERS = readers()
ANY_TEXT = st.one_of(
    st.text(max_size=80),
    st.text(st.characters(codec=None), max_size=40),
    st.binary(max_size=60),
    st.lists(
        st.sampled_from(["\\boxed{", "}", "<answer>", "Answer:", "|", "0.9", "\n", "1,0"])
    ).map("".join),
)


@pytest.mark.parametrize("name", sorted(READERS))
@settings(max_examples=60, deadline=None)
@given(text=ANY_TEXT)
def test_nothing_raises(name, text):
    READERS[name](text)


def test_a_storm_passes_through_every_reader():
    assert len(run_storm(400, seed=1)) == len(READERS)


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{" * 2000,
        " " * 20_000,
        "(" * 20_000,
        "Answer: " * 3000,
        "one hundred and " * 2000,
        "1,000," * 4000,
        "a|" * 8000,
        "Confidence" + " " * 10_000,
        "." * 20_000,
        "I " * 10_000,
        "*" * 20_000,
    ],
)
def test_long_hostile_texts_come_to_an_end(text):
    # A pattern that backtracks without bound is stopped here.
    for name, read in READERS.items():
        with ends(name):
            read(text)
