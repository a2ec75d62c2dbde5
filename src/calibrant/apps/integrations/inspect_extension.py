"""Scorers and metrics for Inspect, registered under the entry point group ``inspect_ai``.

A scorer grades a reply and keeps a confidence beside the grade, for every epoch. The metrics are
declared to work on unreduced scores: Inspect otherwise averages grades over epochs first, and a
task whose every attempt is maximally wrong about itself can then look perfectly calibrated.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant.answers.semantics import cluster_answers, grade_answers
from calibrant.answers.semantics.extract import extract_answer
from calibrant.core.names import optional_import
from calibrant.data.logs.inspect_log import grade_of
from calibrant.metrics import metric_estimates, sem_ece

_QUESTION = (
    "Question: {question}\nProposed answer: {answer}\n"
    "Is the proposed answer true? Reply with one word, True or False."
)
_RESAMPLES = 200
_ENDS = {"": "value", "_low": "low", "_high": "high"}


# -- metrics -------------------------------------------------------------------------------------


def _paired(scores: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Return (confidence, correct, question) of the scores that have both numbers."""
    rows = []
    for entry in scores:
        confidence = (entry.score.metadata or {}).get("confidence")
        correct, _ = grade_of(entry.score.value)
        if correct is not None and confidence is not None:
            rows.append((float(confidence), correct, str(entry.sample_id)))
    confidences, grades, ids = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(confidences), np.array(grades), np.array(ids, dtype=str)


def _estimate(name: str) -> Callable[..., Callable[[Sequence[Any]], dict[str, float]]]:
    """Return the factory of a metric with its interval, questions resampled as a whole."""

    def factory(bins: int = 15) -> Callable[[Sequence[Any]], dict[str, float]]:
        def metric(scores: Sequence[Any]) -> dict[str, float]:
            confidence, correct, question = _paired(scores)
            counts = {
                f"{name}_n": float(len(confidence)),
                f"{name}_left_out": float(len(scores) - len(confidence)),
            }
            if not len(confidence):
                return {f"{name}{end}": float("nan") for end in _ENDS} | counts
            units = np.unique(question, return_inverse=True)[1]
            estimate = metric_estimates(
                confidence,
                correct,
                names=[name],
                units=units if len(set(units.tolist())) < len(units) else None,
                bins=bins,
                resamples=_RESAMPLES,
            )[name]
            ends = {f"{name}{end}": float(getattr(estimate, part)) for end, part in _ENDS.items()}
            return ends | counts

        return metric

    factory.__name__ = name
    factory.__doc__ = f"Compute {name} with its interval over unreduced epochs."
    return factory


def sem_ece_metric(bins: int = 10) -> Callable[[Sequence[Any]], dict[str, float]]:
    """Compute Sem1-ECE and Sem2-ECE: epochs are draws, answers are clustered by meaning."""

    def metric(scores: Sequence[Any]) -> dict[str, float]:
        answers: dict[str, list[tuple[str, float]]] = {}
        for entry in scores:
            correct, _ = grade_of(entry.score.value)
            if correct in (0.0, 1.0) and entry.score.answer is not None:
                answers.setdefault(str(entry.sample_id), []).append((entry.score.answer, correct))
        rows = [
            # Answers graded differently do not mean the same to the grader.
            (question, 2 * class_id + int(correct), correct)
            for question, pairs in answers.items()
            for class_id, (_, correct) in zip(
                cluster_answers([text for text, _ in pairs]), pairs, strict=True
            )
        ]
        counts = {
            "sem_ece_questions": float(len(answers)),
            "sem_ece_left_out": float(len(scores) - len(rows)),
        }
        names = [(n, end, part) for n in ("sem1", "sem2") for end, part in _ENDS.items()]
        if not rows or len(rows) == len(answers):
            return {f"{name}_ece{end}": float("nan") for name, end, _ in names} | counts
        question, classes, grades = (list(column) for column in zip(*rows, strict=True))
        errors = sem_ece(question, classes, grades, bins=bins, resamples=_RESAMPLES)
        return {
            f"{name}_ece{end}": float(getattr(getattr(errors, name), part))
            for name, end, part in names
        } | counts

    return metric


