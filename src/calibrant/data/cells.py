"""Cells as people write them: percent signs, decimal commas, words for right and wrong."""

import re
from collections.abc import Collection

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.reading import FRACTION, PERCENT

MISSING_TEXT = ["", "na", "n/a", "nan", "null", "none", "-", "#n/a", r"\n"]
_MEANING = {
    word: meaning
    for meaning, words in (
        (1.0, "true t yes y right correct pass passed success c ✓ ✔"),
        (0.0, "false f no n wrong incorrect fail failed failure i ✗ ✘"),
        (1.0, "ja wahr richtig korrekt oui vrai juste sí si verdadero correcto vero giusto"),
        (0.0, "nein falsch non faux incorrecto falso sbagliato"),
    )
    for word in words.split()
}
_PLAIN_FLAGS = frozenset({"true", "false"})
_NO_TEXT = pl.lit(None, pl.String)
# Levels of questionnaires, and the share of values above 1 from which a column is in percent.
_LEVELS = (4, 5, 7, 10)
_LEAST_LEVELS = 10
_MOST_ABOVE, _SOME_ABOVE = 0.9, 0.5
_BLANKS = r"[\s\u00a0\u202f]+"


def is_text(dtype: pl.DataType) -> bool:
    """Return whether cells of this type are words or numbers written as text."""
    return dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


def _lowered(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).str.strip_chars().str.to_lowercase()


def _parsed(text: pl.Expr) -> pl.Expr:
    """Return numbers written with a point or a comma, in percent where a sign says so."""
    bare = text.str.replace_all(_BLANKS, "").str.replace(r"[%％]$", "")
    bare = bare.str.replace(r"^([+-]?\d*),(\d+)$", "${1}.${2}")
    number = bare.cast(pl.Float64, strict=False)
    return pl.when(text.str.contains(r"[%％]\s*$")).then(_divided(number, 100)).otherwise(number)


def _divided(number: pl.Expr, by: float) -> pl.Expr:
    """Divide as numpy does: polars multiplies by 1 / by, and 95 percent would not be 0.95."""
    return number.map_batches(
        lambda values: pl.Series(values.name, values.to_numpy() / by), return_dtype=pl.Float64
    )


def read_number(frame: pl.DataFrame, column: str, *, keep_single: bool = False) -> pl.DataFrame:
    """Read a column of numbers, remembering the text of cells that hold none."""
    mark, dtype = f"_{column}_text", frame.schema[column]
    if is_text(dtype):
        return _with_text(frame, column, _parsed(_lowered(column)))
    if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        raise InputError(f"the column for {column} must hold numbers, it holds {dtype}")
    # Single precision is kept: binning knows that 0.7 stored in 32 bits was meant as 0.7.
    keep = keep_single and dtype == pl.Float32
    number = pl.col(column) if keep else pl.col(column).cast(pl.Float64)
    return frame.with_columns(number, _NO_TEXT.alias(mark))


def _with_text(frame: pl.DataFrame, column: str, number: pl.Expr) -> pl.DataFrame:
    text = pl.col(column).cast(pl.String).str.strip_chars()
    missing = text.str.to_lowercase().is_in(MISSING_TEXT) | text.is_null()
    return frame.with_columns(
        pl.when(~missing).then(number).alias(column),
        pl.when(~missing & number.is_null()).then(text).alias(f"_{column}_text"),
    )


