"""Meanings and grades of answers: who joined and graded them, and calibration by meaning."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from calibrant.claims.sem_ece import ROLES, judge_limit_warning, sample_warnings
from calibrant.documents.audits import HardQuestion, SemanticEntry
from calibrant.report import cells
from calibrant.report.blocks import Block, Columns, Paragraph, Table, cut_text, table_of

_EXAMPLES = 5
_LETTERS = 60


def blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of a ``calibrant.semantics/1`` document."""
    parts: list[Block] = [Paragraph(_verdict(document), strong=True), _judge(document)]
    parts += [
        _counts(title, first, document[name])
        for name, title, first in (
            ("graders", "Who graded", "grader"),
            ("joined_by", "Who joined answers into meanings", "rule or judge"),
            ("reasons", "Why a grade is what it is", "reason"),
        )
        if document.get(name)
    ]
    parts += _doubts(document)
    if document["normalisation"]:
        steps = ", ".join(document["normalisation"])
        parts.append(Paragraph(f"Texts were compared after: {steps}."))
    return parts


def _verdict(document: Mapping[str, Any]) -> str:
    total = sum(document["graders"].values())
    joined, graded = document["clustering"], document["grading"]
    how = f"by '{joined}'" if joined == graded else f"by '{joined}' and '{graded}'"
    text = f"{total:,} answers were joined into meanings and graded {how}"
    if document["embedder"]:
        text += f", with embeddings by {document['embedder']}"
    return text + "."


def _judge(document: Mapping[str, Any]) -> Paragraph:
    if document["judge"] is None:
        return Paragraph("No judge was asked: rules decided, or left the grade open.")
    return Paragraph(
        f"Judge {document['judge']}: {document['judge_calls']:,} calls, "
        f"{document['judge_calls_refused']:,} refused by the cap, "
        f"{document['judge_replies_unreadable']:,} replies unreadable."
    )


def _counts(title: str, first: str, counts: Mapping[str, int]) -> Table:
    total = sum(counts.values())
    columns: Columns = {
        first: lambda e: str(e[0]),
        "answers": lambda e: cells.number_cell(e[1]),
        "share": lambda e: cells.share_cell(e[1] / total, digits=1),
    }
    return table_of(counts.items(), columns, title)


def _doubts(document: Mapping[str, Any]) -> list[Block]:
    """Say what a reader should look at: contradictions, mixed meanings, masked instructions."""
    parts: list[Block] = []
    doubts = (
        ("conflicts", "Pairs of answers that different steps both joined and kept apart"),
        ("mixed_classes", "Meanings that hold both right and wrong answers"),
        ("instructions_masked", "Answers that held instructions to a judge, which were masked"),
    )
    for name, words in doubts:
        if document[name]:
            parts.append(Paragraph(f"{words}: {document[name]:,}."))
    if document["judge_asymmetric"]:
        parts.append(Paragraph("The judge's verdict depended on the order for some pairs."))
    if document["texts_mended"]:
        mended = ", ".join(f"{name} {count:,}" for name, count in document["texts_mended"].items())
        parts.append(Paragraph(f"Texts that were mended before reading: {mended}."))
    examples = [
        (kind, _cut(example))
        for name, kind in (
            ("conflict_examples", "joined and kept apart"),
            ("judge_asymmetric", "order matters"),
            ("instruction_examples", "instruction masked"),
        )
        for example in document[name][:_EXAMPLES]
    ]
    if examples:
        parts.append(Table(("what", "example"), tuple(examples), title="Examples", labels=2))
    return parts


def _cut(example: Any) -> str:
    texts = [example] if isinstance(example, str) else [str(text) for text in example]
    return " | ".join(text if len(text) <= _LETTERS else text[:_LETTERS] + " ..." for text in texts)


def grade_blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the grades by model, the columns used, the methods scored and what was written."""
    results = document["results"]
    questions = max((entry["questions"] for entry in results), default=0)
    draws = sum(entry["draws"] for entry in results)
    scored = [entry["method"] for entry in document["methods"] if entry["available"]]
    parts: list[Block] = [
        Paragraph(
            f"Graded {draws:,} answers to {questions:,} questions; "
            f"{len(scored)} confidence methods are scored.",
            strong=True,
        ),
        *_written(document["written"]),
        *(Paragraph(found["text"], strong=True) for found in _minded(document)),
        *([_reasons(document["why"])] if document.get("why") else []),
        _grades(document),
        Paragraph(f"Methods: {', '.join(scored)}."),
    ]
    told = _columns(document["samples"])
    parts += [Paragraph(told)] if told else []
    return parts


def _minded(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what to know before the grades: a judge that was stopped, guessed columns, notes."""
    return [*judge_limit_warning(document["semantics"]), *sample_warnings(document["samples"])]


def _written(paths: Sequence[str]) -> list[Paragraph]:
    if not paths:
        return []
    folder = str(PurePath(paths[0]).parent)
    names = ", ".join(PurePath(path).stem for path in paths)
    return [Paragraph(f"Written to {folder}: {names}.", strong=True)]


def _grades(document: Mapping[str, Any]) -> Table:
    names = ("model", "questions", "draws", "classes", "right", "wrong")
    return table_of(
        document["results"],
        {
            **{name: name for name in names},
            "no grade": "ungraded",
            "no answer": lambda e: cells.number_cell(sum(e["without_answer"].values())),
            "several right": "several_right",
        },
        "Classes and grades",
    )


