"""Where nothing is left to label, the message says what to type."""

import pytest

from calibrant.core import InputError
from calibrant.core.hints import Hint
from calibrant.verbs.label import label_next


def test_a_labelled_table_leads_to_its_audit(tmp_path):
    table = tmp_path / "scores.csv"
    table.write_text("question_id,confidence,correct\n" + "".join(f"{i},0.8,1\n" for i in range(9)))
    with pytest.raises(InputError, match="every item of the table is labelled") as told:
        label_next(table, tmp_path / "batch.csv")
    assert isinstance(told.value.hint, Hint)
    assert told.value.hint.shell() == "see what the labels show with calibrant audit TABLE"
