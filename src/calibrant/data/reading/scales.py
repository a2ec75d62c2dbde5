"""The scale of a confidence: told by its values, taken from them, or asked about."""

import re
from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.arrays import Floats, Mask
from calibrant.core.errors import InputError, PossibleReading, QuestionError
from calibrant.core.hints import Hint
from calibrant.data.reading import FRACTION, PERCENT
from calibrant.data.reading.cells import (
    MISSING_TEXT,
    REFUSALS,
    is_text,
    lowered,
    parse_numbers,
    read_number,
    with_text,
    word_counts,
)
from calibrant.data.reading.names import WORDS

LEVELS, MIXED, RANK, RANK_DOWN = "levels", "mixed", "rank", "rank-down"
RANKS = frozenset([RANK, RANK_DOWN])
"""Scales of which only the order tells: a high value means sure, or a low one."""
# Tops of questionnaires, and the shares from which a column is surely on one scale.
_TOPS = (4, 5, 7, 10)
_LEVELS = re.compile(r"(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)")
_MIXED_LEAST, _SOME, _MOST = 0.03, 0.5, 0.9
_LEAST_LEVELS = 10
WORD_SHARES = {word: float(x) for x, words in WORDS["levels"].items() for word in words.split(",")}
"""Words for how sure somebody is, with the share that they usually stand for."""
SCALES = (FRACTION, PERCENT, "logprob", "uncertainty", "rank", "rank-down", "mixed", "words")
"""Scales that have a name; levels such as 1-5 and words with values are others."""


def scale_of(values: Floats, name: str = "") -> tuple[str, str]:
    """Return the scale that numbers are on, and what makes it doubtful.

    That is nothing, `levels`, `mixed` or `rank`.

    Parameters
    ----------
    values
        Numbers of a column that is a confidence; NaN where there is none.
    name
        Its name: `certainty (1-5)` says which levels there are.

    Examples
    --------
    >>> scale_of(np.array([0.2, 0.9])), scale_of(np.array([55.0, 90.0]))
    (('fraction', ''), ('percent', ''))
    >>> scale_of(np.array([1.0, 4.0, 5.0] * 4)), scale_of(np.array([0.9, 0.8, 85.0]))
    (('1-5', 'levels'), ('mixed', 'mixed'))
    """
    finite = values[np.isfinite(values) & (values != -1)]
    highest = float(finite.max(initial=0.0))
    if highest <= 1 or highest > 100 or finite.min() < 0:
        return FRACTION, ""
    above = float((finite[finite > 0] > 1).mean())
    whole = bool((finite == np.round(finite)).all())
    if highest <= _TOPS[-1]:
        several = finite.size >= _LEAST_LEVELS and np.unique(finite).size > 1
        single = above < _SOME and np.unique(finite[finite > 1]).size < 2
        levels = whole and several and not single
        return (levels_of(finite, name), LEVELS) if levels else (FRACTION, "")
    if not whole and _is_mixed(finite):
        return MIXED, MIXED
    return (PERCENT if above >= _SOME else FRACTION), ""


def _is_mixed(known_values: Floats) -> bool:
    """Return whether shares and percentages stand in one column."""
    small = float((known_values <= 1).mean())
    if not _MIXED_LEAST < small < 1 - _MIXED_LEAST:
        return False
    shares = ((known_values > 0.3) & (known_values <= 1)).mean()
    return bool(shares > 0.8 * small and (known_values[known_values > 1] > 10).mean() > _MOST)


def levels_of(known: Floats, name: str) -> str:
    """Return the levels that a name states, or else the usual ones that hold all values.

    Examples
    --------
    >>> levels_of(np.array([1.0, 4.0]), "sure"), levels_of(np.array([2.0]), "sure (1-7)")
    ('1-4', '1-7')
    """
    confidence = re.search(r"(\d+)\s*(?:[-–/]|to)+\s*(\d+)", name)
    if confidence and int(confidence[1]) < int(confidence[2]) and known.max() <= int(confidence[2]):
        return f"{int(confidence[1])}-{int(confidence[2])}"
    highest, lowest = float(known.max()), float(known.min())
    top = 10 if "10" in re.findall(r"\d+", name) else next(t for t in _TOPS if t >= highest)
    return f"{0 if lowest < 1 or top == _TOPS[-1] else 1}-{top}"


