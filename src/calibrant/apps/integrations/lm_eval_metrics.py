"""Calibration metrics inside lm-evaluation-harness, named in a task's YAML with ``!function``.

For tasks that generate, a metric is a function of one question's replies, and what it returns is
aggregated over all questions::

    filter_list:
      - {name: all, filter: [{function: take_first_k, k: 5}]}
    metric_list:
      - metric: !function calibrant.apps.integrations.lm_eval_metrics.consistency
        aggregation: !function calibrant.apps.integrations.lm_eval_metrics.aggregate
        higher_is_better: false
      - metric: !function calibrant.apps.integrations.lm_eval_metrics.consistency_auroc
        aggregation: !function calibrant.apps.integrations.lm_eval_metrics.aggregate
        higher_is_better: true

The AUROC is a metric of its own, because the harness gives all numbers of one metric the same
direction.

For multiple choice the harness hands out the log-likelihoods of the options under one fixed name::

    metric_list:
      - metric: likelihood
        aggregation: !function calibrant.apps.integrations.lm_eval_metrics.option_softmax_ece
        higher_is_better: false
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.answers.semantics import cluster_answers, grade_answers
from calibrant.answers.semantics.extract import extract_answer
from calibrant.core.errors import InputError
from calibrant.metrics import metric_estimates

Item = tuple[str, float | None, float | None]
"""What is handed from a question to the aggregation: what is wanted, confidence, outcome."""

_ERRORS = ("ece", "brier")
_ENDS = {"": "value", "_low": "low", "_high": "high"}
_LEFT_OUT = "left_out"
_RESAMPLES = 200


def consistency(references: Sequence[Any], predictions: Sequence[Any]) -> dict[str, Item]:
    """Return the share of the most frequent answer among repeats, and whether it is right.

    Parameters
    ----------
    references
        The one target of the question.
    predictions
        The one list of its replies; the filter ``take_first_k`` passes all repeats on.

    Examples
    --------
    >>> consistency(["Paris"], [["Paris", "paris.", "Rome"]])["consistency_ece"][2]
    1.0
    """
    (replies,) = predictions
    if isinstance(replies, str) or len(replies) < 2:
        raise InputError(
            "consistency needs several replies of each question",
            hint="set `repeats`, and a filter_list that ends in take_first_k",
        )
    classes = cluster_answers(list(replies))
    modal = max(classes, key=classes.count)
    answer = replies[classes.index(modal)]
    return _items("consistency", classes.count(modal) / len(classes), _grade(answer, references))


def consistency_auroc(references: Sequence[Any], predictions: Sequence[Any]) -> dict[str, Item]:
    """Return what `consistency` does, for the one number of which more is better.

    Examples
    --------
    >>> list(consistency_auroc(["Paris"], [["Paris", "Rome"]]))
    ['consistency_auroc', 'consistency_auroc_low', 'consistency_auroc_high']
    """
    return _as_auroc("consistency", consistency(references, predictions))


def verbalised(references: Sequence[Any], predictions: Sequence[Any]) -> dict[str, Item]:
    """Return the confidence that a reply states (``Paris | 0.9``), and whether it is right."""
    reply = extract_answer(str(predictions[0]), stated=True)
    grade = None if reply.answer is None else _grade(reply.answer, references)
    return _items("verbalised", reply.confidence, grade)


def verbalised_auroc(references: Sequence[Any], predictions: Sequence[Any]) -> dict[str, Item]:
    """Return what `verbalised` does, for the one number of which more is better."""
    return _as_auroc("verbalised", verbalised(references, predictions))


def _as_auroc(method: str, items: dict[str, Item]) -> dict[str, Item]:
    _, confidence, correct = next(iter(items.values()))
    names = [f"{method}_auroc{end}" for end in _ENDS]
    return {name: (name, confidence, correct) for name in names}


def _grade(answer: str, references: Sequence[Any]) -> float | None:
    grade = grade_answers([answer], [[[str(reference) for reference in references]]])[0]
    return None if grade is None else float(grade)


def _items(method: str, confidence: float | None, correct: float | None) -> dict[str, Item]:
    names = [f"{metric}{end}" for metric in _ERRORS for end in _ENDS]
    return {
        f"{method}_{name}": (f"{method}_{name}", confidence, correct)
        for name in [*names, _LEFT_OUT]
    }


def aggregate(items: Sequence[Item]) -> float:
    """Return the number that the items ask for, over the questions that have both numbers.

    ``<method>_left_out`` counts the others: replies without a stated confidence or a grade.

    Examples
    --------
    >>> aggregate([("verbalised_brier", 1.0, 0.0), ("verbalised_brier", 0.0, 0.0)])
    0.5
    """
    _, _, targets = items[0][0].partition("_")
    pairs = [(item[1], item[2]) for item in items if item[1] is not None and item[2] is not None]
    if targets == _LEFT_OUT:
        return float(len(items) - len(pairs))
    metric, _, end = targets.partition("_")
    return _number(pairs, metric, _ENDS[f"_{end}" if end else ""])


def option_softmax_ece(items: Sequence[tuple[Any, Sequence[float]]]) -> float:
    """Return the calibration error of the most likely option's share among all options.

    `items` are (place of the right option, log-likelihoods), the harness's ``likelihood``.

    Examples
    --------
    >>> round(option_softmax_ece([(0, [-1.0, -1.0])] * 4), 3)
    0.5
    """
    return _number(_most_likely(items), "ece", "value")


def option_softmax_brier(items: Sequence[tuple[Any, Sequence[float]]]) -> float:
    """Return the Brier score of the most likely option's share among all options."""
    return _number(_most_likely(items), "brier", "value")


def option_softmax_auroc(items: Sequence[tuple[Any, Sequence[float]]]) -> float:
    """Return how well the share of the most likely option tells right from wrong."""
    return _number(_most_likely(items), "auroc", "value")


def _most_likely(items: Sequence[tuple[Any, Sequence[float]]]) -> list[tuple[float, float]]:
    pairs = []
    for gold, values in items:
        logs = np.asarray(values, dtype=float)
        choice = int(logs.argmax())
        share = 1.0 / float(np.exp(logs - logs[choice]).sum())
        right = choice in gold if isinstance(gold, list | tuple) else choice == gold
        pairs.append((share, float(right)))
    return pairs


def _number(pairs: Sequence[tuple[Any, Any]], metric: str, part: str) -> float:
    if not pairs:
        return float("nan")
    confidence, correct = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    estimate = metric_estimates(confidence, correct, names=[metric], resamples=_RESAMPLES)[metric]
    return float(getattr(estimate, part))
