"""Columns as numbers: confidences on their scale, outcomes by their words."""

import re
from collections.abc import Collection, Mapping

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats, Mask
from calibrant.core.errors import InputError, PossibleReading, QuestionError, did_you_mean
from calibrant.core.hints import Hint
from calibrant.data.reading import FRACTION, PERCENT
from calibrant.data.reading.candidates import LEVELS, MIXED, Scale, scale_of
from calibrant.data.reading.cells import (
    MISSING_TEXT,
    NEITHER,
    REFUSALS,
    is_text,
    lowered,
    meaning_of,
    parse_numbers,
    to_scale,
    word_counts,
    word_scale,
    word_values,
)

SCALES = (FRACTION, PERCENT, "logprob", "uncertainty", "rank", "rank-down", "mixed", "words")
"""Scales that have a name; levels such as 1-5 and words with values are others."""
_PLAIN_FLAGS = frozenset({"true", "false"})
_NO_TEXT = pl.lit(None, pl.String)


def read_number(frame: pl.DataFrame, column: str, *, keep_single: bool = False) -> pl.DataFrame:
    """Read a column of numbers, remembering the text of cells that hold none."""
    mark, dtype = f"_{column}_text", frame.schema[column]
    if is_text(dtype):
        cells = parse_numbers(frame[column])
        return _with_text(frame, column, cells.values, cells.text)
    if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        raise InputError(f"the column for {column} must hold numbers, it holds {dtype}")
    # Single precision is kept: binning knows that 0.7 stored in 32 bits was meant as 0.7.
    keep = keep_single and dtype == pl.Float32
    number = pl.col(column) if keep else pl.col(column).cast(pl.Float64)
    return frame.with_columns(number, _NO_TEXT.alias(mark))


def _with_text(frame: pl.DataFrame, column: str, values: Floats, text: Mask) -> pl.DataFrame:
    """Put numbers in place of a column; words that are none stand beside them."""
    words = frame[column].cast(pl.String).str.strip_chars()
    label = pl.select(pl.when(pl.Series(text)).then(words)).to_series()
    numbers = pl.Series(column, values).fill_nan(None)
    return frame.with_columns(numbers, label.alias(f"_{column}_text"))


def read_outcome(frame: pl.DataFrame, right: str | None) -> tuple[pl.DataFrame, str | None]:
    """Read outcomes; return the words that were taken for right and wrong, if any.

    Words that say neither, such as `not attempted`, are marked in the column ``_neither``.
    """
    column = frame["correct"]
    if right is not None:
        return _named_right(frame, column, right)
    if not is_text(column.dtype):
        return read_number(frame, "correct"), None
    text, words = lowered(column), word_counts(column, most=column.len())
    meaning = {word: x for word in words if (x := meaning_of(word)) is not None}
    if not meaning:
        return read_number(frame, "correct"), None
    cells = parse_numbers(column)
    spoken = text.replace_strict(meaning, default=None, return_dtype=pl.Float64)
    values = np.where(spoken.is_null().to_numpy(), cells.values, spoken.to_numpy().astype(float))
    neither = text.is_in(list(NEITHER)).fill_null(False)
    unknown = cells.text & np.isnan(values) & ~neither.to_numpy()
    read = _with_text(frame, "correct", values, unknown).with_columns(_neither=neither)
    right_first = sorted(meaning, key=lambda word: (-meaning[word], word))
    return read, None if {*right_first} <= _PLAIN_FLAGS else "/".join(right_first)


def _named_right(
    frame: pl.DataFrame, column: pl.Series, right: str
) -> tuple[pl.DataFrame, str | None]:
    """Read outcomes by the words that somebody says mean right; others mean wrong."""
    text = lowered(column)
    words = word_counts(column, most=column.len())
    names = _words_named(right, words)
    meant, remainder = names[0], NEITHER - {*names[0]}
    strange = [word for subset in names for word in subset if word not in words]
    if strange or not any(names):
        label = ", ".join([*words][:12]) + (" .." if len(words) > 12 else "")
        near = [did_you_mean(word, words) for word in strange[:1]]
        hint = Hint("the column holds: {0}" + "; {1}" * len(near), label, *near)
        rule = Hint("{right} names {0}, which does not occur", repr(", ".join(strange) or right))
        raise InputError(rule, hint=hint)
    if len(names) > 1:
        remainder = frozenset(words) - {*meant, *names[1]}
    value = {word: float(word in meant) for word in words}
    neither = text.is_in([*remainder]).fill_null(False)
    numbers = text.replace_strict(value, default=None, return_dtype=pl.Float64)
    correct = pl.select(pl.when(~neither).then(numbers)).to_series()
    read = frame.with_columns(correct=correct, _correct_text=_NO_TEXT, _neither=neither)
    wrong = [word for word in sorted(words) if word not in meant and word not in remainder]
    return read, "/".join([*sorted({*meant}), *wrong][:12])


_BOUND = re.compile(r"(>=|>|<=|<)\s*(-?\d*\.?\d+)")
_COMPARED = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}


