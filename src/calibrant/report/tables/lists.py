"""What commands say that have no numbers to show: analyses, demos, files, models, servers."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from calibrant.core.hints import Hint
from calibrant.documents import fields
from calibrant.report.blocks import Block, Columns, Paragraph, Table, table_of
from calibrant.report.cells import number_cell, said_cell
from calibrant.report.charts.draw import FORMATS
from calibrant.report.glossary import kind_words


def part_name(part: str) -> str:
    """Return a part with its question.

    Examples
    --------
    >>> part_name("groups")
    'groups (for whom is the confidence wrong?)'
    """
    question = kind_words(part, "asks")
    return part if question is None else f"{part} ({question}?)"


def reason_text(entry: Mapping[str, str]) -> str:
    r"""Return why a part was left out, with what to do about it, on one line.

    Examples
    --------
    >>> reason_text({"part": "groups", "reason": "too few rows\n  -> label more"})
    'too few rows; to have it: label more'
    """
    rule, mark, hint = entry["reason"].partition("->")
    words = " ".join(rule.split())
    return f"{words}; to have it: {' '.join(hint.split())}" if mark else words


def analysis_blocks(document: fields.AnalysisFields) -> list[Block]:
    """Return the parts that were done and the reasons for those that were not."""
    parts: list[Block] = [Paragraph(f"Done: {', '.join(document.done)}.")]
    if document.left_out:
        columns: Columns = {
            "part": lambda e: part_name(e["part"]),
            "why it was left out": reason_text,
        }
        parts.append(table_of(document.left_out, columns, "Left out", labels=2))
    return parts


def demo_blocks(document: fields.DemoFields) -> list[Block]:
    """Return where the report is and what to try next."""
    parts: list[Block] = [Paragraph(text, strong=True) for text in document.findings or []]
    for name, part in document.parts.items():
        what = "recorded answers" if name == "recorded" else "answers of the model on this machine"
        parts.append(Paragraph(f"Page of {what}: {part['report']} ({part['seconds']:.0f} s)"))
    if document["counts"]:
        parts.append(Paragraph(_asked(document)))
    parts.append(Paragraph(f"It holds: {', '.join(document.done)}."))
    for entry in document.left_out:
        parts.append(Paragraph(f"Left out: {part_name(entry['part'])}: {reason_text(entry)}."))
    parts.append(Paragraph("Try next:"))
    parts.extend(Paragraph(f"  {command}") for command in document.next)
    return parts


def _asked(document: fields.DemoFields) -> str:
    new = sum(entry["draws_new"] for entry in document["counts"])
    held = sum(entry["draws_cached"] for entry in document["counts"])
    return f"{new:,} draws were asked for; {held:,} came from the ledger, asked once already."


def init_blocks(document: fields.InitFields) -> list[Paragraph]:
    """Return the files and the next step."""
    return [
        *(Paragraph(f"Written: {name}") for name in document.files),
        *(Paragraph(f"Next: {command}", strong=True) for command in document.next),
    ]


def models_blocks(document: fields.ModelsFields) -> list[Block]:
    """Return the table of models."""
    columns: Columns = {
        "model": "name",
        "fetched": lambda e: "yes" if e["fetched"] else "no",
        "size": lambda e: said_cell(e["bytes"], f"{e['bytes'] / 1e6:.0f} MB"),
        "licence": "licence",
        "about": "about",
    }
    note = f"Kept in {document.folder}; any other GGUF file can be named by its path."
    missing = [entry["name"] for entry in document.results if not entry["fetched"]]
    return [
        table_of(document.results, columns, "Embedded models", note=note, labels=len(columns)),
        *(Paragraph(f"To fetch the weights: calibrant models fetch {name}") for name in missing),
    ]


_PLACES = Hint("A page, Markdown or figures: {html}, {markdown} or {figures}.").shell()


def report_blocks(document: fields.ReportFields) -> list[Block]:
    """Return the paths that were written, or the tables of every document."""
    if document.get("viewed"):
        return [Paragraph(f"viewed: {document['viewed']}")]
    if not document.written:
        return [*_tables(document), Paragraph(_PLACES)]
    pages = [path for path in document.written if Path(path).suffix[1:] not in FORMATS]
    folders = Counter(str(Path(path).parent) for path in document.written if path not in pages)
    return [
        *(Paragraph(f"written: {path}") for path in pages),
        *(
            Paragraph(f"written: {folder}: {count} files ({', '.join(FORMATS)})")
            for folder, count in folders.items()
        ),
    ]


def _tables(document: fields.ReportFields) -> list[Block]:
    # Loaded here: the package finds this module by name.
    from calibrant.report.tables import document_blocks

    return [block for part in document.get("documents", ()) for block in document_blocks(part)]


def serve_blocks(document: fields.ServeFields) -> list[Block]:
    """Return questions, cost, and who answered."""
    parts: list[Block] = []
    for totals in document.results:
        count, cost = totals["questions"], totals["cost"]
        parts.append(Paragraph(f"Served {count:,} questions for {cost:.4g} in all.", strong=True))
        rows = tuple((name, number_cell(n)) for name, n in totals["answered_by"].items())
        if rows:
            parts.append(Table(("answered by", "questions"), rows))
    return parts
