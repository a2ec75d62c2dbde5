"""From a study file to draws: plan, prompts, runner, tables."""

from calibrant.collect.config import (
    ModelConfig,
    StudyConfig,
    load_config,
    parse_config,
    with_scoring,
)
from calibrant.collect.endpoints import open_client
from calibrant.collect.forecast import Forecast, check_budget, forecast
from calibrant.collect.needs import NEEDS, Selection, select_probes
from calibrant.collect.plan import Asker, Question, Wanted, iterate_questions
from calibrant.collect.prices import load_prices, study_prices
from calibrant.collect.probes import POOL, PROBES, STATED_POOL
from calibrant.collect.prompts import Prompt, load_prompt, shipped_prompts
from calibrant.collect.runner import Collected, ProgressWatch, collect

__all__ = [
    "NEEDS",
    "POOL",
    "PROBES",
    "STATED_POOL",
    "Asker",
    "Collected",
    "Forecast",
    "ModelConfig",
    "ProgressWatch",
    "Prompt",
    "Question",
    "Selection",
    "StudyConfig",
    "Wanted",
    "check_budget",
    "collect",
    "forecast",
    "iterate_questions",
    "load_config",
    "load_prices",
    "load_prompt",
    "open_client",
    "parse_config",
    "select_probes",
    "shipped_prompts",
    "study_prices",
    "with_scoring",
]
