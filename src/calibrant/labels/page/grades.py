"""Checking grades: which answers people look at, and what their verdicts say about the grader."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Indices, named_stream
from calibrant.core.document import given_places
from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.data import Study
from calibrant.data.label_schema import ItemKey, ItemState, StoredItem
from calibrant.data.label_store import LabelStore
from calibrant.data.sources.drawn_labels import ANSWER, checks_path, study_grades
from calibrant.data.sources.input import document_head
from calibrant.data.tables import with_question_columns
from calibrant.labels.labelling.session import DrawnItems, people_of
from calibrant.labels.page.server import Progress
from calibrant.metrics.stats.graded_estimates import CheckedGrades, Graded, graded_accuracy
from calibrant.metrics.stats.graded_summary import choose_checks, grader_report

DESIGN = "grades"
_EXAMPLES = 20
_LEAST_WAVE = 12
_WHY = "See what the checked grades change"


@dataclass
class GradeSession(DrawnItems):
    """Graded answers of a study while people check them; confidence and verdict stay hidden.

    Parameters
    ----------
    rows
        One row per model and answer: the columns of `Grades`, ``confidence``, and of the question
        ``text``, ``references`` and ``choices`` where they are known.
    store
        Where checks are kept.
    wave, overlap, seed
        Answers drawn at a time, share that two people check, seed of the draw.
    """

    rows: pl.DataFrame
    store: LabelStore
    wave: int = 60
    overlap: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        self.keys = [ItemKey(q, a, m) for q, m, a in self.rows.select(ANSWER).iter_rows()]
        self.place_of = {key: number for number, key in enumerate(self.keys)}

    def row(self, item: StoredItem) -> dict[str, Any]:
        """Return the row of a drawn answer."""
        place = self.place_of.get(item.key)
        if place is None:
            raise InputError(f"item {item.key.question_id!r} is not in this study")
        return self.rows.row(place, named=True)

    @cached_property
    def _models(self) -> dict[str, tuple[Indices, Graded]]:
        by_model = {}
        numbered = self.rows.with_row_index("place")
        for (model,), part in numbered.partition_by("model", as_dict=True).items():
            confidence, grade = (
                part[c].cast(pl.Float64).to_numpy() for c in ("confidence", "correct")
            )
            graded = Graded.of_chances(confidence, grade, part["chance"].to_numpy())
            by_model[str(model)] = part["place"].to_numpy().astype(np.intp), graded
        return by_model

    def _draw(self) -> bool:
        """Draw a wave: each model's own share, so that every part of it holds all strata."""
        draws = {self.place_of.get(item.key) for item in self.store.items()}
        wave = len(self.store.waves()) + 1
        rng = named_stream(self.seed, "grades", wave)
        each = max(_LEAST_WAVE, self.wave // len(self._models))
        choice: list[tuple[float, int, float]] = []
        for places, graded in self._models.values():
            free = np.array([k for k, place in enumerate(places) if place not in draws], np.intp)
            if not free.size:
                continue
            confidence, grade, chance = graded.confidence, graded.grade, graded.chance
            remaining = Graded.of_chances(confidence[free], grade[free], chance[free])
            picked = choose_checks(remaining, min(each, free.size), rng)
            turn, pi = _turns(remaining.strata[picked], rng), picked.size / free.size
            choice += [(t, int(places[free[k]]), pi) for t, k in zip(turn, picked, strict=True)]
        if not choice:
            return False
        choice.sort()
        twice = np.flatnonzero(rng.random(len(choice)) < self.overlap)
        self.store.add_wave(
            [self.keys[place] for _, place, _ in choice],
            [pi for _, _, pi in choice],
            design=DESIGN,
            frame=len(self.keys),
            uniform=False,
            seed=self.seed,
            twice=twice.tolist(),
        )
        return True

    def checked(self, states: list[ItemState]) -> dict[str, CheckedGrades]:
        """Return the checks of each model."""
        statement = {self.place_of[s.item.key]: s.outcome for s in states if s.outcome is not None}
        checks = {}
        for model, (places, graded) in self._models.items():
            rows = np.array(
                [k for k, place in enumerate(places) if place in statement], dtype=np.intp
            )
            checks[model] = CheckedGrades(graded, rows, [statement[places[k]] for k in rows])
        return checks

    def precise(self, states: list[ItemState]) -> Callable[[], Progress]:
        """Return what works out how precisely the accuracy is known of the model known worst."""
        models = [each for each in self.checked(states).values() if len(each.rows)]
        return partial(_half_width, models)


def _half_width(models: Sequence[CheckedGrades]) -> Progress:
    intervals = [graded_accuracy(each, named_stream(0, "progress")) for each in models]
    return Progress(max(((each.high - each.low) / 2 for each in intervals), default=None))


def _turns(strata: Indices, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return when each is shown: any first part holds every stratum by its share, doubt first."""
    turn = np.zeros(strata.size)
    for stratum in np.unique(strata):
        places = rng.permutation(np.flatnonzero(strata == stratum))
        turn[places] = (np.arange(places.size) + (0.25 if stratum % 2 else 0.5)) / places.size
    return turn


def open_grades(data: Any, options: Mapping[str, Any], *, wave: int = 60) -> GradeSession:
    """Open the grades of a study for people to check, with the store beside it."""
    grades = study_grades(data)
    if grades is None:
        step = Call("grade", "SAMPLES", out="STUDY")
        raise InputError(
            "there are no grades of this program here to check",
            source=str(data),
            hint=Hint("grade the answers into a study first: {0}", step),
        )
    study = data if isinstance(data, Study) else Study(data)
    scores = study.read("scores").filter(pl.col("confidence").is_between(0, 1))
    confidence = scores.group_by(ANSWER).agg(pl.col("confidence").first())
    rows = grades.answers.drop("checked").join(confidence, on=ANSWER, maintain_order="left")
    if study.has("questions"):
        request = study.read("questions")
        names = [n for n in ("text", "references", "choices") if n in request.columns]
        rows = with_question_columns(rows, request, names)
    if not rows.height:
        raise InputError("no graded answer has a confidence", source=str(data))
    labels = options.get("labels")
    store = LabelStore(checks_path(study.path) if labels is None else labels)
    return GradeSession(rows, store, wave, options.get("overlap", 0.1), options.get("seed", 0))


def grades_document(session: GradeSession, data: Any) -> dict[str, Any]:
    """Return how far the checks have come, and what they say about the grader."""
    states = session.states()
    models = []
    for model, checked in session.checked(states).items():
        checks, rng = len(checked.rows), named_stream(session.seed, "grader", model)
        answers, doubtful = checked.graded.size, checked.graded.doubtful_share
        entry = {"model": model, "answers": answers, "doubtful": doubtful, "checked": checks}
        models.append(entry | (grader_report(checked, rng) if checks else {}))
    rules, examples = _where_it_fails(session, states)
    head = document_head("label", data, seed=session.seed)
    return {
        **head,
        "settings": {},
        "claims": [],
        "results": [],
        "people": people_of(states),
        "store": str(session.store.path),
        "grader": {"models": models, "rules": rules, "examples": examples},
        "next": {"command": Call("audit", *given_places(head)).text(), "why": _WHY},
        "batch": None,
        "added": None,
        "dropped": {},
    }


def _where_it_fails(
    session: GradeSession, states: list[ItemState]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return checks and wrong grades by rule, and some answers that were graded wrong."""
    counts: dict[tuple[str, bool], list[int]] = {}
    examples: list[dict[str, Any]] = []
    for state in states:
        if state.outcome is None:
            continue
        row = session.row(state.item)
        wrong = bool(row["correct"]) != bool(state.outcome)
        tally = counts.setdefault((row["grader"], bool(row["correct"])), [0, 0])
        tally[0] += 1
        tally[1] += wrong
        if wrong and len(examples) < _EXAMPLES:
            text = {name: row.get(name) for name in ("question_id", "text", "answer", "grader")}
            examples.append({**text, "graded": "right" if row["correct"] else "wrong"})
    rules = [
        {"rule": rule, "graded": "right" if right else "wrong", "checked": checks, "wrong": wrong}
        for (rule, right), (checks, wrong) in counts.items()
    ]
    return sorted(rules, key=lambda entry: (-entry["wrong"], -entry["checked"])), examples