def _words_named(right: str, words: Mapping[str, int]) -> list[list[str]]:
    """Return the words that mean right and, where a slash says them, those that mean wrong.

    A bound such as ``>=0.5`` means all numbers that keep it.

    Examples
    --------
    >>> _words_named("yes/no", {"yes": 3, "no": 2, "s": 1})
    [['yes'], ['no']]
    >>> _words_named(">=0.5", {"0.25": 3, "0.75": 2})
    [['0.75']]
    """
    whole = right.strip().lower()
    several = whole.split(",")
    slash = "/" in whole and not any("/" in word and word.strip() in words for word in several)
    parts = whole.split("/", 1) if slash and whole not in words else [whole]
    return [_written(part, words) for part in parts]


def _written(part: str, words: Mapping[str, int]) -> list[str]:
    if part in words:
        return [part]
    if bound := _BOUND.fullmatch(part):
        numbers = parse_numbers(pl.Series([*words], dtype=pl.String)).values
        selection = _COMPARED[bound[1]](numbers, float(bound[2]))
        return [word for word, keeps in zip(words, selection, strict=True) if keeps]
    return [_as_written(word, words) for word in part.split(",") if word.strip()]


def _as_written(word: str, words: Mapping[str, int]) -> str:
    """Return a word as the cells write it: 1 is also true, and 0 false."""
    word = word.strip()
    equal = {"1": ("1.0", "true"), "0": ("0.0", "false"), "true": ("1",), "false": ("0",)}
    if word in words:
        return word
    return next((peer for peer in equal.get(word, ()) if peer in words), word)


def read_confidence(
    frame: pl.DataFrame, scale: str | None, non_probability: Collection[str], name: str = ""
) -> tuple[pl.DataFrame, str, bool]:
    """Return confidences as shares, the scale they had, and whether that was guessed.

    Parameters
    ----------
    frame
        With the columns confidence, method and model.
    scale
        One of `SCALES`, levels such as ``1-5``, words such as ``low=0.3,high=0.9``, or None: what
        the values say, where they leave no doubt.
    non_probability
        Methods whose scores have no scale.
    name
        How the column is called: `certainty (1-5)` says its levels.
    """
    if scale is not None:
        require_scale(scale)
    if scale == "words" or (scale is not None and "=" in scale):
        return _read_words(frame, scale), scale, False
    column = frame["confidence"]
    if not is_text(column.dtype):
        frame, marked = read_number(frame, "confidence", keep_single=True), None
    else:
        cells = parse_numbers(column)
        refused = lowered(column).is_in(REFUSALS).fill_null(False).to_numpy()
        frame = _with_text(frame, "confidence", cells.values, cells.text & ~refused)
        marked = cells.marked
    values = frame["confidence"].to_numpy()
    plain = np.zeros(values.size, dtype=bool) if marked is None else marked
    if scale is None:
        ranking = frame["method"].is_in(list(non_probability)).fill_null(False).to_numpy()
        bounded = ~plain & ~ranking
        result = scale_of(values[bounded], name)
        _refuse_small_models(frame, bounded, result)
        if result.doubt:
            raise scale_question(result, values[bounded])
        if result.scale == FRACTION:
            all_signs = bool(plain.any() and not np.isfinite(values[bounded]).any())
            return frame, PERCENT if all_signs else FRACTION, all_signs
        return _scaled(frame, values, ~bounded, PERCENT), PERCENT, True
    if scale == "uncertainty":
        _refuse_unbounded(values[~plain])
    return _scaled(frame, values, plain, scale), scale, False


def _refuse_unbounded(values: Floats) -> None:
    """Refuse to take 1 - x of what is neither a share nor a percentage, such as an entropy."""
    finite = values[np.isfinite(values)]
    top = float(finite.max(initial=0.0))
    if finite.min(initial=0.0) < 0 or 1 < top <= 10 or top > 100:
        text = "{scale} takes 1 - x of shares or percentages, and these reach {0}"
        hint = Hint("where only their order tells, use {scale}", scale="rank-down")
        raise InputError(Hint(text, f"{top:g}", scale="uncertainty"), hint=hint)


def _scaled(frame: pl.DataFrame, values: Floats, selection: Mask, scale: str) -> pl.DataFrame:
    if scale in (FRACTION, "rank"):
        return frame
    shares = pl.Series("confidence", to_scale(values, selection, scale), dtype=pl.Float64)
    # What is empty stays empty, and NaN stays NaN: they break different rules.
    shares = pl.select(pl.when(frame["confidence"].is_not_null()).then(shares)).to_series()
    return frame.with_columns(shares.cast(frame.schema["confidence"]).alias("confidence"))


def _read_words(frame: pl.DataFrame, scale: str) -> pl.DataFrame:
    column = frame["confidence"]
    usual = word_scale(word_counts(column)) if scale == "words" else scale
    if usual is None:
        hint = Hint("say what each stands for, for example {scale}", scale="low=0.3,high=0.9")
        raise InputError("the confidences are no words that have a usual value", hint=hint)
    text = lowered(column)
    numbers = text.replace_strict(word_values(usual), default=None, return_dtype=pl.Float64)
    missing = text.is_in([*MISSING_TEXT, *REFUSALS]).fill_null(True)
    unknown = (numbers.is_null() & ~missing).to_numpy()
    return _with_text(frame, "confidence", numbers.to_numpy().astype(float), unknown)


