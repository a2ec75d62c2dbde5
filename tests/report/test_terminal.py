"""The short view in a terminal: answer first, one table that fits, what comes next."""

import re

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import calibrant as cal
from calibrant.core.document import plain
from calibrant.core.errors import InputError
from calibrant.report import render_text, terminal_blocks
from calibrant.report.answers import badge_of, claims_of
from documents import document_of


@pytest.fixture(scope="module")
def sixteen():
    """Sixteen models with long names on the same questions."""
    rng = np.random.default_rng(0)
    hard = rng.random(300)
    rows = {"model": [], "question_id": [], "confidence": [], "correct": []}
    for place in range(16):
        right = rng.random(300) > hard * (1.2 - 0.05 * place)
        rows["model"] += [f"some-lab/model-number-{place}-instruct-2026"] * 300
        rows["question_id"] += [f"q{i}" for i in range(300)]
        rows["confidence"] += list(np.clip(1 - 0.4 * hard, 0, 1))
        rows["correct"] += list(right.astype(int))
    return cal.audit(rows, resamples=50).to_dict()


def test_an_audit_of_one_model_takes_25_lines():
    rng = np.random.default_rng(1)
    said = rng.random(400)
    document = cal.audit(said, rng.random(400) < said * 0.8, resamples=50).to_dict()
    lines = render_text(document, width=80).splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80


def test_an_audit_of_sixteen_models_takes_40_lines_and_names_them_all(sixteen):
    text = render_text(sixteen, width=80)
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 80
    for place in range(16):
        assert re.search(rf"(number-|…){place}-instruct", text)


def test_the_verdict_stands_before_the_table_and_the_next_step_after_it(sixteen):
    text = render_text(sixteen, width=80)
    table, step = text.index("right  says"), text.index("Next:  calibrant")
    assert text.index("OVER-CONFIDENT") < table < step


def test_top_cuts_the_middle_and_says_so(sixteen):
    text = render_text(sixteen, width=80, top=4)
    assert "12 more (--top 16)" in text
    assert text.count("◆") - 1 == 4


def test_rows_are_sorted_by_the_metric_that_is_asked_for(sixteen):
    text = render_text(sixteen, width=120, sort="brier")
    values = [entry["metrics"]["brier"]["value"] for entry in sixteen["results"]]
    rows = [line for line in text.splitlines() if "◆" in line and "right" not in line]
    shown = [float(line.split("±")[1].split()[1]) for line in rows]
    assert shown == sorted(round(value, 2) for value in values)


def test_a_metric_that_does_not_exist_is_refused_with_a_hint(sixteen):
    with pytest.raises(InputError, match="no metric 'acuracy'") as error:
        render_text(sixteen, sort="acuracy")
    assert "accuracy" in str(error.value)


def test_a_table_of_another_kind_is_sorted_by_its_column():
    text = render_text(plain(document_of("groups")), width=100, sort="rows")
    numbers = [int(found) for found in re.findall(r"^ hard <= \S+ +(\d+)", text, re.MULTILINE)]
    assert len(numbers) > 3
    assert numbers == sorted(numbers)
    with pytest.raises(InputError, match="no column"):
        render_text(plain(document_of("groups")), sort="nothing")


def test_full_shows_every_table():
    document = plain(document_of("audit"))
    short, full = render_text(document, width=100), render_text(document, width=100, full=True)
    assert "passive floor" not in short
    assert "passive" in full
    assert len(full.splitlines()) > len(short.splitlines())


def coloured(document, **options):
    console = Console(width=80, force_terminal=True, color_system="standard", **options)
    with console.capture() as capture:
        for block in terminal_blocks(document, width=80):
            console.print(block)
    return capture.get()


