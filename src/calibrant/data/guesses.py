"""Which column plays which role where nobody says so: by its name, and by what it holds."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from calibrant.core.errors import InputError, UnavailableError, did_you_mean, require_known
from calibrant.core.hints import Call, Hint
from calibrant.core.imports import data_beside
from calibrant.data.side_by_side import model_of, models_side_by_side

if TYPE_CHECKING:
    import polars as pl

Peek: TypeAlias = Callable[[Sequence[str]], "pl.DataFrame"]
"""Reads some columns of a table, where their names leave a doubt."""
LISTS = ("confidence", "question_id")
"""Roles that several columns may play for one model."""
BESIDE = ("correct", "answer")
"""Roles that several columns play where each model has a confidence of its own."""
ROLES = ("confidence", "correct", "question_id", "model", "method", "answer", "weights", "cluster")
_REQUIRED = ("confidence", "correct")
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    part: {use: tuple(names.split()) for use, names in held.items()}
    for part, held in data_beside(__file__, "names.toml").items()
}
"""Names that people give to columns, by what these hold."""
_OTHER = NAMES["other"]
# A weight may be that of a parcel, a cluster a number of another method: somebody has to say so.
# Numbers of questions are shared by models if there are at most so many per two rows.
_SHARED = 1.5
_NEVER = ("weights", "cluster", "answer", "method")


class Roles(Struct, frozen=True):
    """Columns by role, which of them were guessed, and others that name the same models.

    Where models stand side by side, `models` names them in the order of their confidences.
    """

    columns: dict[str, list[str]]
    guessed: tuple[str, ...] = ()
    same: Mapping[str, tuple[str, ...]] = {}
    models: tuple[str, ...] = ()

    def __getitem__(self, role: str) -> list[str]:
        """Return the columns of a role; none where no column plays it."""
        return self.columns[role]


def usual_columns(role: str, names: Sequence[str]) -> list[str]:
    """Return the columns whose name says that they play a role.

    Examples
    --------
    >>> usual_columns("confidence", ["id", "Conf", "is_correct"])
    ['Conf']
    >>> usual_columns("model", ["Modèle", "model_id", "answer"])
    ['Modèle', 'model_id']
    """
    usual = NAMES["usual"].get(role, ())
    return [
        name
        for name in names
        if (bare := _bare(name)) in usual or (role == "confidence" and role in bare)
    ]


def question_text(names: Sequence[str]) -> str | None:
    """Return the column with the texts of the questions, or None.

    Examples
    --------
    >>> question_text(["Prompt", "confidence", "correct"])
    'Prompt'
    """
    return next((name for name in names if _bare(name) in _OTHER["question_texts"]), None)


def guessed_column(role: str, names: Sequence[str]) -> str | None:
    """Return the only column whose name says that it plays a role, or None.

    Examples
    --------
    >>> guessed_column("confidence", ["p", "prob"]) is None
    True
    """
    columns = usual_columns(role, names)
    return columns[0] if len(columns) == 1 else None


def outcome_columns(names: Sequence[str], asked: str | None = None) -> list[str]:
    """Return the columns of outcomes by name: those asked for, the only one, or one per model.

    Examples
    --------
    >>> outcome_columns(["A conf", "A ok", "B conf", "B ok"]), outcome_columns(["p", "Label"])
    (['A ok', 'B ok'], ['Label'])
    """
    if asked is not None:
        return [asked] if asked in names else [part.strip() for part in asked.split(",")]
    one = guessed_column("correct", names)
    return [one] if one else [*models_side_by_side(names, _role_words("correct")).values()]


def _bare(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in plain if letter.isalnum())


def require_column(
    column: str, names: Sequence[str], source: str | None = None, *, role: str
) -> str:
    """Return the column, or say which are near where it is not there."""
    require_known([column], names, f"there is no column {{}} for {role}", source=source)
    return column


def resolve_roles(
    names: list[str],
    asked: Mapping[str, str | None],
    peek: Peek,
    *,
    optional: Sequence[str] = (),
    number_ids: bool = False,
    beside_others: bool = False,
) -> Roles:
    """Map each role to its columns; only confidence and correct must exist.

    Parameters
    ----------
    names
        The columns of the table.
    asked
        Columns by role, as they were named, or None.
    peek
        Reads some columns, where their names leave a doubt.
    optional
        Roles that need no column although they usually do.
    number_ids
        Take a column called like a number of questions for their ids, where its values agree.
    beside_others
        Other tables are read beside this one, and such numbers may tell which rows belong together.
    """
    columns: dict[str, list[str]] = {}
    beside = _side_by_side(names, asked, peek)
    guessed: list[str] = [*beside]
    same: dict[str, tuple[str, ...]] = {}
    for role in ROLES:
        if role in beside:
            columns[role] = beside[role]
            continue
        wanted = asked.get(role)
        if wanted is not None:
            columns[role] = _asked(role, wanted, names)
            continue
        if role == "model":
            chosen, others = _model(names, peek)
            same |= {role: others} if others else {}
        elif role in names and role != "cluster":
            chosen = role
        else:
            chosen = None if role in _NEVER else _guess(role, _free(names, columns), peek)
        columns[role] = [] if chosen is None else [chosen]
        if chosen is not None and chosen != role:
            guessed.append(role)
    missing = [role for role in _REQUIRED if not columns[role] and role not in optional]
    if missing:
        raise _refusal(missing[0], columns, names, peek)
    if not columns["question_id"] and number_ids:
        columns["question_id"] = _numbers_of_questions(names, columns, peek, beside_others)
        guessed += ["question_id"] * len(columns["question_id"])
    return Roles(columns, tuple(guessed), same, _models_beside(columns))


def _side_by_side(
    names: Sequence[str], asked: Mapping[str, str | None], peek: Peek
) -> dict[str, list[str]]:
    """Return the columns by role where every confidence has an outcome of the same model."""
    given = any(asked.get(role) for role in ("confidence", *BESIDE, "model", "method"))
    if given or usual_columns("model", names) or {"confidence", "correct", "method"} & {*names}:
        return {}
    by_role = {role: models_side_by_side(names, _role_words(role)) for role in ROLES[:2]}
    said, graded = (
        {model: name for model, name in by_model.items() if _agreeing(role, [name], peek)}
        for role, by_model in by_role.items()
    )
    if len(said) < 2 or not said.keys() <= graded.keys():
        return {}
    answers = models_side_by_side(names, {*NAMES["texts"]["answers"]})
    columns = {"confidence": [*said.values()], "correct": [graded[model] for model in said]}
    if said.keys() <= answers.keys():
        columns["answer"] = [answers[model] for model in said]
    return columns


def _role_words(role: str) -> set[str]:
    return {role, *NAMES["usual"][role], *NAMES["perhaps"][role]}


def _models_beside(columns: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the names of the models that stand side by side; none where they do not."""
    said = columns["confidence"]
    for role in BESIDE:
        if len(columns[role]) not in (0, 1, len(said)):
            raise InputError(
                f"columns for confidence: {len(said)}, columns for {role}: {len(columns[role])}",
                hint="name one for all of them, or one for each in the same order",
            )
    if len(said) < 2 or len(columns["correct"]) < 2:
        return ()
    if columns["model"]:
        raise InputError(
            f"models stand side by side ({', '.join(said)}), and column {columns['model'][0]} "
            "names models too",
            hint="rename that column, or save one row per question and model",
        )
    models = [model_of(name, _role_words("confidence")) for name in said]
    return tuple(models if all(models) and len({*models}) == len(models) else said)


