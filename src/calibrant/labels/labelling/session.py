"""A pool while people label it: what to show next, what came back, what it shows so far.

What is labelled is an answer to a question. One label serves every model that gave this answer
and every method that scored it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Estimate, Floats, Indices, named_stream
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.label_schema import (
    ALONG,
    DESIGN,
    SPREAD,
    WEIGHT,
    WHOLE,
    ItemKey,
    ItemState,
    StoredItem,
)
from calibrant.data.label_store import LabelStore
from calibrant.findings.documents.entries import Part
from calibrant.labels.labelling.designs import DEFAULT_DESIGN, draw_wave
from calibrant.labels.labelling.labellers import cohen_kappa, label_noise
from calibrant.labels.labelling.pools import (
    LabelDraws,
    LabelPool,
    Wave,
    design_weights,
    spread_shares,
)

# Labels of a first wave whose regression steers the next ones.
_FIRST_WAVE = 80


def item_keys(rows: pl.DataFrame) -> list[ItemKey]:
    """Return what each row's label is about: question and answer, or question and model.

    Examples
    --------
    >>> rows = pl.DataFrame({"question_id": ["0012"], "model": ["a"], "answer": ["3.50"]})
    >>> item_keys(rows)
    [ItemKey(question_id='0012', answer='3.50', model=None)]
    """
    questions = rows["question_id"].cast(pl.String).to_list()
    models = rows["model"].cast(pl.String).to_list()
    has_answers = "answer" in rows.columns
    answers = rows["answer"].cast(pl.String).to_list() if has_answers else [None] * len(questions)
    return [
        ItemKey(question, answer, None if answer is not None else model)
        for question, answer, model in zip(questions, answers, models, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class LabelledBlock:
    """The rows of one model and method, with the labels and weights of their answers."""

    keys: dict[str, str]
    rows: Indices
    pool: LabelPool


class DrawnItems(ABC):
    """Items that people get in waves, each with its place in a table."""

    store: LabelStore
    place_of: dict[ItemKey, int]

    @abstractmethod
    def _draw(self) -> bool:
        """Draw a further wave; return whether there was one left."""

    def states(self) -> list[ItemState]:
        """Return what is known about every drawn item of this table."""
        return [state for state in self.store.states() if state.item.key in self.place_of]

    def take(self, who: str, count: int = 1, *, keeps: bool = False) -> list[StoredItem]:
        """Give a person items to label, drawing further waves while there are any."""
        while self.store.open_for(who) < count and self._draw():
            pass
        return self.store.take(who, count, keeps=keeps)


class LabelSession(DrawnItems):
    """Rows of a pool joined with the labels that people made.

    Parameters
    ----------
    rows
        Columns ``question_id``, ``model``, ``method``, ``confidence`` and, if known, ``answer``.
    store
        Where labels are kept.
    side
        Columns of `rows` with side information, each in [0, 1].
    bins
        Slices of the confidences that few rows state, at most.
    design
        ``stratified`` (default), ``random`` or ``pps``.
    wave
        Items drawn at a time.
    overlap
        Share of items that two people label.
    seed
        The same seed and the same labels give the same items.
    existing
        Outcomes of the rows (NaN where open) that count as a first, simple random draw, or None.
    whole_questions
        Draw questions, each with all its answers, in place of single answers: models can then be
        compared on the questions labelled.
    """

    def __init__(
        self,
        rows: pl.DataFrame,
        store: LabelStore,
        *,
        side: Sequence[str] = (),
        bins: int = 15,
        design: str = DEFAULT_DESIGN,
        wave: int = 50,
        overlap: float = 0.1,
        seed: int = 0,
        existing: Floats | None = None,
        whole_questions: bool = False,
    ) -> None:
        if not rows.height:
            raise InputError("the pool has no rows")
        self.rows, self.store, self.bins, self.design = rows, store, bins, design
        self.wave, self.overlap, self.seed = wave, overlap, seed
        self.whole_questions = whole_questions
        if whole_questions and design not in ("stratified", "random"):
            raise InputError(
                "whole questions are drawn with equal chances, by the design stratified or "
                f"random, got {design}"
            )
        keys = item_keys(rows)
        place: dict[ItemKey, int] = {}
        self.item_of = np.array([place.setdefault(key, len(place)) for key in keys])
        self.keys = list(place)
        self.row_of = np.unique(self.item_of, return_index=True)[1]
        request: dict[str, int] = {}
        self.question_of = np.array(
            [request.setdefault(key.question_id, len(request)) for key in self.keys]
        )
        self.place_of = place
        self.confidence = rows["confidence"].cast(pl.Float64).to_numpy()
        self.existing = np.full(len(self.keys), np.nan)
        if existing is not None:
            graded = np.isfinite(existing)
            self.existing[self.item_of[graded]] = existing[graded]
        self.side = None
        if side:
            self.side = np.column_stack([rows[name].cast(pl.Float64).to_numpy() for name in side])

    @property
    def existing_items(self) -> int:
        """Items whose outcome came with the table."""
        return int(np.isfinite(self.existing).sum())

    # -- labels ---------------------------------------------------------------------------

    def labels(self, states: list[ItemState] | None = None) -> tuple[Floats, LabelDraws]:
        """Return the outcome of every item (NaN where open) and how the items were drawn."""
        item_states = self.states() if states is None else states
        count = len(self.keys)
        correct, extra, pi = np.full(count, np.nan), np.full(count, np.nan), np.zeros(count)
        wave, order = np.zeros(count, dtype=np.intp), np.zeros(count, dtype=np.intp)
        waves = [Wave(entry.size, entry.frame, entry.uniform) for entry in self.store.waves()]
        before = self.existing_items
        first = 1 if before else 0
        if before:
            graded = np.isfinite(self.existing)
            waves.insert(0, Wave(before, count))
            wave[graded], pi[graded], correct[graded] = 1, before / count, self.existing[graded]
        labelled = [before] * first + [0] * (len(waves) - first)
        for state in item_states:
            item = self.place_of[state.item.key]
            number = state.item.wave + first
            wave[item], pi[item] = number, state.item.pi
            if state.item.along is not None:
                extra[item] = state.item.along
            if state.outcome is not None:
                correct[item], order[item] = state.outcome, state.at
                labelled[number - 1] += 1
        return correct, LabelDraws(wave, pi, tuple(waves), tuple(labelled), order, extra)

    def blocks(self, states: list[ItemState] | None = None) -> list[LabelledBlock]:
        """Return the rows of every model and method with their labels."""
        correct, draws = self.labels(states)
        entries = []
        table = self.rows.select("model", "method").with_row_index("place")
        for part in table.partition_by(["model", "method"], maintain_order=True):
            rows = part["place"].to_numpy().astype(np.intp)
            item = self.item_of[rows]
            side = None if self.side is None else self.side[rows]
            own = draws.only(item)
            pool = LabelPool(self.confidence[rows], correct[item], side, self.bins, own)
            keys = {name: str(part[name][0]) for name in ("model", "method")}
            entries.append(LabelledBlock(keys, rows, pool))
        return entries

    def labelled_rows(self) -> pl.DataFrame:
        """Return the rows whose answer is labelled, with the outcome and what the draw was.

        Columns ``correct``, ``label_weight`` (rows that this one stands for), ``label_along`` and
        ``label_spread`` (see `spread_shares`), ``label_design``.
        """
        correct, draws = self.labels()
        columns = {"correct": correct, WEIGHT: design_weights(draws), SPREAD: spread_shares(draws)}
        if draws.along is not None:
            columns[ALONG] = draws.along
        labelled = self.rows.with_columns(
            pl.Series(name, values[self.item_of], dtype=pl.Float64, nan_to_null=name == ALONG)
            for name, values in columns.items()
        )
        # Outcomes that came with the table are the first draw.
        came = ["random"] if self.existing_items else []
        waves = [wave.design for wave in self.store.waves()]
        designs = np.array(["", *came, *waves], dtype=object)[draws.wave[self.item_of]]
        labelled = labelled.with_columns(pl.Series(DESIGN, designs, dtype=pl.String))
        return labelled.filter(pl.col("correct").is_not_nan())

    def _drawn_from(self) -> LabelPool:
        """Return what the next wave is drawn from: the items, or the questions of the items."""
        correct, draws = self.labels()
        unit_of, first = self.item_of, self.row_of
        if self.whole_questions:
            unit_of = self.question_of[self.item_of]
            first = np.unique(unit_of, return_index=True)[1]
            sample = np.zeros(first.size, dtype=np.intp)
            np.maximum.at(sample, self.question_of, draws.wave)
            # A question that any wave has drawn is not drawn again; its labels are not needed here.
            correct = np.full(first.size, np.nan)
            draws = LabelDraws(sample, np.ones(first.size), draws.waves, draws.labelled)
        count = np.bincount(unit_of)

        def mean(values: Floats) -> Floats:
            return np.asarray(np.bincount(unit_of, weights=values) / count)

        side = None
        if self.side is not None:
            side = np.column_stack([mean(column) for column in self.side.T])
        stratum = self.rows["model"].cast(pl.String).rank("dense").to_numpy()[first]
        confidence = np.clip(mean(self.confidence), 0, 1)
        return LabelPool(confidence, correct, side, self.bins, draws, stratum)

    # -- giving out -----------------------------------------------------------------------

    def _draw(self) -> bool:
        pool = self._drawn_from()
        number = len(self.store.waves()) + 1
        size = _FIRST_WAVE if self.design != DEFAULT_DESIGN and number == 1 else self.wave
        if self.whole_questions:
            size = max(1, round(size * pool.confidence.size / len(self.keys)))
        rng = named_stream(self.seed, "label", number)
        draws = draw_wave(pool, size, design=self.design, rng=rng)
        if not draws.index.size:
            return False
        items, pi, extra, frame = draws.index, draws.pi, draws.along, draws.wave.frame
        if self.whole_questions:
            # The answers of a question follow each other: a wave that comes back in part then
            # holds whole questions but for the last.
            parts = [np.flatnonzero(self.question_of == question) for question in draws.index]
            items = np.concatenate(parts)
            extra = np.repeat(extra, [part.size for part in parts])
            frame = int(np.isin(self.question_of, pool.open).sum())
            pi = np.full(items.size, items.size / frame)
        twice = np.flatnonzero(rng.random(items.size) < self.overlap)
        self.store.add_wave(
            [self.keys[k] for k in items],
            pi.tolist(),
            design=f"{self.design}{WHOLE if self.whole_questions else ''}",
            frame=frame,
            uniform=draws.wave.uniform,
            seed=self.seed,
            twice=twice.tolist(),
            along=extra.tolist(),
        )
        return True

    def row(self, item: StoredItem) -> dict[str, Any]:
        """Return the first row of the pool that holds this item."""
        place = self.place_of.get(item.key)
        if place is None:
            raise InputError(
                f"item {item.key.question_id!r} was drawn from another table or by other columns",
                hint=Hint("name them as before ({question}, {answer}, {model})"),
            )
        return self.rows.row(int(self.row_of[place]), named=True)


class People(Part, frozen=True):
    """Labels per person, conflicts, agreement and the error rate of a label."""

    labels: dict[str, int]
    drawn: int
    decided: int
    conflicts: int
    unsure: int
    pairs: int
    kappa: Estimate | None
    label_error: Estimate | None


def people_of(states: list[ItemState]) -> People:
    """Return what the states of items show of those who labelled them."""
    count = Counter(person for state in states for person in state.labels)
    sure = [[x for x in s.labels.values() if x in ("right", "wrong")] for s in states]
    pairs = [pair for pair in sure if len(pair) >= 2]
    first, second = ([float(pair[place] == "right") for pair in pairs] for place in (0, 1))
    status = [state.status for state in states]
    return People(
        labels=dict(sorted(count.items())),
        drawn=len(states),
        decided=status.count("decided"),
        conflicts=status.count("conflict"),
        unsure=status.count("unsure"),
        pairs=len(pairs),
        kappa=cohen_kappa(first, second) if first else None,
        label_error=label_noise(first, second).rate if first else None,
    )
