"""What is to be known about the data before any claim: missing, one-sided, with few values."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from calibrant.claims.claim import Claim
from calibrant.claims.words import count, joined, percent
from calibrant.core.method_words import method_name

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


def data_warnings(models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return warnings about the data, the gravest first, each with an id and a sentence.

    Parameters
    ----------
    models
        Coverage by model and method, see `calibrant.inputs.coverage`.

    Examples
    --------
    >>> entry = {"model": "a", "method": "p", "n": 900, "accuracy": 0.0, "answers_empty": 900}
    >>> [(found["id"], found["text"]) for found in data_warnings([entry])]
    [('data.never_right', 'a is never right: all 900 of its answers are empty.')]
    """
    return [
        *_emptied(models),
        *_one_sided(models),
        *_missing(models),
        *_few_values(models),
        *_repeated(models),
    ]


def _warning(name: str, models: Iterable[str], text: str) -> dict[str, Any]:
    return {"id": f"data.{name}", "subject": {"models": list(models)}, "text": text}


def _names(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(entry["model"]) for entry in entries))


def kept_shares(models: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Return the share of rows that is left, by model and method, where that is worth a word.

    Examples
    --------
    >>> entry = {"model": "a", "method": "p", "n": 50, "dropped": 50, "expected": 100}
    >>> kept_shares([entry, {"model": "b", "method": "p", "n": 100, "expected": 100}])
    {('a', 'p'): 0.5}
    """
    lost = {(str(e["model"]), str(e["method"])): _missing_share(e) for e in models}
    return {key: 1 - share for key, (share, related) in lost.items() if _tells(share, related)}


def with_rows_kept(
    claims: Iterable[Claim],
    kept: Mapping[tuple[str, str], float],
    spoken: Container[str] = (),
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
    told, untold = [], dict(kept)
    for claim in claims:
        key = (str(claim.subject["model"]), str(claim.subject["method"]))
        if key in untold and claim.id not in spoken:
            rests = f"This rests on {percent(untold.pop(key))} of the rows."
            told.append(replace(claim, text=f"{claim.text} {rests}"))
        else:
            told.append(claim)
    return told


def _tells(share: float, related: bool) -> bool:
    return share > MUCH_MISSING or related


def _emptied(models: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield models of which no row is left in any method."""
    left = {entry["model"] for entry in models if entry["n"]}
    gone = _names(entry for entry in models if not entry["n"] and entry["model"] not in left)
    if gone:
        verb = "has" if len(gone) == 1 else "have"
        shown = joined([name.strip() or "A model without a name" for name in gone])
        text = f"{shown} {verb} no usable row: nothing is said about {_it(gone)}."
        yield _warning("emptied", gone, text)


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _one_sided(models: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    known: dict[str, list[Mapping[str, Any]]] = {}
    for entry in models:
        if entry["n"]:
            known.setdefault(str(entry["model"]), []).append(entry)
    # By one confidence a model may be about other answers than by another.
    ends = {name: {_end(entry) for entry in own} for name, own in known.items()}
    for end, word in ((0.0, "never right"), (1.0, "always right")):
        found = {name: own[0] for name, own in known.items() if ends[name] == {end}}
        for name, entry in found.items():
            called = name if name != "model" else "The model"
            empty = entry.get("answers_empty") or 0
            why = f" ({count(entry['n'], 'answer')})"
            if empty == entry["n"]:
                why = f": all {empty:,} of its answers are empty"
            yield _warning(word.replace(" ", "_"), [name], f"{called} is {word}{why}.")


def _end(entry: Mapping[str, Any]) -> float | None:
    """Return 0 or 1 where so many answers are all wrong or all right, else None."""
    accuracy = entry["accuracy"]
    return accuracy if entry["n"] >= LEAST_ONE_SIDED and accuracy in (0.0, 1.0) else None


def unranked_warning(model: str, answers: int) -> dict[str, Any]:
    """Say that a model that is never right has no rank: it ties with nobody, and tells nothing.

    Examples
    --------
    >>> unranked_warning("a", 900)["text"]
    'a is never right (900 answers). It is left out of the ranking.'
    """
    text = f"{model} is never right ({count(answers, 'answer')}). It is left out of the ranking."
    return _warning("never_right", [model], text)


def _missing(models: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield one warning for all models of a method that lack rows, the worst as an example."""
    by_method: dict[str, list[tuple[float, bool, Mapping[str, Any]]]] = {}
    for entry in models:
        share, related = _missing_share(entry)
        if share >= _SOME_MISSING:
            by_method.setdefault(str(entry["method"]), []).append((share, related, entry))
    # Where most is missing comes first: a short view shows few warnings.
    for method, found in sorted(by_method.items(), key=lambda item: -max(f[0] for f in item[1])):
        if not any(_tells(share, related) for share, related, _ in found):
            continue
        worst = max(found, key=lambda item: item[0])
        names = _names(entry for _, _, entry in found)
        text = _missing_text(worst, len(names), method)
        yield _warning("missing", names, text)


def _missing_share(entry: Mapping[str, Any]) -> tuple[float, bool]:
    """Return the share of rows that are missing, and whether they differ from the others."""
    lost, whole = entry.get("dropped", 0) + entry.get("missing", 0), entry.get("expected", 0)
    if not entry["n"] or not whole or not lost:
        return 0.0, False
    share, p_value = lost / whole, entry.get("missing_p")
    return share, p_value is not None and p_value < _RELATED and share >= _SOME_MISSING


def _missing_text(worst: tuple[float, bool, Mapping[str, Any]], many: int, method: str) -> str:
    share, related, entry = worst
    column = "" if entry.get("only_method", True) else f" ({method_name(method, aside=True)})"
    name = entry["model"] if entry["model"] != "model" else "the table"
    text = f"{percent(share)} of the rows of {name}{column} are missing or unusable."
    if many > 1:
        most = f"up to {percent(share)} ({name})"
        least = percent(_SOME_MISSING)
        text = f"{many} models{column} lack {least} of their rows or more, {most}."
    if entry.get("missing_p") is None:
        return text
    lost, kept = percent(entry["missing_accuracy"]), percent(entry["kept_accuracy"])
    if related:
        where = "There, lost" if many > 1 else "Lost"
        return f"{text} {where} rows differ from the rest: {lost} right against {kept}."
    return f"{text} They are about as often right as the rest ({lost} against {kept})."


def _few_values(models: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    found: dict[tuple[int, str], list[str]] = {}
    for entry in models:
        values = entry.get("values")
        if values is not None and entry["n"] >= LEAST_ONE_SIDED and values < FEW_VALUES:
            found.setdefault((values, str(entry["method"])), []).append(str(entry["model"]))
    for (values, method), names in found.items():
        called = f"{method_name(method)} of {joined(names)}"
        who = "The confidence" if names == ["model"] else called
        how = "is always the same" if values == 1 else f"has only {values} different values"
        yield _warning("few_values", names, f"{who} {how}.")


def _repeated(models: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    twice = [entry for entry in models if entry.get("repeated_texts")]
    if twice:
        most = max(int(entry["repeated_texts"]) for entry in twice)
        text = f"{count(most, 'question')} stand in the data more than once, with the same text."
        yield _warning("duplicates", _names(twice), text)


def explained_warnings(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Warn of columns that explain part of the errors: rows of one topic are then alike.

    Examples
    --------
    >>> entry = {"model": "a", "explained": {"topic": 1.62}}
    >>> explained_warnings([entry])[0]["text"]
    'Column topic explains part of the errors: what is said is true of these topics only. For \
others like them intervals are 1.6 times as wide: name topic as the cluster.'
    """
    found: dict[str, list[tuple[float, str]]] = {}
    for entry in entries:
        for column, wider in (entry.get("explained") or {}).items():
            found.setdefault(column, []).append((wider, str(entry["model"])))
    return [
        {
            "id": "data.explained",
            "subject": {"columns": {"cluster": column}, "models": [name for _, name in models]},
            "text": f"Column {column} explains part of the errors: what is said is true of these "
            f"{_plural(column)} only. For others like them intervals are "
            f"{max(models)[0]:.1f} times as wide: name {column} as the cluster.",
        }
        for column, models in found.items()
    ]


def _plural(column: str) -> str:
    """Return how values of a column are called: topics, categories."""
    if not column.isalpha():
        return "groups"
    name = column.lower()
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def unequal_note(effective: float, *, repeated: bool = False) -> str:
    """Say how much rows of unequal weight, or questions with unequally many rows, tell.

    Examples
    --------
    >>> unequal_note(12.4)
    'weights are unequal: this tells as much as 12 equal rows, too few for a firm interval'
    >>> unequal_note(150, repeated=True)
    'questions weigh unequally: this tells as much as 150 equal questions'
    """
    few = ", too few for a firm interval" if effective < LEAST_ONE_SIDED else ""
    if repeated:
        how, of = "questions weigh unequally", "questions"
    else:
        how, of = "weights are unequal", "rows"
    return f"{how}: this tells as much as {effective:,.0f} equal {of}{few}"


def unequal_warnings(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Warn of models whose rows or questions weigh so unequally that few of them decide.

    Examples
    --------
    >>> entry = {"model": "a", "group": None, "n": 60, "questions": 60, "effective_n": 2.8}
    >>> unequal_warnings([entry])[0]["text"]
    'Weights are unequal: a tells as much as 3 equal rows, too few for a firm interval.'
    """
    found: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        effective = entry.get("effective_n")
        if entry["group"] is None and effective is not None and effective < LEAST_ONE_SIDED:
            worst = found.get(entry["model"])
            if worst is None or effective < worst["effective_n"]:
                found[entry["model"]] = entry
    if not found:
        return []
    worst = min(found.values(), key=lambda entry: float(entry["effective_n"]))
    note = unequal_note(worst["effective_n"], repeated=worst["questions"] < worst["n"])
    name = "this" if worst["model"] == "model" else f"{worst['model']}"
    others = f" So it is with {count(len(found) - 1, 'other model')}." if len(found) > 1 else ""
    text = f"{note[0].upper()}{note[1:]}.".replace(": this tells", f": {name} tells", 1)
    return [_warning("few_equal_rows", found, f"{text}{others}")]


def weightless_warning(rows: int) -> dict[str, Any]:
    """Say how many rows have a weight of 0, and are taken as left out.

    Examples
    --------
    >>> weightless_warning(1)["text"], weightless_warning(3000)["text"]
    ('1 row has weight 0 and is left out.', '3,000 rows have weight 0 and are left out.')
    """
    verbs = "has weight 0 and is" if rows == 1 else "have weight 0 and are"
    return _warning("weightless", [], f"{count(rows, 'row')} {verbs} left out.")


def paired_warning() -> dict[str, Any]:
    """Say that rows of tables without ids are held against each other by their numbers."""
    text = "The tables have no question ids: rows of the same number are taken as one question."
    return _warning("paired_by_row", [], text)


def likely_weights_warning(column: str) -> dict[str, Any]:
    """Say that a column that is called so is not taken for the weights.

    Examples
    --------
    >>> likely_weights_warning("sample_weight")["text"]
    'Column sample_weight plays no part. If it holds the weights of the rows, name it as weights.'
    """
    unless = "If it holds the weights of the rows, name it as weights."
    text = f"Column {column} plays no part. {unless}"
    return {"id": "data.likely_weights", "subject": {"columns": {"weights": column}}, "text": text}


def unused_weights_warning() -> dict[str, Any]:
    """Say that the weights of a table play no part here."""
    return _warning("weights_unused", [], "The weights are not used: every row counts once.")


def reading_note(sentence: str) -> dict[str, Any]:
    """Say how the table was read, where something was guessed."""
    return _warning("reading", [], sentence)
