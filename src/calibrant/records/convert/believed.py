"""Which numbers of a log are believed, and which a writer only put where it had none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from calibrant.records.convert.json_text import finite_number
from calibrant.records.spelling import spells

if TYPE_CHECKING:
    from calibrant.records.convert.log import LogBuilder

# A hair above 0 is rounding; far below, a writer says that it does not know.
_HIGHEST, _LOWEST = 1e-4, -9000.0
_NAMES = ("token", "text")


def believed_tokens(
    builder: LogBuilder, entries: Sequence[Any], text: str | None
) -> list[float] | None:
    """Return the log-probabilities of an answer's tokens, or None with a note that says why.

    Refused are values that are no log-probability, and tokens that do not spell the text: such
    numbers belong to another answer.

    Parameters
    ----------
    builder
        Where refusals are noted.
    entries
        A number for each token, or a mapping with its ``logprob`` and its text.
    text
        What the tokens must spell; None where the log does not say.

    Examples
    --------
    >>> from calibrant.records.convert.log import LogBuilder
    >>> builder = LogBuilder("mine", "file")
    >>> believed_tokens(builder, [{"token": "Par", "logprob": -0.1}], "London"), builder.notes
    (None, ['some log-probs are not read: the tokens do not spell the answer'])
    """
    if not entries:
        return None
    values = [
        finite_number(entry.get("logprob") if isinstance(entry, Mapping) else entry)
        for entry in entries
    ]
    sound = [value for value in values if value is not None and _LOWEST < value <= _HIGHEST]
    if len(sound) < len(values):
        builder.note("some log-probs are not read: a value is no log-probability")
        return None
    pieces = [_piece(entry) for entry in entries]
    known = [piece for piece in pieces if piece is not None]
    if text is not None and len(known) == len(pieces) and not spells(known, text):
        builder.note("some log-probs are not read: the tokens do not spell the answer")
        return None
    return [min(value, 0.0) for value in sound]


def _piece(entry: Any) -> str | None:
    if not isinstance(entry, Mapping):
        return None
    return next((entry[name] for name in _NAMES if isinstance(entry.get(name), str)), None)


_STATED = ("stated", "verb")

# Of fewer tokens all may be alike by chance: a model that is certain of a short answer or two.
_LEAST_TOKENS = 5
_FROM_TOKENS = ("perplexity", "sequence_probability")


def placeholder_logprobs(draws: pl.DataFrame) -> list[tuple[str, float]]:
    """Return models whose token log-probs are one and the same number throughout.

    Examples
    --------
    >>> table = pl.DataFrame({"model": ["a"] * 6, "token_logprobs": [[0.0, 0.0, 0.0]] * 6})
    >>> placeholder_logprobs(table)
    [('a', 0.0)]
    """
    if "token_logprobs" not in draws.columns or draws.height == 0:
        return []
    tokens = (
        draws.select("model", "token_logprobs")
        .drop_nulls("token_logprobs")
        .explode("token_logprobs")
        .drop_nulls("token_logprobs")
    )
    found = (
        tokens.group_by("model", maintain_order=True)
        .agg(
            pl.len().alias("tokens"),
            pl.col("token_logprobs").min().alias("low"),
            pl.col("token_logprobs").max().alias("high"),
        )
        .filter((pl.col("low") == pl.col("high")) & (pl.col("tokens") >= _LEAST_TOKENS))
    )
    return [(str(model), float(low)) for model, _, low, _ in found.iter_rows()]


def without_placeholders(
    draws: pl.DataFrame, scores: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Return draws and scores without made-up probabilities, and a note per model."""
    scores, notes = _without_zeros(scores)
    found = placeholder_logprobs(draws)
    notes += [
        f"{model}: every token has the log-probability {value:g}, which is a placeholder of the "
        "writer; it is not read as a confidence"
        for model, value in found
    ]
    if not found:
        return draws, scores, notes
    ours = pl.col("model").is_in([model for model, _ in found])
    draws = draws.with_columns(
        token_logprobs=pl.when(~ours).then(pl.col("token_logprobs")),
    )
    scores = scores.filter(~(ours & pl.col("method").is_in(_FROM_TOKENS)))
    return draws, scores, notes


def _without_zeros(scores: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Take out stated confidences that are 0 throughout; tell of others that never change."""
    if scores.height == 0:
        return scores, []
    told = scores.filter(pl.col("method").is_in(_STATED))
    same = (
        told.group_by("model", "method", maintain_order=True)
        .agg(
            pl.len().alias("rows"),
            pl.col("confidence").min().alias("low"),
            pl.col("confidence").max().alias("high"),
        )
        .filter((pl.col("low") == pl.col("high")) & (pl.col("rows") >= _LEAST_TOKENS))
    )
    notes = []
    for model, method, _, value, _ in same.iter_rows():
        if value == 0.0:
            ours = (pl.col("model") == model) & (pl.col("method") == method)
            scores = scores.filter(~ours)
            notes.append(
                f"{model}: every confidence is 0, which is a placeholder of the writer; it is not "
                "read as a confidence"
            )
        else:
            notes.append(
                f"{model}: every confidence is {value:g}; make sure that the tool did not fill it "
                "in where there was none"
            )
    return scores, notes


_IN_WORDS = re.compile(
    r"confidence\W{0,4}\s*(?:score|level)?\W{0,4}:\W{0,4}\s*(\d{1,3}(?:\.\d+)?)(?![\d,])\s*(%|/\s*100)?",
    re.IGNORECASE,
)


def stated_percent(reply: str) -> float | None:
    r"""Return the confidence of the last line ``Confidence: 85%`` as a fraction, or None.

    A number without a percent sign is a percentage above 1 and a fraction below; what is above
    100 % is none.

    Examples
    --------
    >>> stated_percent("Answer: 4\nConfidence: 85%"), stated_percent("**Confidence:** 0.4")
    (0.85, 0.4)
    >>> stated_percent("I am confident."), stated_percent("Confidence: 850%")
    (None, None)
    >>> stated_percent("Confidence: 1,238,222") is None
    True
    """
    found = _IN_WORDS.findall(reply)
    if not found:
        return None
    number, unit = found[-1]
    value = float(number)
    if unit or value > 1.0:
        value /= 100.0
    return value if value <= 1.0 else None