METRICS: dict[str, Callable[..., Any]] = {
    "ece": _estimate("ece"),
    "smooth_ece": _estimate("smooth_ece"),
    "brier": _estimate("brier"),
    "auroc": _estimate("auroc"),
    "sem_ece": sem_ece_metric,
}


# -- scorers -------------------------------------------------------------------------------------


def _score(
    answer: str | None, target: Any, confidence: float | None, method: str, why: str | None
) -> Any:
    """Return an Inspect score: the grade of the answer and the confidence in that very answer."""
    scoring = optional_import("inspect_ai.scorer", extra="inspect", purpose="scoring in Inspect")
    grade = None
    if answer is not None:
        grade = grade_answers([answer], [[list(target)]])[0]
    metadata: dict[str, Any] = {"method": method, "confidence": confidence}
    if confidence is None:
        metadata["confidence_missing"] = why
    value = {True: scoring.CORRECT, False: scoring.INCORRECT, None: scoring.NOANSWER}[grade]
    return scoring.Score(value=value, answer=answer, metadata=metadata)


def verbalised() -> Callable[..., Any]:
    """Grade the reply and keep the confidence that it states (``Paris | 0.9``)."""

    async def score(state: Any, target: Any) -> Any:
        reply = extract_answer(state.output.completion, stated=True)
        return _score(reply.answer, target, reply.confidence, "verb", "no confidence is stated")

    return score


def logprob() -> Callable[..., Any]:
    """Grade the reply and keep the geometric mean of its token probabilities."""

    async def score(state: Any, target: Any) -> Any:
        choices = state.output.choices
        logprobs = choices[0].logprobs if choices else None
        tokens = [token.logprob for token in logprobs.content] if logprobs else []
        confidence = math.exp(math.fsum(tokens) / len(tokens)) if tokens else None
        answer = extract_answer(state.output.completion).answer
        return _score(answer, target, confidence, "perplexity", "the reply has no logprobs")

    return score


def p_true(model: str | None = None) -> Callable[..., Any]:
    """Ask whether the answer is true, and keep the probability of the token True."""

    async def score(state: Any, target: Any) -> Any:
        models = optional_import("inspect_ai.model", extra="inspect", purpose="asking in Inspect")
        answer = extract_answer(state.output.completion).answer
        if answer is None:
            return _score(None, target, None, "p_true_prob", "there is no answer")
        prompt = _QUESTION.format(question=state.input_text, answer=answer)
        config = models.GenerateConfig(max_tokens=1, logprobs=True, top_logprobs=10)
        reply = await models.get_model(model).generate(prompt, config=config)
        confidence = _probability_of_true(reply)
        return _score(answer, target, confidence, "p_true_prob", "the verdict has no logprobs")

    return score


def _probability_of_true(reply: Any) -> float | None:
    logprobs = reply.choices[0].logprobs if reply.choices else None
    if not logprobs or not logprobs.content:
        return None
    first = logprobs.content[0]
    listed = first.top_logprobs or [first]
    of_true = [t.logprob for t in listed if t.token.strip().lower() == "true"]
    # True outside the listed tokens is rarer than the rarest of them, but not known.
    return min(1.0, math.fsum(math.exp(value) for value in of_true)) if of_true else None


SCORERS: dict[str, Callable[..., Any]] = {
    "verbalised": verbalised,
    "logprob": logprob,
    "p_true": p_true,
}


# -- registration --------------------------------------------------------------------------------


def register() -> dict[str, Any]:
    """Register scorers and metrics with Inspect and return them by name."""
    scoring = optional_import("inspect_ai.scorer", extra="inspect", purpose="the Inspect extension")
    metrics = {
        name: scoring.metric(name=name, scores="unreduced")(factory)
        for name, factory in METRICS.items()
    }
    standard = [scoring.accuracy(), scoring.stderr(), *(make() for make in metrics.values())]
    scorers = {
        name: scoring.scorer(metrics=standard, name=name)(factory)
        for name, factory in SCORERS.items()
    }
    return {**metrics, **scorers}
