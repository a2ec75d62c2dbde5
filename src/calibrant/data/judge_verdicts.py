"""What the cells of judges and people say: ratings, yes/no, words in an order, sides of a pair.

All columns are read together, and asked about where two readings are left.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NoReturn

import numpy as np
import polars as pl
from msgspec.structs import replace

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError, PossibleReading, QuestionError
from calibrant.core.hints import Hint
from calibrant.data.judge_cells import (
    TIES,
    YES_NO,
    RatingScale,
    cell_counts,
    cell_texts,
    in_order,
    is_numeric,
    read_numbers,
    read_stars,
    read_yes_no,
    side_values,
    usual_ends,
    word_value,
)
from calibrant.data.judge_shape import JudgeColumns
from calibrant.data.reading.names import name_roles

Kind = Literal["ratings", "yes/no", "pairs"]
_MOST_WORDS = 12
# With fewer ratings it may be chance that nobody used the top of the scale, or one is far off.
_ENOUGH = 30
# Of words beside numbers, so few different ones stand for 'no number'.
_CODES = 3
# What is rarer than this is a slip; so much of a message is shown.
_USUAL, _SHOWN = 0.01, 80
_ENDS = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:-|to|\.\.)\s*(-?\d+(?:\.\d+)?)\s*")


class Verdicts:
    """The cells of judges and people as numbers, NaN where there is none.

    Parameters
    ----------
    frame, columns
        The table, and which column is what; ratings have no `pairs` afterwards.
    notes
        Takes what is to be known of the reading.
    """

    def __init__(self, frame: pl.DataFrame, columns: JudgeColumns, notes: list[str]) -> None:
        self.frame, self.columns, self.notes = frame, columns, notes
        self.cells = {name: self._texts(name) for name in (*columns.judge, *columns.human)}
        self.scales: dict[str, RatingScale] = {}
        self.kind: Kind
        self.kind, self.values = self._verdicts()

    def _texts(self, name: str) -> pl.Series:
        kind = self.frame.schema[name]
        if kind.is_nested() or kind.is_temporal() or kind == pl.Binary:
            raise InputError(f"column {name} holds no verdicts but {kind}: name one of plain cells")
        return cell_texts(self.frame[name])

    def _verdicts(self) -> tuple[Kind, dict[str, Floats]]:
        """Return what kind they are, and the numbers of each column, whose scale is kept."""
        columns = self.columns
        words = {word for cells in self.cells.values() for word in cells.drop_nulls().unique()}
        numbers = {float(word) for word in words if is_numeric([word])}
        # Ratings do not turn into verdicts because two columns are called like sides of a pair.
        likely = numbers <= {0.0, 1.0, 1.5, 2.0} or min(numbers) < 0 < max(numbers)
        if columns.tie and not likely:
            rule = f"a tie ({columns.tie!r}) is a verdict on a pair, and these are ratings"
            raise InputError(rule, hint=Hint("name both sides with {pairs}", pairs="a,b"))
        sides = side_values(words, self._ties())
        letters = {*sides.values()} >= {0.0, 1.0} and words == sides.keys() and not columns.order
        is_stated = bool(
            columns.first or columns.swapped or columns.tie or (columns.pairs and likely)
        )
        if letters and not is_stated and {"c"} <= words <= {"a", "b", "c"}:
            self._ask(
                "are A, B and C the sides of a pair with C for a tie, or grades?",
                ("sides of a pair, C is a tie", {"tie": "c"}),
                ("grades, the worst first", {"order": ["c", "b", "a"]}),
            )
        if {1.0, 2.0} <= numbers <= {0.0, 1.0, 1.5, 2.0} and not (
            is_stated or columns.scale or columns.order
        ):
            self._ask(
                "are 1 and 2 the sides of a pair, or ratings?",
                ("sides of a pair: the first, the second, 0 or 1.5 for a tie", {"tie": "tie"}),
                ("ratings", {"scale": f"{min(numbers):g}-2"}),
            )
        if is_stated or (letters and not numbers - {0.0}):
            self.scales = {name: RatingScale() for name in self.cells}
            return "pairs", self.side_verdicts([*self.cells])
        self.columns = replace(columns, pairs=())
        values = self._ratings(words)
        human = self.scales[columns.human[0]]
        return "yes/no" if len(human.words) == 2 and not human.low else "ratings", values

    def _ties(self) -> list[str]:
        tie = (self.columns.tie or "tie").strip().lower()
        if side_values([tie], []).get(tie, 0.5) != 0.5:
            raise InputError(Hint("{tie} names a side of the pair, and no tie", tie=tie))
        return [*TIES, tie]

    # -- pairs ----------------------------------------------------------------------------------

    def side_verdicts(self, names: Sequence[str]) -> dict[str, Floats]:
        """Return 1 where the first side is named, 0 for the second and 0.5 for a tie."""
        order = [word.strip().lower() for word in self.columns.order]
        cells = {name: self._texts(name) for name in names}
        models = {name: self._named_models(column) for name, column in cells.items()}
        texts = [cells[name].filter(models[name].is_null()) for name in names]
        counts = cell_counts(pl.concat(texts))
        sides = side_values(counts, self._ties())
        if order and {*order} & counts.keys():
            middle = (len(order) - 1) / 2
            sides = {w: float(np.sign(k - middle) + 1) / 2 for k, w in enumerate(order)}
        elif sum(n for w, n in counts.items() if w not in sides) > 0.2 * sum(counts.values()):
            self._ask_sides(sorted(counts))
        read = {}
        for name, column in cells.items():
            values = column.replace_strict(sides, default=None, return_dtype=pl.Float64)
            filled = models[name].fill_null(values)
            if filled.is_null().all() and len(cells) > 1 and not column.is_null().all():
                label = ", ".join(cell_counts(column))[:_SHOWN]
                rule = f"column {name} says nowhere which side of a pair is better, but {label}"
                raise InputError(rule, hint="name the column of the verdicts")
            read[name] = self._count_unread(name, column, filled, "name a side (A, B) or a tie")
        return read

    def _named_models(self, column: pl.Series) -> pl.Series:
        """Return 1 and 0 where a cell is the name of the first or the second model of its row."""
        peers = self.columns.pairs or (column.name, column.name)
        a, b = ((column == cell_texts(self.frame[peer])).fill_null(False) for peer in peers)
        return pl.select(pl.when(a ^ b).then(a.cast(pl.Float64))).to_series()

    def _ask_sides(self, words: Sequence[str]) -> NoReturn:
        """Ask which verdicts mean the first side: a sign, 0 and 1, win and lose."""
        first = self.columns.pairs[0] if self.columns.pairs else "the first side"
        rule = f"which verdicts mean that {first} is better?"
        order = sorted(words, key=float) if is_numeric(words) else in_order(words, {})
        if order is None:
            text = "list them from the worst for it to the best: {order}; they are: {0}"
            hint = Hint(text, ", ".join(words[:_MOST_WORDS]), order="LOSE,TIE,WIN")
            raise InputError(rule, hint=hint)
        self._ask(
            rule,
            (f"{order[-1]} means that {first} is better", {"order": order}),
            (f"{order[0]} means that {first} is better", {"order": order[::-1]}),
        )

    # -- ratings --------------------------------------------------------------------------------

    def _ratings(self, words: set[str]) -> dict[str, Floats]:
        """Return the numbers of each column, whose scale is kept; people share one."""
        order = tuple(word.strip().lower() for word in self.columns.order)
        if order and (len({*order}) < len(order) or not words & {*order}):
            rule = f"none of {', '.join(order)} is a word of the scores or ratings"
            rule = (
                rule
                if len({*order}) == len(order)
                else f"a word stands twice in {', '.join(order)}"
            )
            raise InputError(rule, hint=f"they hold {', '.join(sorted(words)[:_MOST_WORDS])}")
        values: dict[str, Floats] = {}
        open_words: dict[str, list[str]] = {}
        for names in (*([name] for name in self.columns.judge), self.columns.human):
            cells = pl.concat([self.cells[name] for name in names])
            levels, scale, top = self._levels(names[0], cell_counts(cells), order)
            if not levels:
                open_words |= {name: [*cell_counts(cells)] for name in names}
                continue
            rule = f"be among {', '.join(levels)}" if scale else "be numbers"
            for name in names:
                column = self.cells[name]
                read = column.replace_strict(levels, default=None, return_dtype=pl.Float64)
                values[name] = self._count_unread(name, column, read, rule)
            ends = scale or self._scale(names, values, top)
            self.scales |= dict.fromkeys(names, ends)
        if open_words:
            self._ask_order(open_words, values)
        self._ask_same(values)
        return values

    def _levels(
        self, name: str, counts: Mapping[str, int], order: tuple[str, ...]
    ) -> tuple[dict[str, float], RatingScale | None, float | None]:
        """Return the number of each text, and the scale, or its top, where texts say it."""
        total = sum(counts.values())
        if {*order} & counts.keys():
            # A word that may be no verdict is counted as unread.
            usual = [w for w, n in counts.items() if w not in order and n >= _USUAL * total]
            if missing := [
                word for word in usual if len(usual) > 1 or word_value(word) is not None
            ]:
                rule = f"{counts[missing[0]]:,} cells of {name} are {missing[0]!r}"
                hint = Hint(
                    "name all words with {order}, or empty these cells", order="WORST,..,BEST"
                )
                raise InputError(f"{rule}, which the order leaves out", hint=hint)
            low = float(len(order) > 2)
            scale = RatingScale(low, len(order) - 1 + low, order)
            return {word: place + low for place, word in enumerate(order)}, scale, None
        if not is_numeric([*counts]):
            counts = {word: count for word, count in counts.items() if word != "-1"}
        if yes_no := read_yes_no(counts):
            if name_roles(name).wrong >= 2:
                worst, best = sorted(yes_no, key=yes_no.__getitem__)[:: len(yes_no) - 1]
                self._ask(
                    f"is {best!r} in {name} good or bad?",
                    (f"{best} is bad", {"order": [best, worst]}),
                    (f"{best} is good", {"order": [worst, best]}),
                )
            return yes_no, YES_NO, None
        levels, top = read_numbers(counts)
        few = len(levels) > 1 and len(counts) - len(levels) <= _CODES
        if few or 2 * sum(counts[word] for word in levels) >= max(total, 1):
            return levels, None, top
        if (stars := read_stars(counts)) or 1 < len(counts) <= _MOST_WORDS:
            return stars, None, None
        # All of its cells are counted as unread, which names the first of them.
        return levels or {"": 0.0}, None, None

    def _ask_order(
        self, open_words: Mapping[str, Sequence[str]], values: Mapping[str, Floats]
    ) -> NoReturn:
        """Ask for the order of words: by what they usually mean, or by what others give there."""
        words = sorted({word for part in open_words.values() for word in part})
        numbers, mean, error = [*values.values()], dict[str, float](), dict[str, float]()
        for word in words if numbers else []:
            rows = np.any(
                [(self.cells[name] == word).fill_null(False) for name in open_words], axis=0
            )
            peers = np.concatenate([column[rows] for column in numbers])
            peers = peers[np.isfinite(peers)]
            if peers.size >= _CODES:
                mean[word], error[word] = (
                    float(peers.mean()),
                    float(peers.std() / peers.size**0.5),
                )
        rule = f"the words of {' and '.join(open_words)} have no order yet"
        ends = [[word for word in words if word_value(word) == end] for end in (0.0, 1.0)]
        neither = [word for word in words if word_value(word) is None]
        if list(map(len, (*ends, neither))) == [1, 1, 1] and len(words) == 3:
            (no,), (yes,) = ends
            self._ask(
                rule,
                (f"{neither[0]} is no verdict, and counts as empty", {"order": [no, yes]}),
                (f"{neither[0]} lies between {no} and {yes}", {"order": [no, *neither, yes]}),
            )
        order, by_mean = in_order(words, {}), in_order(words, mean) or []
        steps = pairwise(by_mean if order is None else [])
        if all(mean[b] - mean[a] > 2 * math.hypot(error[a], error[b]) for a, b in steps):
            order = order or by_mean
        if order:
            raise QuestionError(
                f"{rule}: are these from the worst to the best?",
                readings=[PossibleReading(", ".join(order), {"order": order})],
            )
        if len(words) == 2 and len(neither) == 1:
            stem = next(word for word in words if word not in neither)
            order = [stem, *neither] if ends[0] else [*neither, stem]
            self._ask(
                rule,
                (f"{order[1]} is the better one", {"order": order}),
                (f"{order[0]} is the better one", {"order": order[::-1]}),
            )
        text = "write them from the worst to the best: {order}; they are: {0}"
        raise InputError(rule, hint=Hint(text, ", ".join(words), order="WORST,..,BEST"))

    def _scale(
        self, names: Sequence[str], values: Mapping[str, Floats], top: float | None
    ) -> RatingScale:
        """Return the scale of columns; -1, or 0 below a stated scale, is a code for no rating."""
        option = "scale" if names[0] in self.columns.judge else "human_scale"
        text = getattr(self.columns, option) or self.columns.scale
        ends = _ENDS.fullmatch(text or "0-1")
        if ends is None or ends[1] == ends[2]:
            hint = Hint(f"write it like {{{option}}}", **{option: "1-5"})
            raise InputError(f"a scale is two ends, got {text!r}", hint=hint)
        low, high = sorted(float(end) for end in ends.groups())
        values_of_all = np.concatenate([values[name] for name in names])
        peers = [n for n in self.cells if (n in self.columns.judge) != (option == "scale")]
        alone = not any((self.cells[name] == "-1").any() for name in peers)
        coded = not (values_of_all < -1).any() and (
            alone or bool({*values_of_all[np.isfinite(values_of_all)]} - {-1.0, 0.0, 1.0})
        )
        for name in names:
            column = values[name]
            codes = np.isin(column, [0, -1]) & (column < low) if text else (column == -1) & coded
            if count := int(codes.sum()):
                what = f"{count:,} cells of {name} are {column[codes][0]:g}"
                self.notes.append(f"{what}, which is no rating: they count as empty")
                column[codes] = np.nan
            outside = (column < low) | (column > high)
            if text and outside.any():
                rule = (
                    f"column {name} has the value {column[outside][0]:g}, outside its scale {text}"
                )
                raise InputError(rule, row=int(outside.argmax()) + 1)
            if text and float(ends[1]) > float(ends[2]):
                column[:] = low + high - column
                self.notes.append(f"{name} is turned around: {low:g} counts as {high:g}")
        return RatingScale(low, high) if text else self._found_scale(names, values, option, top)

    def _found_scale(
        self, names: Sequence[str], values: Mapping[str, Floats], option: str, top: float | None
    ) -> RatingScale:
        """Return the usual scale that holds all values; ask where a few of them decide it."""
        values_of_all = np.concatenate([values[name] for name in names])
        finite = values_of_all[np.isfinite(values_of_all)]
        scale = usual_ends(finite, top)
        edges = (
            np.quantile(finite, [_USUAL, 1 - _USUAL], method="nearest") if finite.size else finite
        )
        usual = usual_ends(edges, top)
        outside = (finite < usual.low) | (finite > usual.high)
        if finite.size >= _ENOUGH and 1 < usual.span <= 10 and 0 < outside.mean() < _USUAL:
            name = next(n for n in names if np.isin(values[n], finite[outside]).any())
            row = int(np.isin(values[name], finite[outside]).argmax()) + 1
            rule = f"column {name} has the value {values[name][row - 1]:g}, and nearly all others"
            hint = Hint(f"correct the cell, or name the scale: {{{option}}}", **{option: "1-10"})
            raise InputError(f"{rule} lie in {usual.low:g}-{usual.high:g}", row=row, hint=hint)
        zero = float((finite == 0).mean()) if finite.size else 0.0
        judge_zeros = float(
            (self.cells[self.columns.judge[0]] == "0").fill_null(False).to_numpy().mean()
        )
        rated = finite[finite > 0]
        if (
            option == "human_scale"
            and np.isfinite(values_of_all).all()
            and 0.5 <= zero < 1
            and judge_zeros < zero / 4
            and rated.min() >= 1
        ):
            ends = f"{usual_ends(rated).high:g}"
            self._ask(
                f"{names[0]} is 0 in {zero:.0%} of its cells: not rated, or the lowest rating?",
                ("0 is not rated", {option: f"1-{ends}"}),
                ("0 is the lowest rating", {option: f"0-{ends}"}),
            )
        return scale

    def _ask_same(self, values: Mapping[str, Floats]) -> None:
        """Ask for the ends where judge and people seem to share a scale, and one never uses it."""
        columns, people = self.columns, self.scales[self.columns.human[0]]
        ratings = np.concatenate([values[name] for name in columns.human])
        ratings = ratings[np.isfinite(ratings)]
        is_stated = (columns.scale and columns.human_scale) or people.words
        if is_stated or ratings.size < _ENOUGH or not 1 < people.span <= 10:
            return
        low, best = f"{people.low:g}", float(ratings.max())
        for judge in columns.judge:
            top = float(np.nanmax(values[judge], initial=-np.inf))
            # People who often give their best, and never the judge's, have a scale of their own.
            own = top - best == 1 and (ratings == best).mean() > 0.2 and ratings.size > 3 * _ENOUGH
            if self.scales[judge].is_like(people) and (abs(top - best) > 1 or own):
                ends = [f"{low}-{end:g}" for end in (top, best, max(top, best))]
                self._ask(
                    f"{judge} goes up to {top:g} and people up to {best:g}: is it one scale?",
                    (f"one, {ends[2]}", {"scale": ends[2], "human_scale": ends[2]}),
                    (f"two, {ends[0]} and {ends[1]}", {"scale": ends[0], "human_scale": ends[1]}),
                )

    def _count_unread(self, name: str, cells: pl.Series, read: pl.Series, rule: str) -> Floats:
        """Return numbers, NaN where there is none; cells that could not be read are counted."""
        bad, values = cells.is_not_null() & read.is_null(), len(cells) - cells.null_count()
        if count := int(bad.sum()):
            row = int(bad.arg_max() or 0) + 1
            text = str(self.frame[row - 1, name])
            notes = f"{text if len(text) < _SHOWN else text[:_SHOWN] + '..'!r} in column {name}"
            if count * 2 > values and (
                cells.filter(bad).n_unique() > _CODES or read.n_unique() < 3
            ):
                raise InputError(f"cells should {rule}, got {notes}", row=row)
            self.notes.append(
                f"{count:,} of {values:,} cells of {name} could not be read (row {row}: {notes}); "
                "they count as empty"
            )
        return read.to_numpy().astype(float)

    @staticmethod
    def _ask(rule: str, *readings: tuple[str, dict[str, Any]]) -> NoReturn:
        raise QuestionError(rule, readings=[PossibleReading(*reading) for reading in readings])
