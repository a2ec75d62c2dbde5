"""``study.toml`` as typed settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from calibrant.data.study import Study, TabularTask
from calibrant.models.asks import PRESETS
from calibrant.models.ledger import Caps
from calibrant.models.study.probes import PROBES, PROMPT_NAMES
from calibrant.models.study.settings import NEEDED, Settings, setting

CLIENTS = ("embedded", *PRESETS, "replay")
EMBEDDED_MODEL = "smollm2-135m-instruct"
STYLES = ("plain", "short")
WAYS = ("hybrid", "rules", "exact", "embeddings", "judge")


@dataclass(frozen=True, slots=True)
class QuestionsConfig:
    """Where the questions come from."""

    path: Path
    layout: str = "auto"
    limit: int | None = setting(None, low=1)
    tabular: TabularTask | None = None


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model: how the tables call it, and which client reaches it with which options.

    `prompts` and `temperature` differ from the study's where given, so that one model can take
    part in several configurations.
    """

    name: str
    client: str
    model: str
    price: str
    options: Mapping[str, Any] = field(default_factory=dict)
    prompts: PromptsConfig | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How often and how warm.

    `draws` independent draws at `temperature` for the methods that sample, one at temperature 0
    for the others. `votes` and `restatements` are the numbers of P(True) votes and of verbalised
    answers, `draws` where they are not given.
    """

    draws: int = setting(20, low=1)
    temperature: float = setting(1.0, high=2.0)
    votes: int | None = setting(None, low=1)
    restatements: int | None = setting(None, low=1)
    candidates: int = setting(5, low=1)
    topk: int = setting(3, low=1)
    max_tokens: Mapping[str, int] = field(default_factory=dict)

    def times(self, probe: str) -> int:
        """Return how many draws this probe gets.

        Examples
        --------
        >>> SamplingConfig(draws=8, votes=4).times("p_true")
        4
        """
        if not PROBES[probe].sampled:
            return 1
        if probe.startswith("p_true") and self.votes is not None:
            return self.votes
        if probe.startswith("verb") and self.restatements is not None:
            return self.restatements
        return self.draws


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its answer, shown to the model before the question."""

    question: str
    answer: str
    confidence: float = setting(0.9, high=1.0)


@dataclass(frozen=True, slots=True)
class PromptsConfig:
    """Which prompt serves which purpose; names of shipped ones, or paths."""

    style: str = setting("plain", choices=STYLES)
    chosen: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class SemanticsConfig:
    """Who decides which answers mean the same and which are right."""

    clustering: str = setting("hybrid", choices=WAYS)
    grading: str = setting("hybrid", choices=WAYS)
    embeddings: bool = False
    judge: ModelConfig | None = None
    max_judge_calls: int | None = None
    judge_batch: int = setting(1, low=1)
    math: bool = False


