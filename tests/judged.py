"""Tables of a judge beside people: made ones, and those of the real data."""

import numpy as np
import polars as pl


def ratings(items=300, rated=120, *, models=2, favour=0.0, gap=0.0, seed=0, people=2):
    """A table of ratings 1 to 5: a judge of all rows, people on some of them."""
    rng = np.random.default_rng(seed)
    model = rng.integers(0, models, items)
    quality = 3.2 + 0.9 * rng.standard_normal(items) + gap * (model == 0)
    scored = quality + 0.4 + favour * (model == 0) + 0.7 * rng.standard_normal(items)
    some = np.isin(np.arange(items), rng.choice(items, rated, replace=False))
    columns = {
        f"expert{k + 1}": np.where(
            some, _rounded(quality + 0.7 * rng.standard_normal(items)), np.nan
        )
        for k in range(people)
    }
    return pl.DataFrame(
        {
            "item": [f"q{place}" for place in range(items)],
            "model": [f"m{code}" for code in model],
            "words": rng.integers(20, 200, items),
            "judge": _rounded(scored),
            **columns,
        }
    ).with_columns(pl.col(*columns).fill_nan(None))


def _rounded(values):
    return np.clip(np.round(values), 1, 5)


def pairs(rows=200, *, seed=0):
    """Pairs of three models with verdicts A, B and tie, in both orders."""
    rng = np.random.default_rng(seed)
    names = np.array(["large", "middle", "small"])
    sides = np.array([rng.choice(3, 2, replace=False) for _ in range(rows)])
    ahead = sides[:, 1] - sides[:, 0] + rng.logistic(size=rows)
    person = np.where(np.abs(ahead) < 0.3, "tie", np.where(ahead > 0, "A", "B"))
    first = np.where(ahead + 1 + rng.logistic(size=rows) > 0, "A", "B")
    second = np.where(ahead - 1 + rng.logistic(size=rows) > 0, "A", "B")
    return pl.DataFrame(
        {
            "model_a": names[sides[:, 0]],
            "model_b": names[sides[:, 1]],
            "judge": first,
            "other_order": second,
            "person": person,
        }
    )


# -- real sets: a table of which some rows are rated, options, and people's mean of all rows ----


def _hidden(table, people, rated, seed=0):
    rows = np.random.default_rng(seed).choice(table.height, rated, replace=False)
    some = pl.Series(np.isin(np.arange(table.height), rows))
    return table.with_columns(pl.when(some).then(pl.col(name)).alias(name) for name in people)


def summeval(folder, aspect="relevance"):
    """Summaries: experts and LLM judges, 1 to 5."""
    table = pl.read_parquet(folder / "judges" / "summeval_judges.parquet")
    rows = table.filter((pl.col("dim") == aspect) & pl.col("gpt-4-0314").is_not_null())
    rows = rows.rename({"gpt-4-0314": "gpt4", "gpt-3.5-turbo-0301": "gpt35"}).drop("dim")
    people = ["human1", "human2"]
    truth = rows.select(pl.mean_horizontal(people)).to_series().mean()
    return _hidden(rows, people, 400), {"judge": ["gpt4"], "human": people}, truth


def panda(folder):
    """Pairs of answers: three people's verdicts 1, 2, 0 = tie, and a judge's."""
    rows = pl.read_parquet(folder / "judges" / "pandalm_pairs.parquet")
    rows = rows.filter(pl.col("gpt35").is_in(["0", "1", "2"]))
    people = ["human1", "human2", "human3"]
    side = [pl.col(name).replace_strict({1: 1.0, 2: 0.0, 0: 0.5}) for name in people]
    truth = rows.select(pl.mean_horizontal(side)).to_series().mean()
    return _hidden(rows, people, 300), {"judge": ["gpt35"], "human": people}, truth


def llmbar(folder):
    """Pairs judged in both orders."""
    rows = pl.read_parquet(folder / "judges" / "llmbar_swap.parquet")
    rows = rows.filter((pl.col("judge") == "ChatGPT-0301") & (pl.col("prompt") == "Vanilla"))
    truth = (rows["human"].cast(pl.String) == "1").mean()
    options = {"judge": ["keep"], "human": ["human"], "swapped": "swap"}
    return _hidden(rows, ["human"], 200), options, truth


def nq301(folder):
    """Answers to questions: two people say yes or no, a learnt metric is the judge."""
    rows = pl.read_parquet(folder / "labels" / "nq301_human_acceptability.parquet")
    people = ["annotator1", "annotator2"]
    rows = rows.filter(pl.col("bem_max").is_not_null())
    yes = [pl.col(name).replace_strict({"Yes": 1.0, "No": 0.0}, default=None) for name in people]
    truth = rows.select(pl.mean_horizontal(yes)).to_series().mean()
    return _hidden(rows, people, 300), {"judge": ["bem_max"], "human": people}, truth


def evouna(folder):
    """Answers of five systems that one person graded; the judge looks for the right words."""
    rows = pl.read_parquet(folder / "labels" / "evouna_nq_human.parquet")
    rows = rows.filter(~pl.col("improper") & pl.col("human_correct").is_not_null())
    found = rows.select(
        pl.col("answer").fill_null("").str.to_lowercase().str.contains(
            pl.col("golden_answer").str.split("/").list.first().str.to_lowercase(), literal=True)
    ).to_series()  # fmt: skip
    table = rows.with_columns(judge=found.cast(pl.Float64), model=pl.col("model").cast(pl.String))
    truth = rows["human_correct"].mean()
    options = {"judge": ["judge"], "human": ["human_correct"]}
    return _hidden(table, ["human_correct"], 400), options, truth
