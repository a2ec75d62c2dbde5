"""Which column plays which role: those that are named, and the others by name and content."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import polars as pl
from msgspec import Struct, structs

from calibrant.core.errors import InputError, require_known
from calibrant.data.reading.assignment import ASK, REFUSE, TAKE, Named, ReadingDecision, decide
from calibrant.data.reading.candidates import (
    Peek,
    ReadingChoice,
    model_column,
    model_of,
    models_and_questions,
)
from calibrant.data.reading.cells import Column, is_outcome
from calibrant.data.reading.likely_columns import said_candidates
from calibrant.data.reading.names import columns_called, model_columns
from calibrant.data.reading.pairs import Derived, derived_of
from calibrant.data.reading.question import options_of, reading_question, refusal

Sample: TypeAlias = Callable[[], pl.DataFrame]
"""Reads some rows of a table with all columns."""
LISTS = ("confidence", "question_id")
"""Roles that several columns may play for one model."""
BESIDE = ("correct", "answer")
"""Roles that several columns play where each model has a confidence of its own."""
ROLES = ("confidence", "correct", "question_id", "model", "method", "answer", "weights", "cluster")
_REQUIRED = ("confidence", "correct")
_SURE, _MOSTLY = 3.0, 0.75


class Roles(Struct, frozen=True):
    """Columns by role, which of them were guessed, and others that name the same models.

    Where models stand side by side, `models` names them in the order of their confidences.
    `scale` and `right` are what the content says of them; `derived` makes columns that the table
    has not; `notes` say how it was read; `text` is the question's where that stands for its id.
    """

    columns: dict[str, list[str]]
    guessed: tuple[str, ...] = ()
    same: Mapping[str, tuple[str, ...]] = {}
    models: tuple[str, ...] = ()
    scale: str | None = None
    right: str | None = None
    derived: Derived | None = None
    notes: tuple[str, ...] = ()
    options: Mapping[str, str] = {}
    text: str | None = None

    def __getitem__(self, role: str) -> list[str]:
        """Return the columns of a role; none where no column plays it."""
        return self.columns[role]


def require_column(
    column: str, names: Sequence[str], source: str | None = None, *, role: str
) -> str:
    """Return the column, or say which are near where it is not there."""
    require_known([column], names, f"there is no column {{}} for {role}", source=source)
    return column


class RoleSearch:
    """The search for the column of each role; only confidence and correct must exist.

    Parameters
    ----------
    names
        The columns of the table.
    asked
        Columns by role, as they were named, or None; and ``scale``, ``right``, ``gold``, ``probs``.
    peek
        Reads some columns, where their names leave a doubt.
    sample
        Reads some rows, where names alone say too little.
    optional
        Roles that need no column although they usually do.
    """

    def __init__(
        self,
        names: Sequence[str],
        asked: Mapping[str, str | None],
        peek: Peek,
        sample: Sample,
        optional: Sequence[str] = (),
    ) -> None:
        self.names, self.asked, self.optional = names, asked, optional
        self.peek, self.sample = peek, sample
        targets = {role: target for role in ROLES if (target := asked.get(role)) is not None}
        self.columns = {role: _asked(role, target, names) for role, target in targets.items()}

    @property
    def taken(self) -> set[str]:
        """All columns that play a role."""
        return {name for subset in self.columns.values() for name in subset}

    def roles(self, crossed: Sequence[str] | None = None, *, beside_others: bool = False) -> Roles:
        """Return the columns by role.

        Parameters
        ----------
        crossed
            Columns that may name models and questions by what they hold; None looks at none.
        beside_others
            Other tables are read beside this one: numbers of questions tell which rows belong
            together.
        """
        columns, names, by_name = self.columns, self.names, bool(self.columns)
        roles = self._judged()
        guessed = list(roles.guessed)
        for role in ROLES:
            if role in columns:
                continue
            remainder = [name for name in names if name not in self.taken]
            called = columns_called(role, remainder) if role == "question_id" else []
            choice = called[0] if len(called) == 1 else None
            if role == "model" and not roles.models:
                choice, peers = model_column(remainder, self.peek, by_name=crossed is None)
                roles = structs.replace(roles, same={role: peers} if peers else {})
            elif role in remainder and role != "cluster":
                choice = role
            columns[role] = [] if choice is None else [choice]
            guessed += [role] if choice is not None and choice != role else []
        if crossed is not None and not roles.models:
            by_content = self._by_content(crossed, beside_others)
            columns |= by_content
            guessed += by_content
        for name in () if roles.models else sorted(self.taken):
            # A reader gave the second column of a name a number.
            again = re.compile(re.escape(name) + r" \[\d+\]")
            if count := sum(again.fullmatch(peer) is not None for peer in names):
                rule = f"the header names the column {name!r} {count + 1} times"
                raise InputError(rule, hint="rename one of them")
        models = roles.models or _models_beside(columns, by_name)
        order = {role: columns[role] for role in ROLES}
        all_guessed = tuple(sorted({*guessed}, key=ROLES.index))
        roles = structs.replace(roles, columns=order, guessed=all_guessed, models=models)
        texts = columns_called("question_text", names) if crossed is not None else []
        if not texts or columns["question_id"]:
            return roles
        order["question_id"] = texts[:1]
        return structs.replace(roles, guessed=(*all_guessed, "question_id"), text=texts[0])

    def _by_content(self, crossed: Sequence[str], beside_others: bool) -> dict[str, list[str]]:
        """Return the columns of models and questions that no name tells."""
        texts = self.columns["question_id"] or columns_called("question_text", crossed)[:1]
        if texts and self.columns["model"]:
            return {}
        rows, used = self.sample(), {*self.taken, *texts}
        remainder = [name for name in crossed if name not in used and name in rows.columns]
        columns = {**self.columns, "question_id": texts}
        model, ids = models_and_questions(rows.select(remainder), columns, self.peek)
        if not (ids or texts) and beside_others:
            numbers = [name for name in remainder if name.strip() == "#"]
            ids = [
                name
                for name in [*numbers, *columns_called("number", remainder)]
                if not (values := self.peek([name])[name]).null_count() and values.is_unique().all()
            ][:1]
        return {**({"model": [model]} if model else {}), **({"question_id": ids} if ids else {})}

    def _judged(self) -> Roles:
        """Find confidence and outcome, and add them to the columns; others are not looked at."""
        columns, request = self.columns, self.asked
        derived: Derived | None = None
        if request.get("gold") or request.get("probs"):
            derived = derived_of(request, self.names)
            columns |= {"confidence": [derived.said]} if derived.said else {}
            columns["correct"] = [derived.outcome]
            roles = Roles(columns, derived=derived, notes=derived.notes, options=derived.options)
            if "confidence" in columns:
                return roles
        else:
            roles = Roles(columns)
            # The schema's own names are taken where their columns hold what they say.
            own = [role for role in _REQUIRED if role in self.names and role not in columns]
            columns |= {role: [role] for role in own if self._holds(role)}
        if all(role in columns for role in _REQUIRED):
            return roles
        rows = self.sample()
        said, graded = (tuple(columns.get(role, ())) for role in _REQUIRED)
        named = Named(said, graded, frozenset(self.taken.difference(said, graded)))
        if derived is not None:
            rows = derived.applied(rows.lazy()).collect()
        decision = decide(rows, named)
        if all(role in columns or role in self.optional for role in _REQUIRED):
            return self._with_confidence(rows, decision, roles)
        if decision.kind == REFUSE:
            if "correct" in self.names and "correct" not in columns and "confidence" in columns:
                columns["correct"] = ["correct"]
                return roles
            first = next(role for role in _REQUIRED if role not in columns)
            raise refusal(decision.why, self.names, columns, first)
        if decision.kind == ASK and (doubts := _open(decision, request)):
            # Ids of questions that stand in several rows of a model: a command says so.
            ids = [*columns.get("question_id", columns_called("question_id", rows.columns))]
            keys = [*columns.get("model", model_columns(rows.columns)), *columns.get("method", ())]
            alone = len(ids) == 1 and not request.get("repeats")
            again = alone and rows.select(*dict.fromkeys([*ids, *keys])).is_duplicated().any()
            more, decision.doubts = {"repeats": True} if again else {}, doubts
            raise reading_question(decision, request, rows.height, more)
        return self._taken_choice(decision.choices[0], roles)

    def _holds(self, role: str) -> bool:
        # Who says what right is called means the column of outcomes.
        if role == "confidence" or self.asked.get("right") or role in self.optional:
            return True
        holding = self.peek([role])[role].head(100_000)
        count = holding.len() - holding.null_count()
        least = _MOSTLY * max(count, 1)
        # Few other numbers are slips of single rows, and these are told row by row.
        shares = holding.dtype.is_numeric() and holding.is_between(0, 1).sum() >= least
        return not count or holding.dtype.is_nested() or shares or is_outcome(holding)

    def _with_confidence(
        self, rows: pl.DataFrame, decision: ReadingDecision, roles: Roles
    ) -> Roles:
        """Find the confidence of a table that needs no outcome; the outcome where it is clear."""
        if decision.kind == TAKE:
            return self._taken_choice(decision.choices[0], roles)
        if decision.kind == ASK and not {"which", "unsure"} & {*decision.doubts}:
            return self._taken_choice(decision.choices[0], roles, scaled=False)
        if "confidence" in self.columns or "confidence" in self.optional:
            return roles
        matches = said_candidates([Column(series) for series in rows])
        sure = [c.column for c in matches if c.score >= _SURE]
        if not sure:
            raise refusal(decision.why, rows.columns, self.columns, "confidence")
        self.columns["confidence"] = sure[:1]
        return structs.replace(roles, guessed=("confidence",), scale=None)

    def _taken_choice(self, choice: ReadingChoice, roles: Roles, *, scaled: bool = True) -> Roles:
        """Return the roles of a reading that was chosen."""
        columns, derived, options = self.columns, roles.derived, options_of(choice, {})
        guessed = [*roles.guessed, *(role for role in _REQUIRED if role not in columns)]
        said = [confidence.column for confidence in choice.said]
        if choice.said[0].probs or choice.outcome.pair:
            derived = derived or derived_of(options, ())
            columns["correct"] = [derived.outcome]
            columns["confidence"] = [derived.said or name for name in said]
        else:
            columns.setdefault("confidence", said)
            outcomes = choice.outcomes or (choice.outcome,)
            columns["correct"] = [outcome.column for outcome in outcomes]
        options = {name: x for name, x in options.items() if self.asked.get(name) is None}
        scale, right = options.get("scale") if scaled else None, options.get("right")
        more = {**(derived.options if derived else {}), **({"right": right} if right else {})}
        taken = Roles(
            columns, tuple(guessed), scale=scale, right=right, derived=derived, options=more
        )
        return structs.replace(taken, models=choice.models, notes=(*roles.notes, *choice.notes))


def _open(decision: ReadingDecision, request: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the doubts that no option has answered."""
    answers = set[str]()
    if request.get("scale") is not None:
        answers |= {"levels", "mixed", "words", "rank", "logprob", "uncertainty"}
    if request.get("right") is not None:
        answers |= {"error", "word", "letters", "graded", "decision", "leftover", "direction"}
    if all(request.get(role) is not None for role in _REQUIRED):
        answers |= {"which", "unsure", "whose", "direction"}
    return tuple(doubt for doubt in decision.doubts if doubt not in answers)


