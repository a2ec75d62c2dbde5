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
    named = {name: value for name, value in asked.items() if value is not None}
    unknown = [name for name in named if name not in ReadingOptions.__struct_fields__]
    if unknown:
        known = ", ".join(ReadingOptions.__struct_fields__)
        raise InputError(f"no option of reading is called {unknown[0]!r}", hint=f"known: {known}")
    options = ReadingOptions(**named)
    opened = open_input(data, options.correct, scale=options.scale, ranked=True)
    source, given = opened.probabilities_table(options)
    if opened.whole_record:
        given = replace(given, on_invalid=given.on_invalid or "drop")
    scores = load_scores(source, **asdict(given), ranks=True, features=[])
    found = scores.reading
    columns = {} if found.models else found.columns
    chosen = {_NAMED.get(role, role): column for role, column in columns.items()}
    for made in ("correct", "confidence"):
        if "gold" in found.options or (made == "correct" and "probs" in found.options):
            chosen.pop(made, None)
    scale = {} if " or " in found.scale or found.scale == "fraction" else {"scale": found.scale}
    options_of = {**chosen, **scale, **found.options, **named}
    return replace(found, source=data, options=options_of, asked=named, left_out=scores.dropped)
