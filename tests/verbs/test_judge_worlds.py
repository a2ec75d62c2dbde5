"""Random tables of judges whose truth is known: what is read in silence is read right."""

import numpy as np
import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.data.judge_table import JudgeColumns, read_judge_table
from judged import pairs, ratings

TABLES = 300
_LEVELS = (
    ("very bad", "bad", "ok", "good", "very good"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("E", "D", "C", "B", "A"),
)
_TWO = (
    ("yes", "no"), ("True", "False"), ("1", "0"), ("pass", "fail"), ("grounded", "hallucinated"),
    ("correct", "incorrect"), ("safe", "unsafe"), ("win", "lose"), ("\U0001f44d", "\U0001f44e"),
)  # fmt: skip
_SIDES = (
    ("A", "B", "tie"), ("[[A]]", "[[B]]", "[[C]]"), ("A>B", "B>A", "A=B"), ("1", "2", "0"),
    ("model_a", "model_b", "tie"), ("1", "2", "1.5"), ("left", "right", "both"), ("1", "-1", "0"),
    ("win", "lose", "tie"), ("A wins", "B wins", "tie"), ("Assistant A", "Assistant B", "Tie"),
)  # fmt: skip


def _styles(rng):
    """Return ways to write a rating from 1 to 5."""
    levels = _LEVELS[rng.integers(len(_LEVELS))]
    return (
        lambda x: f"{x:g}",
        lambda x: f"{x:.1f}".replace(".", ","),
        lambda x: f"{x:g}/5",
        lambda x: f"{20 * x:g}%",
        lambda x: f"{2 * x:g}/10",
        lambda x: f"{2 * x:g}",
        lambda x: f"{(x - 1) / 4:g}",
        lambda x: f"**Rating:** [[{x:g}]]",
        lambda x: f'{{"reason": "misses {rng.integers(9)} of 9 points", "score": {x:g}}}',
        lambda x: f"It covers {rng.integers(9)} of 9 points. Overall: {x:g}",
        lambda x: "\u2605" * int(x) + "\u2606" * (5 - int(x)),
        lambda x: f"{x:g} - {levels[int(x) - 1]}",
        lambda x: levels[int(x) - 1],
    )


def _written(table, names, write):
    cells = {n: [None if x is None else write(x) for x in table[n].fill_nan(None)] for n in names}
    return table.with_columns(pl.Series(name, texts) for name, texts in cells.items())


def _rated_table(rng, seed, people):
    """Return a table, and the truth of judge and people between 0 and 1."""
    table = ratings(seed=seed, rated=int(rng.integers(40, 300)))
    judge, human = table["judge"].to_numpy(), table.select(people).to_numpy().astype(float)
    if rng.random() < 0.3:
        yes, no = _TWO[rng.integers(len(_TWO))]
        table = _written(table, ["judge", *people], lambda x: yes if x > 3 else no)
        return table, (judge > 3) * 1.0, np.where(np.isnan(human), np.nan, human > 3), people
    styles = _styles(rng)
    first = styles[rng.integers(len(styles))]
    second = first if rng.random() < 0.4 else styles[rng.integers(len(styles))]
    table = _written(_written(table, ["judge"], first), people, second)
    return table, judge, human, people


def _pair_table(rng, seed):
    table, sides = pairs(200, seed=seed), {"A": 1.0, "B": 0.0, "tie": 0.5}
    judge, human = ([sides[word] for word in table[name]] for name in ("judge", "person"))
    words = dict(zip(sides, _SIDES[rng.integers(len(_SIDES))], strict=True))
    words = {"A": words["A"], "B": words["B"], "tie": words["tie"]}
    table = table.with_columns(pl.col("judge", "person").replace_strict(words))
    return table.drop("other_order"), np.array(judge), np.array(human)[:, None], ["person"]


def _spoilt(rng, table, judge, human, people):
    """Return the table with codes for no rating, words for none, or a row per person."""
    kind, hit = rng.choice(["", "code", "word", "long"], p=[0.5, 0.2, 0.2, 0.1]), rng.random(300)
    if kind == "code":
        code = pl.when(pl.Series(hit < 0.05)).then(pl.lit("-1"))
        table = table.with_columns(judge=code.otherwise(pl.col("judge").cast(pl.String)))
        judge = np.where(hit < 0.05, np.nan, judge)
    if kind == "word":
        word = pl.lit(str(rng.choice(["N/A", "-", "skip", "cannot tell"])))
        cell = pl.when(pl.Series(hit < 0.1)).then(word).otherwise(pl.col(people[0]))
        table = table.with_columns(cell.alias(people[0]))
        human = np.where((hit < 0.1)[:, None] & (np.arange(len(people)) == 0), np.nan, human)
    if kind == "long" and len(people) == 2:
        keys = [name for name in table.columns if name not in people]
        rows = table.unpivot(people, index=keys, variable_name="who", value_name="rating")
        rest = table.filter(pl.all_horizontal(pl.col(people).is_null())).select(keys)
        table = pl.concat([rows.drop_nulls("rating"), rest], how="diagonal")
        places = {name: place for place, name in enumerate(ratings()["item"])}
        order = [places[name] for name in table["item"].unique(maintain_order=True)]
        judge, human, people = judge[order], human[order], ["rating"]
    return table, judge, human, people


def _agrees(found, truth):
    """Return whether what was read rises with the truth, cell by cell."""
    known = np.isfinite(truth)
    if (np.isfinite(found) != known).any():
        return False
    return found[known].std() == 0 or np.corrcoef(found[known], truth[known])[0, 1] > 0.999


@pytest.mark.filterwarnings("ignore")
def test_what_is_read_in_silence_is_read_right():
    silent, wrong = 0, []
    for seed in range(TABLES):
        rng = np.random.default_rng(seed)
        people = ["expert1", "expert2"][: rng.integers(1, 3)]
        is_pair = rng.random() < 0.25
        made = _pair_table(rng, seed) if is_pair else _rated_table(rng, seed, people)
        table, judge, human, names = made if is_pair else _spoilt(rng, *made)
        try:
            found = read_judge_table(table, JudgeColumns(judge=["judge"], human=names))
        except InputError:
            continue
        silent += 1
        score = np.full(judge.size, np.nan)
        score[found.rows - 1] = found.scales["judge"].unit(found.scores["judge"])
        order = np.argsort(found.columns.human)
        rated = found.human_scale.unit(found.people)[:, order]
        if not (_agrees(score, judge) and _agrees(rated, human[np.isfinite(judge)])):
            wrong.append(seed)
    assert wrong == []
    # A reader that asks about everything is never wrong.
    assert silent > 0.6 * TABLES
