"""How a table would be read, before anything is computed: `calibrant.read`."""

from typing import Any

from msgspec.structs import asdict, replace

from calibrant.core.errors import InputError
from calibrant.data import load_scores
from calibrant.data.reading import Reading
from calibrant.data.sources.reading import ReadingOptions
from calibrant.verbs.opening.open_input import open_input

_NAMED = {"question_id": "question"}


def read(data: Any, **asked: Any) -> Reading:
    """Return how a table is read: roles of its columns, scale, right words, what is left out.

    Every verb takes the reading in the place of the table, and reads it in this way.

    Parameters
    ----------
    data
        Whatever a verb takes: a path, a dataframe, a mapping of columns, a list of these.
    **asked
        Options of reading, as every verb has them: columns by role, ``scale``, ``right`` ..

    Raises
    ------
    calibrant.core.errors.QuestionError
        Where the table leaves a doubt: its `readings` are the ways to read it, each with the
        options that choose it.

    Examples
    --------
    >>> reading = read({"certainty": ["90 %", "40 %", ""], "ok": ["yes", "no", "yes"]})
    >>> reading.columns, reading.scale, reading.words, reading.left_out
    ({'confidence': 'certainty', 'correct': 'ok'}, 'percent', 'yes/no', {'confidence_missing': 1})
    """
    names = {name: value for name, value in asked.items() if value is not None}
    unknown = [name for name in names if name not in ReadingOptions.__struct_fields__]
    if unknown:
        known_values = ", ".join(ReadingOptions.__struct_fields__)
        raise InputError(
            f"no option of reading is called {unknown[0]!r}", hint=f"known: {known_values}"
        )
    options = ReadingOptions(**names)
    handle = open_input(data, options.correct, scale=options.scale, ranked=True)
    source, values = handle.probabilities_table(options)
    if handle.whole_record:
        values = replace(values, on_invalid=values.on_invalid or "drop")
    scores = load_scores(source, **asdict(values), ranks=True, features=[])
    result = scores.reading
    columns = {} if result.models else result.columns
    choice = {_NAMED.get(role, role): column for role, column in columns.items()}
    for made in ("correct", "confidence"):
        if "gold" in result.options or (made == "correct" and "probs" in result.options):
            choice.pop(made, None)
    scale = {} if " or " in result.scale or result.scale == "fraction" else {"scale": result.scale}
    options_of = {**choice, **scale, **result.options, **names}
    return replace(result, source=data, options=options_of, asked=names, left_out=scores.dropped)
