"""Files that stand where a log should be: a pointer, totals without samples, a part of a run."""

from __future__ import annotations

import re
from pathlib import Path

from calibrant.core.calls import Call
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint

_POINTER = b"version https://git-lfs.github.com/spec/"
_SIZE = re.compile(rb"^size (\d+)", re.MULTILINE)
_TOTALS = (b'"results"', b'"configs"', b'"versions"', b'"higher_is_better"')
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
