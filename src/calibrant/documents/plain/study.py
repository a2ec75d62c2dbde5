"""Documents about sampled answers and studies: how they were read, joined, graded and asked for."""

from typing import Any, TypedDict

from calibrant.documents.plain.head import Document


class SamplesRead(TypedDict, total=False):
    """How a table of sampled answers was read."""

    shape: str
    columns: dict[str, str]
    guessed: list[str]
    notes: list[str]
    semantics: Any


class Semantics(TypedDict, total=False):
    """Document ``calibrant.semantics/1``."""

    normalisation: list[str]
    clustering: str
    grading: str
    embedder: str | None
    judge: str | None
    judge_calls: int
    judge_calls_refused: int
    judge_replies_unreadable: int
    judge_asymmetric: list[Any]
    conflicts: int
    conflict_examples: list[Any]
    joined_by: dict[str, int]
    graders: dict[str, int]
    reasons: dict[str, int]
    mixed_classes: int
    instructions_masked: int
    instruction_examples: list[Any]
    texts_mended: dict[str, int]


class GradeDocument(Document, total=False):
    """Document ``calibrant.grade/1``."""

    samples: SamplesRead
    semantics: Semantics
    methods: Any
    written: list[str]
    why: Any


class MethodEntry(TypedDict):
    """A method of confidence."""

    name: str
    summary: str
    needs: list[str]
    about: str
    question_level: bool
    probability: bool
    low: float | None
    high: float | None


class ServedMethod(TypedDict):
    """Whether a study holds what a method needs."""

    model: str
    method: str
    available: bool
    missing: int
    reason: str
    questions: int


class MethodsDocument(Document, total=False):
    """Document ``calibrant.methods/1``."""

    study: str | None
    methods: list[MethodEntry]
    needs: dict[str, str]


class LogEntry(TypedDict):
    """A log that was read."""

    source: str
    kind: str
    models: list[str]
    tasks: list[str]
    questions: int
    draws: int
    scores: int
    expected: int | None
    expected_unit: str
    ungraded: dict[str, int]
    unreadable: int
    problems: list[Any]


class ScoredEntry(TypedDict):
    """Scores that were read, by model and method."""

    model: str
    method: str
    n: int
    graded: int
    probability: bool


class ImportDocument(Document, total=False):
    """Document ``calibrant.import_logs/1``."""

    scores: list[ScoredEntry]
    notes: list[str]
    written: list[str]


class Failures(TypedDict):
    """Requests that were set aside."""

    count: int
    shown: list[Any]


class RunDocument(Document, total=False):
    """Document ``calibrant.run/1``."""

    study: str
    questions: int
    probe: Any
    dry_run: bool
    stopped: str | None
    repair: Any
    plan: Any
    models: Any
    counts: Any
    findings: Any
    skipped_second_turns: dict[str, int]
    unread: Any
    failures: Failures
    methods: Any


class AskedEntry(TypedDict, total=False):
    """What one model was asked for one purpose."""

    model: str
    purpose: str
    draws: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cut_off: int | None
    cost: float | None


class StudyDocument(Document, total=False):
    """Document ``calibrant.study/1``."""

    study: str
    name: str
    versions: dict[str, str]
    models: Any
    prompts: Any
    asked: list[AskedEntry]
    graders: dict[str, int]


class LeftOut(TypedDict):
    """A part that was left out, and why."""

    part: str
    reason: str


class PartsDocument(Document, total=False):
    """Documents that say what was made: an analysis, a demo, a new folder, a report, a server."""

    study: str
    done: list[str]
    left_out: list[LeftOut]
    findings: list[str]
    parts: Any
    counts: Any
    files: list[str]
    folder: str
    viewed: str
    written: list[str]
    documents: list[Any]
