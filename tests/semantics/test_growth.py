"""Reading twice as much text takes about twice as long, whatever the text is made of."""

import time

import pytest
from simulations.text_storm import PUMPS, readers

from calibrant.clients.endpoints.secrets import KeyFinder
from calibrant.confidence.longform.claims import split_claims
from calibrant.records.convert.stated_in_text import stated_percent
from calibrant.records.texts.spelling import spells

# What reads long answers, logs and the answers of endpoints beside the readers of the storm.
READERS = readers() | {
    "KeyFinder": KeyFinder("sk-Very/Secret+Key-0123456789").found_in,
    "spells": lambda text: spells([text], text + "x"),
    "split_claims": split_claims,
    "stated_percent": stated_percent,
}
SIZE = 3000


def cpu_seconds(read, text):
    """CPU time of this thread, so that other work on the machine does not count."""
    begin = time.thread_time()
    read(text)
    return time.thread_time() - begin


def grows_too_fast(read, pump, tail):
    """Whether time at 2n exceeds three times that at n, in the best of several tries.

    Quadratic work shows a ratio of 4 and, at this size, tens of milliseconds.
    """
    short, long = (pump * (size // len(pump)) + tail for size in (SIZE, 2 * SIZE))
    for _ in range(4):
        # Readers that remember texts must not find them: each try has an ending of its own.
        ending = str(time.perf_counter_ns())
        if cpu_seconds(read, long + ending) <= 3 * cpu_seconds(read, short + ending) + 0.002:
            return False
    return True


@pytest.mark.parametrize("name", sorted(READERS))
def test_time_grows_with_the_length(name):
    slow = [
        (pump, tail)
        for pump in PUMPS
        for tail in ("", "\x01z")
        if grows_too_fast(READERS[name], pump, tail)
    ]
    assert slow == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mask_instructions", "\n" * 40_000),
        ("mask_instructions", "<" + " " * 40_000),
        ("normalise", "A." * 30_000),
        ("parse_stated", " " * 16_000 + "a" + " " * 16_000 + "b"),
        ("parse_top_k", "a" + " " * 32_000 + "b"),
        ("extract_answer", "<think>" * 8_000),
        ("extract_answer", "```{" * 8_000),
        ("extract_answer", "\\boxed{" + " " * 30_000),
        ("grade", "hundred " * 5_000),
        ("grade", "5 " + "second " * 5_000),
        ("cluster_answers", "a" * 40_000 + " (" + " " * 40_000),
        ("split_claims", "Mr. " * 10_000),
    ],
)
def test_texts_that_once_took_seconds_or_minutes(name, text):
    assert cpu_seconds(READERS[name], text) < 50e-6 * len(text)
