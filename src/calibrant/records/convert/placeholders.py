"""Values that a writer puts where it has none: recognised, named, and never a probability.

Some clients write a log-probability of 0 for every token where the endpoint gave none. Read as it
stands, that is certainty in every word.
"""

from __future__ import annotations

import polars as pl

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