def _reasons(why: Sequence[Mapping[str, Any]]) -> Table:
    """Return why the answers to one question are graded so."""
    graded = {True: "right", False: "wrong", None: "no grade"}
    return table_of(
        why,
        {
            "answer": lambda e: _cut(e["answer"]),
            "graded": lambda e: graded[e["correct"]] + ", doubtful" * e["doubtful"],
            "by": lambda e: f"{e['rule']}: {e['known_as'] or ' '.join(e['shared']) or 'no word'}",
            "reference": lambda e: _cut(e["reference"]),
            "chance": "chance",
            "model": "model",
        },
        "Why the answers are graded so",
        note="By: the rule, and what answer and reference have in common. Chance: how likely "
        "people would call the answer right.",
    )


def _columns(samples: Mapping[str, Any]) -> str:
    if not samples["columns"]:
        return ""
    used = "; ".join(
        f"{ROLES[role]}: {name}{' (guessed)' if role in samples['guessed'] else ''}"
        for role, name in samples["columns"].items()
    )
    return f"Columns used ({samples['shape']}): {used}."


# -- Sem-ECE ----------------------------------------------------------------------------------

_HARD_SHOWN = 5
_LETTERS_OF_ANSWER = 40
_LETTERS_OF_QUESTION = 80
_LETTERS_KEPT = 2_000


def semantic_tables(blocks: Sequence[SemanticEntry]) -> list[Block]:
    """Return Sem1 and Sem2 per model, what the theory predicts, and the hardest questions."""
    parts: list[Block] = [
        table_of(
            blocks,
            {
                "model": "name",
                "questions x draws": lambda e: cells.said_cell(
                    e.questions, f"{e.questions:,} x {e.draws}"
                ),
                "accuracy": "accuracy",
                "Sem1-ECE": "sem1",
                "Sem2-ECE": "sem2",
                "noise floor": lambda e: cells.number_cell(
                    e.noise_floor.sem2 and e.noise_floor.sem2.floor, missing="not tested"
                ),
                "Sem1 - Sem2": lambda e: cells.estimate_cell(e.gap["ece"]),
                "confidence gap": lambda e: cells.estimate_cell(e.gap["confidence"]),
                "predicted": "predicted_gap",
            },
            "Calibration by meaning (Sem-ECE)",
            note="Sem1-ECE and Sem2-ECE measure this number of draws. Sem1's confidence is too "
            "high, Sem2's too low. The error with unlimited draws may lie outside both. Noise "
            "floor: the Sem2-ECE that chance alone would show.",
        )
    ]
    for block in blocks:
        parts.extend(_notes(block))
    return parts


def _notes(block: SemanticEntry) -> list[Block]:
    texts = []
    if block.left_out:
        counts = ", ".join(f"{reason} {n:,}" for reason, n in block.left_out.items())
        texts.append(f"questions left out: {counts}.")
    if block.noise_floor.refused:
        texts.append(f"chance is not tested: {block.noise_floor.refused}.")
    texts += _clustering(block)
    near, allowed = (block.bounds.get(f"near_an_edge{end}") or 0.0 for end in ("", "_allowed"))
    if near > allowed:
        texts.append(
            f"{100 * near:.0f} % of the confidences lie within a standard error of a bin's edge. "
            f"The theory of 'predicted' asks for far fewer than {100 * allowed:.0f} %, so read it "
            "as a rough guide."
        )
    hard = [row for row in block.hardest if row.gap > 0][:_HARD_SHOWN]
    notes = [Paragraph(f"{block.name}: {text}") for text in texts]
    return [*notes, *([_hardest(block.name, hard)] if hard else [])]


def _clustering(block: SemanticEntry) -> list[str]:
    """Return how far Sem2-ECE hangs on who clustered and graded."""
    texts = []
    if judged := block.judging:
        texts.append(
            f"with the errors of classes and grades, as a second judge finds them in "
            f"{judged.questions:,} questions, Sem1-ECE is {cells.estimate_cell(judged.sem1)} and "
            f"Sem2-ECE {cells.estimate_cell(judged.sem2)}."
        )
    value = block.sem2.value
    for shift, when in (
        (block.clustering_shift, "only answers of the same letters were one meaning"),
        (block.right_joined_shift, "all answers that are graded right were one meaning"),
    ):
        if shift and value is not None and shift.sem2.value is not None:
            other = cells.number_cell(value - shift.sem2.value)
            texts.append(
                f"if {when}, Sem2-ECE would be {other} instead of {cells.number_cell(value)}."
            )
    return texts


def _hardest(model: str, hard: Sequence[HardQuestion]) -> Table:
    """Return the questions by their text, with their id; ids alone where there is no text."""

    def answers(row: HardQuestion) -> str:
        return "; ".join(
            f"{cut_text(a.answer, _LETTERS_OF_ANSWER)} ({a.draws})" for a in row.answers
        )

    return table_of(
        hard,
        {
            "question": _question,
            "answers (draws)": answers,
            "Sem1": "sem1",
            "Sem2": "sem2",
            "margin": "margin",
            "regime": "regime",
        },
        f"{model}: where the mode is least settled",
        labels=2,
    )


def _question(row: HardQuestion) -> cells.Cell:
    text, name = row.text, str(row.question_id)
    if not text:
        return name
    words = f"{cut_text(text, _LETTERS_OF_QUESTION)} ({name})"
    if len(text) <= _LETTERS_OF_QUESTION:
        return words
    return cells.Text(words, f"{name}: {text[:_LETTERS_KEPT]}")
