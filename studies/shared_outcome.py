"""One outcome, several models: cascades at tolerance 0, and what post-training gains (C.1)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
from msgspec.structs import replace
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from calibrant.answers.semantics import grade_answers
from calibrant.core.errors import InputError
from calibrant.data.features import FeatureEncoder
from calibrant.metrics import ece
from calibrant.trust import CostMatrix, DecisionRisk, GroupingLoss, TreeGroupingLoss, pointwise_risk
from calibrant.trust.deferral.answers import Answers
from calibrant.trust.deferral.strategies import StrategyOptions
from calibrant.verbs.plan import plan
from studies._page import DATA, StudyPage
from studies._pools import measure
from studies.epistemic import ADULT
from studies.epistemic_pools import mmlu

RULES = StrategyOptions(
    strategies=("value", "risk", "excess", "calibration", "router"), decision="class"
)
# Columns of ever better informed models of Adult, fitted on its training part.
INFORMED = (
    ("sex", "race"),
    ("age", "sex", "race"),
    ("age", "sex", "education_num"),
    ("age", "sex", "education_num", "hours_per_week"),
    ("age", "education_num", "hours_per_week", "occupation", "workclass"),
    ADULT,
)
FORECASTERS = {"COMPAS": "compaspredprobs.linear", "people": "mturkpredprobs",
               "logistic": "logitpredprobs", "boosting": "gbmpredprobs"}  # fmt: skip
PERSON = ("race", "sex", "age", "juv_fel_count", "juv_misd_count", "priors_count",
          "charge_degree..misd.fel.")  # fmt: skip
THRESHOLDS = (0.2, 0.35, 0.5, 0.65, 0.8)


def pools(names, features, said, outcome, cost):
    """Yield all pools of three models of one outcome, cheapest first."""
    right = np.repeat(outcome.astype(float)[:, None], 3, axis=1)
    for some in combinations(range(len(names)), min(3, len(names))):
        at = list(some)
        spent = np.broadcast_to(np.asarray(cost, float)[at], (len(outcome), len(at))).copy()
        kept = tuple(names[i] for i in at)
        yield kept, Answers(kept, features, said[:, at], right[:, : len(at)], spent)


def adult_models():
    """Fit six models of Adult; return their forecasts of the part kept apart."""
    rows = pl.read_parquet(DATA / "tabular" / "uci_adult_with_probs.parquet")
    train, test = (rows.filter(pl.col("split") == part) for part in ("train", "test"))
    y, said = train["y"].to_numpy(), []
    for number, columns in enumerate(INFORMED):
        encoder = FeatureEncoder(unseen="calibration").fit(train.select(columns), y.astype(float))
        x, new = (np.nan_to_num(encoder.transform(part.select(columns))) for part in (train, test))
        simple = number < 3
        model = LogisticRegression(max_iter=500) if simple else HistGradientBoostingClassifier()
        spread = x.std(axis=0) + 1e-9
        said.append(model.fit(x / spread, y).predict_proba(new / spread)[:, 1])
    names = [f"{len(columns)} columns, {n + 1}" for n, columns in enumerate(INFORMED)]
    return names, test.select(ADULT), np.stack(said, axis=1), test["y"].to_numpy(), test


def census():
    names, features, said, y, _ = adult_models()
    return pools(names, features, said, y, [1, 2, 4, 8, 16, 32])


def recidivism_rows():
    return pl.read_csv(DATA / "tabular" / "dgj20_recid.csv")


def recidivism():
    rows = recidivism_rows()
    said = rows.select(FORECASTERS.values()).cast(pl.Float64).to_numpy().clip(0, 1)
    features, y = rows.select(PERSON), rows["two_year_recid"].to_numpy()
    return pools(list(FORECASTERS), features, said, y, [1, 2, 4, 8])


def judged_answers():
    """Return answers of three models with the word of each of them on whether it is right."""
    folder = DATA / "local_models"
    asked = pl.read_parquet(folder / "questions.parquet")
    told = pl.read_parquet(folder / "p_true.parquet").with_columns(
        p=pl.col("p_true_mass") / (pl.col("p_true_mass") + pl.col("p_false_mass"))
    )
    wide = told.pivot("judge", index=["question_id", "author", "answer"], values="p")
    wide = wide.join(asked, on="question_id").sort("author", "question_id")
    graded = grade_answers(
        wide["answer"].to_list(), wide["references"].to_list(), questions=wide["text"].to_list()
    )
    wide = wide.with_columns(
        right=pl.Series([float(bool(grade)) for grade in graded]),
        words=pl.col("answer").str.split(" ").list.len(),
        asked_words=pl.col("text").str.split(" ").list.len(),
    )
    return wide.select("author", "source", "words", "asked_words"), wide


def judges():
    features, wide = judged_answers()
    names = ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
    said = wide.select(names).to_numpy()
    return pools(names, features, said, wide["right"].to_numpy(), [0.135, 0.5, 1.5])


def flares(kind):
    """Yield pools of forecasters of solar flares that gave a forecast for every day."""
    rows = pl.read_csv(
        DATA / "tabular" / f"dgj20_SF.FC.{kind}.csv", null_values="NA", infer_schema_length=None
    )
    y = rows[f"rlz.{kind}"].to_numpy().astype(float)
    before = np.concatenate([[0.0], y[:-1]])
    week = np.convolve(before, np.ones(7) / 7)[: len(y)]
    features = pl.DataFrame({"yesterday": before, "week": week})
    named = [c for c in rows.columns[1:-1] if rows[c].null_count() == 0]
    said = rows.select(named).cast(pl.Float64).to_numpy().clip(0, 1)
    order = np.argsort(-((said - y[:, None]) ** 2).mean(axis=0))
    return pools(
        [named[i] for i in order], features, said[:, order], y, 2.0 ** np.arange(len(order))
    )


def at_zero(title, some, options=RULES):
    """Return what tolerance 0 reaches on one set of pools."""
    found = measure(some, options)
    count = len(found.worth["largest", None])
    rows = []
    for rule, name in (("risk", "risk"), ("excess", "excess risk"), ("calibration", "calibration")):
        if (rule, None) not in found.worth:
            continue
        mean, error, each = found.difference((rule, None), ("largest", None))
        cost = np.array(list(found.cost[rule, None].values()))
        rows.append(
            (title, count, f"{name}, tolerance 0",
             f"{mean:+.3f} [{mean - 1.96 * error:+.3f}, {mean + 1.96 * error:+.3f}]",
             f"{cost.mean():.0%}", f"{np.mean((each > 0) & (cost < 1)):.0%}")
        )  # fmt: skip
    for other in ("calibration", "router"):
        if ("risk", None) not in found.worth or (other, None) not in found.worth:
            continue
        mean, error, _ = found.difference(("risk", None), (other, None))
        interval = f"{mean:+.3f} [{mean - 1.96 * error:+.3f}, {mean + 1.96 * error:+.3f}]"
        rows.append((title, count, f"risk at 0 minus {other}", interval, "", ""))
    return rows


def cascades(page):
    page.heading("Cascades at tolerance 0 where all models predict one outcome")
    page.text(
        "Every pool of three models of one outcome, fitted on 40 % of the rows and measured on "
        "50 %. Prices double from model to model (judges: by parameters). The paper reports +6 "
        "points at 46 % of the cost of the largest model, on data that are not public. 'Excess' "
        "asks on only where a later model is expected to do better. Forecasters of flares stand "
        "in the order of their Brier scores on all days. Flares of class M are too rare to fit on."
    )
    rows = []
    for title, some in (
        ("UCI Adult, six models of growing information", census()),
        ("recidivism, four forecasters", recidivism()),
        ("is this answer right? three judges", judges()),
        ("solar flares of class C, forecasters", flares("C1")),
    ):
        rows += at_zero(title, some)
    answers = replace(RULES, strategies=("excess", "risk", "router"), decision="answer")
    rows += at_zero("MMLU-Pro, own answers, 20 pools", mmlu(20), answers)
    page.table(
        ("data", "pools", "rule", "accuracy against the largest", "cost", "better and cheaper"),
        rows,
    )


def cases():
    """Yield name, columns, confidence and outcome of every score there is."""
    names, features, said, y, test = adult_models()
    for at, name in enumerate(names):
        yield f"adult {name}", features, said[:, at], y
    for score in ("p_lr3", "p_hgb"):
        yield f"adult {score}", features, test[score].cast(pl.Float64).to_numpy().clip(0, 1), y
    rows = recidivism_rows()
    for name, column in FORECASTERS.items():
        said = rows[column].cast(pl.Float64).to_numpy().clip(0, 1)
        yield f"recidivism {name}", rows.select(PERSON), said, rows["two_year_recid"].to_numpy()
    columns, wide = judged_answers()
    for judge in ("smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"):
        yield f"judge {judge}", columns, wide[judge].to_numpy(), wide["right"].to_numpy()
    table = pl.read_parquet(DATA / "scores" / "mmlu_pro_16_models.parquet").with_columns(
        pl.col("model", "category").cast(pl.String)
    )
    for name in ("logit_perplexity_confidence", "verbal_numerical_confidence"):
        usable = table.filter(pl.col(name).is_finite() & pl.col(name).is_between(0, 1))
        for (model,), part in sorted(usable.group_by("model"), key=lambda item: item[0]):
            if part.height >= 4000 and model != "phi-4":
                part = part.sample(4000, seed=0)
                said = part[name].cast(pl.Float64).to_numpy()
                right = part["correct"].to_numpy()
                yield (
                    f"MMLU-Pro {model} {name[:6]}",
                    part.select("category", "token_length"),
                    said,
                    right,
                )


def post_training(page):
    page.heading("What post-training gains, foretold (the paper's appendix C.1)")
    rows = [row for case in cases() for row in _triplets(*case)]
    table = pl.DataFrame(rows)
    page.text(
        f"{table['case'].n_unique()} scores and {len(THRESHOLDS)} cost matrices: {table.height} "
        "triplets. Post-training is boosted trees on the columns and the confidence, fitted on "
        "half of the rows; its gain is what its decisions save on the other half. The estimates "
        "see that other half alone, before any correction. The paper has hate-speech models, "
        "embeddings and the squared rank correlations 0.88 (whole gain) and 0.61 (gain after "
        "recalibration)."
    )
    codes = table["case"].unique(maintain_order=True).to_list()
    rng = np.random.default_rng(0)
    draws = [rng.integers(len(codes), size=len(codes)) for _ in range(400)]
    parts = [table.filter(pl.col("case") == code) for code in codes]
    lines = []
    for target, words in (("gain", "whole gain"), ("after", "gain after recalibration")):
        for name in ("tree", "boosting", "tree, beyond", "boosting, beyond", "calibration",
                     "ece", "brier", "auroc", "accuracy"):  # fmt: skip
            value = _squared(table, name, target)
            some = [_squared(pl.concat([parts[i] for i in draw]), name, target) for draw in draws]
            low, high = np.nanquantile(some, [0.025, 0.975])
            mean = float((table[name] - table[target]).mean())
            off = f"{mean:+.4f}" if name not in ("ece", "brier", "auroc", "accuracy") else ""
            lines.append((words, WORDS[name], f"{value:.2f} [{low:.2f}, {high:.2f}]", off))
    page.table(
        ("foretold", "by", "squared rank correlation, interval over scores", "mean minus gain"),
        lines,
    )


def pipeline(page):
    """Write the steepness of two stages and of the whole, from the log of one answering model."""
    page.heading("A pipeline by its log: one model answers, another one checks")
    greedy = pl.read_parquet(DATA / "local_models" / "greedy.parquet")
    told = greedy.select(
        "question_id",
        author="model",
        said=pl.col("token_logprobs").list.eval(pl.element().cast(pl.Float64)).list.mean().exp(),
    )
    _, wide = judged_answers()
    wide = wide.join(told, on=["question_id", "author"])
    rows = []
    for author in ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"):
        for judge in ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"):
            part = wide.filter(pl.col("author") == author)
            log = pl.concat(
                part.select("question_id", model=pl.lit(stage), confidence=said, correct="right")
                for stage, said in (("answer", "said"), ("check", judge))
            )
            try:
                found = plan(log, stages="measured", precision=0.05)["theory"]["pipeline"]
            except InputError as error:
                rows.append((author, judge, str(error).splitlines()[0], "", ""))
                continue
            first, last = (_steep(one) for one in found["steepness"])
            rows.append((author, judge, first, last, f"{found['bound']:.2f}"))
    page.text(
        "Steepness of the gap (L) of the answering stage (mean token probability) and of the "
        "checking stage (P(True) of a judge), and what their composition allows the whole. The "
        "outcome of both is whether the answer is right. The paper: 1.41 [1.13, 3.02] alone, 3.05 "
        "for two stages."
    )
    page.table(
        ("answers", "checks", "L of the answer", "L of the check", "bound of the whole"), rows
    )


def _steep(found):
    if found["low"] is None:
        return f"{found['value']:.2f}"
    return f"{found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


WORDS = {
    "tree": "excess risk, honest tree (as published)",
    "boosting": "excess risk, cross-fitted boosting (`calibrant groups --costs`)",
    "tree, beyond": "grouping risk, honest tree (Definition 4)",
    "boosting, beyond": "grouping risk, cross-fitted boosting",
    "calibration": "what recalibration alone saves",
    "ece": "ECE",
    "brier": "Brier score",
    "auroc": "1 - AUROC",
    "accuracy": "share of wrong decisions",
}


def _squared(table, name, target):
    found = spearmanr(table[name].to_numpy(), table[target].to_numpy()).statistic
    return float(found**2)


def _triplets(name, features, said, y):
    said, y = np.asarray(said, float), np.asarray(y, float)
    order = np.random.default_rng(7).permutation(len(y))
    train, test = np.sort(order[: len(y) // 2]), np.sort(order[len(y) // 2 :])
    encoder = FeatureEncoder(unseen="calibration").fit(features[train], y[train])
    x = np.column_stack([encoder.transform(features), said])
    tuned = HistGradientBoostingClassifier(max_leaf_nodes=15, learning_rate=0.06)
    corrected = tuned.fit(x[train], y[train]).predict_proba(x[test])[:, 1]
    scaled = (
        LogisticRegression()
        .fit(_logit(said[train]), y[train])
        .predict_proba(_logit(said[test]))[:, 1]
    )
    f, right, known = said[test], y[test], features[test]
    tree = TreeGroupingLoss(repeats=3).fit(known, f, right)
    crossed = GroupingLoss().fit(known, f, right).fit_
    plain = {
        "ece": ece(f, right, bins=10),
        "brier": float(((f - right) ** 2).mean()),
        "auroc": 1 - float(roc_auc_score(right, f)),
    }
    found = []
    for at in THRESHOLDS:
        costs = CostMatrix(c10=at, c01=1 - at)
        risk = DecisionRisk(costs=costs).measure(f, right, crossed)
        honest = [_honest(one, known, f, costs) for one in tree.fits_]
        found.append({
            "case": name,
            "gain": float(risk.savings(f, right, corrected).mean()),
            "after": float(risk.savings(scaled, right, corrected).mean()),
            "tree": float(np.mean([whole for whole, _ in honest])),
            "tree, beyond": float(np.mean([beyond for _, beyond in honest])),
            "boosting": risk.saved_.value,
            "boosting, beyond": risk.beyond_.value,
            "calibration": risk.recalibrated_.value,
            "accuracy": float(((f >= at) != (right == 1)).mean()),
            **plain,
        })  # fmt: skip
    return found


def _honest(one, features, f, costs):
    """Return the mean excess risk and the mean grouping risk of one split, on its last part."""
    rows = one.evaluation
    base = one.recalibrator.transform(f[rows])
    # A category too rare to have met the fitting rows is given no correction.
    one.model.encoder_.unseen = "calibration"
    p = base + one.model.predict(features[rows])
    return pointwise_risk(p, f[rows], costs).mean(), pointwise_risk(p, base, costs).mean()


def _logit(p):
    inside = np.clip(p, 1e-4, 1 - 1e-4)
    return np.log(inside / (1 - inside))[:, None]


def main() -> None:
    page = StudyPage("shared_outcome", "One outcome, several models")
    cascades(page)
    post_training(page)
    pipeline(page)
    page.write()


if __name__ == "__main__":
    main()
