"""Results of LM-Polygraph: the file that ``UEManager.save`` writes.

The file is a pickle in a zip archive. Its lists of numbers and texts are read without running it,
see `pickled_data`. LM-Polygraph states uncertainties; where one is the logarithm of a probability
it becomes that probability, otherwise its negative is kept as a score that only ranks.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.log import ForeignLog, LogBuilder, finite_number
from calibrant.records.convert.options import ReadOptions
from calibrant.records.convert.pickled_data import read_plain_data

KIND = "lm-polygraph"
_LEVEL = "sequence"
_PARTS = ("estimations", "gen_metrics", "stats")
_BINARY = frozenset({0.0, 1.0})


def _from_log(uncertainty: float) -> float:
    return math.exp(-uncertainty)


def _from_complement(uncertainty: float) -> float:
    return 1.0 - uncertainty


_PROBABILITIES: dict[str, tuple[str, Callable[[float], float]]] = {
    "MaximumSequenceProbability": ("sequence_probability", _from_log),
    "Perplexity": ("perplexity", _from_log),
    "PTrue": ("p_true_prob", _from_log),
    "Verbalized1S": ("verb", _from_complement),
    "Verbalized2S": ("verb", _from_complement),
}


def is_polygraph(path: Path) -> bool:
    """Return whether a zip file holds a saved manager of LM-Polygraph."""
    try:
        content = _pickle(path)
    except InputError:
        return False
    return all(name.encode() in content for name in _PARTS)


def read_polygraph(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a saved manager: one question and one greedy answer per input."""
    builder = LogBuilder(KIND, str(path))
    saved = _saved(path)
    stats = saved["stats"]
    inputs = stats.get("input_texts") or []
    if not inputs:
        raise InputError("the saved manager holds no inputs", source=str(path))
    builder.expected = len(inputs)
    grades, grader = _grades(builder, saved["gen_metrics"], len(inputs), options)
    replies = stats.get("greedy_texts") or stats.get("blackbox_greedy_texts") or []
    if len(replies) != len(inputs):
        builder.problem("greedy_texts", f"{len(replies)} replies for {len(inputs)} inputs")
        replies = [None] * len(inputs)
    targets = _of_length(stats.get("target_texts"), len(inputs))
    keys = [
        {"question_id": str(row), "model": path.stem, "task": KIND, "draw": 0}
        for row in range(len(inputs))
    ]
    for row, (text, reply, target) in enumerate(zip(inputs, replies, targets, strict=True)):
        builder.question(
            question_id=str(row),
            text=_text(text),
            references=[_texts(target)] if target is not None else None,
            kind="open",
            domain=KIND,
        )
        builder.draw(
            **keys[row],
            text=reply if options.texts else None,
            answer=reply,
            correct=grades[row],
            reason=None if grades[row] is not None else "the file holds no grade of it",
            grader=grader,
        )
    _add_scores(builder, saved["estimations"], keys, replies, grades)
    return builder.finish()


def _pickle(path: Path) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            return archive.read(names[0]) if names else b""
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"the archive is damaged: {error}", source=str(path)) from None


def _saved(path: Path) -> dict[str, Mapping[Any, Any]]:
    try:
        saved = read_plain_data(_pickle(path))
    except ValueError as error:
        raise InputError(f"the archive cannot be read: {error}", source=str(path)) from None
    if not isinstance(saved, dict) or not all(isinstance(saved.get(p), dict) for p in _PARTS):
        raise InputError(f"a saved manager has {', '.join(_PARTS)}", source=str(path))
    return {part: saved[part] for part in _PARTS}


def _grades(
    builder: LogBuilder, metrics: Mapping[Any, Any], count: int, options: ReadOptions
) -> tuple[list[float | None], str | None]:
    """Return the grades of one generation metric: the one named, or else the first right-or-wrong.

    A metric with values in between is a matter of degree and must be asked for.
    """
    found = {
        name: [finite_number(value) for value in values]
        for (level, name), values in metrics.items()
        if level == _LEVEL and len(values) == count
    }
    if options.grade is not None and options.grade not in found:
        known = ", ".join(found) or "none"
        raise InputError(
            f"there is no generation metric {options.grade!r}",
            source=builder.source,
            hint=f"the file has: {known}",
        )
    binary = [name for name, values in found.items() if _says_right_or_wrong(values)]
    chosen = options.grade or next(iter(binary), None)
    others = [name for name in found if name != chosen]
    if chosen is None:
        builder.note(
            "no generation metric of the file says right or wrong "
            f"(choose one by grade: {', '.join(found) or 'none'})"
        )
        return [None] * count, None
    if others:
        builder.note(
            f"graded by {chosen!r}; the file also has {', '.join(others)} (choose by grade)"
        )
    return found[chosen], chosen


def _says_right_or_wrong(values: Sequence[float | None]) -> bool:
    stated = set(values) - {None}
    return bool(stated) and stated <= _BINARY


def _add_scores(
    builder: LogBuilder,
    estimations: Mapping[Any, Any],
    keys: Sequence[Mapping[str, Any]],
    replies: Sequence[Any],
    grades: Sequence[float | None],
) -> None:
    for (level, name), values in estimations.items():
        if level != _LEVEL:
            builder.note(f"{name} is about each {level}, not about an answer: not read")
            continue
        if len(values) != len(keys):
            builder.problem(
                f"estimator {name}", f"{len(values)} values for {len(keys)} inputs: no way to match"
            )
            continue
        method, confidence_of = _PROBABILITIES.get(name, (name, None))
        if confidence_of is None:
            builder.ranking.add(method)
        for key, reply, grade, value in zip(keys, replies, grades, values, strict=True):
            number = finite_number(value)
            if number is None:
                builder.problem(f"estimator {name}, input {key['question_id']}", "no number")
                continue
            confidence = -number if confidence_of is None else confidence_of(number)
            builder.score(**key, method=method, answer=reply, confidence=confidence, correct=grade)


def _of_length(values: Any, count: int) -> Sequence[Any]:
    return values if isinstance(values, list) and len(values) == count else [None] * count


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _texts(value: Any) -> list[str]:
    return [_text(item) for item in value] if isinstance(value, list) else [_text(value)]
