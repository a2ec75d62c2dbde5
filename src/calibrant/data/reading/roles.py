"""Which column plays which role: those that are named, and the others by name and content."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import polars as pl
from msgspec import Struct, structs

from calibrant.core.errors import InputError, require_known
from calibrant.data.reading.assignment import ASK, REFUSE, Named, ReadingDecision, decide
from calibrant.data.reading.candidates import ReadingChoice
from calibrant.data.reading.cells import Column
from calibrant.data.reading.likely_columns import said_candidates
from calibrant.data.reading.models import Peek, model_column, model_of, models_and_questions
from calibrant.data.reading.names import columns_called, model_columns
from calibrant.data.reading.pairs import Derived, derived_of
from calibrant.data.reading.question import options_of, reading_question, refusal
from calibrant.data.reading.typed import is_outcome

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


def require_one_name(used: Iterable[str], names: Sequence[str]) -> None:
    """Refuse a column in use whose name another has too: a reader gave that one a number."""
    for name in used:
        again = re.compile(re.escape(name) + r" \[\d+\]")
        if count := sum(again.fullmatch(peer) is not None for peer in names):
            rule = f"the header names the column {name!r} {count + 1} times"
            raise InputError(rule, hint="rename one of them")


def resolve_roles(
    names: list[str],
    asked: Mapping[str, str | None],
    peek: Peek,
    sample: Sample,
    *,
    optional: Sequence[str] = (),
    crossed: Sequence[str] | None = None,
    beside_others: bool = False,
) -> Roles:
    """Map each role to its columns; only confidence and correct must exist.

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
    crossed
        Columns that may name models and questions by what they hold; None does not look at any.
    beside_others
        Other tables are read beside this one: numbers of questions tell which rows belong together.
    """
    targets = {role: target for role in ROLES if (target := asked.get(role)) is not None}
    columns = {role: _asked(role, target, names) for role, target in targets.items()}
    roles = _judged(names, columns, asked, peek, sample, optional)
    guessed = list(roles.guessed)
    for role in ROLES:
        if role in columns:
            continue
        if role == "model" and not roles.models:
            choice, peers = model_column(
                [n for n in names if n not in _taken(columns)], peek, by_name=crossed is None
            )
            roles = structs.replace(roles, same={role: peers} if peers else {})
        else:
            choice = _by_name(role, names, columns)
        columns[role] = [] if choice is None else [choice]
        guessed += [role] if choice is not None and choice != role else []
    if crossed is not None and not roles.models:
        by_content = _by_content(crossed, columns, peek, sample, beside_others)
        columns |= by_content
        guessed += by_content
    require_one_name([name for name in _taken(columns) if not roles.models], names)
    models = roles.models or _models_beside(columns, bool(targets))
    order = {role: columns[role] for role in ROLES}
    all_guessed = tuple(sorted({*guessed}, key=ROLES.index))
    roles = structs.replace(roles, columns=order, guessed=all_guessed, models=models)
    texts = columns_called("question_text", names) if crossed is not None else []
    if not texts or columns["question_id"]:
        return roles
    order["question_id"] = texts[:1]
    return structs.replace(roles, guessed=(*all_guessed, "question_id"), text=texts[0])


def _by_content(
    crossed: Sequence[str],
    columns: Mapping[str, list[str]],
    peek: Peek,
    sample: Sample,
    beside_others: bool,
) -> dict[str, list[str]]:
    """Return the columns of models and questions that no name tells."""
    texts = columns["question_id"] or columns_called("question_text", crossed)[:1]
    remainder = [name for name in crossed if name not in {*_taken(columns), *texts}]
    if texts and columns["model"]:
        return {}
    rows = sample()
    remainder = [name for name in remainder if name in rows.columns]
    model, ids = models_and_questions(
        rows.select(remainder), {**columns, "question_id": texts}, peek
    )
    if not (ids or texts) and beside_others:
        numbers = [name for name in remainder if name.strip() == "#"]
        ids = [
            name
            for name in [*numbers, *columns_called("number", remainder)]
            if not (values := peek([name])[name]).null_count() and values.is_unique().all()
        ][:1]
    return {**({"model": [model]} if model else {}), **({"question_id": ids} if ids else {})}


def _by_name(role: str, names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> str | None:
    """Return the column of a role that is told by its name alone."""
    if role in names and role != "cluster" and role not in _taken(columns):
        return role
    if role != "question_id":
        return None
    called = [name for name in columns_called(role, names) if name not in _taken(columns)]
    return called[0] if len(called) == 1 else None


def _taken(columns: Mapping[str, Sequence[str]]) -> set[str]:
    return {name for subset in columns.values() for name in subset}


def _judged(
    names: Sequence[str],
    columns: dict[str, list[str]],
    request: Mapping[str, str | None],
    peek: Peek,
    sample: Sample,
    optional: Sequence[str],
) -> Roles:
    """Find confidence and outcome, and add them to the columns; others are not looked at."""
    if request.get("gold") or request.get("probs"):
        derived = derived_of(request, names)
        confidence, outcome = derived.said, derived.outcome
        columns |= {"confidence": [confidence]} if confidence else {}
        columns["correct"] = [outcome]
        roles = Roles(columns, derived=derived, notes=derived.notes, options=derived.options)
        if "confidence" in columns:
            return roles
    else:
        roles = Roles(columns)
        # Who says what right is called means the column of outcomes.
        _take_schema(names, columns, peek, ("correct",) if request.get("right") else optional)
    if all(role in columns for role in _REQUIRED):
        return roles
    rows = sample()
    said, graded = (tuple(columns.get(role, ())) for role in _REQUIRED)
    by_name = Named(said, graded, frozenset(_taken(columns).difference(said, graded)))
    if roles.derived is not None:
        rows = roles.derived.applied(rows.lazy()).collect()
    if all(role in columns or role in optional for role in _REQUIRED):
        return _with_confidence(columns, rows, by_name, roles, request, optional)
    decision = decide(rows, by_name)
    if decision.kind == REFUSE:
        if {"correct"} & {*names} and "correct" not in columns and "confidence" in columns:
            columns["correct"] = ["correct"]
            return roles
        first = next(role for role in _REQUIRED if role not in columns)
        raise refusal(decision.why, names, columns, first)
    if decision.kind == ASK and (left := _open(decision, request)):
        again = not request.get("repeats") and _ids_return(rows, columns)
        more = {"repeats": True} if again else {}
        raise reading_question(structs.replace(decision, doubts=left), request, rows.height, more)
    return _taken_choice(decision.choices[0], columns, roles, request)


def _ids_return(rows: pl.DataFrame, columns: Mapping[str, Sequence[str]]) -> bool:
    """Return whether ids of questions stand in several rows of a model: a command says so."""
    names = rows.columns
    ids = [*columns.get("question_id", columns_called("question_id", names))]
    keys = [*columns.get("model", model_columns(names)), *columns.get("method", ())]
    return len(ids) == 1 and bool(rows.select(*dict.fromkeys([*ids, *keys])).is_duplicated().any())


def _take_schema(
    names: Sequence[str], columns: dict[str, list[str]], peek: Peek, optional: Sequence[str]
) -> None:
    """Take the columns of the schema's own names, where these hold what they say."""
    if "confidence" not in columns and "confidence" in names:
        columns["confidence"] = ["confidence"]
    if "correct" in columns or "correct" not in names:
        return
    if "correct" in optional:
        columns["correct"] = ["correct"]
        return
    holding = peek(["correct"])["correct"].head(100_000)
    known = holding.len() - holding.null_count()
    least = _MOSTLY * max(known, 1)
    # Few other numbers are slips of single rows, and these are told row by row.
    shares = holding.dtype.is_numeric() and holding.is_between(0, 1).sum() >= least
    if not known or holding.dtype.is_nested() or shares or is_outcome(holding):
        columns["correct"] = ["correct"]


