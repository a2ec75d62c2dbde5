"""How a confidence is asked for, kept with a policy so that it can be asked for again, live.

A policy certifies one way to measure: a method, its prompts, its draws, its settings. A study knows
all of it; a plain table knows none of it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.data import Study
from calibrant.models.study.config import StudyConfig, parse_config
from calibrant.models.study.probes import NEEDS, PROBES
from calibrant.models.study.prompts import shipped_prompts

_SETTINGS = ("seed", "sampling", "prompts", "semantics", "scoring")
_ALONE = 2
"""Turns that need one model only; the third asks about the answers of all models."""


def study_recipe(data: Any, method: str, needs: tuple[str, ...]) -> dict[str, Any]:
    """Return how the models of a study are asked, as plain data, or ``not_live``: why they cannot.

    Parameters
    ----------
    data
        What a verb was given.
    method
        The confidence method.
    needs
        What the method needs; empty where it is not one of ours.
    """
    path = Path(data) if isinstance(data, str | Path) else None
    folder = path.parent if path is not None and path.name == "study.toml" else path
    study = None if folder is None else Study(folder)
    reason = _not_live(study, method, needs)
    if study is None or reason is not None:
        return {"method": method, "not_live": reason}
    values = {name: study.config[name] for name in _SETTINGS if name in study.config}
    models = {str(model["name"]): dict(model) for model in study.config["models"]}
    texts = {}
    for table in (values, *models.values()):
        for name in dict(table.get("prompts", {})).values():
            if isinstance(name, str) and (study.path / name).is_file():
                texts[name] = (study.path / name).read_text(encoding="utf-8")
    return {
        "method": method,
        "not_live": None,
        "settings": values,
        "models": models,
        "prompt_texts": texts,
    }


def _not_live(study: Study | None, method: str, needs: tuple[str, ...]) -> str | None:
    if study is None or not study.config_path.is_file():
        return "the labels came from a table, not from a study"
    if "models" not in study.config:
        return "the study does not say how its models were asked"
    if not needs:
        return f"{method!r} is no method that can be asked for live"
    for name in needs:
        need = NEEDS.get(name)
        if need is None or PROBES[need.probe].turn > _ALONE or name == "ensemble":
            return f"the method {method} needs more than one model ({name})"
    semantics = study.config.get("semantics", {})
    if "judge" in semantics:
        return "a judge tells the study's answers apart, and it is not asked live"
    if semantics.get("embeddings") or study.config.get("scoring", {}).get("ensemble"):
        return "the study's scores need embeddings or an ensemble, which are not computed live"
    return None


def recipe_config(
    recipe: Mapping[str, Any], model: str, *, address: str | None, key_env: str | None,
    folder: Path, source: str,
) -> StudyConfig:  # fmt: skip
    """Return a study of one model that asks as the recipe says; prompts are written to `folder`."""
    entry = dict(recipe["models"][model])
    entry.pop("batch", None)  # a caller waits for seconds, not for a day
    if address is not None:
        entry["base_url"] = address
        entry["api_key_env"] = key_env or ""
    elif key_env is not None:
        entry["api_key_env"] = key_env
    for name, text in recipe["prompt_texts"].items():
        if name not in shipped_prompts():
            (folder / Path(name).name).write_text(text, encoding="utf-8")
    values = {
        **recipe["settings"],
        "questions": "unused.jsonl",
        "methods": [recipe["method"]],
        "models": [_with_files(entry)],
    }
    return parse_config(_with_files(values), folder=folder, source=source)


def _with_files(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings whose own prompts are looked for by their bare name."""
    prompts = table.get("prompts")
    if not isinstance(prompts, Mapping):
        return dict(table)
    bare = {k: Path(v).name if isinstance(v, str) else v for k, v in prompts.items()}
    return {**table, "prompts": bare}