def _numbers_of_questions(
    names: list[str], columns: Mapping[str, list[str]], peek: Peek, beside_others: bool
) -> list[str]:
    """Return the column that numbers the questions: one row in each model, shared by models.

    In the one table of one model such numbers say nothing that the rows do not.
    """
    keys = [*columns["model"], *columns["method"]]
    for name in _free(names, columns):
        if not (_bare(name) in _OTHER["numbers"] or name.strip() == "#"):
            continue
        table = peek([name, *keys])
        several = bool(keys) and table.select(keys).n_unique() > 1
        shared = 2 * table[name].n_unique() <= _SHARED * table.height if several else beside_others
        if shared and not table[name].null_count() and not table.is_duplicated().any():
            return [name]
    return []


def run_columns(names: Sequence[str]) -> list[str]:
    """Return the columns whose name says that they tell runs, seeds or prompts apart.

    Examples
    --------
    >>> run_columns(["Run", "seed", "question"])
    ['Run', 'seed']
    """
    return [name for name in names if _bare(name) in _OTHER["runs"]]


def _asked(role: str, wanted: str, names: list[str]) -> list[str]:
    if wanted in names or "," not in wanted:
        return [require_column(wanted, names, role=role)]
    parts = [require_column(part.strip(), names, role=role) for part in wanted.split(",")]
    if role not in (*LISTS, *BESIDE):
        raise InputError(
            f"{role} is one column, got {len(parts)}: {wanted}",
            hint=f"only {', '.join((*LISTS, *BESIDE))} may be lists",
        )
    if len(set(parts)) < len(parts):
        raise InputError(f"a column is named twice for {role}: {wanted}")
    return parts