def _open(decision: ReadingDecision, request: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the doubts that no option has answered."""
    answers = set[str]()
    if request.get("scale") is not None:
        answers |= {"levels", "mixed", "words", "rank", "logprob", "uncertainty"}
    if request.get("right") is not None:
        answers |= {"error", "word", "letters", "graded", "decision", "leftover", "direction"}
    names = all(request.get(role) is not None for role in _REQUIRED)
    if names:
        answers |= {"which", "unsure", "whose", "direction"}
    return tuple(doubt for doubt in decision.doubts if doubt not in answers)


def _with_confidence(
    columns: dict[str, list[str]],
    rows: pl.DataFrame,
    names: Named,
    roles: Roles,
    request: Mapping[str, str | None],
    optional: Sequence[str],
) -> Roles:
    """Find the confidence of a table that needs no outcome, and the outcome where it is clear."""
    decision = decide(rows, names)
    if decision.kind == "take":
        return _taken_choice(decision.choices[0], columns, roles, request)
    if decision.kind == ASK and not {"which", "unsure"} & {*decision.doubts}:
        return _taken_choice(decision.choices[0], columns, roles, {**request, "scale": ""})
    if "confidence" in columns or "confidence" in optional:
        return roles
    matches = said_candidates([Column(series) for series in rows])
    sure = [c for c in matches if c.score >= _SURE]
    if not sure:
        raise refusal(decision.why, [*rows.columns], columns, "confidence")
    columns["confidence"] = [sure[0].column]
    return structs.replace(roles, guessed=("confidence",), scale=None)


def _taken_choice(
    choice: ReadingChoice,
    columns: dict[str, list[str]],
    roles: Roles,
    request: Mapping[str, str | None],
) -> Roles:
    """Return the roles of a reading that was chosen."""
    options, said = options_of(choice, {}), [confidence.column for confidence in choice.said]
    guessed = [*roles.guessed, *(role for role in _REQUIRED if role not in columns)]
    derived = roles.derived
    if choice.said[0].probs or choice.outcome.pair:
        if derived is None:
            derived = derived_of(options, ())
        columns["correct"] = [derived.outcome]
        columns["confidence"] = [derived.said or name for name in said]
    else:
        columns.setdefault("confidence", said)
        outcomes = choice.outcomes or (choice.outcome,)
        columns["correct"] = [outcome.column for outcome in outcomes]
    scale, right = (
        options.get(name) if request.get(name) is None else None for name in ("scale", "right")
    )
    more = {**(derived.options if derived else {}), **({"right": right} if right else {})}
    taken = Roles(columns, tuple(guessed), scale=scale, right=right, derived=derived, options=more)
    return structs.replace(taken, models=choice.models, notes=(*roles.notes, *choice.notes))


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


def _asked(role: str, target: str, names: list[str]) -> list[str]:
    if target in names or "," not in target:
        return [require_column(target, names, role=role)]
    parts = [require_column(part.strip(), names, role=role) for part in target.split(",")]
    if role not in (*LISTS, *BESIDE):
        rule = f"{role} is one column, got {len(parts)}: {target}"
        raise InputError(rule, hint=f"only {', '.join((*LISTS, *BESIDE))} may be lists")
    if len(set(parts)) < len(parts):
        raise InputError(f"a column is named twice for {role}: {target}")
    return parts
