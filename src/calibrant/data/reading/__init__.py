"""How a table is read: which column plays which role, in which scale, and what was guessed."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

FRACTION, PERCENT = "fraction", "percent"
_ROLE_WORDS = {
    "confidence": "the confidence",
    "correct": "the outcome",
    "model": "the model",
    "method": "the method",
    "question_id": "the question",
    "answer": "the answer",
}


class Reading(Struct, frozen=True):
    """What was made of a table before any number is computed: every verb tells it the same way.

    Parameters
    ----------
    columns
        Columns by role; several that make up one role are separated by commas.
    guessed
        Roles whose column nobody named and which is called otherwise, and ``scale`` where the
        values alone told it.
    scale
        How the confidence is written.
    words
        Words of the outcome, those for right first, where it is no number.
    same
        Further columns by role that name the same.
    cluster
        Column whose rows depend on each other.
    repeats
        What was found about rows that stand there several times.
    mended
        What replaced the stated confidences, if anything did.
    models
        Names of the models where these stand side by side, each with a confidence of its own.
    notes
        Sentences about what was read in another way than it stands there.
    options
        Options that read further rows in the same way, where columns alone do not say it.
    asked
        What somebody said about it.
    left_out
        Rows that are not used, by the rule that they break.
    source
        What was read.
    """

    columns: Mapping[str, str] = {}
    guessed: tuple[str, ...] = ()
    scale: str = FRACTION
    words: str | None = None
    same: Mapping[str, tuple[str, ...]] = {}
    cluster: str | None = None
    repeats: str | None = None
    mended: str | None = None
    models: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    options: Mapping[str, str] = {}
    asked: Mapping[str, Any] = {}
    left_out: Mapping[str, int] = {}
    source: Any = None

    @property
    def sentence(self) -> str | None:
        """What was guessed or belongs together, in one line; None where nothing is to be said.

        Examples
        --------
        >>> columns = {"confidence": "certainty", "correct": "ok", "model": "llm"}
        >>> Reading(columns, ("confidence", "scale", "correct", "model"), "percent").sentence
        'Read certainty as the confidence in percent, ok as the outcome, llm as the model.'
        >>> Reading({"confidence": "A p,B p"}, ("confidence",), models=("A", "B")).sentence
        'Read A p and B p as the confidence, A and B as models side by side.'
        """
        parts = [part for role in self.columns if (part := self._part(role)) is not None]
        parts += [f"{' and '.join(self.models)} as models side by side"] if self.models else []
        parts += [f"{self.cluster} as the unit whose rows belong together"] if self.cluster else []
        return f"Read {', '.join(parts)}." if parts else None

    def _part(self, role: str) -> str | None:
        column, guess = self.columns[role], role in self.guessed
        column = column.replace(",", " and ") if self.models else column
        word = _ROLE_WORDS.get(role, role)
        if role == "confidence" and "scale" in self.guessed:
            return f"{column} as {word} in {self.scale}" if guess else f"{column} as {self.scale}"
        if role == "correct" and self.words is not None:
            return f"{column} as {word} ({self.words})" if guess else f"{column} as {self.words}"
        if role in self.same:
            return f"{column} as {word} ({' and '.join(self.same[role])} names the same)"
        return f"{column} as {word}" if guess else None

    def to_dict(self) -> dict[str, object]:
        """Return what a document records."""
        return {
            "columns": dict(self.columns),
            "guessed": list(self.guessed),
            "scale": self.scale,
            "outcome_words": self.words,
            "cluster": self.cluster,
            "repeats": self.repeats,
            "sentence": self.sentence,
            **({} if self.mended is None else {"mended": self.mended}),
            **({"models": list(self.models)} if self.models else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
        }


def joined_readings(readings: Sequence[Reading]) -> Reading:
    """Return how several tables were read; they may call their columns differently."""
    columns: dict[str, list[str]] = {}
    for reading in readings:
        for role, column in reading.columns.items():
            columns.setdefault(role, []).append(column)
    return Reading(
        {role: " or ".join(dict.fromkeys(names)) for role, names in columns.items()},
        tuple(dict.fromkeys(role for reading in readings for role in reading.guessed)),
        " or ".join(dict.fromkeys(reading.scale for reading in readings)),
        " or ".join(dict.fromkeys(r.words for r in readings if r.words)) or None,
        {role: names for reading in readings for role, names in reading.same.items()},
        next((reading.cluster for reading in readings if reading.cluster), None),
        next((reading.repeats for reading in readings if reading.repeats), None),
        models=next((reading.models for reading in readings if reading.models), ()),
        notes=tuple(dict.fromkeys(note for reading in readings for note in reading.notes)),
        options=readings[0].options if readings else {},
    )
