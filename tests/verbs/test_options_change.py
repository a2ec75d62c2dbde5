"""An option that is accepted changes something, or it is refused: for every verb of tables.

Each option is tried with values of its own kind, until one of them changes the document beyond its
settings. One that is taken and changes nothing promises what it does not do.
"""

import datetime as dt
import json
import warnings
from functools import cache

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.cli import verb_function
from calibrant.core.document import plain
from calibrant.core.errors import CalibrantError
from calibrant.core.verb import declaration
from judged import pairs, ratings

ROWS = 260
# What a document says of the call itself, or of how its columns were found.
ABOUT_THE_CALL = ("settings", "reading", "source", "input", "seed", "version", "path")
# Where work is done, how long it is waited for, and what is asked of a judge or an embedder.
NOT_OF_A_TABLE = {
    "engine", "follow", "judge_url", "max_judge_calls", "judge", "embed", "embed_with", "graded",
    "samples", "reference", "references", "labels", "unlimited_draws", "candidates",
    "embed_dimensions", "label",
}  # fmt: skip
# What these verbs cannot do without, and where an option needs another one beside it.
BASE = {
    "groups": {"features": ["topic", "length"]},
    "decide": {"max_error": 0.4, "only_model": "small"},
    "mend": {"only_model": "small"},
    "cascade": {"models": ["small", "large"], "price": [1.0, 8.0], "features": ["topic"],
                "strategies": ["confidence"], "random_splits": 2},
    "monitor": {"baseline_rows": 100, "every": 20},
    "compare": {"resamples": 20},
    "audit": {"resamples": 20},
    "judge": {"judge": ["judge"], "human": ["expert1", "expert2"]},
}  # fmt: skip
WITH = {
    **{
        f"{name} of judge": {"judge": ["judge"], "human": ["person"]}
        for name in ("pairs", "tie", "first", "swapped")
    },
    "order of judge": {"judge": ["word"], "human": ["person"]},
    "save of judge": {"judge": ["judge"]},
    "rated of judge": {"judge": ["judge"], "human": ()},
    "threshold of groups": {"costs": {"c10": 1.0, "c01": 3.0}},
    "threshold of cascade": {"costs": {"c10": 1.0, "c01": 3.0}, "decision": "class"},
    "costs of cascade": {"decision": "class"},
    "min_samples_leaf": {"strategies": ["risk"]},
    "recalibration": {"strategies": ["risk"]},
    "delta of cascade": {"guarantee": 0.2},
    "tolerance of cascade": {"budget": 0.6, "strategies": ["risk"]},
    "strategy of cascade": {"budget": 0.6, "strategies": ["confidence", "calibration"]},
    "precision of monitor": {"time": "day", "every": "day"},
    "drift of monitor": {"precision": 0.05},
    "verified": {"precision": 0.05, "drift": 0.001},
    "label_days": {"state": "state.json", "time": "day"},
    "traffic": {"group": "topic"},
    "answer": {"gold": "gold"},
    # A column that is taken anyway changes nothing: shared answers are told by another.
    "answer of compare": {},
    "only_method": {"confidence": "confidence,second"},
    "seed of decide": {"features": ["length"]},
    "seed of monitor": {},
}
WORDS = {
    "judge of judge": [["judge", "words"]],
    "human of judge": [["expert1"]],
    "scale of judge": ["1-7"],
    "human_scale of judge": ["1-7"],
    "order of judge": [["low", "middle", "high"], ["high", "middle", "low"]],
    "pairs of judge": [["model_b", "model_a"]],
    "tie of judge": ["B"],
    "first of judge": ["shown"],
    "swapped of judge": ["other_order"],
    "features of judge": [["words"]],
    "by of judge": [["topic"]],
    "cost of judge": [{"judge": 0.5}],
    "rated of judge": [["rated.csv"]],
    "features": [["length"], ["topic", "length"]],
    "methods": [["first", "second"]],
    "models": [["small", "large"], ["small", "huge"]],
    "metrics": [["ece"]],
    "costs": [{"c10": 1.0, "c01": 9.0}, {"wrong": 5.0, "ask": 1.0}],
    "price": [[1.0, 2.0]],
    "strategies": [["value", "confidence"]],
    "group": [["topic=a"], "topic"],
    "sizes": [{"small": 1.0, "large": 8.0}],
    "tuned": [["small", "large"]],
    "scale": ["percent", "mixed", "uncertainty"],
    "right": ["0"],
    "probs": ["p_"],
    "every": [37, "day"],
    "target": ["small", 0.4],
    "verified": ["2026-01-01"],
    "by": [["topic"]],
    "only_model": ["large"],
    "only_method": ["second"],
    "max_error": [0.3],
    "baseline_rows": [120],
    "stages": ["2,2"],
    "strategy": ["confidence", "calibration"],
    "decision": ["class"],
    "resamples": [40],
    "claim": ["ece<0.2"],
}


@cache
def table(name="", words=""):
    """Three models on the same questions, rows of a customer right and wrong together.

    For what only broken or repeated rows show, some rows are.
    """
    if words == "judge":
        return _judged(name)
    rows = _rows()
    if name == "on_invalid":
        return rows.with_columns(
            confidence=pl.when(pl.int_range(pl.len()) == 3).then(1.7).otherwise("confidence")
        )
    return pl.concat([rows, rows.head(40)]) if name == "repeats" else rows


