"""Where nothing is left to label, the message says what to type."""

import numpy as np
import pytest

from calibrant.core import InputError
from calibrant.core.hints import Hint
from calibrant.report.cells import Table
from calibrant.report.tables import document_blocks
from calibrant.verbs.label import label_next, label_status


def test_a_labelled_table_leads_to_its_audit(tmp_path):
    table = tmp_path / "scores.csv"
    table.write_text("question_id,confidence,correct\n" + "".join(f"{i},0.8,1\n" for i in range(9)))
    with pytest.raises(InputError, match="every item of the table is labelled") as told:
        label_next(table, tmp_path / "batch.csv")
    assert isinstance(told.value.hint, Hint)
    assert told.value.hint.shell() == "see what the labels show with calibrant audit TABLE"
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"]


def test_a_batch_that_cannot_be_written_draws_nothing(tmp_path):
    table = tmp_path / "scores.csv"
    table.write_text("question_id,confidence,correct\n" + "".join(f"{i},0.8,\n" for i in range(9)))
    with pytest.raises(InputError, match="a table is written as"):
        label_next(table, tmp_path / "batch.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"]


def test_a_store_with_labels_stays_when_a_later_batch_fails(tmp_path):
    table = tmp_path / "scores.csv"
    table.write_text("question_id,confidence,correct\n" + "".join(f"{i},0.8,\n" for i in range(9)))
    label_next(table, tmp_path / "batch.csv", size=9)
    with pytest.raises(InputError, match="still has 9 open items"):
        label_next(table, tmp_path / "batch.csv", size=9)
    assert len(list(tmp_path.glob("*sqlite"))) == 1


@pytest.mark.parametrize(("outcome", "share"), [(0, "0 %"), (1, "100 %")])
def test_labels_of_one_outcome_have_a_share_that_a_share_can_have(outcome, share):
    rng = np.random.default_rng(7)
    table = {"confidence": rng.beta(4, 2, 60), "correct": np.full(60, outcome)}
    document = label_status(table, existing="random")
    accuracy = document["results"][0]["accuracy"]
    assert 0 <= accuracy["low"] <= accuracy["value"] <= accuracy["high"] <= 1
    assert (
        f"Right in {share} of all 60 answers: every one has a label"
        in document["claims"][0]["text"]
    )
    (row,) = next(block for block in document_blocks(document) if isinstance(block, Table)).rows
    assert str(row[2]) == f"{100 * outcome}.0 %"
    assert str(row[-1]) == "all labelled"


def test_a_labelled_table_is_on_one_side_of_every_threshold():
    p = np.random.default_rng(3).uniform(0.5, 1.0, 300).round(2)
    table = {"confidence": p, "correct": (np.random.default_rng(4).random(300) < p - 0.05) * 1}
    error = label_status(table)["results"][0]["ece"]["value"]
    for threshold, side in ((error - 0.01, "above"), (error + 0.01, "below")):
        document = label_status(table, threshold=threshold)
        assert document["claims"][0]["outcome"] == "shown"
        assert f"error is {side}" in document["claims"][0]["text"]
