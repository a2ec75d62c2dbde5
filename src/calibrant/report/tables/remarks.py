"""Below tables: rows that were left out or asked for, and how many tests were corrected for."""

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.findings.documents.entries import Multiplicity
from calibrant.report.blocks import Columns, Paragraph, Table, cut_text, table_of
from calibrant.report.cells import Cell, Text, share_cell


def rows_left_out(document: Mapping[str, Any]) -> list[Paragraph]:
    """Return sentences on the rows that broke a rule, and on models that lost all of theirs.

    Examples
    --------
    >>> print(rows_left_out({"dropped": {"correct_missing": 1200}})[0].text)
    Rows left out: 1,200 correct_missing (the outcome is missing).
    """
    dropped = {rule: count for rule, count in (document.get("dropped") or {}).items() if count}
    if not dropped:
        return []
    counts = [f"{count:,} {rule}{_meaning(rule)}" for rule, count in dropped.items()]
    sentences = [Paragraph(f"Rows left out: {', '.join(counts)}.")]
    if document.get("emptied_models"):
        names = ", ".join(document["emptied_models"])
        sentences.append(Paragraph(f"Left out altogether, since no row is left: {names}."))
    return sentences


def _meaning(rule: str) -> str:
    # Loaded here: the rules bring polars, and most documents name none of them.
    from calibrant.data.rules import RULES

    entry = RULES.get(rule)
    return "" if entry is None else f" ({entry.sentence})"


_OWN_TESTS = 3


def correction_sentence(rule: Multiplicity) -> str:
    """Return what the verdicts of a table rest on, or nothing where one confidence stands alone.

    Examples
    --------
    >>> from calibrant.findings.documents.entries import Family
    >>> print(correction_sentence(Multiplicity(control="holm", alpha=0.05, whole=Family(tests=4))))
    Verdicts rest on three tests of each confidence (calibration, mean gap, separation). All 4 \
tests share one level: the chance of any false verdict is at most 5 %.
    """
    whole, groups = rule.whole.tests, rule.groups.tests
    if whole + groups <= _OWN_TESTS:
        return ""
    number = f"{whole:,} tests"
    if groups:
        number += f" of whole models and {groups:,} of groups"
    return (
        "Verdicts rest on three tests of each confidence (calibration, mean gap, separation). "
        f"All {number} share one level: the chance of any false verdict is at most "
        f"{share_cell(rule.alpha)}."
    )


def pairs_rule(rule: Multiplicity) -> str:
    """Return what the verdicts of a comparison rest on, or nothing where one pair stands alone.

    Examples
    --------
    >>> from calibrant.findings.documents.entries import Family
    >>> print(pairs_rule(Multiplicity(control="holm", alpha=0.02, whole=Family(pairs=26))))
    Which model is better is corrected by Holm's rule for 26 pairs: the chance of any false claim \
is at most 2 %. Other verdicts are of each pair by itself.
    """
    whole, groups = rule.whole.pairs, rule.groups.pairs
    if whole + groups <= 1:
        return ""
    number = f"{whole:,} pairs"
    if groups:
        number += f" of whole methods and, apart from these, {groups:,} pairs of groups"
    return (
        f"Which model is better is corrected by {rule.control.capitalize()}'s rule for {number}: "
        f"the chance of any false claim is at most {share_cell(rule.alpha)}"
        f"{' in each of the two' if groups else ''}. Other verdicts are of each pair by itself."
    )


TITLE = "Wrong with the highest confidence"
_LETTERS = 60
_TEXTS = ("question", "answer", "reference")


def wrong_table(document: Mapping[str, Any]) -> list[Table]:
    """Return the table of the most confidently wrong answers, where a document lists them."""
    rows = document.get("wrong")
    if not rows:
        return []
    texts = [name for name in _TEXTS if any(row.get(name) for row in rows)]
    varied = [name for name in ("model", "method") if len({row[name] for row in rows}) > 1]
    ids = [] if "question" in texts else ["question_id"]
    columns: Columns = {name.replace("_id", ""): _column(name) for name in [*ids, *texts, *varied]}
    says: Columns = {"says": lambda row: share_cell(row["confidence"])}
    return [table_of(rows, {**says, **columns}, TITLE, labels=1 + len(columns))]


def _column(name: str) -> Callable[[Mapping[str, Any]], Cell]:
    return lambda row: _cell(row.get(name))


def row_in_words(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return a row in two lines: what was asked, and what was answered by whom.

    Examples
    --------
    >>> row_in_words({"question": "2+2?", "answer": "5", "reference": "4", "model": "m"})
    ('2+2?', 'answers 5; right: 4 (m)')
    """
    request = row.get("question") or f"question {row['question_id']}"
    texts = {"answers ": row.get("answer"), "right: ": row.get("reference")}
    sentences = "; ".join(f"{words}{text}" for words, text in texts.items() if text)
    return str(request), f"{sentences} ({row['model']})".strip() if sentences else str(row["model"])


def _cell(value: Any) -> Cell:
    whole = "" if value is None else str(value)
    words = cut_text(whole, _LETTERS)
    return words if words == whole else Text(words, whole)
