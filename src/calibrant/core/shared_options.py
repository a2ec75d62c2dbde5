"""Options that several verbs share: declared once, in one vocabulary."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.verb import ADVANCED, INPUT, OUTPUT, Option, declaration, verb


def column(help: str = "", **more: Any) -> Option:
    """Return an option that names a column of the input."""
    return Option(help, **{"metavar": "COL", "group": INPUT, **more})


def share(help: str = "", **more: Any) -> Option:
    """Return an option that takes a share, strictly between 0 and 1."""
    return Option(help, **{"metavar": "SHARE", "above": 0, "below": 1, **more})


def names(help: str = "", **more: Any) -> Option:
    """Return an option that takes names, separated by commas."""
    return Option(help, **{"metavar": "A,B,..", "kind": "names", **more})


def inputs(help: str = "", metavar: str = "INPUT..", **more: Any) -> Option:
    """Return the argument that names what is read."""
    defaults = {"group": INPUT, "argument": True, "kind": "several", "place": "read"}
    return Option(help, **{"metavar": metavar, **defaults, **more})


def source(help: str = "", metavar: str = "FILE", **more: Any) -> Option:
    """Return an option that names a further file to read."""
    return Option(help, **{"metavar": metavar, "group": INPUT, "place": "read", **more})


def files(help: str, metavar: str, **more: Any) -> Option:
    """Return an option that names further files to read, one each time that it is given."""
    return source(f"{help}; may be given several times.", metavar, kind="several", **more)


def written(help: str = "", metavar: str = "PATH", **more: Any) -> Option:
    """Return an option that names a file to write."""
    return Option(help, **{"metavar": metavar, "group": OUTPUT, "place": "write", **more})


def advanced(help: str = "", metavar: str = "", **more: Any) -> Option:
    """Return an option that most calls leave alone."""
    return Option(help, **{"metavar": metavar, "group": ADVANCED, **more})


def number(help: str, least: int, most: int, **more: Any) -> Option:
    """Return an option that takes a whole number between two ends, both allowed."""
    return Option(help, **{"metavar": "N", "min": least, "max": most, **more})


# -- what goes in
Data = Annotated[Any, inputs("Study folder, table (csv, jsonl, parquet) or foreign log.")]
ScoresData = Annotated[Any, inputs("Study folder or table of scores.")]
Table = Annotated[Any, source("Scores whose outcome is partly missing.", "TABLE", argument=True)]
SampleColumn = Annotated[
    str | None, column("Column of sampled answers, a list per question or a row per draw.")
]
ReferenceColumn = Annotated[str | None, column("Column of the right answer, to grade samples by.")]
ReferencesFile = Annotated[
    Any, source("File of questions with their right answers, for samples that have none.")
]
DomainFiles = Annotated[
    Sequence[str | Path], files("TOML file of a domain of your own", "FILE.toml", cli="domain-file")
]
Triples = Annotated[Sequence[str | Path], files("File or folder of facts", "PATH")]

# -- columns of a table
By = Annotated[
    Sequence[str],
    Option("A block per value of this column; may be given several times.", "COL", kind="several"),
]
ConfidenceColumn = Annotated[
    str | None, column("Column of the confidence; several, as A,B, become methods.")
]
_OUTCOME = column("Column of the outcome: 0 or 1, or words.")
CorrectColumn = Annotated[str | None, _OUTCOME]
OutcomesOrColumn = Annotated[Any, _OUTCOME]
ModelColumn = Annotated[str | None, column("Column of models.")]
MethodColumn = Annotated[str | None, column("Column of confidence methods.")]
QuestionColumn = Annotated[str | None, column("Column of question ids.")]
AnswerColumn = Annotated[str | None, column("Column of the answer graded.")]
LabelStoreFile = Annotated[
    str | Path | None,
    source("Labels that people made of this pool; by default those beside it.", "PATH"),
]
EmbedColumn = Annotated[str | None, Option("Text whose embedding joins the features.", "COL")]
EmbedDimensions = Annotated[int, advanced("Components of the embedding.", "N", min=1, max=10000)]

# -- rules for its rows
Graded = Annotated[bool, Option("Outcomes may lie between 0 and 1.", group=INPUT)]
MendColumns = Annotated[
    str | Path | None,
    source("Write what confidences mean beside them, by a map that `mend` saved."),
]


class RowOptions(TypedDict, total=False):
    """How the rows of a table are read: the same in every verb."""

    confidence: str | None
    model: str | None
    method: str | None
    question: str | None
    answer: str | None
    cluster: str | None
    unit: str | None
    scale: str | None
    right: str | None
    gold: str | None
    probs: str | None
    repeats: bool
    on_invalid: str | None
    mend: str | Path | None


class TableOptions(RowOptions, total=False):
    """The same with the column of outcomes, which an audit takes as an array too."""

    correct: str | None


@verb()
def _table(
    *,
    confidence: ConfidenceColumn = None,
    correct: CorrectColumn = None,
    model: ModelColumn = None,
    method: MethodColumn = None,
    question: QuestionColumn = None,
    answer: AnswerColumn = None,
    cluster: Annotated[str | None, column()] = None,
    unit: Annotated[str | None, column()] = None,
    scale: Annotated[str | None, column(metavar="percent|1-5|low=0.3,..|NAME")] = None,
    right: Annotated[str | None, column(metavar="A,B,..")] = None,
    gold: Annotated[str | None, column()] = None,
    probs: Annotated[str | None, column(metavar="PREFIX")] = None,
    repeats: Annotated[bool, Option(group=INPUT)] = False,
    on_invalid: Annotated[
        str | None, Option(group=INPUT, choices=("missing", "error", "drop"))
    ] = None,
    mend: Annotated[str | Path | None, source()] = None,
) -> None:
    """Declare how a table is read; without a word its columns and values speak for themselves.

    Parameters
    ----------
    cluster
        Column of topics, documents or users: rows of one depend on each other.
    unit
        Column of what rows are parts of: the document of a field, the answer of a claim, the run
        of a step. Intervals are between units, and `decide` promises whole units.
    scale
        How the confidence is written; by default the values say it. Names are fraction, percent,
        mixed, words, logprob, uncertainty (1 is unsure) and rank (only their order tells).
    right
        Words or numbers of the outcome that mean right; others mean wrong.
    gold
        Column of the right answer: an answer that is the same is right.
    probs
        What columns of class probabilities share, as p_: the highest is the confidence.
    repeats
        Rows of one question are repeated answers to it.
    on_invalid
        Rows that break a rule: leave out those without a confidence and stop at others (default),
        stop at all, or leave out all (default for a study).
    mend
        Take confidences for what they mean, by a map that `mend` saved.
    """


TABLE = declaration(_table)


def refuse_mended(table: Mapping[str, Any], policy: Any, what: str) -> None:
    """Refuse mended confidences beside a policy: it is asked with confidences as stated."""
    if policy is not None and table["mend"] is not None:
        raise InputError(
            f"{what} is asked with confidences as stated, and these are mended",
            hint=Hint("leave out {mend}: a rising map changes no order, and so no decision"),
        )


JudgeModel = Annotated[
    str | None,
    Option(
        "Model that judges which answers mean the same, and are right, where rules leave it open.",
        "MODEL",
        INPUT,
    ),
]
JudgeUrl = Annotated[str | None, Option("Where the judge is reached.", "URL", INPUT)]
MostJudgeCalls = Annotated[
    int | None, number("Most questions to the judge.", 0, 10**9, group=INPUT)
]

# -- how numbers are made
Level = Annotated[float, share("Coverage of the intervals.")]
Margin = Annotated[
    float,
    share(
        "Differences below this do not matter; 0.02 is two percentage points.", above=None, min=0
    ),
]
Resamples = Annotated[int, advanced("Bootstrap resamples.", "N", min=2, max=1_000_000)]
CostMap = Annotated[
    Mapping[str, float] | Any,
    Option(
        "Costs of wrong decisions: c10 for deciding 1 where the truth is 0, c01 for the reverse.",
        metavar="c10=1,c01=5",
        kind="map",
        example="c10=1,c01=5 (c10: deciding 1 where the truth is 0)",
    ),
]
Engine = Annotated[
    str | None,
    advanced("Share the work out: to threads, or to a Ray cluster.", "local|ray|ray://HOST:PORT"),
]
Seed = Annotated[
    int, advanced("Same input, settings and seed give the same file.", "N", min=0, max=2**64 - 1)
]
WrongRows = Annotated[
    int,
    number(
        "List the N answers that are wrong with the highest confidence.", 0, 10000, group=OUTPUT
    ),
]

# -- how draws are scored
About = Annotated[
    str | None,
    advanced("Answer that question-level scores are about.", choices=("modal", "greedy")),
]
Variant = Annotated[
    str | None,
    advanced(
        "Score as usual, or as the authors' published numbers were made.",
        choices=("default", "paper"),
    ),
]
Tau = Annotated[
    float | None, advanced("Threshold of sca, sca_distinct, snca and sfca.", "MASS", min=0)
]
Similarity = Annotated[
    str | None,
    advanced("What scores of similarity compare.", choices=("classes", "embeddings", "lexical")),
]
