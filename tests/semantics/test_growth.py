"""Reading twice as much text takes about twice as long, whatever the text is made of."""

import time

import pytest
from simulations.text_storm import PUMPS, readers

from calibrant.clients.endpoints.secrets import KeyFinder
from calibrant.confidence.longform.claims import split_claims
from calibrant.confidence.texts.rouge import rouge_l
from calibrant.records.convert.stated_in_text import stated_percent
from calibrant.records.texts.spelling import spells
from calibrant.semantics.same.mathematics import looks_like_formula, same_formula

# What reads long answers, logs and the answers of endpoints beside the readers of the storm.
READERS = readers() | {
    "KeyFinder": KeyFinder("sk-Very/Secret+Key-0123456789").found_in,
    "spells": lambda text: spells([text], text + "x"),
    "rouge_l": lambda text: rouge_l(text, text[1:]),
    "split_claims": split_claims,
    "stated_percent": stated_percent,
}
SIZE = 3000


def cpu_seconds(read, text):
    """CPU time of this thread, so that other work on the machine does not count."""
    begin = time.thread_time()
    read(text)
    return time.thread_time() - begin


def grows_too_fast(read, pump, tail, head=""):
    """Whether time at 2n exceeds three times that at n, in the best of several tries.

    Quadratic work shows a ratio of 4 and, at this size, tens of milliseconds.
    """
    short, long = (head + pump * (size // len(pump)) + tail for size in (SIZE, 2 * SIZE))
    for _ in range(4):
        # Readers that remember texts must not find them: each try has an ending of its own.
        ending = str(time.perf_counter_ns())
        if cpu_seconds(read, long + ending) <= 3 * cpu_seconds(read, short + ending) + 0.002:
            return False
    return True


@pytest.mark.parametrize("name", sorted(READERS))
def test_time_grows_with_the_length(name):
    slow = [
        (head, pump, tail)
        for pump in PUMPS
        for head, tail in (("", ""), ("", "\x01z"), ("a ", " z"))
        if grows_too_fast(READERS[name], pump, tail, head)
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
        ("split_claims", "a " + "\xa0" * 30_000 + " km"),
    ],
)
def test_texts_that_once_took_seconds_or_minutes(name, text):
    assert cpu_seconds(READERS[name], text) < 50e-6 * len(text)


def test_words_beyond_a_number_are_not_compared():
    """Of 300,000 different words the places alone would fill gigabytes."""
    assert rouge_l("a " * 20_000 + "b " * 9, "a " * 20_000 + "c " * 9) == 1.0
    assert rouge_l("a " * 9 + "b", "a " * 9 + "c") == 0.9


ENDLESS = [
    r"9^{99*99*99*99}",
    r"9^(99*99*99*99)",
    r"2^{99\times 99\times 99\times 99\times 99}",
    r"9^{\binom{50}{25}}",
    r"9^{99(99(99))}",
    r"9^\frac{99999999}{1}",
    "((((9^{99})^{99})^{99})^{99})^{99}",
    "(a+b+c+d+e)^{10}",
    "(a+b)(c+d)(e+f)(g+h)(i+j)(k+l)(m+n)",
    "(((((x+1)^{9}+1)^{9}+1)^{9}+1)^{9}+1)^{9}",
    r"\lim_{x\to 0} \frac{\sin(x)^{9}-x^{9}}{x^{11}}",
    "(" * 40 + "x+1" + ")" * 40,
    "{" * 50 + "x" + "}" * 50,
    r"\frac{1}{1+" * 6 + "x" + "}" * 6,
    r"\sin(9999x)",
    r"\cos^{2}(99x)",
    "2^{0.99999999999}",
]


@pytest.mark.parametrize("formula", ENDLESS)
def test_formulas_that_take_for_ever_are_not_worked_out(formula):
    """Each took more than nine seconds, most of them no end of time."""
    assert not looks_like_formula(formula)
    pytest.importorskip("math_verify")
    assert same_formula(formula, "x+1") is None
    assert same_formula("x+1", formula) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\frac{-b+\sqrt{b^{2}-4ac}}{2a}", r"\frac{\sqrt{b^{2}-4ac}-b}{2a}"),
        (r"\left(\frac{\sqrt{3}}{2}\right)^{2}", r"\frac{3}{4}"),
        ("(x+1)^{3}", "x^3+3x^2+3x+1"),
        (r"\frac{x^{2}+3x+2}{(x+1)(x+2)}", "1+0"),
        (r"6 \times 10^{23}", "60*10^{22}"),
        ("2^{n+1}", r"2 \cdot 2^{n}"),
    ],
)
def test_usual_formulas_are_worked_out(one, other):
    assert looks_like_formula(one)
    pytest.importorskip("math_verify")
    assert same_formula(one, other)
