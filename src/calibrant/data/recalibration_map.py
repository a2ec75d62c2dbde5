"""A saved map: what a stated confidence means, in plain data and the standard library alone."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.errors import InputError, SchemaError, require_known
from calibrant.core.places import writing

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike

    from calibrant.core.arrays import Floats
    from calibrant.data.learned_score import LearnedScore

SCHEMA = "calibrant.mend/1"
MENDED = "mended"
_CONFIDENCE = "confidence"
# How far new labels may move all log odds together, before they are seen; level of the test.
_OFFSET_SD, _LEVEL = 0.25, 0.01


class RecalibrationMap(Struct, frozen=True):
    """What a confidence of one model means.

    Parameters
    ----------
    knots
        Confidences at which the map has a value; between them log odds are linear.
    log_odds, low, high
        Value and 95 % interval at each knot, in log odds.
    verdict
        ``mended``; ``not worth it``, ``too few`` or ``too few groups``, and then nothing is
        promised of the map.
    rising, deviance
        Whether more confidence means more often right, and how much the labels object.
    n
        Labels behind it.
    promise
        ``off_by``: the mean distance to the truth is at most this (``certainty``); ``gain`` and
        ``gain_low``: how much the map lowers the Brier score, and at least how much.
    reference
        Quantiles of the labelled confidences, for the test of a shift.
    columns
        How other columns of a row are read too, where that was asked for and pays.
    offset
        Log odds by which new labels have moved the map.
    made, model, method, fitted_on
        When, and from what.

    Examples
    --------
    >>> fitted = RecalibrationMap((0.5, 1.0), (-1.0, 1.0), (-1.5, 0.5), (-0.5, 1.5))
    >>> fitted.probability(0.75)
    0.5
    >>> [round(end, 2) for end in fitted.interval(0.75)]
    [0.38, 0.62]
    """

    knots: tuple[float, ...]
    log_odds: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    verdict: str = MENDED
    rising: bool = True
    deviance: float = 0.0
    n: int = 0
    promise: Mapping[str, float | None] = {}
    reference: tuple[float, ...] = ()
    columns: ColumnMap | None = None
    offset: float = 0.0
    made: str = ""
    model: str = ""
    method: str = ""
    fitted_on: Mapping[str, Any] = {}

    def probability(self, confidence: float, row: Mapping[str, object] | None = None) -> float:
        """Return the chance that an answer with this confidence, and these columns, is right."""
        fitted, value = self._with_columns(confidence, row)
        return _chance(fitted._at(self._check(value), fitted.log_odds) + fitted.offset)

    def interval(
        self, confidence: float, row: Mapping[str, object] | None = None
    ) -> tuple[float, float]:
        """Return the 95 % interval of that chance."""
        fitted, given = self._with_columns(confidence, row)
        value = fitted.probability(given)
        low = _chance(fitted._at(given, fitted.low) + fitted.offset)
        high = _chance(fitted._at(given, fitted.high) + fitted.offset)
        return min(low, value), max(high, value)

    def _with_columns(
        self, confidence: float, row: Mapping[str, object] | None
    ) -> tuple[RecalibrationMap, float]:
        """Return the map that reads a row, and the value it reads."""
        if row is None or self.columns is None:
            return self, confidence
        mended = {**row, _CONFIDENCE: self.probability(confidence)}
        return self.columns.map, self.columns.score.predict_one(mended)

    def _at(self, confidence: float, values: Sequence[float]) -> float:
        knots = self.knots
        right = bisect_right(knots, confidence)
        if right == 0 or right == len(knots):
            return values[0] if right == 0 else values[-1]
        start = knots[right - 1]
        share = (confidence - start) / (knots[right] - start)
        return values[right - 1] + share * (values[right] - values[right - 1])

    def probabilities(self, confidence: ArrayLike) -> Floats:
        """Return the chances of many confidences; what is missing stays missing."""
        import numpy as np  # loaded here: one probability needs the standard library alone

        values = np.asarray(confidence, dtype=np.float64)
        for outside in values[(values < 0) | (values > 1)].tolist():
            self._check(outside)
        return self._curve(values, self.log_odds)

    def apply(self, table: Any, *, confidence: str = "confidence") -> Any:
        """Return the table with columns ``mended``, ``mended_low`` and ``mended_high``.

        A map that reads other columns needs them in the table.

        Parameters
        ----------
        table
            A dataframe of any kind, or the path of a table; a file itself is left as it is.
        confidence
            Its column of confidences, as fractions.
        """
        import narwhals as nw
        import numpy as np

        if isinstance(table, str | Path):
            from calibrant.data.tables import read_table

            table = read_table(table)
        frame = nw.from_native(table, eager_only=True)
        require_known([confidence], frame.columns, "there is no column {}")
        given_values = np.asarray(frame[confidence].cast(nw.Float64).to_numpy(), dtype=np.float64)
        fitted, values = self, self.probabilities(given_values)
        if self.columns is not None:
            fitted, finite = self.columns.map, np.isfinite(values)
            require_known(self.columns.names, frame.columns, "there is no column {}")
            rows = frame.select(self.columns.names).filter(finite.tolist()).to_polars()
            given_values = np.full(len(values), np.nan)
            given_values[finite] = self.columns.scores(values[finite], rows)
            values = fitted.probabilities(given_values)
        added = {
            "mended": values,
            "mended_low": np.fmin(fitted._curve(given_values, fitted.low), values),
            "mended_high": np.fmax(fitted._curve(given_values, fitted.high), values),
        }
        library = nw.get_native_namespace(frame)
        new = [nw.new_series(n, x, nw.Float64, backend=library) for n, x in added.items()]
        # What is missing stays missing: not every kind of table takes NaN for it.
        stated = ~nw.col(confidence).is_null()
        masked = (nw.when(stated).then(nw.col(name)).alias(name) for name in added)
        return frame.with_columns(*new).with_columns(*masked).to_native()

    def _curve(self, confidence: Floats, ends: Sequence[float]) -> Floats:
        import numpy as np

        return np.asarray(1 / (1 + np.exp(-np.interp(confidence, self.knots, ends) - self.offset)))

    def update(self, confidence: Sequence[float], correct: Sequence[float]) -> RecalibrationMap:
        """Return a map moved by new labels; what was promised of the old one is not promised of it.

        One number moves all log odds: 30 to 100 labels are too few for more. No columns are read.
        """
        before = [self._at(self._check(float(c)), self.log_odds) + self.offset for c in confidence]
        outcomes = [float(y) for y in correct]
        if len(before) != len(outcomes) or not before:
            raise InputError(f"{len(before)} confidences and {len(outcomes)} outcomes")
        if outside := next((f"{y:g}" for y in outcomes if not 0.0 <= y <= 1.0), None):
            raise InputError(f"an outcome must be between 0 and 1, got {outside}")
        moved = 0.0
        for _ in range(50):
            rates = [_chance(odds + moved) for odds in before]
            slope = sum(outcomes) - sum(rates) - moved / _OFFSET_SD**2
            step = slope / (sum(rate * (1 - rate) for rate in rates) + 1 / _OFFSET_SD**2)
            moved += step
            if abs(step) < 1e-10:
                break
        promise = dict(self.promise) | {"off_by": None}
        return replace(self, offset=self.offset + moved, promise=promise, columns=None)

    def check(self, confidences: Sequence[float]) -> ShiftCheck:
        """Test whether new confidences differ from those of the labels, by ranks; no label needed.

        It tells that they differ, not that the map is worse there.
        """
        values = [self._check(float(c)) for c in confidences if c is not None and c == c]
        return rank_shift(self.reference, values, max(self.n, 1))

    @property
    def judge_scale(self) -> str | None:
        """The scale of the scores of a judge: ``1-5``, ``no=0,yes=1``; None for shares."""
        if words := self.fitted_on.get("judge_words"):
            return ",".join(f"{word}={share:.12g}" for word, share in words.items())
        low, high = self.fitted_on.get("judge_scale", (0.0, 1.0))
        return None if (low, high) == (0.0, 1.0) else f"{low:.12g}-{high:.12g}"

    def _check(self, confidence: float) -> float:
        if not 0.0 <= confidence <= 1.0:
            low, high = self.fitted_on.get("judge_scale", (0.0, 1.0))
            hint = f"it reads shares of the judge's scale: (score - {low:g}) / {high - low:g}"
            rule = f"a confidence must be between 0 and 1, got {confidence!r}"
            raise InputError(rule, hint=hint if self.judge_scale else None)
        return confidence

    def to_dict(self) -> dict[str, object]:
        """Return the map as plain data."""
        plain = ("model", "method", "made", "n", "verdict", "rising", "deviance")
        return {
            **{name: getattr(self, name) for name in plain},
            "map": {name: list(getattr(self, name)) for name in _CURVES},
            "promise": dict(self.promise),
            "reference": list(self.reference),
            "columns": None if self.columns is None else self.columns.to_dict(),
            "offset": self.offset,
            "fitted_on": dict(self.fitted_on),
        }

    @classmethod
    def of_curves(cls, data: Mapping[str, Any], **about: Any) -> RecalibrationMap:
        """Return a map of its curves, verdict and promise; `about` are the other parts of it."""
        knots, odds, low, high = (tuple(map(float, data["map"][name])) for name in _CURVES)
        if len({len(knots), len(odds), len(low), len(high)}) != 1 or not knots:
            raise ValueError("its curves are of unequal length")
        verdict, promise = str(data["verdict"]), data["promise"]
        return cls(knots, odds, low, high, verdict=verdict, promise=promise, **about)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RecalibrationMap:
        """Return the map that `to_dict` described."""
        read = (data.get("columns") or {}).get("score")
        return cls.of_curves(
            data,
            rising=bool(data["rising"]),
            deviance=float(data["deviance"]),
            n=int(data["n"]),
            reference=tuple(map(float, data["reference"])),
            columns=ColumnMap.from_dict(data["columns"]) if read else None,
            offset=float(data["offset"]),
            **{name: str(data.get(name, "")) for name in ("made", "model", "method")},
            fitted_on=data.get("fitted_on", {}),
        )

    def save(self, path: str | Path) -> None:
        """Write the map as JSON; `calibrant.load_mend` reads it."""
        save_maps([self], path)


class ColumnMap(Struct, frozen=True):
    """What a confidence means together with other columns.

    Parameters
    ----------
    score
        Makes one number of the mended confidence and the columns.
    map
        What that number means.
    """

    score: LearnedScore
    map: RecalibrationMap

    @property
    def names(self) -> list[str]:
        """The columns beside the confidence."""
        return [name for name in self.score.names if name != _CONFIDENCE]

    def scores(self, mended: Floats, rows: pl.DataFrame) -> Floats:
        """Return the score of every row."""
        import polars as pl

        return self.score.predict(rows.with_columns(pl.Series(_CONFIDENCE, mended)))

    def to_dict(self) -> dict[str, object]:
        """Return plain data."""
        described = self.map.to_dict()
        selection = {name: described[name] for name in ("verdict", "promise", "map")}
        return {"names": self.names, **selection, "score": self.score.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ColumnMap:
        """Return what `to_dict` described."""
        # Loaded here: a map of confidences needs the standard library alone.
        from calibrant.data.learned_score import LearnedScore

        return cls(LearnedScore.from_dict(data["score"]), RecalibrationMap.of_curves(data))


_CURVES = ("knots", "log_odds", "low", "high")


def _chance(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


def save_maps(maps: Sequence[RecalibrationMap], path: str | Path) -> None:
    """Write one map as it is, or several as a list."""
    described = [fitted.to_dict() for fitted in maps]
    body = described[0] if len(described) == 1 else {"results": described}
    with writing(path) as place:
        place.write_text(json.dumps({"schema": SCHEMA, **body}, allow_nan=False) + "\n")


def load_mend(
    path: str | Path, *, model: str | None = None, method: str | None = None
) -> RecalibrationMap:
    """Read a saved map, or a document of `mend`; `model` and `method` choose among several.

    Nothing in the file is run: it holds numbers and names.
    """
    maps = load_maps(path)
    own = [fitted for fitted in maps if method in (None, fitted.method)]
    fitting = [fitted for fitted in own if model is None or fitted.model in (model, "")]
    if len(fitting) == 1:
        return fitting[0]
    rule = f"{len(fitting)} maps fit" if fitting else "no map fits"
    hint = f"name one, for example model={maps[0].model!r}, method={maps[0].method!r}"
    raise InputError(f"{rule}; the file has {names_of(maps)}", source=str(path), hint=hint)


def load_maps(path: str | Path) -> list[RecalibrationMap]:
    """Read all maps of a file."""
    source = str(path)
    try:
        data = json.loads(Path(path).read_text())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=source) from None
    except ValueError:
        raise SchemaError("is no JSON", source=source) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise SchemaError(f"a map has the schema {SCHEMA}", source=source)
    try:
        return [RecalibrationMap.from_dict(entry) for entry in data.get("results", [data])]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemaError(f"the map is damaged: {error}", source=source) from None


def names_of(maps: Iterable[RecalibrationMap]) -> str:
    """Return the models and methods of maps as messages name them."""
    return ", ".join(f"{fitted.model} ({fitted.method})".strip() for fitted in maps)


class ShiftCheck(NamedTuple):
    """Whether new confidences are like those of the labels."""

    shifted: bool
    p: float
    n: int

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        if self.shifted:
            return (
                f"New confidences differ from those of the labels (p={self.p:.2g}): the promise "
                "does not hold for them. Label 100."
            )
        return f"No difference to the confidences of the labels is shown (p={self.p:.2g})."


def rank_shift(before: Sequence[float], new: Sequence[float], n: int) -> ShiftCheck:
    """Test whether `new` values differ from those of `n` rows, whose quantiles are `before`.

    Examples
    --------
    >>> rank_shift([0.5, 0.6, 0.7, 0.8], [0.9] * 50, 100).shifted
    True
    """
    reference = sorted(before)
    if not reference or not new:
        raise InputError("a check needs confidences, and a map with its reference")
    ranks_before = [_mid_rank(reference, value) for value in reference]
    mean = sum(ranks_before) / len(ranks_before)
    spread = sum((rank - mean) ** 2 for rank in ranks_before) / len(ranks_before)
    if spread == 0:
        equal = all(value == reference[0] for value in new)
        return ShiftCheck(not equal, 1.0 if equal else 0.0, len(new))
    ranks = [_mid_rank(reference, value) for value in new]
    error = math.sqrt(spread * (1 / len(new) + 1 / n))
    p = math.erfc(abs(sum(ranks) / len(ranks) - mean) / error / math.sqrt(2))
    return ShiftCheck(p < _LEVEL, p, len(new))


def _mid_rank(ordered: Sequence[float], value: float) -> float:
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered))
