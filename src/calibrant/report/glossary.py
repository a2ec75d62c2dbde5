"""What the words of a report mean; the same words as in the documentation."""

from __future__ import annotations

__all__ = ["GLOSSARY", "explain"]

GLOSSARY: dict[str, str] = {
    "accuracy": "Share of right answers.",
    "confidence": "Mean of the confidence; a calibrated model has it equal to its accuracy.",
    "ECE": "Expected calibration error: how far confidence and share of right answers are apart, "
    "averaged over bins of equal width. 0 is best. A perfectly calibrated model shows more than 0 "
    "on finite data.",
    "ECE debiased": "ECE with the part taken off that chance alone would show.",
    "smooth ECE": "Calibration error with a kernel instead of bins; needs no choice of bins.",
    "Brier": "Mean squared distance between confidence and outcome. Lower is better; it rewards "
    "both calibration and telling right from wrong.",
    "log loss": "Mean surprise at the outcome; a certain wrong answer costs without limit.",
    "AUROC": "Chance that a right answer has more confidence than a wrong one. 0.5 is chance.",
    "AURC": "Mean error when answering the most confident share first. Lower is better.",
    "error rate": "Share of wrong answers; it sets how much labels can show.",
    "L": "Lipschitz constant: how steeply the gap between confidence and accuracy can change.",
    "passive floor": "Smallest calibration error that this many labels of random items can show: "
    "(L eps / m)^(1/3), a worst-case rate with constant 1.",
    "active floor": "The same with well chosen items: sqrt(eps / m).",
    "ECE if calibrated": "ECE that a perfectly calibrated model with these confidences would show "
    "at this number of rows.",
    "p": "Chance that a perfectly calibrated model shows an ECE at least this large.",
    "ECE raw": "ECE on all questions; ranks partly by accuracy.",
    "ECE DA": "ECE after reweighting to one common accuracy.",
    "ECE IA": "ECE on questions where all models share the outcome.",
    "ECE CA": "ECE when all models score the same candidate answers.",
    "Sem1-ECE": "Calibration error of the most frequent meaning's frequency, read off all draws.",
    "Sem2-ECE": "The same, read off draws that did not choose the meaning.",
    "floor": "Smallest calibration gap that these labels can show.",
    "kept by IA": "Share of questions on which both models share the outcome.",
    "turns round": "Which views prefer the other model than the raw error does.",
}


def explain(term: str) -> str | None:
    """Return the explanation of a term, or None.

    Examples
    --------
    >>> explain("AUROC")
    'Chance that a right answer has more confidence than a wrong one. 0.5 is chance.'
    """
    return GLOSSARY.get(term)
