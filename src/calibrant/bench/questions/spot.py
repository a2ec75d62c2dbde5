"""A page of sampled questions for a person to tick, and what the ticks say."""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from math import isnan
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.answers.semantics.grading.agreement import cohen_kappa
from calibrant.bench.questions.question import BenchQuestion
from calibrant.core.errors import InputError
from calibrant.core.rng import named_stream
from calibrant.data import read_table
from calibrant.data.tables import neutral_cells

_COLUMNS = ("question_id", "text", "right_answers", "verdict")
_RIGHT = frozenset({"right", "r", "ok", "yes", "1", "true"})
_WRONG = frozenset({"wrong", "w", "no", "0", "false", "x"})


def spot_questions(
    questions: Sequence[BenchQuestion], number: int, *, seed: int = 0
) -> list[BenchQuestion]:
    """Return a simple random sample without replacement, in the order of the benchmark."""
    rng = named_stream(seed, "spot check")
    size = min(number, len(questions))
    choice = rng.choice(len(questions), size=size, replace=False)
    return [questions[index] for index in sorted(choice)]


def write_spot_check(
    questions: Sequence[BenchQuestion], path: str | Path, *, number: int = 30, seed: int = 0
) -> int:
    """Write a sample for a person to judge: a table (.csv) to fill in, or a page (.html).

    Returns the number of questions written.
    """
    sample = spot_questions(questions, number, seed=seed)
    target = Path(path)
    text = spot_page(sample) if target.suffix == ".html" else _spot_table(sample)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return len(sample)


def _spot_table(sample: Sequence[BenchQuestion]) -> str:
    rows = [
        (q.question_id, q.text, "; ".join(names[0] for names in q.references), "") for q in sample
    ]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")
    # The ids are read back.
    return neutral_cells(frame, keep=("question_id",)).write_csv()


def read_ticks(source: Any) -> dict[str, bool]:
    """Read a filled-in table: question_id, and a verdict that says right or wrong."""
    frame = read_table(source)
    if not {"question_id", "verdict"} <= set(frame.columns):
        raise InputError(
            f"a spot check has columns question_id and verdict, got {', '.join(frame.columns)}",
            source=str(source),
        )
    verdicts = {}
    for row, record in enumerate(frame.iter_rows(named=True), start=1):
        # A column of 0 and 1 is read as numbers, and 0 is a verdict.
        word = "" if record["verdict"] is None else str(record["verdict"]).strip().lower()
        if not word:
            continue
        if word not in _RIGHT | _WRONG:
            raise InputError(
                f"a verdict is right or wrong, got {record['verdict']!r}",
                source=str(source),
                row=row,
            )
        verdicts[str(record["question_id"])] = word in _RIGHT
    return verdicts


def spot_check(
    first: Mapping[str, bool], second: Mapping[str, bool] | None = None
) -> dict[str, Any]:
    """Return the share found wrong with its interval, and the agreement of two people.

    Parameters
    ----------
    first, second
        Verdicts of one person, and of another on the same questions. The interval is the exact
        one (Clopper-Pearson) of 95 %.

    Examples
    --------
    >>> verdicts = {f"q{i}": i > 0 for i in range(30)}
    >>> found = spot_check(verdicts)
    >>> found["wrong"]["n"], round(found["wrong"]["value"], 3), round(found["wrong"]["high"], 3)
    (30, 0.033, 0.172)
    """
    if not first:
        raise InputError("no question has a verdict yet", hint="write right or wrong in each row")
    wrong = sum(not verdict for verdict in first.values())
    # Loaded here: it takes a second.
    from scipy.stats import binomtest

    interval = binomtest(wrong, len(first)).proportion_ci(0.95, method="exact")
    document: dict[str, Any] = {
        "wrong": {
            "value": wrong / len(first),
            "low": float(interval.low),
            "high": float(interval.high),
            "n": len(first),
        },
        "found_wrong": sorted(name for name, verdict in first.items() if not verdict),
    }
    if second is not None:
        document["agreement"] = _agreement(first, second)
    return document


def _agreement(first: Mapping[str, bool], second: Mapping[str, bool]) -> dict[str, Any]:
    """Return the share of equal verdicts and Cohen's kappa; no kappa where nobody varies."""
    pairs = Counter((first[i], second[i]) for i in first.keys() & second.keys())
    if not pairs:
        raise InputError("the two people judged no question in common")
    table = [[pairs[x, y] for y in (True, False)] for x in (True, False)]
    kappa = cohen_kappa(table)
    equal = (table[0][0] + table[1][1]) / pairs.total()
    return {"questions": pairs.total(), "equal": equal, "kappa": None if isnan(kappa) else kappa}


def spot_page(sample: Sequence[BenchQuestion]) -> str:
    """Return a page on which a person ticks right or wrong, and saves the table."""
    rows = "".join(
        f'<li data-id="{html.escape(question.question_id)}"><p>{html.escape(question.text)}</p>'
        f"<ul>{''.join(f'<li>{html.escape(names[0])}</li>' for names in question.references)}</ul>"
        f"<p class=s>{html.escape(question.source)} {html.escape(question.date)}</p>"
        f'<label><input type=radio name="{place}" value=right> right: exactly these</label> '
        f'<label><input type=radio name="{place}" value=wrong> wrong: one is false or missing'
        "</label></li>"
        for place, question in enumerate(sample)
    )
    page = (resources.files(__package__ or "") / "data" / "spot.html").read_text(encoding="utf-8")
    return page.replace("ROWS", rows).replace("NUMBER", str(len(sample)))