def read_outcome(frame: pl.DataFrame, right: str | None) -> tuple[pl.DataFrame, str | None]:
    """Read outcomes; return the words that were taken for right and wrong, if any."""
    if not is_text(frame.schema["correct"]):
        return read_number(frame, "correct"), None
    lowered = _lowered("correct")
    used = frame.select(lowered.unique().sort().alias("word"))["word"].drop_nulls()
    words = [word for word in used.to_list() if word not in MISSING_TEXT]
    meaning = _MEANING
    if right is not None:
        meant = {word.strip().lower() for word in right.split(",")}
        meaning = {word: float(word in meant) for word in words}
    verdicts = [word for word in words if word in meaning]
    word = lowered.replace_strict(
        {word: meaning[word] for word in verdicts}, default=None, return_dtype=pl.Float64
    )
    number = pl.coalesce(word, _parsed(lowered)) if verdicts else _parsed(lowered)
    right_first = sorted(verdicts, key=lambda word: -meaning[word])
    words_told = None if set(right_first) <= _PLAIN_FLAGS else "/".join(right_first)
    return _with_text(frame, "correct", number), words_told


def is_outcome(column: pl.Series) -> bool:
    """Return whether all values are 0 or 1, true or false, or words that mean right or wrong.

    Examples
    --------
    >>> is_outcome(pl.Series(["Yes", "no", None])), is_outcome(pl.Series(["A", "B"]))
    (True, False)
    """
    if column.dtype == pl.Boolean:
        return True
    values = column.drop_nulls()
    if is_text(column.dtype):
        lowered = values.cast(pl.String).str.strip_chars().str.to_lowercase().unique()
        words = [word for word in lowered.to_list() if word not in MISSING_TEXT]
        return bool(words) and all(word in _MEANING or word in ("0", "1") for word in words)
    numbers = values.cast(pl.Float64) if column.dtype.is_numeric() else values.head(0)
    return numbers.len() > 0 and bool(numbers.fill_nan(0.0).is_in([0.0, 1.0]).all())


def is_confidence(column: pl.Series) -> bool:
    """Return whether the values may be a confidence: numbers up to 1 or 100, not all 0 or 1.

    Examples
    --------
    >>> is_confidence(pl.Series(["91 %", "0,5"])), is_confidence(pl.Series([0, 1, 1]))
    (True, False)
    """
    if not (is_text(column.dtype) or column.dtype.is_numeric()) or is_outcome(column):
        return False
    frame = read_number(column.alias("confidence").to_frame(), "confidence")
    numbers = frame["confidence"].drop_nulls().drop_nans()
    written = int(frame["_confidence_text"].is_not_null().sum())
    usual = numbers.is_between(-1, 100).mean()
    return bool(numbers.len() > written and isinstance(usual, float) and usual > _MOST_ABOVE)


def read_confidence(
    frame: pl.DataFrame, scale: str | None, non_probability: Collection[str]
) -> tuple[pl.DataFrame, str, bool]:
    """Return confidences as fractions, the scale they had, and whether that was guessed.

    Parameters
    ----------
    frame
        With the columns confidence, method and model.
    scale
        ``fraction``, ``percent``, levels such as ``1-5``, words such as ``low=0.3,high=0.9``, or
        None: what the values say, where they leave no doubt.
    non_probability
        Methods whose scores have no scale.
    """
    if scale is not None and "=" in scale:
        number = _lowered("confidence").replace_strict(
            _word_values(scale), default=None, return_dtype=pl.Float64
        )
        return _with_text(frame, "confidence", number), scale, False
    marked = _percent_signs(frame)
    frame = read_number(frame, "confidence", keep_single=True)
    plain = pl.lit(True) if marked is None else pl.lit(~marked)
    if scale is None:
        bounded = plain & ~pl.col("method").is_in(list(non_probability))
        unmarked = frame.filter(bounded)
        if _guessed_scale(unmarked) == FRACTION:
            all_signs = marked is not None and not unmarked["confidence"].count()
            return frame, PERCENT if all_signs else FRACTION, all_signs
        return _scaled(frame, 0.0, 100.0, bounded), PERCENT, True
    low, high = scale_ends(scale)
    return _scaled(frame, low, high, plain), scale, False


def _percent_signs(frame: pl.DataFrame) -> pl.Series | None:
    """Return which cells have a percent sign: these need no scale."""
    if not is_text(frame.schema["confidence"]):
        return None
    sign = pl.col("confidence").cast(pl.String).str.contains("[%％]").fill_null(False)
    marked = frame.select(sign.alias("sign"))["sign"]
    return marked if marked.any() else None


