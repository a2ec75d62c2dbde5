"""Texts and formulas on which a reader could work for ever. `benchmarks/growth.py` measures."""

import pytest
from benchmarks.growth import READERS, ends

from calibrant.answers.confidence.likeness import rouge_l
from calibrant.answers.semantics.mathematics import looks_like_formula, same_formula


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mask_instructions", "\n" * 400_000),
        ("mask_instructions", "<" + " " * 400_000),
        ("normalise", "A." * 300_000),
        ("parse_stated", " " * 160_000 + "a" + " " * 160_000 + "b"),
        ("parse_top_k", "a" + " " * 320_000 + "b"),
        ("extract_answer", "<think>" * 80_000),
        ("extract_answer", "```{" * 80_000),
        ("extract_answer", "\\boxed{" + " " * 300_000),
        ("grade", "hundred " * 50_000),
        ("grade", "5 " + "second " * 50_000),
        ("grade", "Paris " + "1969-" * 50_000),
        ("grade", "1969-" * 50_000 + " Paris"),
        ("cluster_answers", "a" * 400_000 + " (" + " " * 400_000),
        ("split_claims", "Mr. " * 100_000),
        ("split_claims", "a " + "\xa0" * 300_000 + " km"),
    ],
)
def test_texts_that_once_took_minutes_come_to_an_end(name, text):
    """Ten times as long as the text that was found: work that grows with its square would hang."""
    with ends(name):
        READERS[name](text)


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
