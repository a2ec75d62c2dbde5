"""``study.toml`` as typed settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct, structs

from calibrant.data.study import Study, TabularTask
from calibrant.models.asks import PRESETS
from calibrant.models.ledger import Caps
from calibrant.models.study.probes import PROBES, PROMPT_NAMES
from calibrant.models.study.settings import NEEDED, Settings

CLIENTS = ("embedded", *PRESETS, "replay")
EMBEDDED_MODEL = "smollm2-135m-instruct"
STYLES = ("plain", "short")
WAYS = ("hybrid", "rules", "exact", "embeddings", "judge")


class QuestionsConfig(Struct, frozen=True):
    """Where the questions come from."""

    path: Path
    layout: str = "auto"
    limit: Annotated[int | None, {"low": 1}] = None
    tabular: TabularTask | None = None


class ModelConfig(Struct, frozen=True):
    """A model: how the tables call it, and which client reaches it with which options.

    `prompts` and `temperature` differ from the study's where given, so that one model can take
    part in several configurations.
    """

    name: str
    client: str
    model: str
    price: str
    options: Mapping[str, Any] = {}
    prompts: PromptsConfig | None = None
    temperature: float | None = None


class SamplingConfig(Struct, frozen=True):
    """How often and how warm.

    `draws` independent draws at `temperature` for the methods that sample, one at temperature 0
    for the others. `votes` and `restatements` are the numbers of P(True) votes and of verbalised
    answers, `draws` where they are not given.
    """

    draws: Annotated[int, {"low": 1}] = 20
    temperature: Annotated[float, {"high": 2.0}] = 1.0
    votes: Annotated[int | None, {"low": 1}] = None
    restatements: Annotated[int | None, {"low": 1}] = None
    candidates: Annotated[int, {"low": 1}] = 5
    topk: Annotated[int, {"low": 1}] = 3
    max_tokens: Mapping[str, int] = {}

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


class Example(Struct, frozen=True):
    """A question with its answer, shown to the model before the question."""

    question: str
    answer: str
    confidence: Annotated[float, {"high": 1.0}] = 0.9


class PromptsConfig(Struct, frozen=True):
    """Which prompt serves which purpose; names of shipped ones, or paths."""

    style: Annotated[str, {"choices": STYLES}] = "plain"
    chosen: Mapping[str, str] = {}
    examples: tuple[Example, ...] = ()


class SemanticsConfig(Struct, frozen=True):
    """Who decides which answers mean the same and which are right."""

    clustering: Annotated[str, {"choices": WAYS}] = "hybrid"
    grading: Annotated[str, {"choices": WAYS}] = "hybrid"
    embeddings: bool = False
    judge: ModelConfig | None = None
    max_judge_calls: int | None = None
    judge_batch: Annotated[int, {"low": 1}] = 1
    math: bool = False


class BudgetConfig(Struct, frozen=True):
    """Caps of the whole study, all its runs together.

    `when` says what a cap does: ``refuse`` sends nothing unless the most that the study can cost
    fits; ``stop`` sends until the next call could break the cap. A command asks before it spends
    more than `ask_above` dollars.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    max_calls: int | None = None
    when: Annotated[str, {"choices": ("refuse", "stop")}] = "refuse"
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


class ScoringConfig(Struct, frozen=True):
    """How scores are made, see `calibrant.answers.confidence.method.Options`; None is what is
    usual.
    """

    variant: Annotated[str | None, {"choices": ("default", "paper")}] = None
    about: Annotated[str | None, {"choices": ("modal", "greedy")}] = None
    similarity: Annotated[str | None, {"choices": ("classes", "embeddings", "lexical")}] = None
    tau: float | None = None
    impute: Annotated[float | None, {"high": 1.0}] = None
    ensemble: Path | None = None

    @property
    def given(self) -> dict[str, Any]:
        """What was chosen, as options of a method."""
        choice = {**structs.asdict(self), "ensemble": self.ensemble and str(self.ensemble)}
        return {name: value for name, value in choice.items() if value is not None}


class StudyConfig(Struct, frozen=True):
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
    concurrency: Annotated[int, {"low": 1}] = 64

    def for_model(self, model: ModelConfig) -> StudyConfig:
        """Return the study as this model sees it: with its own prompts and temperature."""
        sampling = self.sampling
        if model.temperature is not None:
            sampling = structs.replace(sampling, temperature=model.temperature)
        return structs.replace(self, prompts=model.prompts or self.prompts, sampling=sampling)


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
