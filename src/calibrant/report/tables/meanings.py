"""Meanings and grades of answers: who joined and graded them, and calibration by meaning."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from calibrant.findings.claims import count, points
from calibrant.findings.claims.sem_ece import ROLES, judge_limit_warning, sample_warnings
from calibrant.findings.documents.audits import HardQuestion, SemanticEntry
from calibrant.findings.documents.fields import GradeFields, SemanticsFields
from calibrant.findings.documents.plans import MeaningPlanEntry
from calibrant.report import cells
from calibrant.report.cells import Block, Columns, Paragraph, Table, cut_text, table_of

_EXAMPLES = 5
_LETTERS = 60


def blocks(document: SemanticsFields) -> Iterator[Block]:
    """Yield the blocks of a ``calibrant.semantics/1`` document."""
    joined, graded = document.clustering, document.grading
    how = f"by '{joined}'" if joined == graded else f"by '{joined}' and '{graded}'"
    embedder = document["embedder"]
    yield Paragraph(
        f"{sum(document.graders.values()):,} answers were joined into meanings and graded {how}"
        f"{f', with embeddings by {embedder}' if embedder else ''}.",
        strong=True,
    )
    verdicts = "No judge was asked: rules decided, or left the grade open."
    if document.judge is not None:
        verdicts = (
            f"Judge {document.judge}: {document.judge_calls:,} calls, "
            f"{document['judge_calls_refused']:,} refused by the cap, "
            f"{document['judge_replies_unreadable']:,} replies unreadable."
        )
    yield Paragraph(verdicts)
    for title, first, counts in (
        ("Who graded", "grader", document.graders),
        ("Who joined answers into meanings", "rule or judge", document.joined_by),
        ("Why a grade is what it is", "reason", document.reasons),
    ):
        if counts:
            total = sum(counts.values())
            rows = tuple(
                (str(name), cells.number_cell(n), cells.share_cell(n / total, digits=1))
                for name, n in counts.items()
            )
            yield Table((first, "answers", "share"), rows, title)
    yield from _doubts(document)
    if steps := document.normalisation:
        yield Paragraph(f"Texts were compared after: {', '.join(steps)}.")


def _doubts(document: SemanticsFields) -> Iterator[Block]:
    """Say what a reader should look at: contradictions, mixed meanings, masked instructions."""
    doubts = {
        "conflicts": "Pairs of answers that different steps both joined and kept apart",
        "mixed_classes": "Meanings that hold both right and wrong answers",
        "instructions_masked": "Answers that held instructions to a judge, which were masked",
    }
    for name, words in doubts.items():
        if document[name]:
            yield Paragraph(f"{words}: {document[name]:,}.")
    if document["judge_asymmetric"]:
        yield Paragraph("The judge's verdict depended on the order for some pairs.")
    if document["texts_mended"]:
        corrected = ", ".join(
            f"{name} {count:,}" for name, count in document["texts_mended"].items()
        )
        yield Paragraph(f"Texts that were put right before reading: {corrected}.")
    examples = {
        "conflict_examples": "joined and kept apart",
        "judge_asymmetric": "order matters",
        "instruction_examples": "instruction masked",
    }
    rows = tuple(
        (kind, _cut(*([example] if isinstance(example, str) else example)))
        for name, kind in examples.items()
        for example in document[name][:_EXAMPLES]
    )
    if rows:
        yield Table(("what", "example"), rows, "Examples", labels=2)


def _cut(*texts: object) -> str:
    """Return texts on one line, each with as many letters as fit."""
    whole = map(str, texts)
    return " | ".join(text if len(text) <= _LETTERS else text[:_LETTERS] + " ..." for text in whole)


def grade_blocks(document: GradeFields) -> Iterator[Block]:
    """Yield the grades by model, the columns used, the methods scored and what was written."""
    results, samples = document.results, document.samples
    questions = max((entry["questions"] for entry in results), default=0)
    draws = sum(entry["draws"] for entry in results)
    scored = [entry["method"] for entry in document.methods if entry["available"]]
    yield Paragraph(
        f"Graded {count(draws, 'answer')} to {count(questions, 'question')}; "
        f"{len(scored)} confidence methods are scored.",
        strong=True,
    )
    if paths := [PurePath(path) for path in document.written]:
        names = ", ".join(path.stem for path in paths)
        yield Paragraph(f"Written to {paths[0].parent}: {names}.", strong=True)
    # What to know before the grades: a judge that was stopped, guessed columns, notes.
    for warning in (*judge_limit_warning(document.semantics), *sample_warnings(samples)):
        yield Paragraph(warning["text"], strong=True)
    if document.why:
        yield _reasons(document)
    numbers = ("model", "questions", "draws", "classes", "right", "wrong")
    columns: Columns = {
        **{name: name for name in numbers},
        "no grade": "ungraded",
        "no answer": lambda e: cells.number_cell(sum(e["without_answer"].values())),
        "several right": "several_right",
    }
    yield table_of(results, columns, "Classes and grades")
    yield Paragraph(f"Methods: {', '.join(scored)}.")
    if samples["columns"]:
        used = "; ".join(
            f"{ROLES[role]}: {name}{' (guessed)' if role in samples['guessed'] else ''}"
            for role, name in samples["columns"].items()
        )
        yield Paragraph(f"Columns used ({samples['shape']}): {used}.")


def _reasons(document: GradeFields) -> Table:
    """Return why the answers to one question are graded so."""
    graded = {True: "right", False: "wrong", None: "no grade"}
    return table_of(
        document.why or (),
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


# -- Sem-ECE ----------------------------------------------------------------------------------

_HARD_SHOWN = 5
_LETTERS_OF_ANSWER = 40
_LETTERS_OF_QUESTION = 80
_LETTERS_KEPT = 2_000


def semantic_tables(blocks: Sequence[SemanticEntry]) -> Iterator[Block]:
    """Yield Sem1 and Sem2 per model, what the theory predicts, and the hardest questions."""
    columns: Columns = {
        "model": "name",
        "questions x draws": lambda e: cells.said_cell(e.questions, f"{e.questions:,} x {e.draws}"),
        "accuracy": "accuracy",
        "Sem1-ECE": "sem1",
        "Sem2-ECE": "sem2",
        "noise floor": lambda e: cells.number_cell(
            e.noise_floor.sem2 and e.noise_floor.sem2.floor, missing="not tested"
        ),
        "Sem1 - Sem2": lambda e: cells.estimate_cell(e.gap["ece"]),
        "confidence gap": lambda e: cells.estimate_cell(e.gap["confidence"]),
        "predicted": "predicted_gap",
    }
    note = (
        "Sem1-ECE and Sem2-ECE measure this number of draws. Sem1's confidence is too high, Sem2's "
        "too low. The error with unlimited draws may lie outside both. Noise floor: the Sem2-ECE "
        "that chance alone would show."
    )
    if blocks and blocks[0].label == "pool":
        note += " Sem2 is graded by the mode of all draws, as in the authors' code."
    yield table_of(blocks, columns, "Calibration by meaning (Sem-ECE)", note=note)
    for block in blocks:
        yield from _notes(block)


def _notes(block: SemanticEntry) -> Iterator[Block]:
    for text in _remarks(block):
        yield Paragraph(f"{block.name}: {text}")
    if hard := [row for row in block.hardest if row.gap > 0][:_HARD_SHOWN]:
        columns: Columns = {
            "question": _question,
            "answers (draws)": _answers,
            "Sem1": "sem1",
            "Sem2": "sem2",
            "margin": "margin",
            "regime": "regime",
        }
        yield table_of(hard, columns, f"{block.name}: where the mode is least settled", labels=2)


def _remarks(block: SemanticEntry) -> Iterator[str]:
    """Say what was left out, and how far Sem2-ECE hangs on who clustered and graded."""
    if block.left_out:
        counts = ", ".join(f"{reason} {n:,}" for reason, n in block.left_out.items())
        yield f"questions left out: {counts}."
    if block.noise_floor.refused:
        yield f"chance is not tested: {block.noise_floor.refused}."
    if verdicts := block.judging:
        yield (
            "with the errors of classes and grades, as a second judge finds them in "
            f"{count(verdicts.questions, 'question')}, Sem1-ECE is "
            f"{cells.estimate_cell(verdicts.sem1)} and "
            f"Sem2-ECE {cells.estimate_cell(verdicts.sem2)}."
        )
    value = block.sem2.value
    for shift, when in (
        (block.clustering_shift, "only answers of the same letters were one meaning"),
        (block.right_joined_shift, "all answers that are graded right were one meaning"),
    ):
        if shift and value is not None and shift.sem2.value is not None:
            peer = cells.number_cell(value - shift.sem2.value)
            yield f"if {when}, Sem2-ECE would be {peer} instead of {cells.number_cell(value)}."
    near, allowed = (block.bounds.get(f"near_an_edge{end}") or 0.0 for end in ("", "_allowed"))
    if near > allowed:
        yield (
            f"{100 * near:.0f} % of the confidences lie within a standard error of a bin's edge. "
            f"The theory of 'predicted' asks for far fewer than {100 * allowed:.0f} %, so read it "
            "as a rough guide."
        )


def _answers(row: HardQuestion) -> str:
    return "; ".join(f"{cut_text(a.answer, _LETTERS_OF_ANSWER)} ({a.draws})" for a in row.answers)


def _question(row: HardQuestion) -> cells.Cell:
    """Return the text of a question with its id; the id alone where there is no text."""
    text, name = row.text, str(row.question_id)
    if not text:
        return name
    words = f"{cut_text(text, _LETTERS_OF_QUESTION)} ({name})"
    if len(text) <= _LETTERS_OF_QUESTION:
        return words
    return cells.Text(words, f"{name}: {text[:_LETTERS_KEPT]}")


# -- plans -------------------------------------------------------------------------------------


def model_difference(pair: MeaningPlanEntry) -> str:
    """Say whether two models differ by meaning, and how many questions show it."""
    value, low, high = (getattr(pair.difference, name) or 0.0 for name in ("value", "low", "high"))
    at = next(step["questions"] for step in pair.needed if step["draws"] == pair.draws)
    needed = "no number of questions" if at is None else f"about {count(at, 'question')}"
    both = f"{pair.model_a} and {pair.model_b}"
    begin = f"{both} differ by meaning" if low * high > 0 else f"Undecided whether {both} differ"
    return (
        f"{begin}: the gap of the first is {100 * value:+.1f} points from that of the second (95 % "
        f"interval {100 * low:+.1f} to {100 * high:+.1f}). To show a difference of "
        f"{points(pair.aim)} takes {needed} with {count(pair.draws, 'draw')}."
    )


def questions_by_draws(pairs: Sequence[MeaningPlanEntry]) -> Table:
    """Return the questions that each number of draws takes."""
    first, last = "draws", "questions"
    rows: list[tuple[cells.Cell, ...]] = [
        (pair.model_a, pair.model_b, cells.number_cell(step[first]), cells.number_cell(step[last]))
        for pair in pairs
        for step in pair.needed
    ]
    note = (
        "About the difference as so many draws show it. With unlimited draws it is another one. "
        "The gap is the share of the leading meaning less the share of questions it is right on."
    )
    columns = ("first", "second", first, last)
    return Table(columns, tuple(rows), "Questions that tell models apart", note, labels=2)