def _free(names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns that play no role so far."""
    taken = {name for some in columns.values() for name in some}
    return [name for name in names if name not in taken]


def _guess(role: str, names: list[str], peek: Peek) -> str | None:
    """Return the column of a role by its name, and by its values where the name leaves a doubt."""
    sure = usual_columns(role, names)
    if len(sure) == 1 or role not in _REQUIRED:
        return sure[0] if len(sure) == 1 else None
    perhaps = [name for name in names if _bare(name) in NAMES["perhaps"][role]]
    for candidates in (sure, perhaps):
        agreeing = _agreeing(role, candidates, peek)
        if len(agreeing) > 1:
            raise _question(role, agreeing)
        if agreeing:
            return agreeing[0]
    return None


def _agreeing(role: str, candidates: list[str], peek: Peek) -> list[str]:
    """Return the columns whose values are what the role needs."""
    if not candidates:
        return []
    from calibrant.data.reading.typed import is_confidence, is_outcome

    agrees = is_confidence if role == "confidence" else is_outcome
    table = peek(candidates)
    return [name for name in candidates if agrees(table[name])]


def _model(names: list[str], peek: Peek) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of models, and others that name the same ones; models are never pooled."""
    # A name is read more easily than an id.
    columns = sorted(
        usual_columns("model", names),
        key=lambda name: (name != "model", _bare(name).endswith("id")),
    )
    if len(columns) < 2:
        return (columns[0] if columns else None), ()
    table = peek(columns).unique()
    counts = {name: table[name].n_unique() for name in columns}
    most = max(counts.values())
    # One name per row of the others: what differs is told apart, what is constant adds nothing.
    if table.height > most or any(1 < count < most for count in counts.values()):
        raise _question("model", columns)
    finest, *same = (name for name in columns if counts[name] == most)
    return finest, tuple(same)


def _question(role: str, columns: Sequence[str]) -> InputError:
    what = {"confidence": "the confidence", "correct": "the outcome", "model": "the model"}[role]
    ways = [Hint("{" + role + "}", **{role: name}) for name in columns[:4]]
    if role == "confidence":
        ways.append(Hint("{confidence} for all of them", confidence=",".join(columns)))
    text = ", ".join(f"{{{place}}}" for place in range(len(ways)))
    return InputError(
        f"{len(columns)} columns may be {what}: {', '.join(columns)}",
        hint=Hint(f"say which: {text}", *ways),
    )


def _refusal(
    role: str, columns: Mapping[str, list[str]], names: list[str], peek: Peek
) -> InputError:
    """Say which of the two is missing, and what may help."""
    other = [name for part in _REQUIRED if part != role for name in columns[part]]
    if not other:
        rule = "there is neither a confidence nor an outcome here: no column 'confidence'"
    elif role == "confidence":
        rule = f"there are grades ({other[0]}), but there is no column 'confidence'"
    else:
        rule = (
            f"there is a confidence ({other[0]}), but no column 'correct': without labels nobody "
            "can tell whether the confidence is right"
        )
    free = _free(names, columns)
    alike = [name for name in free if role in name.lower()]
    likely = (alike or _agreeing(role, free, peek))[:4]
    sampled = next((name for name in names if name.lower() in _OTHER["sampled"]), None)
    if sampled is not None and not other:
        # Answers without confidence and grade are not misnamed numbers: they wait to be graded.
        likely = []
    graded = role == "confidence" and (other or sampled is None)
    kind = InputError if graded else UnavailableError
    return kind(rule, hint=_way_out(role, likely, names, sampled))


def _way_out(role: str, likely: Sequence[str], names: list[str], sampled: str | None) -> Hint:
    if likely:
        ways = [Hint("{" + role + "}", **{role: name}) for name in likely]
        if len(likely) > 1 and role in LISTS:
            ways.append(Hint("all of them, {" + role + "}", **{role: ",".join(likely)}))
        text = " or ".join(f"{{{place}}}" for place in range(len(ways)))
        return Hint(f"is it {text}?", *ways)
    if sampled is not None:
        return Hint(
            "if {0} holds sampled answers, have them graded: {samples} and {reference} with the "
            "column of right answers (there are: {1})",
            repr(sampled),
            ", ".join(names),
            samples=sampled,
        )
    if role == "confidence":
        return Hint("name it with {confidence}; {0}", did_you_mean(role, names))
    return Hint(
        "name that column with {correct} (there are: {0}); without one, label a batch: `{next}`",
        ", ".join(names),
        next=Call("label next", "TABLE", out="batch.csv"),
    )
