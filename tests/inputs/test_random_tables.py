"""No random table is read wrong in silence, whatever its columns are called."""

from tests.inputs.random_tables import count


def test_no_random_table_is_wrong_silently():
    kinds, bad = count(120)
    assert not kinds["WRONG SILENTLY"], bad
    # Half of the names are neutral or reversed on purpose: these are asked about.
    assert kinds["right at once"] + kinds["good question"] >= 66
    assert kinds["bad question"] + kinds["refused wrongly"] <= 8
