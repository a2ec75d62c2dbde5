"""One sample of an Inspect log: its reply, its grade and the confidences it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from calibrant.records.convert.believed import believed_tokens
from calibrant.records.convert.log import LogBuilder, as_text, finite_number
from calibrant.records.convert.options import ReadOptions

_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5}
_NO_ANSWER = "N"
_WORDS = {"yes": 1.0, "true": 1.0, "correct": 1.0, "no": 0.0, "false": 0.0, "incorrect": 0.0}
_GRADE_KEYS = ("correct", "accuracy", "score", "grade")
_CONFIDENCE_KEYS = ("confidence", "stated_confidence", "verbalized_confidence")


def grade_of(value: Any) -> tuple[float | None, str | None]:
    """Return a score's value as a grade in [0, 1], or None and the reason.

    Examples
    --------
    >>> grade_of("C"), grade_of("I"), grade_of({"correct": "I", "confidence": 0.9})
    ((1.0, None), (0.0, None), (0.0, None))
    >>> grade_of("N")
    (None, 'no answer')
    """
    if isinstance(value, bool):
        return float(value), None
    if isinstance(value, Mapping):
        for key in _GRADE_KEYS:
            if key in value:
                return grade_of(value[key])
        return None, f"a score with the parts {', '.join(map(str, value))}, none a grade"
    if isinstance(value, str):
        return _grade_of_text(value)
    number = finite_number(value)
    if number is None:
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        return None, "not scored" if missing else f"not a grade: {value!r:.40}"
    if not 0.0 <= number <= 1.0:
        return None, f"a grade outside 0 to 1: {number:g}"
    return number, None


def _grade_of_text(value: str) -> tuple[float | None, str | None]:
    if value == _NO_ANSWER:
        return None, "no answer"
    if value in _LETTERS:
        return _LETTERS[value], None
    word = value.strip().lower()
    if word in _WORDS:
        return _WORDS[word], None
    try:
        return grade_of(float(word))
    except ValueError:
        return None, f"not a grade: {value!r:.40}"


def graded_scorer(sample: Mapping[str, Any], builder: LogBuilder) -> str | None:
    """Return the first scorer of a sample that gives a grade."""
    scores = sample.get("scores")
    names = [
        name
        for name, score in (scores.items() if isinstance(scores, Mapping) else ())
        if isinstance(score, Mapping) and grade_of(score.get("value"))[0] is not None
    ]
    if len(names) > 1:
        builder.note(
            f"graded by the scorer {names[0]!r}; the log also has {', '.join(names[1:])} "
            "(choose another as grade)"
        )
    return names[0] if names else None


def add_sample(
    builder: LogBuilder,
    sample: Mapping[str, Any],
    context: Mapping[str, Any],
    scorer: str | None,
    options: ReadOptions,
) -> tuple[str, int]:
    """Add a sample as one draw, and return its id and epoch."""
    question, epoch = str(sample["id"]), int(sample["epoch"])
    attachments = sample.get("attachments") or {}
    output = sample.get("output") or {}
    choice = (output.get("choices") or [{}])[0]
    text = _resolved(_content_text((choice.get("message") or {}).get("content")), attachments)
    scores = sample.get("scores") or {}
    score = scores.get(scorer) if scorer is not None else None
    correct, reason = _grade(sample, score, scorer)
    answer = as_text((score or {}).get("answer"))
    answer = _resolved(answer, attachments) if answer is not None else text
    usage = output.get("usage") or {}
    logprobs = (choice.get("logprobs") or {}).get("content") or []
    tokens = believed_tokens(builder, logprobs, text)
    key = {"question_id": question, "model": context["model"], "task": context["task"]}
    draw = {
        "text": text if options.texts else None,
        "answer": answer,
        "correct": correct,
        "reason": reason,
        "grader": scorer,
        "finish_reason": choice.get("stop_reason"),
        "token_logprobs": tokens,
        "first_token_top_logprobs": None if tokens is None else _first_tokens(logprobs),
        "temperature": finite_number(context["temperature"]),
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
    }
    asked = {
        "text": _resolved(_input_text(sample.get("input")), attachments),
        "references": _references(sample.get("target")),
        "kind": "choice" if sample.get("choices") else "open",
        "choices": sample.get("choices"),
        "domain": context["task"],
    }
    found = {**_stated(scores, options), **_from_tokens(tokens)}
    # All of it was read: a sample is added whole, or listed as unreadable.
    builder.draw(**key, draw=epoch - 1, **draw)
    builder.question(question_id=question, **asked)
    for method, confidence in found.items():
        builder.score(
            **key,
            draw=epoch - 1,
            method=method,
            answer=answer,
            confidence=confidence,
            correct=correct,
        )
    return question, epoch


def _grade(
    sample: Mapping[str, Any], score: Mapping[str, Any] | None, scorer: str | None
) -> tuple[float | None, str | None]:
    if score is not None:
        return grade_of(score.get("value"))
    error = sample.get("error")
    if error:
        return None, f"the sample ended with an error: {str(error.get('message'))[:80]}"
    return None, "no scorer gives a grade" if scorer is None else f"not scored by {scorer!r}"


def _stated(scores: Mapping[str, Any], options: ReadOptions) -> dict[str, float]:
    """Return the confidences that scorers recorded, by method."""
    found: dict[str, float] = {}
    for name, score in scores.items():
        places = [score.get("metadata") or {}]
        if isinstance(score.get("value"), Mapping):
            places.append(score["value"])
        for place in places:
            for key in _CONFIDENCE_KEYS:
                number = finite_number(place.get(key))
                if number is None:
                    continue
                method = str(place.get("method", "verb" if key == "confidence" else key))
                place_name = method if method not in found else f"{method}:{name}"
                found[place_name] = options.fraction(number)
                break
    return found


def _from_tokens(tokens: list[float] | None) -> dict[str, float]:
    """Return the probability of the whole reply, and its geometric mean per token."""
    if not tokens:
        return {}
    total = math.fsum(tokens)
    if not math.isfinite(total) or max(tokens) > 0.0:
        return {}
    return {"perplexity": math.exp(total / len(tokens)), "sequence_probability": math.exp(total)}


def _first_tokens(logprobs: list[Any]) -> list[dict[str, Any]] | None:
    top = logprobs[0].get("top_logprobs") if logprobs else None
    if not top:
        return None
    return [{"token": entry["token"], "logprob": entry["logprob"]} for entry in top]


def _content_text(content: Any) -> str | None:
    if content is None or isinstance(content, str):
        return content
    parts = [part.get("text") for part in content if part.get("type") == "text"]
    return "\n".join(part for part in parts if part)


def _input_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    texts = [_content_text(message.get("content")) for message in value or []]
    return "\n".join(text for text in texts if text)


def _references(target: Any) -> list[list[str]] | None:
    """Return the target's texts as aliases of one right answer: Inspect accepts any of them."""
    texts = [target] if isinstance(target, str) else [str(text) for text in target or []]
    texts = [text for text in texts if text]
    return [texts] if texts else None


def _resolved(text: str | None, attachments: Mapping[str, str]) -> str:
    """Return the text with references to the sample's attachments put back."""
    if text is None:
        return ""
    mark = "attachment://"
    if mark in text and attachments:
        for key, content in attachments.items():
            text = text.replace(mark + key, content)
    return text