def to_scale(values: Floats, marked: Mask, scale: str) -> npt.NDArray[np.float64]:
    """Return confidences as shares; marked cells are shares already.

    Examples
    --------
    >>> to_scale(np.array([80.0, 0.7]), np.array([False, True]), "percent").tolist()
    [0.8, 0.7]
    >>> to_scale(np.array([0.3]), np.array([False]), "uncertainty").tolist()
    [0.7]
    """
    read = np.asarray(values, dtype=float)
    if scale == "logprob":
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(read))
    if scale == "rank-down":
        return -read
    if scale == "uncertainty":
        percent = bool(np.nanmax(read, initial=0.0) > 1)
        return 1 - np.where(marked | (not percent), read, read / 100)
    if scale == "mixed":
        return np.where(marked | (read <= 1), read, read / 100)
    levels = _LEVELS.fullmatch("0-100" if scale == PERCENT else scale)
    if levels is None:
        return read
    low, high = map(float, levels.groups())
    # -1 is a code for a refusal, but where the scale has it.
    return np.where(marked | ((read == -1) & (low >= 0)), read, (read - low) / (high - low))


def word_scale(words: Mapping[str, int]) -> str | None:
    """Return what the words of a column stand for as a scale, where most are known levels."""
    known_names = {word: WORD_SHARES[word] for word in words if word in WORD_SHARES}
    levels = sum(words[word] for word in known_names)
    if len(known_names) < 2 or levels <= 0.8 * sum(words.values()):
        return None
    return ",".join(f"{word}={x:g}" for word, x in sorted(known_names.items(), key=lambda i: -i[1]))


def word_values(scale: str) -> dict[str, float]:
    """Return the number of each word of a scale such as ``low=0.3,high=0.9``."""
    parts = (part.rpartition("=") for part in scale.split(","))
    return {word.strip().lower(): float(number) for word, _, number in parts}


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
        frame = with_text(frame, "confidence", cells.values, cells.text & ~refused)
        marked = cells.marked
    values = frame["confidence"].to_numpy()
    plain = np.zeros(values.size, dtype=bool) if marked is None else marked
    if scale is None:
        ranking = frame["method"].is_in(list(non_probability)).fill_null(False).to_numpy()
        bounded = ~plain & ~ranking
        likely, doubt = scale_of(values[bounded], name)
        if likely in (PERCENT, MIXED):
            _refuse_small_models(frame.filter(pl.Series(bounded)))
        if doubt:
            raise scale_question(likely, doubt, values[bounded])
        if likely == FRACTION:
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
    text = lowered(column).str.replace(r"^(-?\d+)\.0+$", "$1")
    numbers = text.replace_strict(word_values(usual), default=None, return_dtype=pl.Float64)
    missing = text.is_in([*MISSING_TEXT, *REFUSALS]).fill_null(True)
    unknown = (numbers.is_null() & ~missing).to_numpy()
    return with_text(frame, "confidence", numbers.to_numpy().astype(float), unknown)


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
    ends = _LEVELS.fullmatch(scale)
    if ends is None or float(ends[1]) == float(ends[2]):
        text = "{scale} is {0}, words, levels or words with values, got {1}"
        hint = Hint("for example {scale}, or low=0.3,high=0.9", scale="1-5")
        raise InputError(Hint(text, ", ".join(SCALES[:-1]), repr(scale)), hint=hint)


def _refuse_small_models(frame: pl.DataFrame) -> None:
    """Ask where percentages of one model stand beside shares of another."""
    value = pl.col("confidence")
    rows = frame.filter(value > 0)
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


def scale_question(scale: str, doubt: str, values: Floats) -> InputError:
    """Return the question about a scale that the values do not settle."""
    finite = values[np.isfinite(values)]
    if doubt == MIXED:
        return _mixed_question(finite)
    if doubt == LEVELS:
        text = ", ".join(f"{x:g}" for x in np.unique(finite)[:6])
        low, _, high = scale.partition("-")
        readings = _scale_readings(scale, f"{int(low == '0')}-{high}", PERCENT)
        rule = f"these look like ratings ({text}): which means certain?"
        advice = "if {0} is certain, use {1}; if they are percentages, use {2}"
        hint = Hint(advice, high, *_scale_hints(scale, PERCENT))
        return QuestionError(rule, readings=readings, hint=hint)
    rule = f"the confidences range from {finite.min():g} to {finite.max():g}: they have no scale"
    advice = "say what they are: {0} for log-probabilities, {1} where only their order tells"
    hint = Hint(advice, *_scale_hints("logprob", "rank"))
    return QuestionError(rule, readings=_scale_readings("rank", "logprob"), hint=hint)
