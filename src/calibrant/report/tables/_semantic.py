"""Tables of the Sem-ECE part of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.blocks import Paragraph, Table, cut_text
from calibrant.report.cells import Cell, Number, Text, estimate_cell, number_cell, said_cell

_HARD_SHOWN = 5
_LETTERS_OF_ANSWER = 40
_LETTERS_OF_QUESTION = 80
_LETTERS_KEPT = 2_000


def semantic_tables(blocks: Sequence[Mapping[str, Any]]) -> list[Paragraph | Table]:
    """Return Sem1 and Sem2 per model, what the theory predicts, and the hardest questions."""
    rows = tuple(
        (
            _name(block),
            said_cell(block["questions"], f"{block['questions']:,} x {block['draws']}"),
            estimate_cell(block["accuracy"]),
            estimate_cell(block["sem1"]),
            estimate_cell(block["sem2"]),
            _floor(block),
            estimate_cell(block["gap"]["ece"]),
            estimate_cell(block["gap"]["confidence"]),
            number_cell(block["predicted_gap"]),
        )
        for block in blocks
    )
    parts: list[Paragraph | Table] = [
        Table(
            (
                "model",
                "questions x draws",
                "accuracy",
                "Sem1-ECE",
                "Sem2-ECE",
                "noise floor",
                "Sem1 - Sem2",
                "confidence gap",
                "predicted",
            ),
            rows,
            title="Calibration by meaning (Sem-ECE)",
            note=(
                "Sem1-ECE and Sem2-ECE measure this number of draws. Sem1's confidence is too "
                "high, Sem2's too low. The error with unlimited draws may lie outside both. Noise "
                "floor: the Sem2-ECE that chance alone would show."
            ),
        )
    ]
    for block in blocks:
        parts.extend(_notes(block))
    return parts


def _name(block: Mapping[str, Any]) -> str:
    groups = [f"{key} = {value}" for key, value in (block.get("group") or {}).items()]
    return ", ".join([str(block["model"]), *groups])


def _floor(block: Mapping[str, Any]) -> Number:
    found = (block.get("noise_floor") or {}).get("sem2") or {"floor": None}
    return number_cell(found["floor"], missing="not tested")


def _notes(block: Mapping[str, Any]) -> list[Paragraph | Table]:
    notes: list[Paragraph | Table] = []
    if block["left_out"]:
        counts = ", ".join(f"{reason} {n:,}" for reason, n in block["left_out"].items())
        notes.append(Paragraph(f"{_name(block)}: questions left out: {counts}."))
    refused = (block.get("noise_floor") or {}).get("refused")
    if refused:
        notes.append(Paragraph(f"{_name(block)}: chance is not tested: {refused}."))
    notes.extend(Paragraph(f"{_name(block)}: {text}") for text in _clustering(block))
    bounds = block.get("bounds") or {}
    near, allowed = (bounds.get(f"near_an_edge{end}", 0.0) for end in ("", "_allowed"))
    if near > allowed:
        notes.append(
            Paragraph(
                f"{_name(block)}: {100 * near:.0f} % of the confidences lie within a standard "
                f"error of a bin's edge. The theory of 'predicted' asks for far fewer than "
                f"{100 * allowed:.0f} %, so read it as a rough guide."
            )
        )
    hard = [row for row in block["hardest"] if row["gap"] > 0][:_HARD_SHOWN]
    return [*notes, _hardest(_name(block), hard)] if hard else notes


def _clustering(block: Mapping[str, Any]) -> list[str]:
    """Return how far Sem2-ECE hangs on who clustered and graded."""
    texts = []
    judged = block.get("judging")
    if judged:
        texts.append(
            f"with the errors of classes and grades, as a second judge finds them in "
            f"{judged['questions']:,} questions, Sem1-ECE is {estimate_cell(judged['sem1'])} and "
            f"Sem2-ECE {estimate_cell(judged['sem2'])}."
        )
    value = block["sem2"]["value"] if "sem2" in block else None
    for key, when in (
        ("clustering_shift", "only answers of the same letters were one meaning"),
        ("right_joined_shift", "all answers that are graded right were one meaning"),
    ):
        shift = block.get(key)
        if shift and value is not None:
            other = number_cell(value - shift["sem2"]["value"])
            texts.append(f"if {when}, Sem2-ECE would be {other} instead of {number_cell(value)}.")
    return texts


def _hardest(model: str, hard: Sequence[Mapping[str, Any]]) -> Table:
    """Return the questions by their text, with their id; ids alone where there is no text."""
    rows = tuple(
        (
            _question(row),
            "; ".join(
                f"{cut_text(a['answer'], _LETTERS_OF_ANSWER)} ({a['draws']})"
                for a in row.get("answers", [])
            ),
            number_cell(row["sem1"]),
            number_cell(row["sem2"]),
            number_cell(row["margin"]),
            row["regime"],
        )
        for row in hard
    )
    return Table(
        ("question", "answers (draws)", "Sem1", "Sem2", "margin", "regime"),
        rows,
        title=f"{model}: where the mode is least settled",
        labels=2,
    )


def _question(row: Mapping[str, Any]) -> Cell:
    text, name = row.get("text"), str(row["question_id"])
    if not text:
        return name
    words = f"{cut_text(text, _LETTERS_OF_QUESTION)} ({name})"
    if len(text) <= _LETTERS_OF_QUESTION:
        return words
    return Text(words, f"{name}: {text[:_LETTERS_KEPT]}")