def test_verdicts_are_coloured_where_the_terminal_has_colours(monkeypatch):
    document = plain(document_of("audit"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;31m" in coloured(document)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m" not in coloured(document)


def test_control_characters_are_shown_and_not_obeyed():
    rows = {"model": ["\x1b[31mred\x07"] * 100 + ["b"] * 100, "confidence": [0.8, 0.6] * 100,
            "correct": [1, 0] * 100, "question_id": [*range(100)] * 2}  # fmt: skip
    text = render_text(cal.audit(rows, resamples=50).to_dict(), width=80)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_print_of_a_result_names_python_and_no_option():
    result = cal.audit([0.9, 0.8, 0.6, 0.7] * 50, [1, 0, 1, 1] * 50, resamples=50)
    text = str(result)
    assert "--full" not in text
    assert ".to_html(" in text


def test_a_long_command_to_copy_is_not_broken_inside_a_word():
    kinds = ("verbal", "logit", "other")
    columns = ",".join(f"{kind}_confidence_of_the_model_itself" for kind in kinds)
    rows = {"question": range(100), "right": [1, 0] * 50}
    rows |= dict.fromkeys(columns.split(","), [0.9, 0.8, 0.7, 0.6] * 25)
    named = {"confidence": columns, "correct": "right", "question": "question"}
    found = cal.audit(pl.DataFrame(rows), **named, resamples=20)
    assert columns in render_text(found, width=80)


def test_a_small_negative_gap_keeps_the_row_in_its_line():
    rng = np.random.default_rng(6)
    said = rng.uniform(0.1, 0.9, 60_000)
    right = rng.random(60_000) < said + 0.004
    text = render_text(cal.audit(said, right, resamples=50).to_dict(), width=80)
    (row,) = [line for line in text.splitlines() if "\u25c6" in line and "says" not in line]
    assert " \u00b1 0." in row
    assert "-0." in row
    assert len(row.rstrip()) <= 80
    head = next(line for line in text.splitlines() if line.rstrip().endswith("100 %"))
    assert len(head.rstrip()) == len(row.rstrip())


def test_a_comparison_counts_ties_by_its_verdicts_and_says_what_decides():
    document = plain(document_of("compare"))
    undecided = [pair["winner"] is None for pair in document["pairs"]]
    assert undecided == [True] * 3
    # The view that decides nothing would tell all of them apart.
    assert all(pair["better"]["da"] is not None for pair in document["pairs"])
    text = " ".join(render_text(document, width=200, full=True).split())
    assert text.count("2 of 2") == 3
    assert "(decides)" not in text
    assert "These views describe and decide nothing alone" in text


def test_what_is_said_of_the_rows_stands_before_the_verdict_and_left_models_are_counted():
    document = plain(document_of("compare"))
    said = "The 9 questions without a confidence of a are harder."
    subject = {"model": "a", "method": None, "group": None}
    first = {"id": "compare.missing_related", "subject": subject, "outcome": "shown", "text": said}
    document["claims"].insert(0, first)
    models = len({entry["model"] for entry in document["results"]})
    assert f"{models} models" in render_text(document, width=200)
    document["not_compared"] = [{"model": "never", "method": "p", "group": None, "reason": "x"}]
    text = render_text(document, width=200)
    assert f"!  {said}" in text
    assert f"{models} of {models + 1} models" in text
    assert text.index(said) < text.index("UNDECIDED")
    assert text.count(said) == 1


@pytest.mark.parametrize(
    ("asked", "badge"),
    [
        ({"costs": {"wrong": 3, "ask": 1}}, "CHEAPER"),
        ({"costs": {"wrong": 1, "ask": 5}}, "UNDECIDED"),
        ({"max_error": 0.3, "costs": {"wrong": 3, "ask": 1}}, "CERTIFIED"),
        ({"max_error": 0.001, "costs": {"wrong": 3, "ask": 1}}, "NOT CERTIFIED"),
        ({"max_error": 0.3}, "CERTIFIED"),
    ],
)
def test_only_a_limit_on_the_error_is_certified(asked, badge):
    rng = np.random.default_rng(1)
    said = rng.beta(3, 1.5, 3000)
    table = pl.DataFrame({"confidence": said, "correct": (rng.random(3000) < said) * 1})
    document = cal.decide(table, **asked).to_dict()
    assert document["results"][0]["certified"] is (badge == "CERTIFIED")
    assert badge_of(document, claims_of(document)).words.upper() == badge


def test_what_is_left_out_is_named_as_the_reader_types_it(sixteen):
    short = {"width": 80, "top": 4}
    python, shell = (render_text(sixteen, **short, python=flag) for flag in (True, False))
    assert 'More:  result.to_html("page.html")' in python
    assert "More:  --full   --html page.html" in shell
    assert "12 more (top=16)" in python
    assert "12 more (--top 16)" in shell
    assert " --" not in python


def test_a_threshold_of_nought_has_no_long_row_of_digits():
    rng = np.random.default_rng(5)
    stated = rng.choice([0.0, 0.5, 1.0], 400)
    table = pl.DataFrame({"confidence": stated, "correct": rng.random(400) < 0.5 + stated / 2.1})
    text = render_text(cal.decide(table, max_error=0.2).to_dict(), width=80)
    assert re.search(r"^ 0\.000 +100 %", text, re.M)
