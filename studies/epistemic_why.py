"""Why a better estimate of risk need not make a better cascade: MMLU-Pro, looked at closely."""

from __future__ import annotations

import numpy as np

from calibrant.data import load_scores
from calibrant.metrics import metric_estimates
from calibrant.trust import Cascade
from calibrant.verbs.deferring import aligned_answers
from studies._page import DATA, StudyPage, estimate

SIZES = (8, 70, 405)
MODELS = [f"Meta-Llama-3.1-{size}B-Instruct-Turbo" for size in SIZES]
RULES = {
    "calibration": {"rule": "calibration"},
    "risk (tree)": {"model": "tree"},
    "risk (shrunk)": {"model": "shrunk"},
    "risk (boosting)": {"model": "boosting"},
}


def answered():
    features = ["category", "token_length"]
    scores = load_scores(
        DATA / "scores" / "mmlu_pro_16_models.parquet",
        confidence="logit_perplexity_confidence",
        on_invalid="drop",
        features=features,
    )
    answers, _ = aligned_answers(
        scores.frame,
        models=MODELS,
        features=features,
        price=dict(zip(MODELS, SIZES, strict=True)),
        cost="token_length",
    )
    order = np.random.default_rng(0).permutation(len(answers))
    half = len(order) // 2
    return answers.rows(order[:half]), answers.rows(order[half:])


def quality(risk, test, model):
    """AUROC and Brier score of 1 - risk, with intervals."""
    found = metric_estimates(
        np.clip(1 - risk[:, model], 0, 1),
        test.correct[:, model],
        names=("auroc", "brier"),
        resamples=300,
        rng=0,
    )
    return [estimate(found[name].to_dict()) for name in ("auroc", "brier")]


def main() -> None:
    page = StudyPage("epistemic_why", "Why a better risk need not make a better cascade")
    train, test = answered()
    risks = {
        name: Cascade(MODELS, unseen="calibration", **options).fit_answers(train).risk(test)
        for name, options in RULES.items()
    }
    page.text(
        f"MMLU-Pro, Llama 3.1, {len(train):,} questions to fit and {len(test):,} to measure, one "
        "split. First: how well does 1 - risk predict that an answer is right?"
    )
    page.table(
        ("risk by", *(f"AUROC, {size}B" for size in SIZES), *(f"Brier, {size}B" for size in SIZES)),
        [
            (
                name,
                *(quality(r, test, m)[0] for m in range(3)),
                *(quality(r, test, m)[1] for m in range(3)),
            )
            for name, r in risks.items()
        ],
    )
    page.text(
        "The residuals make the risk better for every model. Second: what does deferring buy? "
        "Questions in fifths of the small model's risk by boosting, lowest first:"
    )
    risk = risks["risk (boosting)"][:, 0]
    fifth = np.minimum((5 * risk.argsort().argsort()) // len(risk), 4)
    rows = []
    for number in range(5):
        mine = fifth == number
        small, large = test.correct[mine, 0].mean(), test.correct[mine, 2].mean()
        cost = test.cost[mine, 2].mean() / test.cost[:, 2].mean()
        paired = test.correct[mine, 2] - test.correct[mine, 0]
        half = 1.96 * paired.std(ddof=1) / np.sqrt(mine.sum())
        gain = float(paired.mean())
        shown = estimate({"value": gain, "low": gain - half, "high": gain + half})
        rows.append(
            (
                number + 1,
                int(mine.sum()),
                float(small),
                float(large),
                shown,
                float(cost),
                gain / cost,
            )
        )
    columns = ("fifth", "n", "8B right", "405B right", "gain", "cost / its mean", "gain per cost")
    page.table(columns, rows)
    page.text(
        "Where the small model is at risk the large one is, too, and its answers are longer. "
        "The gain per cost does not rise steadily with the risk, so a cascade that defers the "
        "riskiest questions does not spend its budget where it buys most. And one tolerance "
        "serves all models: a cascade with a sharp risk cannot say 'never trust the smallest, "
        "mostly trust the middle one', which is the cheap and good mixture here and which a "
        "router finds at once."
    )
    page.text(
        "Decisions of the kind the paper studies (one outcome that all models guess) are "
        "different: there the risk is what a better model can avoid. A low risk is the right "
        "reason to trust an answer; a high one is not by itself a reason to pay for the next."
    )
    page.write()


if __name__ == "__main__":
    main()
