"""What is asked where a table leaves a doubt, and what is said where it cannot be read."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.errors import (
    InputError,
    NoConfidenceError,
    PossibleReading,
    QuestionError,
    UnavailableError,
)
from calibrant.core.hints import TABLE, Call, Hint
from calibrant.data.reading import FRACTION
from calibrant.data.reading.assignment import ReadingDecision
from calibrant.data.reading.candidates import Match, ReadingChoice
from calibrant.data.reading.cells import Column, meaning_of
from calibrant.data.reading.likely_columns import outcome_candidates
from calibrant.data.reading.names import columns_called, name_roles, tokens

_DOUBTS = {
    "which": "Several columns may be meant.",
    "unsure": "Neither names nor values say for sure which columns are meant.",
    "levels": "These look like ratings: which value means certain?",
    "words": "The confidences are words, and what they stand for is not known.",
    "mixed": "Some confidences are at most 1, others look like percentages.",
    "rank": "The scores have no scale: only their order tells.",
    "logprob": "It may be the log-probability of a whole answer or of one token.",
    "uncertainty": "A high value may mean unsure or sure.",
    "whose": "It may say how sure a judge is, not the model.",
    "error": "The column may say what went wrong.",
    "word": "Which word means right is not known.",
    "letters": "A, B and C may be grades or answers.",
    "graded": "It holds grades, and where right begins is not known.",
    "decision": "It may say what was done with the answer, not whether it was right.",
    "leftover": "Some words mean neither right nor wrong.",
    "direction": "Confidence is higher where the answer counts as wrong: a column may be turned.",
    "text": "Answers are free text: they are graded by meaning.",
}


def options_of(choice: ReadingChoice, fixed: Mapping[str, str | None]) -> dict[str, str]:
    """Return the options that read a table in this way; those that were named stay away.

    Parameters
    ----------
    choice
        The reading.
    fixed
        Options that somebody named.
    """
    confidence, outcome = choice.said[0], choice.outcome
    options = {"confidence": ",".join(c.column for c in choice.said)}
    outcomes = choice.outcomes or (outcome,)
    if confidence.probs:
        options = {"probs": confidence.probs, "correct": outcome.gold}
    elif outcome.pair:
        options |= {"answer": outcome.answer, "gold": outcome.gold}
    else:
        options["correct"] = ",".join(o.column for o in outcomes)
        usual = all(meaning_of(word) == 1.0 for o in outcomes for word in o.right)
        usual = usual and all(meaning_of(word) == 0.0 for o in outcomes for word in o.wrong)
        errors = any(name_roles(o.column).wrong >= 2 for o in outcomes) or outcome.inverted
        both = outcome.leftover or not outcome.right
        if errors or both or outcome.graded or not usual:
            options["right"] = ",".join(outcome.right) + both * f"/{','.join(outcome.wrong)}"
    scales = {c.scale for c in choice.said}
    if len(scales) == 1 and scales != {FRACTION} and not confidence.probs:
        options["scale"] = confidence.scale
    return {name: text for name, text in options.items() if fixed.get(name) is None}


def reading_question(
    decision: ReadingDecision,
    fixed: Mapping[str, str | None],
    height: int,
    more: Mapping[str, Any],
) -> QuestionError:
    """Return the question: what is doubtful, and at most three readings with their numbers.

    Each has `more` options beside its own.
    """
    why = " ".join(_DOUBTS[doubt] for doubt in decision.doubts if doubt in _DOUBTS)
    notes = " ".join(dict.fromkeys(decision.choices[0].notes))
    readings = tuple(
        PossibleReading(_told(choice, height), {**options_of(choice, fixed), **more})
        for choice in decision.choices
    )
    rule = " ".join(part for part in ("Which columns are meant?", why, notes) if part)
    return QuestionError(rule, readings=readings)


def _told(choice: ReadingChoice, height: int) -> str:
    """Return a reading in words, with what follows from it."""
    parts = []
    every = zip(choice.said, choice.each_outcome, choice.matches, strict=True)
    for confidence, outcome, matches in every:
        column = "the likeliest class" if confidence.probs else confidence.column
        scale = "" if confidence.scale == FRACTION else f" as {confidence.scale}"
        what = outcome.column
        if not outcome.pair:
            words, means = (outcome.right, "right") if outcome.right else (outcome.wrong, "wrong")
            bound = "" if words and words[0].startswith(("<", ">")) else "= "
            what += f" {bound}{' or '.join(words[:4])} means {means}"
        # What differs in words may mean the same.
        right = "is the same word for word in" if outcome.doubt == "text" else "is right"
        parts.append(f"{column}{scale}, {what}: {_numbers(matches, height, right)}")
    return "; ".join(parts)


def _numbers(result: Match, height: int, right: str) -> str:
    if not result.n:
        return "no row has both"
    confidence = "" if np.isnan(result.said) else f"says {100 * result.said:.0f} %, "
    rows = f"{result.n:,} of {height:,} rows" if result.n < height else f"{height:,} rows"
    return f"{confidence}{right} {100 * result.right:.0f} % ({rows}, AUROC {result.auroc:.2f})"


def refusal(
    why: str, names: Sequence[str], chosen: Mapping[str, Sequence[str]], first: str
) -> InputError:
    """Say which of confidence and outcome is missing, and what may help.

    Parameters
    ----------
    why
        What was found instead.
    names
        The columns of the table.
    chosen
        Columns by role so far.
    first
        The role that lacks a column.
    """
    lacks, _, result = why.partition(":")
    if lacks not in ("confidence", "outcome"):
        lacks = "confidence" if first == "confidence" else "outcome"
        result = next((n for role in ("confidence", "correct") for n in chosen.get(role, ())), "")
    display, listing = result.replace(",", ", "), ", ".join(names[:12])
    draws = sampled_columns(names)
    if not result:
        rule = why or "there is neither a confidence nor an outcome here: no column 'confidence'"
        if draws and not why:
            return UnavailableError(rule, hint=_grade_draws(draws, names))
        text = "name both with {confidence} and {correct} (there are: {0})"
        return InputError(rule, hint=Hint(text, listing))
    if lacks == "confidence":
        rule = f"there are grades ({display}), but there is no column 'confidence'"
        if draws and " = " in result:
            return UnavailableError(rule, hint=_grade_draws(draws, names))
        hint = Hint("name it with {confidence} (there are: {0})", listing)
        error = NoConfidenceError(rule, hint=hint)
        error.graded = tuple(name for name in result.split(",") if name in names)
        return error
    rule = f"there is a confidence ({display}), but no column 'correct': "
    rule += "calibration needs a right or wrong for each answer"
    step = "name that column with {correct} (there are: {0}); without one, label a batch: `{next}`"
    batch = Call("label next", TABLE, out="batch.csv")
    return UnavailableError(rule, hint=Hint(step, listing, next=batch))


def sampled_columns(names: Sequence[str]) -> list[str]:
    """Return the column of sampled answers, or the columns that hold one draw each.

    Examples
    --------
    >>> sampled_columns(["q", "sample_1", "sample_2", "gold"]), sampled_columns(["id", "answers"])
    (['sample_1', 'sample_2'], ['answers'])
    """
    if listed := columns_called("sampled", names):
        return listed[:1]
    stems: dict[str, list[str]] = {}
    for name in names:
        match = re.fullmatch(r"(.*[^\W\d_])[\W_]*\d+\]?", name)
        if match and (words := tokens(match[1])) and columns_called("sampled", [f"{words[-1]}s"]):
            stems.setdefault(match[1], []).append(name)
    several = (
        columns
        for stem, columns in stems.items()
        # `correct_answer_1` and `wrong answer 2` were given, not sampled.
        if len(columns) > 1 and not name_roles(stem).gold >= 2 and not name_roles(stem).wrong
    )
    return next(several, [])


def _grade_draws(draws: Sequence[str], names: Sequence[str]) -> Hint:
    columns, known = ", ".join(map(repr, draws)), columns_called("reference", names)
    text = "if {0} holds sampled answers, have them graded: "
    text = text if len(draws) == 1 else text.replace("holds", "hold")
    if len(known) == 1:
        call = Call("audit", TABLE, samples=",".join(draws), reference=known[0])
        return Hint(text + "`{call}`", columns, call=call)
    text += "{samples} and {reference} with the column of right answers (there are: {1})"
    return Hint(text, columns, ", ".join(names), samples=",".join(draws))


def right_of_errors(column: pl.Series) -> tuple[str | None, str]:
    """Return the words that mean right in a column of errors and what is said of it, or None.

    Examples
    --------
    >>> right_of_errors(pl.Series("is_error", [0, 1, 1]))
    ('0', 'is_error says what went wrong: 1 is read as wrong, 0 as right.')
    >>> right_of_errors(pl.Series("correct", [0, 1, 1]))
    (None, '')
    """
    if name_roles(column.name).wrong < 2:
        return None, ""
    result = next(iter(outcome_candidates([Column(column)], ())), None)
    if result is None or not result.inverted or result.graded:
        return None, ""
    if not result.doubt:
        return ",".join(result.right), result.notes[0]
    modes = [
        PossibleReading(f"{column.name} = {' or '.join(words)} means right", {"right": words[0]})
        for words in (result.right, result.wrong)
    ]
    raise QuestionError(f"{_DOUBTS['error']} {result.notes[0]}", readings=modes)
