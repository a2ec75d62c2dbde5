"""Options with values that make no sense: a message that names them, never a traceback."""

import importlib
import json
import random

import pytest
from click.testing import CliRunner

from calibrant.cli.main import app
from calibrant.core.verb import declaration
from cli.fuzz_options import (
    LONG_WORK,
    Case,
    names_the_option,
    no_work,
    pair_cases,
    prepare,
    run_case,
    single_cases,
)

# A share of all cases; `python tests/cli/fuzz_options.py 0 1 2000` runs them all.
SINGLES, PAIRS = 180, 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    prepare(folder)
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    for place in LONG_WORK:
        module, _, name = place.partition(":")
        function = getattr(importlib.import_module(module), name)
        monkeypatch.setattr(declaration(function), "function", no_work)
    return folder


REFUSED = {
    "audit --model": ("topic,method", "model is one column, got 2: topic,method"),
    "audit --weights": ("confidence,correct", "weights is one column, got 2"),
    "audit --correct": ("correct,k", "columns for confidence: 1, columns for correct: 2"),
    "audit --confidence": ("confidence,confidence", "a column is named twice for confidence"),
    "audit --level": ("nan", "--level lies between 0 and 1, got nan"),
    "audit --html": ("-", "--html names a file or a folder; only --json goes to standard output"),
    "audit --by": ("nothing", "there is no column 'nothing' for a group\n  -> known: confidence, "),
    "compare --models": ("small,,large", "--models is a list of names separated by commas"),
    "compare --lipschitz": ("1e308", "--lipschitz is a number from 0 to 1,000,000, got 1e+308"),
    "groups --models": (",", "--models is a list of names separated by commas, got ','"),
    "groups --features": ("correct", "the outcome 'correct' cannot be a feature"),
    "groups --costs": ("c10=1,c10=2", "--costs gives one name several numbers"),
    "cascade --models": ("small,small", "--models names 'small' more than once"),
    "cascade --price": ("small=1,huge=8", "--price is that of a model, got 'huge'"),
    "cascade --cost": ("time", "the column for --cost must hold numbers, 'time' holds String"),
    "cascade --recalibration": ("nothing", "nothing"),
    "plan --confidence": ("p", "--confidence is about a table, and none is given, got 'p'"),
    "plan --rank": ("ece", "--rank is about a table, and none is given"),
    "plan --samples": ("answer", "--samples is about draws in a table, and none is given"),
    "plan --smallest-share": ("1e-320", "--smallest-share is a number from 1e-09 to 1, got"),
    "label status --precision": ("nan", "--precision lies between 0 and 1, got nan"),
    "label add --threshold": ("inf", "--threshold lies between 0 and 1, got inf"),
    "label next --out": (" ", "--out is a path to write to, got ' '"),
    "monitor --follow": ("nan", "--follow is a number of seconds above 0, up to"),
    "monitor --drift": ("inf", "--drift is a number from 0 to 1, got inf"),
    "monitor --precision": ("2", "precision lies between 0 and 1, got 2"),
    "monitor --baseline-rows": ("-1", "--baseline-rows"),
    "bench mace --kinds": ("\n", "--kinds is a list of names"),
    "bench mace --out": ("loop", "loop: cannot be written: Too many levels of symbolic links"),
    "bench evaluate --coverage-mass": ("x", "--coverage-mass is"),
    "bench evaluate --reference": ("x", "--reference is a method of the table, got 'x'"),
    "bench evaluate --questions": ("", "--questions: the path of an input is empty"),
    "audit --on-invalid": ("", "--on-invalid is one of missing, error, drop, got ''"),
    "groups --on-invalid": ("keep", "--on-invalid is one of missing, error, drop, got 'keep'"),
    "compare --target": ("-inf", "--target lies between 0 and 1, got -inf"),
    "cascade --price ": ("1e308,1e308", "--price and --cost are numbers from 0 to 1e+15"),
    "plan --error-rate": ("1e-320", "--error-rate is 0 or from 1e-09 on"),
    "plan --precision": ("1e-320", "precision is 0 or from 1e-09 on"),
    "plan --drift": ("1e-320", "drift is 0 or from 1e-09 on"),
    "groups --costs ": ("c10=1e308,c01=1e308", "--costs holds numbers up to 1e+15"),
    "cascade --costs": ("c10=nan,c01=1", "--costs holds numbers up to 1e+15"),
    "plan --stages": ("1,2,", "--stages is a list of numbers separated by commas"),
    "monitor --alpha": ("1e-320", "--alpha is a number from 1e-12 to below 1"),
    "bench evaluate --tune": ("scaa", "--tune names confidence methods, got 'scaa'"),
    "bench mace --top-views": ("-1", "--top-views"),
    "report --figures": ("", "--figures is a path to write to, got ''"),
    "import --out": ("y" * 300, "cannot be written: File name too long"),
}


@pytest.mark.parametrize("option", REFUSED)
def test_a_value_is_refused_with_the_rule_it_breaks(option, here):
    words, name = option.strip().rsplit(" ", 1)
    value, message = REFUSED[option]
    outcome = run_case(Case(words, ((name, value),)))
    assert outcome.kind == "refused", outcome.message
    assert message in outcome.message


def test_a_comma_in_a_column_name_is_no_list(here):
    header, *rows = (here / "scores.csv").read_text().splitlines()
    renamed = header.replace("model", '"who,what"')
    (here / "comma.csv").write_text("\n".join([renamed, *rows]))
    done = CliRunner().invoke(app, ["plan", "comma.csv", "--model", "who,what", "--json", "-"])
    assert {entry["model"] for entry in json.loads(done.stdout)["measured"]} == {"small", "large"}


def is_quick(case):
    # Pages, figures and a group for every question are sound work, but long.
    return not any(
        name in ("--figures", "--html") or value == "question_id" for name, value in case.options
    )


def sample():
    chosen = random.Random(0)
    singles = chosen.sample([case for case in single_cases() if is_quick(case)], SINGLES)
    return [*singles, *[case for case in pair_cases(2 * PAIRS, 0) if is_quick(case)][:PAIRS]]


@pytest.mark.parametrize("case", sample(), ids=str)
def test_no_option_ends_in_a_traceback(case, here):
    outcome = run_case(case)
    assert outcome.kind in ("taken", "refused", "claim failed"), outcome.message
    if outcome.kind == "refused":
        assert names_the_option(case, outcome.message), outcome.message
