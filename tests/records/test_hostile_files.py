"""Files and folders that are too wide, too long or closed: bounded work, and one plain message."""

import os

import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data import formats
from calibrant.data.text_tables import scan_text_table
from calibrant.verbs.opening.open_input import logs_in


def written(path, names):
    rows = [f"0.{500 + k},{k % 2}," + ",".join("1" * (len(names) - 2)) for k in range(40)]
    path.write_text("\n".join([",".join(names), *rows]) + "\n")
    return path


def test_names_beyond_the_first_look_are_read_whole(tmp_path):
    # The look at the start of the file ended inside a name, which then seemed to come twice.
    names = ["confidence", "correct", *(f"column{k}" for k in range(9_000))]
    table = written(tmp_path / "wide.csv", names)
    assert scan_text_table(table).collect_schema().names() == names
    assert cal.audit(table)["results"][0]["n"] == 40


def test_a_name_that_comes_twice_is_found_however_far_back(tmp_path):
    names = ["confidence", "correct", *(f"column{k}" for k in range(9_000)), "correct"]
    with pytest.raises(InputError, match="'correct' 2 times"):
        cal.audit(written(tmp_path / "twice.csv", names))


def test_a_line_without_end_is_no_header(tmp_path):
    path = tmp_path / "line.csv"
    path.write_bytes(b"x" * 17_000_000)
    with pytest.raises(InputError, match="more than 16 MB"):
        cal.audit(path)


def test_a_folder_with_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MOST_ENTRIES", 10)
    for k in range(11):
        (tmp_path / f"{k}.txt").touch()
    with pytest.raises(InputError, match="more than 10 files"):
        cal.audit(tmp_path)


def test_what_the_system_does_not_show_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "closed.json").write_text("{}")

    def closed(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("calibrant.verbs.opening.open_input.recognise", closed)
    assert logs_in(tmp_path) == []


def test_links_are_not_followed_in_circles(tmp_path):
    os.symlink(tmp_path, tmp_path / "again", target_is_directory=True)
    (tmp_path / "a.parquet").touch()
    assert formats.entries_below(tmp_path, ".parquet") == [tmp_path / "a.parquet"]
