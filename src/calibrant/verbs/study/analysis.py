"""Everything that a study's tables allow, where its answers come from, and the page of it all."""

import platform
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.bench.evaluate import bench_evaluate
from calibrant.core.errors import IN_MEMORY, CalibrantError, InputError
from calibrant.core.names import ranking_methods
from calibrant.core.places import writing
from calibrant.core.version import __version__
from calibrant.data import Study
from calibrant.data.sources.input import document_head
from calibrant.models.study.config import StudyConfig, load_config
from calibrant.models.study.probes import PROBES
from calibrant.models.study.prompts import PromptBook
from calibrant.report import render_html
from calibrant.report.result import AnalysisResult, Result
from calibrant.verbs.audit import audit
from calibrant.verbs.cascade import cascade
from calibrant.verbs.compare import compare
from calibrant.verbs.decide import decide
from calibrant.verbs.groups import groups
from calibrant.verbs.methods import methods
from calibrant.verbs.opening.open_rows import open_rows
from calibrant.verbs.plan import plan

_LEAST_ERROR = 0.02
_ORDER = (
    "audit", "audit_by_group", "compare", "multi_answer", "groups", "decide", "cascade", "plan",
    "methods", "run",
)  # fmt: skip
_PREFERRED = ("consistency", "sem1", "verb", "p_true_prob", "perplexity")


def analyse(study: str | Path, *, seed: int = 0) -> AnalysisResult:
    """Run every part that the study's tables allow, and write results and report.

    Parts that the data cannot carry (one model only, too few questions for honest groups, no
    number of right answers) are listed with the reason, never filled in.

    Returns
    -------
    AnalysisResult
        Document ``calibrant.analysis/1``: ``done`` and ``left_out``.
    """
    folder = Study(study)
    finished: list[str] = []
    left_out: list[dict[str, str]] = []
    head = document_head("analysis", folder, seed=seed)
    origin = {name: head[name] for name in ("source", "input")}
    for name, part in _parts(folder, seed).items():
        try:
            # The parts are given rows of the study, and these rows are the study's.
            folder.write_result(name, {**part().to_dict(), **origin})
            finished.append(name)
        except CalibrantError as error:
            # Every part reads this study: where the fault is need not be said.
            reason = str(error).removeprefix(f"{IN_MEMORY}: ")
            left_out.append({"part": name, "reason": reason})
    document = {**head, "done": finished, "left_out": left_out}
    folder.write_result("analysis", document)
    write_report(folder)
    return AnalysisResult(document)


def _parts(study: Study, seed: int) -> dict[str, Callable[[], Result]]:
    scores = study.read("scores")
    features = ["domain"] if "domain" in scores.columns else []
    method = next(
        (name for name in _PREFERRED if name in scores["method"].unique()), scores["method"][0]
    )
    binary = scores.filter(
        (pl.col("method") == method) & pl.col("correct").is_in([0.0, 1.0]).fill_null(False)
    )
    shared: dict[str, Any] = {"on_invalid": "drop", "seed": seed}
    path = study.path
    pool = study.read("candidates") if study.has("candidates") else None
    return {
        "audit": lambda: audit(path, seed=seed),
        "audit_by_group": lambda: audit(binary, by=features, **shared),
        "compare": lambda: compare(_probabilities(scores), candidates=pool, graded=True, **shared),
        "multi_answer": lambda: bench_evaluate(path, **shared),
        "groups": lambda: groups(binary, features=features, **shared),
        "decide": lambda: _decide(binary, seed),
        "cascade": lambda: _cascade(study, binary, features, seed),
        "plan": lambda: plan(binary, precision=0.05, **shared),
        "methods": lambda: methods(path),
    }


def _decide(scores: pl.DataFrame, seed: int) -> Result:
    """Look for a threshold for the most accurate model: half of the errors that it makes now."""
    accuracy = scores.group_by("model", maintain_order=True).agg(pl.col("correct").mean())
    name, right = accuracy.sort("correct", descending=True, maintain_order=True).row(0)
    limit = round(max((1 - right) / 2, _LEAST_ERROR), 2)
    answers = scores.filter(pl.col("model") == name)
    return decide(answers, max_error=limit, on_invalid="drop", seed=seed)


def _cascade(study: Study, scores: pl.DataFrame, features: list[str], seed: int) -> Result:
    """Order the models by what an answer costs them, and build a cascade.

    The cost is the tokens of an answer, times the price of a token where the study names it.
    """
    tokens = (
        study.read("draws")
        .filter(pl.col("purpose").is_in(["answer", "greedy"]))
        .group_by("model", maintain_order=True)
        .agg((pl.col("prompt_tokens") + pl.col("completion_tokens")).mean().alias("tokens"))
    )
    prices = study.config.get("token_price", {}) if study.config_path.is_file() else {}
    costs = {name: used * prices.get(name, 1.0) for name, used in tokens.iter_rows()}
    price = dict(sorted(costs.items(), key=lambda item: item[1]))
    fit = partial(
        cascade, scores, models=list(price), price=price, features=features, on_invalid="drop",
        seed=seed,
    )  # fmt: skip
    try:
        return fit()
    except InputError as error:
        # Too few questions to fit a risk on: raw confidence needs no fit, and the page says so.
        simple = fit(strategies=("confidence",)).to_dict()
        note = f"Raw confidence alone decides here, because {error.rule}."
        return Result({**simple, "notes": [note]})


def _probabilities(scores: pl.DataFrame) -> pl.DataFrame:
    """Keep methods whose score is a probability, with right and wrong answers of every model."""
    ranking = sorted(ranking_methods())
    graded = scores.filter(~pl.col("method").is_in(ranking) & pl.col("correct").is_not_null())
    # Models are compared on the questions that all of them have, and equal accuracy needs right
    # and wrong answers there.
    shared = graded.filter(
        pl.col("model").n_unique().over("method", "question_id") == graded["model"].n_unique()
    )
    fit = pl.col("correct").mean().is_between(0, 1, closed="none").alias("fit")
    sound = shared.group_by("method", "model").agg(fit).group_by("method").agg(pl.col("fit").all())
    return graded.filter(pl.col("method").is_in(sound.filter("fit")["method"].implode()))


def write_report(study: Study) -> Path:
    """Write the study's report from all of its results."""
    page = study_page(study)
    with writing(study.report_path):
        study.report_path.write_text(page, encoding="utf-8")
    return study.report_path


def study_page(study: Study) -> str:
    """Return the page of a study: its results in the order of reading, and its questions."""
    results = study.results()
    names = [name for name in _ORDER if name in results]
    names += [name for name in results if name not in _ORDER]
    configured = study.config_path.is_file()
    questions, note = open_rows(study).questions() if study.has("scores") else ([], "")
    return render_html(
        [results[name] for name in names],
        title=str(study.config.get("name", study.path.name)) if configured else study.path.name,
        questions=questions,
        questions_note=note,
    )


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
    versions = {"calibrant": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        **document_head("study", study, seed=None if config is None else config.seed),
        "study": str(study.path),
        "name": study.path.name if config is None else config.name,
        "versions": {**versions, "machine": platform.machine()},
        "models": [] if config is None else _models(config),
        "prompts": [] if config is None else _prompts(config, draws),
        "asked": _asked(draws),
        "graders": _graders(study),
        "results": [],
    }


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
