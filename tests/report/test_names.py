"""Names that must fit 80 columns: different ones stay different, whatever they are called."""

import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import calibrant
from calibrant.report import render_text
from calibrant.report.cells import Table
from calibrant.report.names import short_names
from calibrant.report.terminal import _fitted

WORDS = st.sampled_from(
    [
        "Meta",
        "Llama",
        "3.1",
        "405B",
        "70B",
        "8B",
        "Instruct",
        "Turbo",
        "2024",
        "07",
        "think",
        "模型",
    ]
)
NAMES = st.one_of(
    st.lists(WORDS, min_size=1, max_size=9).map("-".join),
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z", "M")), max_size=60),
)


@given(st.lists(NAMES, unique=True, min_size=1, max_size=40), st.integers(6, 60))
@settings(max_examples=120, deadline=None)
def test_distinct_names_stay_distinct_and_fit(names, width):
    short = short_names(names, width)
    assert list(short) == names
    assert len(set(short.values())) == len(names)
    assert all(cell_len(text) <= width for text in short.values())


@given(st.lists(st.text("abcdefgh-_/ ", min_size=1, max_size=70), unique=True, min_size=2))
@settings(max_examples=100, deadline=None)
def test_rows_of_a_table_stay_distinct_in_80_columns(names):
    rows = [" ".join(name.split()) for name in names]
    rows = list(dict.fromkeys(name for name in rows if name))
    cells = tuple((name, "0.5 [0.1, 0.9]", "1,000", "x" * 20) for name in rows)
    lines = [line.plain for line in _fitted(Table(("model", "a", "b", "c"), cells), 80)]
    assert max(map(cell_len, lines)) <= 80
    shown = lines[1 : len(rows) + 1]
    assert len(set(shown)) == len(shown) == len(rows)


COLUMNS = st.sampled_from(["token_length", "category", "age", "distance_to_nearest_example"])
CLAUSES = st.tuples(COLUMNS, st.sampled_from(["<=", ">=", "<", ">"]), st.integers(0, 9999))
RULES = st.lists(CLAUSES, min_size=1, max_size=3).map(
    lambda clauses: " and ".join(f"{column} {sign} {value}" for column, sign, value in clauses)
)


@given(st.lists(RULES, unique=True, min_size=1, max_size=20), st.integers(6, 60))
@settings(max_examples=100, deadline=None)
def test_a_shortened_rule_has_no_half_number_and_no_half_operator(rules, width):
    for rule, short in short_names(rules, width).items():
        assert cell_len(short) <= width
        # Where two rules would look alike, a number after the dots tells them apart.
        kept = re.findall(r"(<=|>=|<|>)(?: (\d+))?", re.sub(r"…\d+$", "", short))
        whole = re.findall(r"(<=|>=|<|>) (\d+)", rule)
        for (sign, value), (true_sign, true_value) in zip(kept, whole, strict=False):
            assert (sign, value) in {(true_sign, true_value), (true_sign, "")}, (rule, short)


def test_rules_in_80_columns_are_read_without_the_page():
    rules = ["category = biology and token_length <= 181", "token_length >= 41 and age <= 9"]
    assert list(short_names(rules, 36).values()) == [
        "catego… = biology and token… <= 181",
        "token_length >= 41 and age <= 9",
    ]


SIZES = ("405B", "70B", "8B")


def table(models, methods):
    rows = [
        {"model": model, "question_id": f"q{k}", "method": method, "confidence": 0.5 + 0.01 * k,
         "correct": k % 2}
        for model in models for method in methods for k in range(40)
    ]  # fmt: skip
    return pl.DataFrame(rows)


@pytest.mark.parametrize("methods", [["verb"], ["verbal_numerical", "verbal_linguistic"]])
def test_models_of_one_family_are_told_apart_in_an_audit(methods):
    models = [f"Meta-Llama-3.1-{size}-Instruct-Turbo" for size in SIZES]
    models += [f"Qwen3-{size}{end}" for size in ("14B", "1.7B") for end in ("", "-think")]
    document = calibrant.audit(table(models, methods), resamples=20)
    rows = [
        line for line in render_text(document, width=80).splitlines() if "●" in line or "◆" in line
    ]
    names = [re.split(r"\s{2,}", row.strip())[0] for row in rows[:-1]]
    assert len(names) == len(set(names)) == len(models) * len(methods)
    assert all(any(size in name for name in names) for size in SIZES)