@dataclass(frozen=True, slots=True)
class BudgetConfig:
    """Caps of the whole study, all its runs together.

    `when` says what a cap does: ``refuse`` sends nothing unless the most that the study can cost
    fits; ``stop`` sends until the next call could break the cap. A command asks before it spends
    more than `ask_above` dollars.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    max_calls: int | None = None
    when: str = setting("refuse", choices=("refuse", "stop"))
    prices: Path | None = None
    ask_above: float | None = None

    @property
    def caps(self) -> Caps:
        """The caps as the ledger holds them, over all runs and processes."""
        return Caps(self.max_cost, self.max_tokens, self.max_calls)

    @property
    def capped(self) -> bool:
        """Whether there is any cap."""
        return self.caps != Caps()


@dataclass(frozen=True, slots=True)
class ScoringConfig:
    """How scores are made, see `calibrant.answers.confidence.method.Options`; None is what is
    usual.
    """

    variant: str | None = setting(None, choices=("default", "paper"))
    about: str | None = setting(None, choices=("modal", "greedy"))
    similarity: str | None = setting(None, choices=("classes", "embeddings", "lexical"))
    tau: float | None = None
    impute: float | None = setting(None, high=1.0)
    ensemble: Path | None = None

    @property
    def given(self) -> dict[str, Any]:
        """What was chosen, as options of a method."""
        choice = {**asdict(self), "ensemble": self.ensemble and str(self.ensemble)}
        return {name: value for name, value in choice.items() if value is not None}


@dataclass(frozen=True, slots=True)
class StudyConfig:
    """Everything that study.toml says."""

    folder: Path
    name: str
    questions: QuestionsConfig
    models: tuple[ModelConfig, ...]
    methods: tuple[str, ...] | None
    sampling: SamplingConfig
    prompts: PromptsConfig
    budget: BudgetConfig
    semantics: SemanticsConfig
    scoring: ScoringConfig
    seed: int = 0
    candidate_pool: bool = False
    concurrency: int = setting(64, low=1)

    def for_model(self, model: ModelConfig) -> StudyConfig:
        """Return the study as this model sees it: with its own prompts and temperature."""
        sampling = self.sampling
        if model.temperature is not None:
            sampling = replace(sampling, temperature=model.temperature)
        return replace(self, prompts=model.prompts or self.prompts, sampling=sampling)


def with_scoring(config: StudyConfig, given: Mapping[str, Any]) -> StudyConfig:
    """Return the study with these choices of scoring in place of its own; None keeps its own."""
    choice = {name: value for name, value in given.items() if value is not None}
    return replace(config, scoring=replace(config.scoring, **choice))


def load_config(study: Study) -> StudyConfig:
    """Read and check the study.toml of a study."""
    return parse_config(study.config, folder=study.path, source=str(study.config_path))


def parse_config(values: Mapping[str, Any], *, folder: Path, source: str) -> StudyConfig:
    """Check the parsed file and return it typed; paths are relative to the study's folder.

    Examples
    --------
    >>> config = parse_config(
    ...     {"questions": "q.jsonl", "models": [{"name": "small", "client": "embedded"}]},
    ...     folder=Path("study"), source="study.toml")
    >>> config.sampling.draws, config.methods is None
    (20, True)
    """
    root = Settings(values, source=source, folder=folder)
    return root.fill(
        StudyConfig,
        folder=folder,
        name=root.text("name", folder.resolve().name),
        questions=_questions(root),
        models=_models(root),
        methods=_methods(root),
        sampling=_sampling(root.table("sampling")),
        prompts=_prompts(root.table("prompts")),
        semantics=_semantics(root.table("semantics")),
    )


def _questions(root: Settings) -> QuestionsConfig:
    if isinstance(root.raw("questions"), str):
        return QuestionsConfig(root.place("questions"))
    table = root.table("questions")
    config = table.fill(QuestionsConfig)
    sentences = {} if config.tabular is None else config.tabular.columns
    for column, sentence in sentences.items():
        if not isinstance(sentence, str) or "{value}" not in sentence:
            rule = f"is a sentence with {{value}}, got {sentence!r}"
            table.refuse(f"tabular.columns.{column}", rule)
    return config


def _models(root: Settings) -> tuple[ModelConfig, ...]:
    models: list[ModelConfig] = []
    for table in root.tables("models"):
        model = _model(table)
        if any(model.name == peer.name for peer in models):
            table.refuse("name", f"every model has a name of its own, got {model.name!r} twice")
        if model.temperature == 0.0:
            table.refuse("temperature", "the draws of a study are above temperature 0, got 0.0")
        models.append(model)
    if not models:
        root.refuse("models", "a study asks at least one model", hint="add a [[models]] table")
    return tuple(models)


def _model(table: Settings, *, default_name: Any = NEEDED) -> ModelConfig:
    client = table.text("client", choices=CLIENTS)
    name = table.text("name", default_name)
    model = table.text("model", EMBEDDED_MODEL if client == "embedded" else name)
    price = table.text("price", model)
    prompts = _prompts(table.table("prompts")) if table.has("prompts") else None
    temperature = table.real("temperature", None, high=2.0)
    batch = table.flag("batch", False)
    options = table.rest()
    for key in ("ledger", "weights"):
        if isinstance(options.get(key), str):
            options[key] = str(table.folder / Path(options[key]).expanduser())
    if batch:
        options["batch"] = str(table.folder / "batches.json")
    return ModelConfig(name, client, model, price, options, prompts, temperature)


def _methods(root: Settings) -> tuple[str, ...] | None:
    if root.raw("methods", "all") == "all":
        return None
    methods = root.texts("methods")
    if not methods:
        root.refuse("methods", 'is "all" or a list of names', hint="see `calibrant methods`")
    return tuple(dict.fromkeys(methods))


def _sampling(table: Settings) -> SamplingConfig:
    limits = table.table("max_tokens")
    max_tokens = {name: limits.whole(name, low=1) for name in PROMPT_NAMES if limits.has(name)}
    limits.finish()
    config = table.fill(SamplingConfig, max_tokens=max_tokens)
    if config.temperature == 0.0 and config.draws > 1:
        rule = "draws at temperature 0 are all the same, so draws must be 1"
        hint = "use temperature = 1.0: the greedy answer is asked for on its own"
        table.refuse("temperature", rule, hint=hint)
    return config


def _prompts(table: Settings) -> PromptsConfig:
    choice = {name: table.text(name) for name in PROMPT_NAMES if table.has(name)}
    return table.fill(PromptsConfig, chosen=choice)


def _semantics(table: Settings) -> SemanticsConfig:
    judge = None
    if table.has("judge"):
        judge = _model(table.table("judge"), default_name="judge")
    config = table.fill(SemanticsConfig, judge=judge)
    for key in ("clustering", "grading"):
        mode = getattr(config, key)
        if mode == "judge" and config.judge is None:
            table.refuse(key, "is judge, but there is no judge", hint="add [semantics.judge]")
        if mode == "embeddings" and not config.embeddings:
            table.refuse(key, "is embeddings, but they are off", hint="set embeddings = true")
    return config
