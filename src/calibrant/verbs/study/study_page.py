"""Where a study's answers come from, as a document, and the study's page with it."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.version import __version__
from calibrant.data import Study
from calibrant.data.sources.provenance import document_head
from calibrant.models.study.config import StudyConfig, load_config
from calibrant.models.study.probes import PROBES
from calibrant.models.study.prompts import PromptBook
from calibrant.verbs.study.analysis import write_report

_PACKAGES = ("numpy", "scipy", "polars", "scikit-learn", "vl-convert-python", "xllamacpp")


def write_study_page(study: Study) -> Path:
    """Write the study's page anew, with where its answers come from."""
    study.write_result("study", study_document(study))
    return write_report(study)


def study_document(study: Study) -> dict[str, object]:
    """Return who was asked what, how often, at what cost, and who graded it.

    Everything is read from the study's folder: a table that is not there leaves its part empty.

    Returns
    -------
    dict
        Document ``calibrant.study/1``: ``versions``, ``models``, ``prompts``, ``asked`` (draws,
        tokens and cost by model and purpose) and ``graders``.
    """
    # A study of recorded or imported answers has a name and no models to ask.
    asks = study.config_path.is_file() and "models" in study.config
    config = load_config(study) if asks else None
    draws = study.read("draws") if study.has("draws") else pl.DataFrame()
    return {
        **document_head("study", study, seed=None if config is None else config.seed),
        "study": str(study.path),
        "name": study.path.name if config is None else config.name,
        "versions": _versions(),
        "models": [] if config is None else _models(config),
        "prompts": [] if config is None else _prompts(config, draws),
        "asked": _asked(draws),
        "graders": _graders(study),
        "results": [],
    }


def _versions() -> dict[str, str]:
    versions = {"calibrant": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {**versions, "machine": platform.machine()}


def _models(config: StudyConfig) -> list[dict[str, object]]:
    return [
        {
            "model": model.name,
            "client": model.client,
            "name_at_endpoint": model.model,
            "temperature": config.for_model(model).sampling.temperature,
        }
        for model in config.models
    ]


def _prompts(config: StudyConfig, draws: pl.DataFrame) -> list[dict[str, Any]]:
    """Return each prompt once, with the models that were asked with it."""
    purposes = set(draws["purpose"].unique()) if draws.width else set()
    used = dict.fromkeys(p.prompt for p in PROBES.values() if p.purpose in purposes)
    prompts: dict[tuple[str, str], dict[str, Any]] = {}
    for model in config.models:
        book = PromptBook(config.for_model(model).prompts, folder=config.folder)
        for name in used:
            prompt = book.find(name, "open")
            entry = prompts.setdefault(
                (name, prompt.name),
                {
                    "purpose": name,
                    "prompt": prompt.name,
                    "models": [],
                    "system": prompt.system,
                    "user": prompt.user,
                    "examples": len(prompt.examples),
                    "max_tokens": config.sampling.max_tokens.get(name, prompt.max_tokens),
                },
            )
            entry["models"].append(model.name)
    return list(prompts.values())


def _asked(draws: pl.DataFrame) -> list[dict[str, object]]:
    if not draws.width:
        return []
    # A price that is unknown for one draw is unknown for the sum.
    cost = pl.when(pl.col("cost").is_null().any()).then(None).otherwise(pl.col("cost").sum())
    sums = {
        "prompt_tokens": pl.col("prompt_tokens").sum(),
        "completion_tokens": pl.col("completion_tokens").sum(),
        "cost": cost.alias("cost"),
        "finish_reason": (pl.col("finish_reason") == "length").sum().alias("cut_off"),
    }
    present = [expression for name, expression in sums.items() if name in draws.columns]
    groups = draws.group_by("model", "purpose", maintain_order=True)
    return groups.agg(pl.len().alias("draws"), *present).to_dicts()


def _graders(study: Study) -> dict[str, int]:
    table = study.read("semantics") if study.has("semantics") else pl.DataFrame()
    if "grader" not in table.columns:
        return {}
    counts = table.group_by("grader").len().sort("len", "grader", descending=[True, False])
    return {str(name): count for name, count in counts.iter_rows()}
