"""Tables as people have them: read right, asked about well, or refused, and never wrong silently.

The tables lie outside of the project; `truth.csv` says what a person reads in each of them.
"""

import csv
import re
import shlex

import pytest

from calibrant import audit, read
from calibrant.core.errors import InputError, QuestionError
from support import call, real_data

pytestmark = pytest.mark.data
# Whoever labelled a table counts a missing answer as wrong, or leaves it out: both are right.
NEAR = 0.015
KNOWN_STOPS = {"d_btufts.json": "a confidence inside of a text is not looked for"}


@pytest.fixture(scope="module")
def folder():
    return real_data() / "tables"


def truth():
    with (real_data() / "tables" / "truth.csv").open() as file:
        return list(csv.DictReader(file))


def accepted(row):
    """Return the pairs of share right and mean confidence that a person may read."""
    others = row["other accepted (accuracy/mean confidence)"].split(";")
    pairs = [(row["accuracy"], row["mean_confidence"])]
    pairs += [tuple(text.strip().split("/")) for text in others if text.strip()]
    return [(float(right), float(said) if said else None) for right, said in pairs if right]


def found(document):
    """Return rows, share right and mean confidence of each model and method.

    An answer without a confidence counts for the accuracy, and not beside the mean confidence.
    """
    numbers = []
    for result in (r for r in document["results"] if not r["group"]):
        known = {name: (x or {}).get("value") for name, x in result["metrics"].items()}
        said, right = known.get("mean_confidence"), known["accuracy"]
        if said is not None and known.get("confidence_gap") is not None:
            right = said - known["confidence_gap"]
        numbers.append((result["n"], right, said))
    return numbers


def is_right(document, row):
    numbers = found(document)
    whole = sum(n for n, _, _ in numbers)
    pooled = [(whole, sum(n * y for n, y, _ in numbers) / whole, None)]
    if all(said is not None for _, _, said in numbers):
        pooled = [(whole, pooled[0][1], sum(n * p for n, _, p in numbers) / whole)]
    return any(all(fits(number, accepted(row)) for number in some) for some in (numbers, pooled))


def fits(number, pairs):
    _, right, said = number
    return any(
        abs(right - y) < NEAR and (p is None or (said is not None and abs(said - p) < NEAR))
        for y, p in pairs
    )


def outcome_of(path, row):
    """Return how a table fares: `right`, `asked`, `refused` or `wrong`, and why."""
    try:
        document = audit(path, resamples=50)
    except QuestionError as question:
        followed = audit(path, resamples=50, **question.readings[0].options)
        good = row["kind"] != "refuse" and is_right(followed, row)
        return "asked" if good else "wrong", f"{question}\n{found(followed)}"
    except InputError as error:
        return "refused", str(error)
    good = row["kind"] != "refuse" and is_right(document, row)
    return "right" if good else "wrong", f"{found(document)}"


def fares(folder):
    return {row["file"]: (row, *outcome_of(folder / row["file"], row)) for row in truth()}


def test_no_table_is_wrong_silently_and_hardly_one_stops(folder):
    fared = fares(folder)
    wrong = {name: why for name, (_, kind, why) in fared.items() if kind == "wrong"}
    assert not wrong
    stopped = {
        name
        for name, (row, kind, _) in fared.items()
        if kind == "refused" and row["kind"] != "refuse"
    }
    assert stopped == {*KNOWN_STOPS}
    kinds = [kind for _, kind, _ in fared.values()]
    assert (kinds.count("right"), kinds.count("asked"), kinds.count("refused")) == (17, 16, 14)


@pytest.mark.parametrize("name", ["s_1to5.csv", "s_helpdesk.csv", "d_subclaims.jsonl", "tiny.csv"])
def test_what_is_printed_is_one_command_that_works(name, folder):
    result = call("audit", folder / name)
    assert result.returncode == 2
    lines = [line for line in result.stderr.splitlines() if line.startswith("calibrant audit ")]
    assert len(lines) == 1
    assert call(*shlex.split(lines[0])[1:]).returncode == 0


@pytest.mark.parametrize("name", ["s_helpdesk.csv", "s_judge_export.csv", "d_itsmejul.csv"])
def test_whichever_reading_is_chosen_gives_the_numbers_it_states(name, folder):
    with pytest.raises(QuestionError) as question:
        audit(folder / name, resamples=20)
    for way in question.value.readings:
        stated = re.search(r"is right (\d+) ?%", way.text)
        ((_, right, _),) = found(audit(folder / name, resamples=20, **way.options))
        assert right == pytest.approx(int(stated[1]) / 100, abs=0.0051)


def test_a_reading_says_what_it_is_and_every_verb_takes_it(folder):
    reading = read(folder / "s_iserror.csv")
    assert reading.columns == {"confidence": "confidence", "correct": "is_error"}
    assert reading.options["right"] == "0"
    assert "1 is read as wrong" in reading.notes[0]
    value = audit(reading, resamples=50)["results"][0]["metrics"]["accuracy"]["value"]
    assert value == pytest.approx(0.8944, abs=1e-4)


def test_what_stands_around_a_table_is_told(folder):
    notes = read(folder / "s_excel_title.xlsx").notes
    assert notes == ("Left out: 1 line above the header.", "Left out: 1 row of totals.")
