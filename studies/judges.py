"""Judges beside people: coverage, width and CPU of `judge` on real sets, beside other packages.

Other packages are measured where they can be imported: ppi_py, truescore and cje.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections import defaultdict
from dataclasses import dataclass

import altair as alt
import numpy as np
import polars as pl
from scipy.stats import ttest_ind
from simulations.claims.harness import rate_interval
from simulations.claims.judge import Ratings

from calibrant.core.arrays import named_stream
from calibrant.findings.claims.judge import FAVOUR_LEVEL
from calibrant.labels.people_ratings import PeoplePool, held, people_mean
from calibrant.metrics.stats.judges import favour
from calibrant.verbs.judge import judge
from studies._page import DATA, StudyPage

RATED = (50, 100, 300)
REPEATS = int(os.environ.get("CALIBRANT_REPEATS", "1000"))
# A whole document, and a package that refits its curve for every interval, are slower.
FEWER, FEWEST = max(REPEATS // 25, 1), max(REPEATS // 50, 1)
_SIDES, _WINS = {"1": "A", "2": "B", "0": "tie"}, {"A": 1.0, "B": 0.0, "tie": 0.5}
_LEXICAL = r"\b(a|an|the)\b|[[:punct:]]"


@dataclass(frozen=True)
class JudgedSet:
    """A table in which people rated every row, and the options that read it."""

    name: str
    frame: pl.DataFrame
    people: tuple[str, ...]
    options: dict
    low: float = 0.0
    span: float = 1.0

    def unit(self, column: str) -> np.ndarray:
        """Return a column between 0 and 1; of pairs 1 where the first side wins."""
        cells = self.frame[column]
        values = cells.replace_strict(_WINS) if cells.dtype == pl.String else cells
        return (values.to_numpy().astype(float) - self.low) / self.span

    @property
    def ratings(self) -> np.ndarray:
        return np.mean([self.unit(name) for name in self.people], axis=0)


def judged_sets():
    """Yield pairs of a real set and a judge."""
    rated = pl.read_parquet(DATA / "judges" / "summeval_judges.parquet")
    for aspect, name in (("relevance", "gpt-4-0314"), ("relevance", "gpt-3.5-turbo-0301"),
                         ("consistency", "gpt-4-0314"), ("fluency", "gpt-4-0314"),
                         ("fluency", "gpt-3.5-turbo-0301"),
                         ("coherence", "llama-2-7b-chat-hf")):  # fmt: skip
        rows = rated.filter((pl.col("dim") == aspect) & pl.col(name).is_not_null())
        rows = rows.select("item", "model", "human1", "human2", judge=name)
        ends = {"scale": "1-5", "human_scale": "1-5"}
        yield JudgedSet(f"SummEval {aspect}, {name}", rows, ("human1", "human2"), ends, 1.0, 4.0)
    yield _panda()
    yield _llmbar()
    yield _nq301()
    yield _evouna()


def _panda():
    rows = pl.read_parquet(DATA / "judges" / "pandalm_pairs.parquet")
    people = ("human1", "human2", "human3")
    read = {name: _side(name) for name in people} | {"judge": _side("gpt35")}
    rows = rows.select("item", "model_a", "model_b", **read).drop_nulls()
    return JudgedSet("PandaLM, gpt-3.5", rows, people, {"pairs": ["model_a", "model_b"]})


def _llmbar():
    rows = pl.read_parquet(DATA / "judges" / "llmbar_swap.parquet")
    rows = rows.filter(judge="ChatGPT-0301", prompt="Vanilla")
    rows = rows.select("item", judge=_side("keep"), other=_side("swap"), human1=_side("human"))
    return JudgedSet("LLMBar, ChatGPT", rows, ("human1",), {"swapped": "other"})


def _side(name):
    return pl.col(name).cast(pl.String).replace_strict(_SIDES, default=None)


def _nq301():
    rows = pl.read_parquet(DATA / "labels" / "nq301_human_acceptability.parquet")
    rows = rows.filter(pl.col("bem_max").is_not_null())
    model = pl.int_range(pl.len()).over("question").cast(pl.String)
    people = {
        f"human{k}": (pl.col(f"annotator{k}") == "Yes").fill_null(False).cast(pl.Float64)
        for k in (1, 2)
    }
    rows = rows.select(item="question", model=model, judge="bem_max", **people)
    return JudgedSet("NQ-301, BEM", rows, ("human1", "human2"), {})


def _evouna():
    rows = pl.read_parquet(DATA / "labels" / "evouna_nq_human.parquet")
    rows = rows.filter(~pl.col("improper") & pl.col("human_correct").is_not_null())

    def plain(text):
        bare = text.str.to_lowercase().str.replace_all(_LEXICAL, " ")
        return bare.str.replace_all(r"\s+", " ").str.strip_chars()

    aliases = pl.col("golden_answer").str.split("/").list.eval(plain(pl.element()))
    found = pl.struct(said=plain(pl.col("answer").fill_null("")), aliases=aliases).map_elements(
        lambda row: float(any(part and part in row["said"] for part in row["aliases"])),
        return_dtype=pl.Float64,
    )
    rows = rows.select(item="question_id", model=pl.col("model").cast(pl.String), judge=found,
                       human1=pl.col("human_correct").cast(pl.Float64))  # fmt: skip
    return JudgedSet("EVOUNA-NQ, lexical match", rows, ("human1",), {})


# -- people's mean, beside other packages -----------------------------------------------------


def _of_product(s, y, chosen, code):
    known = np.full(y.size, np.nan)
    known[chosen] = y[chosen]
    pool = PeoplePool(s, known, code)
    left = 1.0 - float(pool.known.mean())
    found = held(people_mean(pool).estimate(left=left), known[pool.known], left)
    _, low, high = found.ends
    return max(low, 0.0), min(high, 1.0)


def _of_people(_, y, chosen, code):
    return _of_product(None, y, chosen, code)


def _ppi(lam):
    from ppi_py import ppi_mean_ci  # type: ignore[import-not-found]

    def ends(s, y, chosen, _):
        rest = np.delete(s, chosen)
        low, high = ppi_mean_ci(y[chosen], s[chosen], rest, alpha=0.05, lam=lam)
        return float(np.ravel(low)[0]), float(np.ravel(high)[0])

    return ends


def _truescore(s, y, chosen, _):
    from truescore import ppi_estimate  # type: ignore[import-not-found]

    found = ppi_estimate(s, y[chosen], chosen)
    return found.low, found.high


def _cje(s, y, chosen, _):
    from cje import calibrated_mean_ci  # type: ignore[import-not-found]

    known = np.full(y.size, np.nan)
    known[chosen] = y[chosen]
    found = calibrated_mean_ci(s, known)
    return found.ci


def packages():
    """Return what gives an interval for people's mean, by name, with its draws."""
    found = {"calibrant judge": (_of_product, REPEATS), "people alone": (_of_people, REPEATS)}
    if importlib.util.find_spec("ppi_py"):
        found |= {
            "plain PPI (ppi_py)": (_ppi(1.0), REPEATS),
            "PPI++ (ppi_py)": (_ppi(None), REPEATS),
        }
    if importlib.util.find_spec("truescore"):
        found["truescore"] = (_truescore, REPEATS)
    if importlib.util.find_spec("cje"):
        found["CJE"] = (_cje, FEWEST)
    return found


