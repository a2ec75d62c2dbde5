"""What is to be known about the data before any claim: missing, one-sided, unlabelled."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import convert
from msgspec.structs import replace

from calibrant.core.arrays import MaybeArray
from calibrant.core.errors import UnavailableError
from calibrant.core.hints import Call, Hint
from calibrant.core.names import method_name
from calibrant.findings.claims import Claim, count, joined, percent
from calibrant.findings.documents.audits import AuditBlock, Coverage
from calibrant.findings.documents.entries import DataWarning

# Fewer rows may all be right or all wrong by chance.
LEAST_ONE_SIDED = 30
MUCH_MISSING = 0.2
FEW_VALUES = 5
# Below the share that always counts, missing rows count where they differ from the others.
_SOME_MISSING = 0.01
_RELATED = 0.01


def coverage_document(models: list[dict[str, Any]], **whole: Any) -> dict[str, Any]:
    """Return the part of a document that comes before any claim."""
    return {**whole, "models": models, "warnings": data_warnings(models)}


def data_warnings(models: Sequence[Mapping[str, Any]]) -> list[DataWarning]:
    """Return warnings about the data, the gravest first, each with an id and a sentence.

    Parameters
    ----------
    models
        Coverage by model and method, see `calibrant.data.sources.coverage`.

    Examples
    --------
    >>> entry = {"model": "a", "method": "p", "n": 900, "accuracy": 0.0, "answers_empty": 900}
    >>> found = data_warnings([entry])[0]
    >>> found["id"], found["text"][:71]
    ('data.unreadable', 'No answer could be read in 100 % of the rows of a, all graded as wrong.')
    """
    rows = convert(models, list[Coverage])
    kinds = (_emptied, _unreadable, _one_sided, _missing, _few_values, _repeated)
    return [warning for kind in kinds for warning in kind(rows)]


def warning(name: str, text: str, **subject: Any) -> DataWarning:
    """Return what is to be known about the data, and the models or columns that it is about."""
    return {"id": f"data.{name}", "subject": subject, "text": text}


def _names(rows: Iterable[Coverage]) -> list[str]:
    return list(dict.fromkeys(row.model for row in rows))


def kept_shares(models: Sequence[Coverage]) -> dict[tuple[str, str], float]:
    """Return the share of rows that is left, by model and method, where that is worth a word.

    Examples
    --------
    >>> half = Coverage(model="a", method="p", n=50, dropped=50, expected=100)
    >>> kept_shares([half, Coverage(model="b", method="p", n=100, expected=100)])
    {('a', 'p'): 0.5}
    """
    missing = {(row.model, str(row.method)): _missing_share(row) for row in models}
    return {key: 1 - share for key, (share, related) in missing.items() if _tells(share, related)}


def with_rows_kept(
    claims: Iterable[Claim], kept: Mapping[tuple[str, str], float], spoken: Container[str] = ()
) -> list[Claim]:
    """Return claims of which the first about a model names the share of the rows behind it.

    Parameters
    ----------
    claims
        About a model and a method.
    kept
        See `kept_shares`.
    spoken
        Ids of claims that say themselves what lost rows could change.
    """
    worded, untold = [], dict(kept)
    for claim in claims:
        key = (str(claim.subject["model"]), str(claim.subject["method"]))
        if key in untold and claim.id not in spoken:
            rests = f"This rests on {percent(untold.pop(key))} of the rows."
            worded.append(replace(claim, text=f"{claim.text} {rests}"))
        else:
            worded.append(claim)
    return worded


def _tells(share: float, related: bool) -> bool:
    return share > MUCH_MISSING or related


def _emptied(models: Sequence[Coverage]) -> Iterable[DataWarning]:
    """Yield models of which no row is left in any method."""
    remaining = {row.model for row in models if row.n}
    gone = _names(row for row in models if not row.n and row.model not in remaining)
    if gone:
        verb, whom = ("has", "it") if len(gone) == 1 else ("have", "them")
        label = joined([name.strip() or "A model without a name" for name in gone])
        text = f"{label} {verb} no usable row: nothing is said about {whom}."
        yield warning("emptied", text, models=gone)


def _one_sided(models: Sequence[Coverage]) -> Iterable[DataWarning]:
    by_model: dict[str, list[Coverage]] = {}
    for row in models:
        if row.n:
            by_model.setdefault(row.model, []).append(row)
    # By one confidence a model may be about other answers than by another.
    ends = {
        name: {
            (row.accuracy if row.n >= LEAST_ONE_SIDED and row.accuracy in (0.0, 1.0) else None)
            for row in rows
        }
        for name, rows in by_model.items()
    }
    for end, word in ((0.0, "never right"), (1.0, "always right")):
        for name, (first, *_) in by_model.items():
            if ends[name] != {end}:
                continue
            called = name if name != "model" else "The model"
            if first.answers_empty == first.n:
                continue  # said of what was read
            why = f" ({count(first.n, 'answer')})"
            yield warning(word.replace(" ", "_"), f"{called} is {word}{why}.", models=[name])


def _unreadable(models: Sequence[Coverage]) -> Iterable[DataWarning]:
    """Yield one warning of models in whose rows no answer could be read, the worst first.

    A row that nobody could read is graded wrong by most harnesses, and it is missing.
    """
    shares = {row.model: (row.answers_empty or 0) / row.n for row in models if row.n}
    worst = sorted(shares, key=lambda name: -shares[name])
    names = [name for name in worst if shares[name] >= _SOME_MISSING]
    if not names or max(row.n for row in models) < LEAST_ONE_SIDED:
        return
    whom = "" if names[0] == "model" else f" of {names[0]}"
    text = f"No answer could be read in {percent(shares[names[0]])} of the rows{whom}, "
    text += "all graded as wrong. Such rows are missing, not wrong: leave their grade empty."
    if others := len(names) - 1:
        alike = sum(shares[name] == shares[names[0]] for name in names[1:])
        equal = f" ({alike} of them in as many rows)" if alike else ""
        text += f" So it is with {count(others, 'other model')}{equal}."
    yield warning("unreadable", text, models=names)


def unranked_warning(model: str, answers: int) -> DataWarning:
    """Say that a model that is never right has no rank: it ties with nobody, and tells nothing.

    Examples
    --------
    >>> unranked_warning("a", 900)["text"]
    'a is never right (900 answers). It is left out of the ranking.'
    """
    text = f"{model} is never right ({count(answers, 'answer')}). It is left out of the ranking."
    return warning("never_right", text, models=[model])


def _missing(models: Sequence[Coverage]) -> Iterable[DataWarning]:
    """Yield one warning for all models of a method that lack rows, the worst as an example."""
    by_method: dict[str, list[tuple[float, bool, Coverage]]] = {}
    for row in models:
        share, related = _missing_share(row)
        if share >= _SOME_MISSING:
            by_method.setdefault(str(row.method), []).append((share, related, row))
    # Where most is missing comes first: a short view shows few warnings.
    for method, shares in sorted(by_method.items(), key=lambda item: -max(f[0] for f in item[1])):
        if not any(_tells(share, related) for share, related, _ in shares):
            continue
        worst = max(shares, key=lambda item: item[0])
        names = _names(row for _, _, row in shares)
        yield warning("missing", _missing_text(worst, len(names), method), models=names)


def _missing_share(row: Coverage) -> tuple[float, bool]:
    """Return the share of rows that are missing, and whether they differ from the others."""
    missing = row.dropped + row.missing
    if not row.n or not row.expected or not missing:
        return 0.0, False
    share, p_value = missing / row.expected, row.missing_p
    return share, p_value is not None and p_value < _RELATED and share >= _SOME_MISSING


def _missing_text(worst: tuple[float, bool, Coverage], many: int, method: str) -> str:
    share, related, row = worst
    column = "" if row.only_method else f" ({method_name(method, aside=True)})"
    name = row.model if row.model != "model" else "the table"
    text = f"{percent(share)} of the rows of {name}{column} are missing or unusable."
    if many > 1:
        most = f"up to {percent(share)} ({name})"
        least = percent(_SOME_MISSING)
        text = f"{many} models{column} lack {least} of their rows or more, {most}."
    if row.missing_p is None or row.missing_accuracy is None or row.kept_accuracy is None:
        return text
    missing, selection = percent(row.missing_accuracy), percent(row.kept_accuracy)
    if related:
        where = "There, lost" if many > 1 else "Lost"
        return f"{text} {where} rows differ from the rest: {missing} right against {selection}."
    return f"{text} They are about as often right as the rest ({missing} against {selection})."


def _few_values(models: Sequence[Coverage]) -> Iterable[DataWarning]:
    alike: dict[tuple[int, str], list[str]] = {}
    for row in models:
        if row.values is not None and row.n >= LEAST_ONE_SIDED and row.values < FEW_VALUES:
            alike.setdefault((row.values, str(row.method)), []).append(row.model)
    for (values, method), names in alike.items():
        called = f"{method_name(method)} of {joined(names)}"
        person = "The confidence" if names == ["model"] else called
        how = "is always the same" if values == 1 else f"has only {values} different values"
        yield warning("few_values", f"{person} {how}.", models=names)


def _repeated(models: Sequence[Coverage]) -> Iterable[DataWarning]:
    twice = [row for row in models if row.repeated_texts]
    if twice:
        most = max(row.repeated_texts or 0 for row in twice)
        stand = "stands" if most == 1 else "stand"
        text = f"{count(most, 'question')} {stand} in the data more than once, with the same text."
        yield warning("duplicates", text, models=_names(twice))


def unequal_note(effective: float, *, repeated: bool = False) -> str:
    """Say how much rows of unequal weight, or questions with unequally many rows, tell.

    Examples
    --------
    >>> unequal_note(12.4)
    'weights are unequal: this tells as much as 12 equal rows, too few for a firm interval'
    >>> unequal_note(150, repeated=True)
    'questions weigh unequally: this tells as much as 150 equal questions'
    """
    caution = ", too few for a firm interval" if effective < LEAST_ONE_SIDED else ""
    how, part = "weights are unequal", "rows"
    if repeated:
        how, part = "questions weigh unequally", "questions"
    return f"{how}: this tells as much as {effective:,.0f} equal {part}{caution}"


def unequal_warnings(entries: Sequence[AuditBlock]) -> list[DataWarning]:
    """Warn of models whose rows or questions weigh so unequally that few of them decide.

    Examples
    --------
    >>> rows = {"n": 60, "questions": 60, "effective_n": 2.8}
    >>> unequal_warnings([AuditBlock(model="a", method="p", metrics={}, **rows)])[0]["text"]
    'Weights are unequal: a tells as much as 3 equal rows, too few for a firm interval.'
    """
    whole = [(entry.effective_n, entry) for entry in entries if entry.group is None]
    uneven = [(n, entry) for n, entry in whole if n is not None and n < LEAST_ONE_SIDED]
    if not uneven:
        return []
    least, worst = min(uneven, key=lambda pair: pair[0])
    note = unequal_note(least, repeated=worst.questions < worst.n)
    name = "this" if worst.model == "model" else worst.model
    models = list(dict.fromkeys(entry.model for _, entry in uneven))
    others = f" So it is with {count(len(models) - 1, 'other model')}." if len(models) > 1 else ""
    text = f"{note[0].upper()}{note[1:]}.".replace(": this tells", f": {name} tells", 1)
    return [warning("few_equal_rows", f"{text}{others}", models=models)]


def weightless_warning(rows: int) -> DataWarning:
    """Say how many rows have a weight of 0, and are taken as left out.

    Examples
    --------
    >>> weightless_warning(1)["text"], weightless_warning(3000)["text"]
    ('1 row has weight 0 and is left out.', '3,000 rows have weight 0 and are left out.')
    """
    verbs = "has weight 0 and is" if rows == 1 else "have weight 0 and are"
    return warning("weightless", f"{count(rows, 'row')} {verbs} left out.", models=[])


def paired_warning() -> DataWarning:
    """Say that rows of tables without ids are held against each other by their numbers."""
    text = "The tables have no question ids: rows of the same number are taken as one question."
    return warning("paired_by_row", text, models=[])


def likely_weights_warning(column: str) -> DataWarning:
    """Say that a column that is called so is not taken for the weights.

    Examples
    --------
    >>> likely_weights_warning("sample_weight")["text"]
    'Column sample_weight plays no part. If it holds the weights of the rows, name it as weights.'
    """
    unless = "If it holds the weights of the rows, name it as weights."
    text = f"Column {column} plays no part. {unless}"
    return warning("likely_weights", text, columns={"weights": column})


def unused_weights_warning() -> DataWarning:
    """Say that the weights of a table play no part here."""
    return warning("weights_unused", "The weights are not used: every row counts once.", models=[])


def reading_note(sentence: str) -> DataWarning:
    """Say how the table was read, where something was guessed."""
    return warning("reading", sentence, models=[])


NO_LABELS_REASON = "calibration needs a right/wrong column, and no row has a label"
NO_LABELS_HINT = Hint(
    "label a small batch: `{next}`, fill the column `correct`, then `{add}`",
    next=Call("label next", "TABLE", out="batch.csv"),
    add=Call("label add", "TABLE", "batch.csv"),
)


def require_labels(correct: MaybeArray, *, source: str | None = None) -> None:
    """Refuse an input that has not a single label, with the reason and the next step.

    Parameters
    ----------
    correct
        The outcomes, or None where there is no column of them.
    source
        What the message calls the input.

    Examples
    --------
    >>> require_labels([float("nan"), 1.0])
    >>> require_labels(None)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.UnavailableError: calibration needs a right/wrong column, and no row ...
    """
    if correct is not None:
        values = np.asarray(correct, dtype=np.float64)
        if np.isfinite(values).any():
            return
    raise UnavailableError(NO_LABELS_REASON, source=source, hint=NO_LABELS_HINT)