def _rows():
    rng = np.random.default_rng(3)
    customer = np.arange(ROWS) // 8
    shared = rng.normal(0, 0.25, ROWS)[customer]
    parts = []
    for name, over in (("small", 0.15), ("large", 0.05), ("huge", 0.0)):
        said = rng.uniform(0.4, 1.0, ROWS).round(2)
        rate = np.clip(said - over + shared, 0.02, 0.98)
        columns = {
            "question_id": [f"q{number}" for number in range(ROWS)],
            "model": [name] * ROWS,
            "confidence": said,
            "correct": (rng.random(ROWS) < rate).astype(int),
            "customer": [f"c{number}" for number in customer],
            "topic": rng.choice(["a", "b", "c"], ROWS),
            "length": rng.exponential(100, ROWS).round(),
            "answer": rng.choice(["x", "y"], ROWS),
            "gold": rng.choice(["x", "y"], ROWS),
            "second": rng.uniform(0, 1, ROWS).round(2),
            "graded_again": rng.integers(0, 2, ROWS),
            "maker": rng.choice(["left", "right"], ROWS),
            "day": [dt.date(2026, 1, 1 + number // 16) for number in range(ROWS)],
            "text": [f"What is {number} of {number % 7}?" for number in range(ROWS)],
        }
        parts.append(pl.DataFrame(columns))
    whole = pl.concat(parts)
    # One row has no confidence.
    gone = pl.int_range(pl.len()) == 7
    return whole.with_columns(confidence=pl.when(~gone).then("confidence"))


def _judged(name):
    """Ratings of a judge beside people's, or the pairs and words that some options are about."""
    if name in ("pairs", "tie", "first", "swapped"):
        return pairs().with_columns(shown=pl.Series(["A", "B"] * 100))
    rows = ratings().with_columns(
        again=pl.int_range(300) // 3, topic=pl.Series(["a", "b", "b"] * 100),
        answer=pl.Series([f"text {number % 50}" for number in range(300)]),
        maker=pl.Series(["left", "right"] * 150),
    )  # fmt: skip
    if name == "order":
        named = {1: "low", 2: "low", 3: "middle", 4: "high", 5: "high"}
        return rows.select(
            "item", "model",
            word=pl.col("judge").cast(int).replace_strict(named),
            person=pl.col("expert1").cast(int).replace_strict(named, default=None),
        )  # fmt: skip
    if name == "margin":
        return rows.with_columns(judge=pl.coalesce("expert1", "judge"))
    if name == "existing":
        liked = pl.col("judge") > 3
        return rows.with_columns(pl.when(liked).then(f"expert{number}") for number in (1, 2))
    return rows


def told(words, given, rows, folder):
    """Return what a call says beyond what it says of itself, and which files it wrote."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = plain(verb_function(words)(rows, **given).to_dict())
        except CalibrantError as error:
            return None, str(error)
    written = sorted(path.name for path in folder.iterdir() if path.name.startswith("out"))
    return json.dumps(kept(found), sort_keys=True, default=str), written


def kept(value):
    if isinstance(value, dict):
        return {k: kept(v) for k, v in value.items() if k not in ABOUT_THE_CALL}
    return [kept(part) for part in value] if isinstance(value, list) else value


def values_of(parameter, folder, words=""):
    """Return values to try: those of its kind that lie beside the default."""
    option, default, kind = parameter.option, parameter.default, parameter.type
    if (known := WORDS.get(f"{parameter.name} of {words}", WORDS.get(parameter.name))) is not None:
        return known
    if kind is bool:
        return [not default]
    if option.choices:
        return [choice for choice in option.choices if choice != default]
    if option.place and option.place != "read":
        return [folder / "out.json"]
    if option.place == "read":
        return [folder / "map.json", folder / "policy.json", table(), folder / "state.json"]
    if kind in (int, float):
        scale = default if isinstance(default, int | float) and default else 1
        tried = [kind(scale * by) for by in (2, 0.5, 0.1, 10, 50, 0.03)]
        low = option.above if option.above is not None else option.min
        return [v for v in tried if v != default and (low is None or v >= low)]
    if option.metavar == "COL":
        return ["customer", "second", "graded_again", "maker", "topic", "day", "length", "gold",
                "again", "answer"]  # fmt: skip
    return ["customer", "topic", 2, 0.1]


VERBS = ("audit", "compare", "groups", "decide", "mend", "cascade", "monitor", "plan", "judge")


def cases():
    for words in VERBS:
        for name, parameter in declaration(verb_function(words)).parameters.items():
            # A stream asks the same questions again, whether somebody says so or not.
            again = (words, name) == ("monitor", "repeats")
            elsewhere = name in NOT_OF_A_TABLE and words != "judge"
            if not (parameter.option.argument or elsewhere or again):
                yield pytest.param(words, name, id=f"{words} {name}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    one = table().filter(pl.col("model") == "small")
    cal.mend(one, save=folder / "map.json")
    cal.decide(one, max_error=0.5, save=folder / "policy.json")
    ratings().with_columns(judge=pl.col("judge"), rating=pl.col("expert1")).drop_nulls(
        "rating"
    ).write_csv(folder / "rated.csv")
    return folder


@pytest.mark.parametrize(("words", "name"), list(cases()))
def test_an_option_changes_something_or_is_refused(words, name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    known = declaration(verb_function(words)).parameters
    beside = WITH.get(f"{name} of {words}", WITH.get(name, {}))
    base = {k: v for k, v in {**BASE.get(words, {}), **beside}.items() if k in known}
    rows, taken, before = table(name, words), [], None
    for value in values_of(known[name], folder, words):
        if before is None:
            before = told(words, base, rows, folder)
        for written in ("out.json", "state.json"):
            (folder / written).unlink(missing_ok=True)
        after = told(words, {**base, name: value}, rows, folder)
        if after[0] is not None and after != before:
            return
        taken += [] if after[0] is None else [value]
    assert not taken, f"{words} takes {name} = {taken} and does as it does without"