def _scaled(frame: pl.DataFrame, low: float, high: float, which: pl.Expr) -> pl.DataFrame:
    if (low, high) == (0.0, 1.0):
        return frame
    value = pl.col("confidence")
    # A code for a refusal is none of the scale's values.
    here = which & (value != -1)
    return frame.with_columns(
        pl.when(here).then(_divided(value - low, high - low)).otherwise(value)
    )


def scale_ends(scale: str) -> tuple[float, float]:
    """Return the values that stand for 0 and 1.

    Examples
    --------
    >>> scale_ends("percent"), scale_ends("1-5")
    ((0.0, 100.0), (1.0, 5.0))
    """
    if scale in (FRACTION, PERCENT):
        return 0.0, 1.0 if scale == FRACTION else 100.0
    ends = re.fullmatch(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", scale)
    if ends is None or float(ends[1]) >= float(ends[2]):
        raise InputError(
            Hint("{scale} is fraction, percent, levels or words with values, got {0}", repr(scale)),
            hint=Hint("for example {scale}, or low=0.3,high=0.9", scale="1-5"),
        )
    return float(ends[1]), float(ends[2])


def _word_values(scale: str) -> dict[str, float]:
    values = {}
    for part in scale.split(","):
        word, _, number = part.rpartition("=")
        try:
            values[word.strip().lower()] = float(number)
        except ValueError:
            raise InputError(
                Hint("{scale} gives every word a number, got {0}", repr(part.strip())),
                hint=Hint("for example {scale}", scale="low=0.3,high=0.9"),
            ) from None
    return values


def _guessed_scale(frame: pl.DataFrame) -> str:
    """Return the scale that the values leave no doubt about, or ask."""
    value = pl.col("confidence")
    numbers = frame.filter(value.is_finite() & (value != -1))
    highest = numbers["confidence"].max()
    if not isinstance(highest, float) or highest <= 1 or highest > 100:
        return FRACTION
    positive = numbers.filter(value > 0)
    lowest = float(numbers.select(value.min()).item())
    above = float(positive.select((value > 1).mean()).item())
    if lowest < 0 or above < _SOME_ABOVE:
        return FRACTION
    if highest <= _LEVELS[-1]:
        whole = numbers.height >= _LEAST_LEVELS and numbers["confidence"].n_unique() > 1
        if whole and numbers.select((value == value.round()).all()).item():
            raise _levels(numbers, lowest, highest)
        return FRACTION
    by_model = positive.group_by("model", maintain_order=True).agg(value.max(), pl.len())
    small = by_model.filter((pl.col("confidence") <= 1) & (pl.col("len") >= 20))
    if above < _MOST_ABOVE or small.height:
        who = f" (those of {small['model'][0]} all are)" if small.height else ""
        raise InputError(
            f"{1 - above:.0%} of the confidences are at most 1{who}, the others reach {highest:g}",
            hint=Hint(
                "if all are percentages, use {scale}; if some are faults, use {on_invalid}",
                scale=PERCENT,
                on_invalid="drop",
            ),
        )
    return PERCENT


def _levels(numbers: pl.DataFrame, lowest: float, highest: float) -> InputError:
    top = next(level for level in _LEVELS if level >= highest)
    low = 0 if lowest < 1 or top == _LEVELS[-1] else 1
    values = ", ".join(f"{x:g}" for x in numbers["confidence"].unique().sort().head(6))
    return InputError(
        f"the confidences look like levels, not like shares ({values}): which value is certain?",
        hint=Hint(
            "if {0} is certain, use {1}; if they are percentages, use {2}",
            top,
            Hint("{scale}", scale=f"{low}-{top}"),
            Hint("{scale}", scale=PERCENT),
        ),
    )
