"""The one door: whatever a verb was given becomes an input, and how a table would be read."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import asdict, replace

from calibrant.core.errors import InputError, require_known
from calibrant.core.hints import Call, Hint
from calibrant.data import Scores, Study, load_scores
from calibrant.data.formats import database_part, entries_below, is_fetched, is_study, store_path
from calibrant.data.logs.recognise import recognise
from calibrant.data.reading import FRACTION, Reading
from calibrant.data.reading.names import outcome_columns
from calibrant.data.reading.pairs import set_grader
from calibrant.data.sources.input import Input
from calibrant.data.sources.objects import STDIN, plain_input
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.sources.tables import OpenArrays, OpenStudy, OpenTables
from calibrant.data.tables import collect, column_names, scan_table

_LOG_ENDINGS = frozenset({".eval", ".html", ".json", ".jsonl", ".parquet"})


def _grades(answers: list[Any], golds: list[Any], questions: list[Any]) -> list[bool | None]:
    # Loaded here: few tables hold answers that nobody graded.
    from calibrant.answers.semantics import grade_answers

    return grade_answers(answers, golds, questions=questions)


set_grader(_grades)


def log_files(data: Any) -> Sequence[str | Path]:
    """Return the logs that these data are: a path, a list of paths or a folder; none for tables.

    Examples
    --------
    >>> log_files({"confidence": [0.5], "correct": [1]})
    ()
    """
    if isinstance(data, str | Path):
        return [data] if recognise(data) is not None else logs_in(data)
    if not isinstance(data, list | tuple) or not data:
        return ()
    is_log = [isinstance(item, str | Path) and recognise(item) is not None for item in data]
    if any(is_log) and not all(is_log):
        peer = data[is_log.index(False)]
        rule = f"logs and tables cannot be read in one go, got both (a table: {peer})"
        call = Call("import", "LOG", out="scores.parquet")
        raise InputError(rule, hint=Hint("turn the logs into tables first: {call}", call=call))
    return data if all(is_log) else ()


def logs_in(folder: str | Path) -> list[Path]:
    """Return the logs of one tool in a folder and its sub-folders, sorted by name.

    None where the path is no folder, a study, or a folder of parquet files that are no logs: that
    is a table. Files that are no log, such as totals beside samples, are passed over; logs of
    several tools are refused, because one folder is read as one evaluation.
    """
    place = Path(folder)
    if not place.is_dir() or is_study(place):
        return []
    entries = entries_below(place)
    parquet = next((entry for entry in entries if entry.suffix == ".parquet"), None)
    if parquet is not None and _kind_of(parquet) is None:
        return []
    logs: dict[str, list[Path]] = {}
    runs: list[Path] = []
    for entry in entries:
        if any(run in entry.parents for run in runs):
            continue
        is_folder = os.path.isdir(entry)  # False where nobody may look, as below /proc
        if is_folder or entry.suffix in _LOG_ENDINGS:
            kind = _kind_of(entry)
            if kind is not None:
                logs.setdefault(kind, []).append(entry)
                # The files of a folder that is one log, such as a run of HELM, are its parts.
                runs += [entry] if is_folder else []
    if len(logs) > 1:
        counts = ", ".join(f"{len(files)} of {kind}" for kind, files in logs.items())
        rule = f"the folder holds logs of several tools: {counts}"
        hint = "give the logs of one tool, file by file or in a folder of their own"
        raise InputError(rule, source=str(folder), hint=hint)
    return next(iter(logs.values()), [])


def _kind_of(place: Path) -> str | None:
    try:
        return recognise(place)
    except (InputError, OSError):
        return None


def open_input(
    data: Any,
    outcomes: Any = None,
    *,
    scale: str | None = None,
    ranked: bool = False,
    labels: str | Path | None = None,
    beside: bool = True,
) -> Input:
    """Open arrays, tables, a study or logs.

    Parameters
    ----------
    data
        Confidences where outcomes are given; else a path, a study, a dataframe, a mapping of
        columns, a list of these, a list of dictionaries, a data set, ``-`` for standard input, a
        log of another tool or a folder of logs.
    outcomes
        Array of outcomes, the name of their column, or None.
    scale
        How a log writes confidences, ``fraction`` or ``percent``.
    ranked
        Keep scores of a log that only rank answers.
    labels
        Store of labels that people made of this pool; by default the one beside its file, where
        the file itself does not have all outcomes.
    beside
        Whether to look for labels beside a file.

    Examples
    --------
    >>> opened = open_input([0.8, 0.6], [1, 0])
    >>> opened.head("audit", seed=0, settings={})["source"]
    'arrays in memory'
    """
    choice = data.options if isinstance(data, Reading) else {}
    data = data.source if isinstance(data, Reading) else data
    path = isinstance(data, str | Path) and str(data) != STDIN
    pool = Path(data) if path else data
    correct = outcomes if isinstance(outcomes, str) else None
    store = labels_of(pool, labels, correct) if beside or labels else None
    if store is not None:
        # Loaded here: few tables have labels beside them, and joining them needs the designs.
        from calibrant.labels.pool import OpenLabels

        return OpenLabels(data, store)
    if isinstance(data, Study) or (path and is_study(data)):
        return OpenStudy(data) if isinstance(data, Study) else OpenStudy(Study(data), data)
    values, outcomes = (data, outcomes) if path else plain_input(data, outcomes)
    if _is_array(values):
        return OpenArrays(values, None if isinstance(outcomes, str) else outcomes)
    logs = () if path and (is_fetched(data) or database_part(data)[1]) else log_files(values)
    if not logs:
        return OpenTables(values, choice)
    # Loaded here: a table needs nothing that opens a log.
    from calibrant.answers.logs import OpenLog, foreign_tables
    from calibrant.data.logs.json_text import ReadOptions

    options = ReadOptions(scale=scale or FRACTION)
    return OpenLog(foreign_tables(logs, options=options, ranked=ranked), values)


def read_scores(
    data: Any,
    table: Mapping[str, Any],
    *,
    features: Sequence[str] | None = None,
    others: bool = False,
    ungraded: bool = False,
) -> Scores:
    """Read the scores that a verb works on, whatever they come in.

    Parameters
    ----------
    data
        As for `open_input`.
    table
        How the table is read, see `calibrant.data.load_scores`.
    features
        Further columns to keep; None keeps all.
    others
        Keep all others beside these: rows of any column may hang together.
    ungraded
        Keep rows without an outcome, and leave labels beside a file alone.
    """
    options = ReadingOptions(**table)
    handle = open_input(data, options.correct, scale=options.scale, beside=not ungraded)
    source, options = _table_of(handle, options)
    graded = "optional" if ungraded else "required"
    selection: dict[str, Any] = {"features": features, "others": others, "labels": graded}
    scores = load_scores(source, **asdict(options), **selection)
    return dataclasses.replace(scores, drawn_from=handle.pool_rows)


def _table_of(handle: Input, options: ReadingOptions) -> tuple[Any, ReadingOptions]:
    """Return the table, and how it is read: of a whole record what breaks a rule is left out."""
    source, options = handle.probabilities_table(options)
    rule = "drop" if handle.whole_record else None
    return source, replace(options, on_invalid=options.on_invalid or rule)


def labels_of(data: Any, labels: str | Path | None, correct: str | None = None) -> Path | None:
    """Return the store with the labels of a pool: the one named, or the one beside its file.

    A file in which every row has an outcome (column `correct`) needs no labels beside it.

    Examples
    --------
    >>> labels_of("nowhere.csv", None) is None
    True
    """
    if labels is not None:
        place = Path(labels)
        if not place.exists():
            hint = Hint("label the pool first: {call}", call=Call("label serve", "TABLE"))
            raise InputError("there is no store of labels here", source=str(labels), hint=hint)
        return place
    if isinstance(data, list | tuple) and len(data) == 1:
        data = data[0]
    if not isinstance(data, str | Path) or str(data) == "-":
        return None
    neighbour = store_path(data)
    return (
        neighbour if neighbour.is_file() and not _stands_alone(data, correct, neighbour) else None
    )


def _stands_alone(data: str | Path, correct: str | None, store: Path) -> bool:
    """Return whether a file's own outcomes count: every row has one, or nobody has labelled yet."""
    if Path(data).is_dir():
        data = Path(data) / "scores.parquet"
        if not data.is_file():
            return False
    table = scan_table(data)
    names = column_names(table, data)
    outcomes = [name for name in outcome_columns(names, correct) if name in names]
    lacking = pl.any_horizontal(pl.all().is_null())
    if outcomes and collect(table.select(outcomes).filter(lacking).head(1), data).height == 0:
        return True
    from calibrant.data.label_store import LabelStore

    return not LabelStore(store, create=False).history()


def _is_array(values: Any) -> bool:
    """Return whether this holds confidences themselves, not a table or several of them."""
    if isinstance(values, np.ndarray):
        return True
    return isinstance(values, list | tuple) and not any(
        isinstance(item, str | Path) or hasattr(item, "columns") for item in values
    )


def only_of(scores: Scores, **wanted: str | None) -> Scores:
    """Return the rows of one model or method; None takes all."""
    for column, name in wanted.items():
        if name is not None:
            names = sorted(scores.frame[column].unique().to_list())
            require_known([name], names, f"there is no {column} {{}}")
            scores = scores.only(**{column: [name]})
    return scores


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
    source, values = _table_of(handle, options)
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