def _models_beside(columns: Mapping[str, Sequence[str]], by_name: bool) -> tuple[str, ...]:
    """Return the names of the models that stand side by side; none where they do not."""
    confidence = columns["confidence"]
    for role in BESIDE:
        if len(columns[role]) not in (0, 1, len(confidence)):
            counts = {of: len(columns[of]) for of in ("confidence", role)}
            rule = ", ".join(f"columns for {of}: {count}" for of, count in counts.items())
            hint = "name one for all of them, or one for each in the same order"
            raise InputError(rule, hint=hint)
    if len(confidence) < 2 or len(columns["correct"]) < 2 or not by_name:
        return ()
    if columns["model"]:
        rule = f"models stand side by side ({', '.join(confidence)}), and column "
        rule += f"{columns['model'][0]} names models too"
        raise InputError(rule, hint="rename that column, or save one row per question and model")
    models = [model_of(name, frozenset({"confidence"})) for name in confidence]
    return tuple(models if all(models) and len({*models}) == len(models) else confidence)


def _asked(role: str, target: str, names: Sequence[str]) -> list[str]:
    if target in names or "," not in target:
        return [require_column(target, names, role=role)]
    parts = [require_column(part.strip(), names, role=role) for part in target.split(",")]
    if role not in (*LISTS, *BESIDE):
        rule = f"{role} is one column, got {len(parts)}: {target}"
        raise InputError(rule, hint=f"only {', '.join((*LISTS, *BESIDE))} may be lists")
    if len(set(parts)) < len(parts):
        raise InputError(f"a column is named twice for {role}: {target}")
    return parts
