"""Which tool wrote this file?

Readers are loaded when a file is one of theirs: a table that is no log needs none of them.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from calibrant.core.errors import InputError
from calibrant.core.hints import Call, Hint
from calibrant.records.convert.json_text import ReadOptions
from calibrant.records.convert.kinds import PARQUET, kind_among, kind_of_folder, kind_of_text

if TYPE_CHECKING:
    from calibrant.records.convert.log import ForeignLog


# What a reader trips over where a value is not of the kind that its tool writes.
_BROKEN = (ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError)
_HEAD = 262_144
"""Bytes looked at; the first row of a jsonl log may be long."""
_FOOTER = 131_072
"""Bytes at the end of a parquet file, where the names of its columns are."""


class Reader(NamedTuple):
    """A kind of log: its name, what it is, and the function that reads it."""

    kind: str
    what: str
    function: str

    def read(self, path: Path, options: ReadOptions) -> ForeignLog:
        """Read a log of this kind."""
        module, _, name = self.function.rpartition(".")
        log: ForeignLog = getattr(import_module(f"{__package__}.{module}"), name)(path, options)
        return log


READERS = {
    reader.kind: reader
    for reader in (
        Reader("inspect", "Inspect log (.eval or .json)", "inspect_log.read_inspect"),
        Reader("lm-eval", "lm-evaluation-harness samples_*.jsonl", "lm_eval.read_lm_eval"),
        Reader("helm", "HELM run folder", "helm.read_helm"),
        Reader("lighteval", "details of LightEval (parquet)", "lighteval.read_lighteval"),
        Reader(
            "simple-evals",
            "results of simple-evals",
            "openai_logs.read_simple_evals",
        ),
        Reader("openai-evals", "log of OpenAI's evals", "openai_logs.read_openai_evals"),
        Reader(
            "openai-batch",
            "batch output (OpenAI style)",
            "openai_logs.read_openai_batch",
        ),
        Reader(
            "anthropic-batch",
            "results of a message batch of Anthropic",
            "batch_results.read_anthropic_batch",
        ),
        Reader("gemini-batch", "results of a batch of Gemini", "batch_results.read_gemini_batch"),
        Reader("langsmith", "frame of a LangSmith experiment", "experiments.read_langsmith"),
        Reader("braintrust", "rows of a Braintrust experiment", "experiments.read_braintrust"),
        Reader(
            "every-eval-ever", "samples of Every Eval Ever", "every_eval_ever.read_every_eval_ever"
        ),
        Reader("hle", "judged answers in the manner of HLE", "judged.read_hle"),
        Reader("promptfoo", "results of promptfoo", "test_runners.read_promptfoo"),
        Reader("deepeval", "test run of DeepEval", "test_runners.read_deepeval"),
        Reader("langfuse", "export of Langfuse", "langfuse.read_langfuse"),
        Reader("phoenix", "spans or experiment of Phoenix / OpenInference", "phoenix.read_phoenix"),
        Reader("mlflow", "evaluation table of MLflow", "answer_tables.read_mlflow"),
        Reader("ragas", "result frame of ragas", "answer_tables.read_ragas"),
        Reader("lm-polygraph", "saved manager of LM-Polygraph", "polygraph.read_lm_polygraph"),
        Reader("uqlm", "result table of uqlm", "tables.read_uqlm"),
        Reader("table", "table of confidences and outcomes", "tables.read_table"),
    )
}


def recognise(path: str | Path) -> Reader | None:
    """Return the reader of a foreign log, or None where the path is no log that is known.

    Only the content counts, not the name. Tables are no logs: verbs read them as they are. A file
    that only stands for another (a Git LFS pointer, totals without samples) is refused.
    """
    place = Path(path)
    if place.is_dir():
        return _named(kind_of_folder(place))
    if not place.is_file():
        return None
    with place.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"PK\x03\x04"):
        return _reader_of_archive(place)
    if head.startswith(b"PAR1"):
        return _named(_kind_of_parquet(place))
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    refuse_stand_in(place, text)
    if text[:1] not in (b"{", b"[", b"<"):
        return None
    return _named(kind_of_text(place, text))


def _named(kind: str | None) -> Reader | None:
    return None if kind is None else READERS[kind]


def _kind_of_parquet(path: Path) -> str | None:
    """Return the kind by the names of columns, which stand in clear at the end of the file."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _FOOTER))
        footer = file.read()
    return kind_among(footer, PARQUET)


def _reader_of_archive(path: Path) -> Reader | None:
    from calibrant.records.convert.inspect_log import is_inspect_archive
    from calibrant.records.convert.polygraph import is_polygraph

    if is_inspect_archive(path):
        return READERS["inspect"]
    return READERS["lm-polygraph"] if is_polygraph(path) else None