def mean_rows(one: JudgedSet):
    """Yield coverage, width and CPU of every package on the same draws of one set."""
    s, y = one.unit("judge"), one.ratings
    code = None if "model" not in one.frame.columns else _codes(one.frame["model"])
    truth = y.mean()
    for n in RATED:
        for name, (interval, repeats) in packages().items():
            rng = named_stream(0, "judges", one.name, n)
            began, ends = time.process_time(), []
            for _ in range(repeats):
                ends.append(interval(s, y, rng.choice(y.size, n, replace=False), code))
            spent = (time.process_time() - began) / repeats
            low, high = np.array(ends).T
            yield {"set": one.name, "rated": n, "package": name, "draws": repeats,
                   "covers": float(((low <= truth) & (truth <= high)).mean()),
                   "width": one.span * float((high - low).mean()), "ms": 1000 * spent,
                   "left": 1 - n / y.size}  # fmt: skip


def _codes(column: pl.Series) -> np.ndarray:
    return np.unique(column.cast(pl.String).to_numpy().astype(str), return_inverse=True)[1]


# -- whole documents --------------------------------------------------------------------------


def document_rows(one: JudgedSet):
    """Yield how often the intervals of a document hold, over tables drawn from one set.

    Tables are drawn with replacement, so that the set is their population; the mean of a model
    is that of its rows in the very table.
    """
    population = {(a, b): x for a, b, x, _, _ in _document(one, one.frame, one.frame.height)}
    for n in RATED:
        rng = named_stream(0, "judges", "documents", one.name, n)
        hits, widths = defaultdict(list), defaultdict(list)
        for _ in range(FEWER):
            drawn = one.frame[rng.integers(0, one.frame.height, one.frame.height).tolist()]
            truth = population | _models(one, drawn)
            for name, key, _, low, high in _document(one, drawn, n, rng):
                known = truth.get((name, key))
                if known is not None and low is not None:
                    hits[name].append(low <= known <= high)
                    widths[name].append(high - low)
        for name, covered in hits.items():
            width = float(np.mean(widths[name]))
            yield {"set": one.name, "rated": n, "estimate": name, "intervals": len(covered),
                   "covers": float(np.mean(covered)), "width": width}  # fmt: skip


