"""What every document has, and the parts that several kinds share."""

from collections.abc import Mapping
from typing import Any, TypedDict

Group = Mapping[str, str] | None
"""The group that an entry is about, by column; None for all rows."""


class Estimate(TypedDict, total=False):
    """A value with its interval; None where it is undefined: whoever needs a number asks first."""

    value: Any
    low: Any
    high: Any
    n: int


class Ends(TypedDict):
    """The ends of an interval."""

    low: float
    high: float


class Subject(TypedDict, total=False):
    """What a claim or a warning is about."""

    model: str | None
    method: str | None
    group: Group
    models: list[str]
    a: str
    b: str
    pair: list[str]
    rule: str
    strategy: str | None
    metric: str
    columns: Any
    domains: list[str]
    reference: str
    sample: str


class Warned(TypedDict, total=False):
    """What a reader has to know about the data before any number."""

    id: str
    subject: Subject
    text: str


class Said(TypedDict, total=False):
    """A claim: its rule, what it is about, the outcome of its test, and its sentence."""

    id: str
    subject: Subject
    outcome: Any
    value: float | None
    low: float | None
    high: float | None
    p_adjusted: float | None
    margin: float | None
    n: int | None
    text: str


class Coverage(TypedDict, total=False):
    """Rows of one model and method: those that are there, and those that are not."""

    model: str
    method: str
    only_method: bool
    n: int
    questions: int
    dropped: int
    missing: int
    expected: int
    accuracy: float | None
    values: int | None
    answers_empty: int | None
    repeated_texts: int
    missing_accuracy: Any
    kept_accuracy: Any
    missing_p: float | None


class MissingRow(TypedDict, total=False):
    """A model that lacks questions which others were asked."""

    model: str
    method: str
    group: Group
    n: int
    missing: int
    others_right_here: Any
    others_right_missing: Any
    p_adjusted: float | None
    related: bool


class Data(TypedDict, total=False):
    """The rows behind a document."""

    rows: int
    rows_read: int
    questions: int
    questions_shared_by_all: int
    models: list[Coverage]
    warnings: list[Warned]
    missing: list[MissingRow]


class Family(TypedDict, total=False):
    """Tests or pairs that share one level."""

    confidences: int
    tests: int
    pairs: int


class Multiplicity(TypedDict, total=False):
    """How tests are corrected for their number."""

    control: str
    alpha: float
    whole: Family
    groups: Family


class Step(TypedDict, total=False):
    """What to do next."""

    command: str
    why: str


class Document(TypedDict, total=False):
    """The keys that every kind of document may have."""

    schema: str
    version: str
    source: Any
    input: Any
    seed: int | None
    settings: Any
    data: Data
    claims: list[Said]
    next: Any
    dropped: dict[str, int]
    emptied_models: list[str]
    multiplicity: Multiplicity
    reading: Any
    results: Any
    wrong: Any
    notes: list[str]
    one_method: str