def require_scale(scale: str) -> None:
    """Refuse what is no scale.

    Examples
    --------
    >>> require_scale("percent"), require_scale("1-5"), require_scale("low=0.3,high=0.9")
    (None, None, None)
    """
    if scale in SCALES:
        return
    if "=" in scale:
        for part in scale.split(","):
            if not re.fullmatch(r"[^=]*[^=\s][^=]*=\s*[+-]?\d*\.?\d+\s*", part):
                rule = Hint("{scale} gives every word a number, got {0}", repr(part.strip()))
                raise InputError(rule, hint=Hint("for example {scale}", scale="low=0.3,high=0.9"))
        return
    ends = re.fullmatch(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", scale)
    if ends is None or float(ends[1]) >= float(ends[2]):
        text = "{scale} is {0}, words, levels or words with values, got {1}"
        hint = Hint("for example {scale}, or low=0.3,high=0.9", scale="1-5")
        raise InputError(Hint(text, ", ".join(SCALES[:-1]), repr(scale)), hint=hint)


def _refuse_small_models(frame: pl.DataFrame, bounded: Mask, result: Scale) -> None:
    """Ask where percentages of one model stand beside shares of another."""
    if result.scale not in (PERCENT, MIXED):
        return
    value = pl.col("confidence")
    rows = frame.filter(pl.Series(bounded)).filter(value > 0)
    by_model = rows.group_by("model", maintain_order=True).agg(value.max(), pl.len())
    small = by_model.filter((value <= 1) & (pl.col("len") >= 20))
    if 0 < small.height < by_model.height:
        about = f" (those of {small['model'][0]} all are)"
        raise _mixed_question(rows["confidence"].to_numpy(), about)


def _mixed_question(finite: Floats, about: str = "") -> QuestionError:
    """Return the question where shares and percentages may stand in one column."""
    share = float((finite <= 1).mean())
    rule = f"{share:.0%} of the confidences are at most 1{about}, the others reach {finite.max():g}"
    hint = Hint(
        "if values up to 1 are shares and others percentages, use {0}; if all are percentages, "
        "use {1}; if some are faults, fix the rows or use {on_invalid} with one of these",
        *_scale_hints(MIXED, PERCENT),
        on_invalid="drop",
    )
    return QuestionError(rule, hint=hint, readings=_scale_readings(MIXED, PERCENT))


def _scale_hints(*scales: str) -> list[Hint]:
    return [Hint("{scale}", scale=scale) for scale in scales]


_SCALE_WORDS = {
    MIXED: "values up to 1 are shares, the others percentages",
    PERCENT: "all are percentages",
    "logprob": "they are log-probabilities",
    "rank": "only their order tells, a high one means sure",
    "rank-down": "only their order tells, a low one means sure",
}


def _scale_readings(*scales: str) -> list[PossibleReading]:
    """Return a reading for each scale that may be meant."""
    ends = {scale: scale.split("-") for scale in scales if scale not in _SCALE_WORDS}
    levels = {scale: f"{low} means 0 %, {high} means 100 %" for scale, (low, high) in ends.items()}
    words = _SCALE_WORDS | levels
    return [PossibleReading(words[scale], {"scale": scale}) for scale in scales]


def scale_question(found: Scale, values: Floats) -> InputError:
    """Return the question about a scale that the values do not settle."""
    finite = values[np.isfinite(values)]
    if found.doubt == MIXED:
        return _mixed_question(finite)
    if found.doubt == LEVELS:
        text = ", ".join(f"{x:g}" for x in np.unique(finite)[:6])
        low, _, high = found.scale.partition("-")
        readings = _scale_readings(found.scale, f"{int(low == '0')}-{high}", PERCENT)
        rule = f"these look like ratings ({text}): which means certain?"
        advice = "if {0} is certain, use {1}; if they are percentages, use {2}"
        hint = Hint(advice, high, *_scale_hints(found.scale, PERCENT))
        return QuestionError(rule, readings=readings, hint=hint)
    rule = f"the confidences range from {finite.min():g} to {finite.max():g}: they have no scale"
    advice = "say what they are: {0} for log-probabilities, {1} where only their order tells"
    hint = Hint(advice, *_scale_hints("logprob", "rank"))
    return QuestionError(rule, readings=_scale_readings("rank", "logprob"), hint=hint)


def is_outcome(column: pl.Series) -> bool:
    """Return whether all values are 0 or 1, true or false, or words that mean right or wrong.

    Examples
    --------
    >>> is_outcome(pl.Series(["Yes", "no", None])), is_outcome(pl.Series(["A", "B"]))
    (True, False)
    """
    if column.dtype == pl.Boolean:
        return True
    words = word_counts(column) if not column.dtype.is_nested() else {}
    return bool(words) and all(meaning_of(word) is not None or word in NEITHER for word in words)