def _models(one: JudgedSet, frame: pl.DataFrame):
    if "model" not in frame.columns:
        return {}
    mean = frame.group_by("model").agg(pl.mean_horizontal(one.people).mean().alias("mean"))
    return {("model", name): value for name, value in mean.rows()}


def _document(one: JudgedSet, frame: pl.DataFrame, n: int, rng=None):
    rated = np.ones(frame.height, bool)
    if rng is not None:
        rated = np.isin(np.arange(frame.height), rng.choice(frame.height, n, replace=False))
    hidden = [pl.when(pl.Series(rated)).then(name).alias(name) for name in one.people]
    entry = judge(frame.with_columns(hidden), judge=["judge"], human=list(one.people),
                  existing="random", **one.options).results[0]  # fmt: skip
    found = [("order", "", *entry.order.ends)]
    if entry.kappa is not None:
        found.append(("kappa", "", *entry.kappa.ends))
    if entry.people is not None and entry.people.kappa_difference is not None:
        found.append(("kappa minus people's", "", *entry.people.kappa_difference.ends))
    found += [("meaning", round(row.score, 2), row.value, row.low, row.high) for row in entry.map]
    if entry.scale.kind != "pairs":
        means = [row for row in entry.models if row.combined.value is not None]
        found += [("model", row.name, *row.combined.ends) for row in means]
    found += [("pair", (row.a, row.b), *row.difference.ends) for row in entry.pairs]
    return found


# -- favour that is none ----------------------------------------------------------------------


def _usual(judge, rating, chosen):
    """Return the p-value of the usual test: what is left of a regression on people, by group."""
    slope = np.cov(judge, rating)[0, 1] / rating.var(ddof=1)
    rest = judge - slope * rating
    return float(ttest_ind(rest[chosen], rest[~chosen], equal_var=False).pvalue)


def favour_rows(n=300, repeats=400):
    """Yield how often favour is found where a group is better and nobody favours it."""
    worlds = {
        "no model is better": Ratings(),
        "one is better by 1 point": Ratings(gap=1.0),
        "the same, noisy judge": Ratings(gap=1.0, noise_judge=1.2, noise_people=0.5),
        "the same, noisy people": Ratings(gap=1.0, noise_judge=0.5, noise_people=1.2),
        "the same, the judge squeezes": Ratings(gap=1.0, slope=0.5),
    }
    for name, world in worlds.items():

        def draw(rng, world=world):
            model, score, people = world.drawn(rng, n)
            return score, people, model == 0

        yield _favour_row(name, "made", draw, repeats)
    rated = pl.read_parquet(DATA / "judges" / "summeval_judges.parquet")
    for aspect in ("relevance", "fluency", "coherence"):
        rows = rated.filter((pl.col("dim") == aspect) & pl.col("gpt-4-0314").is_not_null())
        score = rows["gpt-4-0314"].to_numpy()
        first, second, third = (rows[f"human{k}"].to_numpy().astype(float) for k in (1, 2, 3))
        # A third person's rating makes a group that is better, whatever the judge says of it.
        better = third >= np.quantile(third, 0.5)

        both = np.column_stack([first, second])

        def draw(rng, score=score, people=both, better=better):
            rows = rng.choice(score.size, n, replace=False)
            chosen = rng.random(n) < np.where(better[rows], 0.65, 0.35)
            return score[rows], people[rows], chosen

        yield _favour_row(f"SummEval {aspect}, rows that a third person rates higher", "real",
                          draw, repeats)  # fmt: skip


