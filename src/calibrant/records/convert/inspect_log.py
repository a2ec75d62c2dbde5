"""Logs of Inspect: ``.eval`` archives and JSON files, read without Inspect.

An epoch is a draw. Grades come from the log's own scorer, before any averaging over epochs; a
confidence is what a scorer left in its metadata, or the probability of the reply's tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError, MissingDependencyError
from calibrant.core.optional import optional_import
from calibrant.records.convert.inspect_sample import add_sample, graded_scorer
from calibrant.records.convert.json_text import load_json, readable_samples
from calibrant.records.convert.log import ForeignLog, LogBuilder
from calibrant.records.convert.options import ReadOptions
from calibrant.records.convert.zip_entries import UnsupportedCompression, ZipEntries

KIND = "inspect"
VERSIONS = (2, 3)
"""Versions of the log format that this reader knows: 3 pools messages of events, which are not
read here; input, output, scores and metadata of a sample are as in 2."""


def read_inspect(path: Path, options: ReadOptions) -> ForeignLog:
    """Read an Inspect log; a format of another version goes to Inspect's own reader."""
    with path.open("rb") as file:
        archive = file.read(2) == b"PK"
    try:
        return _read_archive(path, options) if archive else _read_json(path, options)
    except (_OtherVersion, UnsupportedCompression) as error:
        try:
            return read_inspect_with_framework(path, options)
        except MissingDependencyError:
            raise error from None


class _OtherVersion(InputError):
    """The log has another version than the one known here."""


def read_inspect_with_framework(path: Path, options: ReadOptions) -> ForeignLog:
    """Read the log with Inspect itself: slower, but it knows every version of its format."""
    module = optional_import(
        "inspect_ai.log", extra="inspect", purpose="logs in a format of another version"
    )
    try:
        log = module.read_eval_log(str(path))
    except ValueError as error:
        told = str(error).partition("\n")[0]
        raise InputError(f"Inspect cannot read the log: {told}", source=str(path)) from None
    head = log.model_dump(mode="json", exclude={"samples"})
    builder = LogBuilder(KIND, str(path))
    samples = (sample.model_dump(mode="json") for sample in log.samples or [])
    # Inspect has brought the samples into the layout of its own version, whatever the file's is.
    _add_all(builder, {**head, "version": VERSIONS[0]}, samples, options)
    return builder.finish()


def _read_archive(path: Path, options: ReadOptions) -> ForeignLog:
    builder = LogBuilder(KIND, str(path))
    with ZipEntries(path) as archive:
        if not archive.complete:
            builder.note("the archive has no directory: its writer was stopped, or the file is cut")
        head: dict[str, Any] = {}
        for name in ("header.json", "_journal/start.json"):
            if name in archive.entries and not head:
                head = _content(archive, name, builder) or {}
        if not head:
            builder.note("the log's header cannot be read: model and task are not known")
        _add_all(builder, head, _samples(archive, builder), options)
    return builder.finish()


def _samples(archive: ZipEntries, builder: LogBuilder) -> Iterator[Mapping[str, Any]]:
    for name in archive.entries:
        if name.startswith("samples/") and name.endswith(".json"):
            sample = _content(archive, name, builder)
            if sample is not None:
                yield sample


def _content(archive: ZipEntries, name: str, builder: LogBuilder) -> dict[str, Any] | None:
    """Return an entry as JSON, or note why it cannot be read."""
    try:
        found = load_json(archive.read(archive.entries[name]))
    except UnsupportedCompression:
        raise
    except ValueError as error:
        builder.problem(name, str(error))
        return None
    if not isinstance(found, dict):
        builder.problem(name, f"an object is expected, got {type(found).__name__}")
        return None
    return found


def _read_json(path: Path, options: ReadOptions) -> ForeignLog:
    builder = LogBuilder(KIND, str(path))
    data = path.read_bytes()
    try:
        log = load_json(data)
    except ValueError as error:
        builder.problem(path.name, f"the JSON is damaged: {error}")
        log = readable_samples(data)
    if not isinstance(log, dict):
        raise InputError("a log of Inspect is an object", source=str(path))
    _add_all(builder, log, log.get("samples") or [], options)
    return builder.finish()


def _add_all(
    builder: LogBuilder, head: Mapping[str, Any], samples: Any, options: ReadOptions
) -> None:
    version = head.get("version", VERSIONS[0])
    if version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        raise _OtherVersion(
            f"this reader knows versions {known} of Inspect's logs, got {version!r}",
            source=builder.source,
            hint="pip install 'calibrant[inspect]'; Inspect's own reader is then used",
        )
    spec = head.get("eval") or {}
    config = {**(head.get("plan") or {}).get("config", {}), **spec.get("model_generate_config", {})}
    context = {
        "model": str(spec.get("model", "model")),
        "task": str(spec.get("task", "task")),
        "temperature": config.get("temperature"),
    }
    scorer = options.grade
    seen: set[tuple[str, int]] = set()
    for sample in samples:
        if scorer is None:
            scorer = graded_scorer(sample, builder)
        try:
            seen.add(add_sample(builder, sample, context, scorer, options))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            place = f"samples/{sample.get('id')}_epoch_{sample.get('epoch')}.json"
            builder.problem(place, f"not the layout of a sample: {error!r}")
    if not seen:
        first = next(iter(builder.problems), None)
        raise InputError(
            "the log holds no samples"
            if first is None
            else f"no sample can be read; {first.place}: {first.reason}",
            source=builder.source,
            hint="was it made with --no-log-samples?" if first is None else None,
        )
    _note_missing(builder, head, spec, seen)


def _note_missing(
    builder: LogBuilder, head: Mapping[str, Any], spec: Mapping[str, Any], seen: set[Any]
) -> None:
    """List the samples that the header promises and the log does not hold."""
    status = head.get("status")
    if status not in (None, "success"):
        builder.note(f"the evaluation ended with status {status!r}")
    total = (head.get("results") or {}).get("total_samples")
    if isinstance(total, int) and total != len(seen):
        builder.note(f"its results are those of {total:,} samples; {len(seen):,} could be read")
    ids = (spec.get("dataset") or {}).get("sample_ids")
    epochs = (spec.get("config") or {}).get("epochs") or 1
    if not ids:
        if isinstance(total, int):
            builder.expected, builder.expected_unit = total, "draws"
        return
    builder.expected, builder.expected_unit = len(ids) * epochs, "draws"
    if builder.expected == len(seen):
        return
    named = {problem.place for problem in builder.problems}
    for question in ids:
        for epoch in range(1, epochs + 1):
            place = f"samples/{question}_epoch_{epoch}.json"
            if (str(question), epoch) not in seen and place not in named:
                builder.problem(place, "not in the log")


def is_inspect_json(head: bytes) -> bool:
    """Return whether the beginning of a file is that of an Inspect log in JSON."""
    text = head.lstrip()
    if not text.startswith(b"{"):
        return False
    return b'"eval_id"' in text or (b'"eval"' in text and b'"task_id"' in text)


def is_inspect_archive(path: Path) -> bool:
    """Return whether a zip file holds an Inspect log."""
    try:
        with ZipEntries(path) as archive:
            return any(
                name in ("header.json", "_journal/start.json") or name.startswith("samples/")
                for name in archive.entries
            )
    except (OSError, InputError):
        return False
