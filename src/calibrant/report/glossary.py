"""What the words of a report mean; the same words as in the documentation."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.metrics.registry import METRICS


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a report: what it means, how it is computed, where the documentation has more."""

    words: str
    formula: str = ""
    page: str = ""


_OF_TABLES: dict[str, Term] = {
    # -- audit
    "questions": Term("Questions that the numbers beside it rest on."),
    "rows": Term("Rows that the numbers beside it rest on."),
    "right": Term("Share of right answers.", "sum(correct) / n", "metrics"),
    "says": Term(
        "Mean of the confidence; a calibrated model is right as often as it says.",
        "sum(confidence) / n",
        "metrics",
    ),
    "means": Term("Probability behind a stated confidence, learned from labels.", page="decide"),
    "n": Term("Number of rows that the numbers beside it rest on.", page="audit"),
    "verdict": Term(
        "What the tests show after the correction for their number: over or under confident, "
        "miscalibrated (without a clear direction), or undecided; of two models, which is better "
        "calibrated or only more accurate.",
        page="audit",
    ),
    # -- verification
    "error rate": Term("Share of wrong answers; it sets how much labels can show."),
    "L": Term(
        "Lipschitz constant: how steeply the gap between confidence and accuracy can change.",
        page="verification",
    ),
    "Lipschitz": Term(
        "How steeply the gap between confidence and accuracy can change.", page="verification"
    ),
    "passive floor": Term(
        "Smallest calibration error that this many labels of random items can show; a worst-case "
        "rate with constant 1.",
        "(L eps / m)^(1/3)",
        "verification",
    ),
    "active floor": Term("The same with well chosen items.", "sqrt(eps / m)", "verification"),
    "ECE if calibrated": Term(
        "ECE that a perfectly calibrated model with these confidences would show at this number "
        "of rows.",
        page="metrics",
    ),
    "p": Term(
        "Chance that a perfectly calibrated model shows an ECE at least this large.",
        page="metrics",
    ),
    "p corrected": Term(
        "The p-value after Holm's correction for all tests of the audit; a verdict needs at most "
        "0.05.",
        "p times the number of tests not yet decided, from the smallest p upwards",
        "audit",
    ),
    "ECE +/-": Term("Half the width of the interval of the ECE on this very data."),
    "random labels": Term(
        "Labels of random items that a claim of this precision takes.",
        "L eps / precision^3",
        "verification",
    ),
    "chosen labels": Term(
        "The same with the best conceivable choice of items.", "eps / precision^2", "verification"
    ),
    "to detect any error": Term(
        "Labels from which a gap can be seen, though not measured.", page="verification"
    ),
    "ECE, random labels": Term("Precision that these labels reach on random items."),
    "ECE, chosen labels": Term("Precision that these labels reach on well chosen items."),
    "rank": Term("Place by the point estimate; see the interval of ranks beside it."),
    "rank interval": Term("Places that are compatible with the data, for all models at once."),
    "group": Term("What the numbers of this row are about; models in one group are ties."),
    # -- compare
    "score": Term(
        "Skill of a confidence with accuracy brought to one half: 0 for a constant confidence, 1 "
        "for a perfect one.",
        "1 - Brier at accuracy 1/2 / 0.25",
        "compare",
    ),
    "tier": Term("Models of one tier are not told apart by these questions.", page="compare"),
    "beats": Term(
        "How many other models the verdict on the pair shows to be worse calibrated.",
        page="compare",
    ),
    "mind": Term(
        "Why a model's score says little: its confidence separates nothing, is nearly always close "
        "to certain, or is missing for too many answers.",
        page="compare",
    ),
    "pairs": Term("Pairs of models."),
    "at the weaker accuracy": Term(
        "Share of pairs whose order turns when both are brought to the accuracy of the weaker one, "
        "odds moved along.",
        page="compare",
    ),
    "at the stronger accuracy": Term(
        "Share of pairs whose order turns at the accuracy of the stronger one, odds moved along.",
        page="compare",
    ),
    "with right and wrong in equal shares": Term(
        "Share of pairs whose order turns when right and wrong answers are weighted alike for both "
        "models, statements as they are; mean over both accuracies.",
        page="compare",
    ),
    "by DA": Term("Share of pairs whose order turns in the distribution-aligned view."),
    "by IA": Term("Share of pairs whose order turns in the instance-aligned view."),
    "by CA": Term("Share of pairs whose order turns in the candidate-aligned view."),
    "first is ahead by": Term("Points by which the first rule is right more often than this one."),
    # -- decide
    "answered": Term("Share of the questions that are answered at this threshold."),
    "wrong among answered": Term("Share of wrong answers among those that are given."),
    "ECE raw": Term("ECE on all questions; ranks partly by accuracy.", page="compare"),
    "ECE DA": Term(
        "ECE after reweighting right and wrong answers to one common accuracy.",
        "right answers weigh t / accuracy, wrong ones (1 - t) / (1 - accuracy), t the target",
        "compare",
    ),
    "ECE IA": Term("ECE on questions where all models share the outcome.", page="compare"),
    "ECE CA": Term("ECE when all models score the same candidate answers.", page="compare"),
    "raw ECE gap": Term("ECE of the first model minus ECE of the second, on all questions."),
    "at equal accuracy": Term(
        "The mean gap after both models are brought to the accuracy of either, confidences moved "
        "along (odds-shifted). The verdict looks at each of the two.",
        page="compare",
    ),
    "DA": Term(
        "The gap after reweighting to one accuracy, with the confidences unchanged. It describes "
        "and does not decide.",
        page="compare",
    ),
    "IA": Term("The gap on questions where both share the outcome.", page="compare"),
    "floor": Term("Smallest calibration gap that these labels can show.", page="verification"),
    "kept by IA": Term("Share of questions on which both models share the outcome."),
    "turns round": Term("Which views prefer the other model than the raw error does."),
    "tied with": Term("Models shown to be neither better nor worse calibrated than this one."),
    "share": Term("Part of the whole that this row makes up."),
    "resolved": Term("Cases in which both gaps are more than a tie."),
    # -- Sem-ECE
    "Sem1-ECE": Term(
        "Calibration error of the most frequent meaning's frequency, read off all draws.",
        "ECE of max_c count_c / draws",
        "sem-ece",
    ),
    "Sem2-ECE": Term(
        "The same, read off draws that did not choose the meaning.",
        "mode from one half of the draws, its frequency from the other half",
        "sem-ece",
    ),
    "Sem1 - Sem2": Term("How far the two estimators are apart at this number of draws."),
    "Sem1": Term("Frequency of the most frequent meaning among all draws.", page="sem-ece"),
    "Sem2": Term("Its frequency among draws that did not choose it.", page="sem-ece"),
    "noise floor": Term("Sem2-ECE that chance alone would show.", page="sem-ece"),
    "confidence gap": Term("Mean of Sem1 minus mean of Sem2: what choosing the mode adds."),
    "predicted": Term("The gap that theory predicts from the margins.", page="sem-ece"),
    "margin": Term("Frequency of the most frequent meaning minus that of the second."),
    "regime": Term(
        "What the margin means for the two estimators: 'jensen', Sem1 is too high by more than "
        "Sem2 is too low; 'low-margin', both are biased; 'large-margin', both agree.",
        page="sem-ece",
    ),
    # -- groups and decisions
    "Brier score": Term("Part of the Brier score, in its own unit.", page="groups"),
    "gap, points": Term(
        "Mean over the models of the gap at equal confidence: how far the group is off against "
        "other answers of equal confidence; above 0 is over-confident.",
        page="groups",
    ),
    "over-confident": Term(
        "Models among them for which the group is over-confident.", page="groups"
    ),
    "gap at equal confidence": Term(
        "Points by which the group is off against other answers of equal confidence; above 0 is "
        "over-confident.",
        page="groups",
    ),
    "cost": Term("In the unit of the prices or of the cost matrix given."),
    "cost, largest = 100 %": Term(
        "Cost per question; the largest model alone is 100 %.", page="cascade"
    ),
    "right on average": Term(
        "Area under accuracy against cost, from the cheapest to the largest model.",
        page="cascade",
    ),
    "points against": Term(
        "Right answers of the setting minus that of the largest model alone; above 0 is better.",
        page="cascade",
    ),
    "echo of": Term(
        "Flagged group that explains this one: the rows outside of it show nothing.", page="groups"
    ),
    "flag": Term(
        "Says 'over' or 'under' where the gap is shown after the correction for the number of "
        "groups.",
        page="groups",
    ),
    "rank moves": Term("How often the rank changes when this part of the questions is drawn."),
    "own minus others": Term(
        "Mean confidence in the own answers minus that in others' answers of the same grade; "
        "above 0 is self-preference.",
        page="compare",
    ),
    # -- several right answers
    "k": Term("Questions with exactly this number of right answers.", page="bench"),
    "change": Term("From the fewest right answers to the most; above 0 is a rise.", page="bench"),
    "mix": Term(
        "AUROC on all questions with one of these numbers of right answers, pooled within a "
        "domain, then the mean over domains.",
        page="bench",
    ),
    "known answers": Term("Different meanings that the model holds likely.", page="bench"),
    "ECE, widest mix": Term("ECE with all numbers of right answers pooled.", page="bench"),
    "development": Term("AUROC on the questions on which the threshold was chosen."),
    "rest, tuned": Term("AUROC of the chosen threshold on the other questions."),
    "rest, default": Term("AUROC of the default threshold on the same questions."),
    "tuned": Term("Threshold chosen on a fifth of the questions."),
    "default": Term("Threshold without tuning."),
    # -- labels over time
    "labelled": Term("Items with a label, of all items."),
    "labels": Term("Number of labels that the row rests on."),
    "ECE for all looks": Term(
        "Interval that holds over all looks together, however often one looks.",
        "confidence sequence",
        "verification",
    ),
    "evidence": Term(
        "Evidence of a change: what a fair bet against 'nothing has changed' would have made of "
        "1; the alarm goes off at 1 / alpha.",
        "product of the bets",
        "verification",
    ),
    "difference": Term(
        "Right minus says in the batch, in points; below 0 is over-confident.",
        "mean(correct - confidence)",
        "verification",
    ),
    "right - said": Term(
        "Accuracy minus mean confidence of the batch; below 0 is over-confident.",
        "mean(correct - confidence)",
        "verification",
    ),
    "gold and judge": Term("Estimate from people's labels and the judge's verdicts together."),
    "gold alone": Term("Estimate from people's labels alone."),
    "judge alone": Term("The judge's own number; it has no valid interval."),
    "gold labels saved": Term("Labels of people that the judge's verdicts replace."),
    "shown to be miscalibrated": Term(
        "Whether these labels show it, after a correction for the number of tests.",
        page="verification",
    ),
    "questions x draws": Term("Questions, and answers drawn for each of them."),
    # -- generated questions
    "subjects": Term("Different things that the questions ask about.", page="bench"),
    "answers": Term("Number of answers."),
    "sets": Term("Different sets of right answers.", page="bench"),
    "built": Term("Questions that the facts allow, before the choice.", page="bench"),
    "used": Term("Questions chosen.", page="bench"),
    "number": Term("How many."),
    "prompt tokens": Term("Tokens sent; calls that ask for several draws count once."),
    "reply tokens": Term("Tokens that came back."),
    "cut off": Term("Replies that reached their longest length."),
    "draws": Term("Number of answers or replies that were asked for or drawn."),
}


# Columns whose names hold a number or a name of the data.
_NAMED_BY_DATA = (
    ("k=", "k"),
    ("change k=", "change"),
    ("[", "mix"),
    ("points against ", "points against"),
    ("rank moves at ", "rank moves"),
)


def glossary() -> dict[str, Term]:
    """Return all terms by the column that they explain: metrics say their own."""
    metrics = {
        metric.title: Term(metric.words, metric.formula, "metrics") for metric in METRICS.values()
    }
    return {**metrics, **_OF_TABLES}


def term_of(column: str) -> str | None:
    """Return the term that explains a column, or None.

    Examples
    --------
    >>> term_of("[1,2,4]"), term_of("AUROC"), term_of("model")
    ('mix', 'AUROC', None)
    """
    if column in glossary():
        return column
    return next((term for start, term in _NAMED_BY_DATA if column.startswith(start)), None)


def explain(column: str) -> str | None:
    """Return the explanation of a column, or None.

    Examples
    --------
    >>> explain("AUROC")
    'Chance that a right answer has more confidence than a wrong one. 0.5 is chance.'
    """
    term = term_of(column)
    return None if term is None else glossary()[term].words