def _favour_row(name, kind, draw, repeats):
    found = defaultdict(int)
    for run in range(repeats):
        score, people, chosen = draw(named_stream(0, "judges", "favour", name, run))
        mean = people.mean(axis=1)
        told = favour(score, people, chosen)
        found["usual"] += _usual(score, mean, chosen) < 0.05
        found["one person"] += _usual(score, people[:, 0], chosen) < 0.05
        found["calibrant judge"] += told is not None and told.p_value <= FAVOUR_LEVEL
    return {"world": name, "kind": kind, "runs": repeats, **found}


def _world(row):
    return f"{'simulated' if row['kind'] == 'made' else 'real'}: {row['world']}"


def _between(rows, columns):
    shares = [100 * row[name] / row["runs"] for row in rows.iter_rows(named=True)
              for name in columns]  # fmt: skip
    ends = dict.fromkeys(f"{end(shares):.0f}" for end in (min, max))
    return f"{' to '.join(ends)} %"


# -- the page ---------------------------------------------------------------------------------


def _share(hits, runs):
    low, high = rate_interval(int(hits), int(runs))
    return f"{100 * hits / runs:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


def write_page(means: pl.DataFrame, documents: pl.DataFrame, favours: pl.DataFrame) -> None:
    """Write the page from the rows of each part."""
    page = StudyPage("judges", "Judges beside people: do the intervals hold?")
    page.text(
        "Real sets in which people rated every row, so that the truth is known: SummEval (two "
        "experts, 1 to 5), PandaLM and LLMBar (pairs), NQ-301 and EVOUNA-NQ (yes or no). Rows to "
        "rate are drawn at random again and again."
    )
    page.heading("People's mean, beside other packages")
    page.text(
        "The same draws for all; CJE, which is slower, has fewer, of some sets. Coverage of 95 % "
        "intervals: the mean over sets, and the least. Width: relative to people alone. The other "
        "packages speak of all rows like these, `calibrant judge` of the rows of the table, of "
        "which some are rated already; the last width leaves that advantage out."
    )
    alone = means.filter(package="people alone").select("set", "rated", alone="width")
    joined = means.join(alone, on=["set", "rated"])
    joined = joined.with_columns(ratio=pl.col("width") / pl.col("alone"))
    own = pl.col("package").is_in(["calibrant judge", "people alone"])
    endless = pl.col("ratio") * pl.when(own).then(1.0).otherwise(pl.col("left").sqrt())
    by = joined.group_by("rated", "package", maintain_order=True).agg(
        pl.col("covers", "ratio", "ms").mean(), pl.col("covers").min().alias("least"),
        endless.mean().alias("endless"))  # fmt: skip
    named = by["package"].unique(maintain_order=True).to_list()
    least = {name: 100 * by.filter(package=name)["least"].min() for name in named}
    draws = dict(means.group_by("package").agg(pl.col("draws").min()).iter_rows())
    page.text(
        "On the set where it covers least, 95 % intervals hold in "
        + ", ".join(
            # The least of few draws is chance.
            f"{value:.1f} % ({name})"
            for name, value in least.items()
            if draws[name] == REPEATS
        )
        + f" of {REPEATS:,} tables. Packages with fewer draws: "
        + ", ".join(f"{name} ({n})" for name, n in draws.items() if n < REPEATS)
        + "."
    )
    for title, cell in {
        "95 % intervals cover, mean and (least)":
            lambda r: f"{100 * r['covers']:.1f} % ({100 * r['least']:.1f})",
        "width beside people alone": lambda r: f"{r['ratio']:.2f}",
        "the same for all rows like these": lambda r: f"{r['endless']:.2f}",
        "milliseconds": lambda r: f"{r['ms']:.1f}",
    }.items():  # fmt: skip
        page.table(
            [f"rated: {title}", *named],
            [(n, *map(cell, by.filter(rated=n).iter_rows(named=True))) for n in RATED],
        )
    page.heading("Every set")
    mine, theirs = (joined.filter(package=name) for name in ("calibrant judge", "PPI++ (ppi_py)"))
    rows = mine.join(theirs, on=["set", "rated"], how="left", suffix="_ppi")
    page.table(["set", "rated", "covers", "width", "of people alone", "PPI++ covers", "its width"],
               [(r["set"], r["rated"], f"{100 * r['covers']:.1f} %", r["width"],
                 f"{r['ratio']:.2f}", f"{100 * (r['covers_ppi'] or 0):.1f} %", r["width_ppi"])
                for r in rows.iter_rows(named=True)])  # fmt: skip
    page.heading("The other numbers of a document")
    page.text(
        "Whole documents of tables drawn with replacement from each set, which is then the "
        "population: agreement, what scores mean, means of models and differences of two."
    )
    found = documents.group_by("rated", "estimate", maintain_order=True).agg(
        (pl.col("covers") * pl.col("intervals")).sum() / pl.col("intervals").sum(),
        pl.col("covers").min().alias("least"),
        pl.col("intervals").sort_by("covers").first().alias("behind"))  # fmt: skip
    estimates = found["estimate"].unique(maintain_order=True).to_list()
    page.text("In brackets: where it covers least, and of how many intervals of that set.")
    page.table(
        ["rated", *estimates],
        [(n, *(f"{100 * r['covers']:.1f} % ({100 * r['least']:.1f} of {r['behind']:,})"
               for r in found.filter(rated=n).iter_rows(named=True))) for n in RATED],
    )  # fmt: skip
    page.heading("Favour that is none")
    columns = ("usual", "one person", "calibrant judge")
    titles = ("usual test, mean of two people", "usual test, one person", "calibrant judge")
    made, real = (favours.filter(kind=kind) for kind in ("made", "real"))
    better, usual = made[1:], list(columns[:2])
    page.text(
        "Nobody favours anything here; one group of rows is better. The usual test regresses the "
        "judge on people and compares what is left by group. In simulations where one model is "
        f"better by 1 point it finds favour in {_between(better, usual)} of runs; `calibrant "
        f"judge` in {_between(better, ['calibrant judge'])}. On {real.height} real sets with a "
        f"smaller difference the usual test finds it in {_between(real, usual)}, `calibrant "
        f"judge` in {_between(real, ['calibrant judge'])}. People's ratings are noisy and explain "
        "too little; two people as each other's instrument do not."
    )
    for rows in (made, real):
        page.table(["300 rows, 400 runs", *titles],
                   [(_world(r), *(_share(r[name], r["runs"]) for name in columns))
                    for r in rows.iter_rows(named=True)])  # fmt: skip
    favours = favours.with_columns(world=pl.Series(map(_world, favours.iter_rows(named=True))))
    shown = favours.unpivot(on=list(columns), index=["world", "runs"], variable_name="test",
                            value_name="hits").with_columns(
        share=pl.col("hits") / pl.col("runs"),
        test=pl.col("test").replace_strict(dict(zip(columns, titles, strict=True))),
    )  # fmt: skip
    bars = alt.Chart(alt.Data(values=shown.to_dicts())).mark_circle(
        size=90, opacity=0.9
    ).encode(
        x=alt.X("share:Q", title="runs in which favour is found", axis=alt.Axis(format="%")),
        y=alt.Y("world:N", title=None, sort=favours["world"].to_list(),
                axis=alt.Axis(labelLimit=420)),
        color=alt.Color("test:N", title=None, sort=list(titles),
                        legend=alt.Legend(orient="top", labelLimit=300)),
    ).properties(width=420, height=240)  # fmt: skip
    rule = alt.Chart(alt.Data(values=[{"x": 0.05}])).mark_rule(strokeDash=[4, 3]).encode(x="x:Q")
    page.figure(
        "favour", bars + rule, "How often favour is found where there is none; dashed: 5 %."
    )
    page.write()


def main() -> None:
    """Run all parts and write the page."""
    sets = list(judged_sets())
    write_page(
        pl.DataFrame([row for one in sets for row in mean_rows(one)]),
        pl.DataFrame([row for one in sets for row in document_rows(one)]),
        pl.DataFrame(list(favour_rows())),
    )


if __name__ == "__main__":
    main()