def _reader_of_table(path: Path, options: ReadOptions) -> Reader | None:
    """Return the reader of a table that only `import` takes for a log."""
    from calibrant.records.convert.tables import kind_of_table

    return _named(kind_of_table(path, options)) if path.is_file() else None


def read_log(
    path: str | Path, *, kind: str | None = None, options: ReadOptions | None = None
) -> ForeignLog:
    """Read a foreign log.

    Parameters
    ----------
    path
        The file or folder.
    kind
        Which tool wrote it; None recognises it by content.
    options
        See `ReadOptions`.
    """
    place = Path(path)
    if not place.exists():
        raise InputError("there is no such file", source=str(path), hint="check the path")
    if kind is not None and kind not in READERS:
        raise InputError(f"there is no kind of log {kind!r}", hint=f"known: {', '.join(READERS)}")
    chosen = options or ReadOptions()
    found = READERS[kind] if kind is not None else recognise(place)
    reader = found or _reader_of_table(place, chosen)
    if reader is None:
        raise InputError(
            "not a log of a known tool",
            source=str(path),
            hint=Hint(
                "known: {0}; for a table (csv, jsonl, parquet) name its columns: {confidence} "
                "{correct}",
                ", ".join(kind for kind in READERS if kind != "table"),
                confidence="COL",
                correct="COL",
            ),
        )
    try:
        return reader.read(place, chosen)
    except InputError:
        raise
    except _BROKEN as error:
        # Damage may leave a file that is well formed and says something else than the tool does.
        raise InputError(
            f"cannot be read as {reader.what}: it is damaged, or its layout is another "
            f"({type(error).__name__}: {str(error)[:80]})",
            source=str(path),
        ) from error
    except OSError as error:
        # A folder where a file is expected or the other way round, or no right to read it.
        raise InputError(
            f"cannot be read as {reader.what}: {error.strerror}", source=str(path)
        ) from None


_POINTER = b"version https://git-lfs.github.com/spec/"
_SIZE = re.compile(rb"^size (\d+)", re.MULTILINE)
_TOTALS = (b'"results"', b'"configs"', b'"versions"', b'"higher_is_better"')
_EVERY_EVAL_EVER = (b'"evaluation_results"', b'"model_info"', b'"source_metadata"')
_LIGHTEVAL = (b'"config_general"', b'"results"', b'"versions"')
_SIMPLE_EVALS = re.compile(rb'^\{[^{}\[\]]*"score(:std)?":[^{}\[\]]*\}\s*$')
_OVERVIEW = 4_096
"""Bytes: totals of simple-evals are a dozen numbers."""
_HELM = frozenset({"per_instance_stats.json", "scenario_state.json"})
_BESIDE_HELM = frozenset({"run_spec.json", "scenario.json", "stats.json", "instances.json"})


def refuse_stand_in(path: Path, head: bytes) -> None:
    """Say in one line what a file is that only stands for a log.

    Parameters
    ----------
    path
        The file.
    head
        Its beginning.
    """
    if head.startswith(_POINTER):
        size = _SIZE.search(head)
        told = f" ({int(size[1]):,} bytes)" if size else ""
        raise InputError(
            f"this is a Git LFS pointer, not the file itself{told}",
            source=str(path),
            hint="fetch the file first: git lfs pull",
        )
    if path.name in _HELM | _BESIDE_HELM and _is_part_of_helm(path):
        raise InputError(
            "this is one file of a HELM run, and the run is its folder",
            source=str(path),
            hint=Hint("give the folder: {call}", call=Call("audit", str(path.parent))),
        )
    if head.startswith(b"{") and all(word in head for word in _TOTALS):
        raise InputError(
            "this file of lm-eval holds totals only, no samples",
            source=str(path),
            hint="run lm_eval with its option log_samples, and give the samples_*.jsonl or "
            "their folder",
        )
    if head.startswith(b"{") and all(word in head for word in _LIGHTEVAL):
        raise InputError(
            "this file of LightEval holds totals only, no samples",
            source=str(path),
            hint="run lighteval with its option save-details, and give the details_*.parquet or "
            "their folder",
        )
    if head.startswith((b"{", b"[")) and all(word in head for word in _EVERY_EVAL_EVER):
        raise InputError(
            "this record of Every Eval Ever holds totals only, no samples",
            source=str(path),
            hint="give the file of samples (.jsonl) that its detailed_evaluation_results name",
        )
    if len(head) < _OVERVIEW and _is_overview(head):
        raise InputError(
            "this file of simple-evals holds totals only, no examples",
            source=str(path),
            hint="give the file *_allresults.json, or the HTML report",
        )


def _is_part_of_helm(path: Path) -> bool:
    return all((path.parent / name).is_file() for name in _HELM)


def _is_overview(head: bytes) -> bool:
    """Return whether the text is one flat object of numbers with a score and its spread."""
    return b'"score:std"' in head and _SIMPLE_EVALS.match(head) is not None
