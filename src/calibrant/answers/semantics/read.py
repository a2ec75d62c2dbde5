"""From the texts of the draws to answers, stated confidences and votes."""

from collections import Counter
from dataclasses import dataclass, field

import polars as pl

from calibrant.answers.semantics.extract import extract_answer, not_attempted, parse_vote
from calibrant.answers.semantics.options import SemanticsOptions
from calibrant.answers.semantics.stated import parse_confidence, parse_top_k
from calibrant.answers.semantics.text.encoding import clean_text

# What the texts of a purpose hold; the others hold an answer.
ROLES = {
    "verb": "stated",
    "verb_topk": "list",
    "p_true": "vote",
    "p_true_cand": "vote",
    "selfcheck": "vote",
    "self_ask": "probe",
    "self_ask_cand": "probe",
}


@dataclass
class ReadDraws:
    """The columns found, one entry per distinct text, and what had to be mended."""

    table: pl.DataFrame
    notes: Counter[str] = field(default_factory=Counter)


_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "answer": pl.String,
    "stated_confidence": pl.Float64,
    "stated_answers": pl.List(pl.String),
    "stated_confidences": pl.List(pl.Float64),
    "reason": pl.String,
    "rule": pl.String,
}
_Text = tuple[str | bytes | None, str, str, list[str] | None]
_Row = tuple[str | None, float | None, list[str] | None, list[float | None] | None, str, str]


def read_draws(texts: pl.DataFrame, options: SemanticsOptions) -> ReadDraws:
    """Read distinct texts: a row each of text, role, kind of question and choices."""
    notes: Counter[str] = Counter()
    rows = [_read_one(text, options, notes) for text in texts.iter_rows()]
    return ReadDraws(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), notes)


def _read_one(values: _Text, options: SemanticsOptions, notes: Counter[str]) -> _Row:
    text, role, kind, choices = values
    plain, corrected = clean_text(text)
    for note in corrected:
        notes["not UTF-8" if note.startswith("byte") else note] += 1
    if role == "vote":
        vote = parse_vote(plain)
        return None if vote is None else str(vote), None, None, None, _reason(vote, "vote"), "vote"
    if role == "probe":
        probed = parse_confidence(plain, scale=options.scale, words=options.words)
        return None, probed, None, None, _reason(probed, "probe"), "probe"
    if role == "list":
        listed = parse_top_k(plain, scale=options.scale, words=options.words)
        if listed:
            answers = [entry.answer or "" for entry in listed]
            confidences = [entry.confidence for entry in listed]
            return answers[0], confidences[0], answers, confidences, "attempted", "list"
        return None, None, None, None, not_attempted(plain) or "unparsed", "list"
    extracted = extract_answer(
        plain,
        kind=kind,
        choices=choices,
        stated=True if role == "stated" else None,
        scale=options.scale,
        words=options.words,
    )
    return extracted.answer, extracted.confidence, None, None, extracted.status, extracted.rule


def _reason(value: object, name: str) -> str:
    return name if value is not None else "unparsed"
