"""Tables of a judge beside people: made ones, and those of the real data."""

import numpy as np
import polars as pl


def ratings(items=300, rated=120, *, models=2, favour=0.0, seed=0, people=2):
    """A table of ratings 1 to 5: a judge of all rows, people on some of them."""
    rng = np.random.default_rng(seed)
    model = rng.integers(0, models, items)
    quality = 3.2 + 0.9 * rng.standard_normal(items)
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


def summeval(folder, aspect="relevance"):
    """Real summaries: three experts and LLM judges, 1 to 5."""
    table = pl.read_parquet(folder / "judges" / "summeval_judges.parquet")
    rows = table.filter((pl.col("dim") == aspect) & pl.col("gpt-4-0314").is_not_null())
    return rows.rename({"gpt-4-0314": "gpt4", "gpt-3.5-turbo-0301": "gpt35"}).drop("dim")
