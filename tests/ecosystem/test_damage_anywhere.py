"""A damaged copy of every tool's file is read, read in part, or refused: never a traceback."""

import json
import random
import re
import shutil
import struct

import pytest

import calibrant as cal
from calibrant.core.errors import CalibrantError, InputError
from calibrant.data.logs.recognise import read_log
from ecosystem import table_of_logs

FILES = table_of_logs.own_files()
FIXTURES = table_of_logs.HERE / "fixtures"
COPIES = 8
# Copies of each file that are only read: bytes, lines and single values go wrong.
MUTATIONS = 20
VALUE = re.compile(
    rb'(?<=[:\[,])\s*(?:"[^"\\\n]{0,200}"|-?\d[\d.eE+-]*|true|false|null)(?=\s*[,\]}])'
)
OTHER_VALUES = [
    b"null",
    b"[]",
    b"{}",
    b'"x"',
    b"-1",
    b"1e999",
    b"9" * 40,
    b"true",
    b'{"a": [1]}',
    b'""',
]


def damaged(data, rng):
    """Return bytes that are cut, overwritten, flipped, left out or there twice."""
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice([1, 5, 50, 500, 5000]))
    before, inside, after = data[:start], data[start:end], data[end:]
    return rng.choice(
        [
            before,
            before + bytes(len(inside)) + after,
            before + rng.randbytes(len(inside)) + after,
            before + bytes([inside[0] ^ 1 << rng.randrange(8)]) + inside[1:] + after,
            before + after,
            before + inside + inside + after,
        ]
    )


def mutated(data, rng):
    """Return bytes with damage, lines in another order, or a value of another type."""
    kind = rng.randrange(3)
    if kind == 1:
        lines = data.splitlines(keepends=True)
        first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
        return b"".join(lines)
    if kind == 2 and (values := list(VALUE.finditer(data))):
        place = rng.choice(values)
        return data[: place.start()] + rng.choice(OTHER_VALUES) + data[place.end() :]
    return damaged(data, rng)


def copied(source, folder, rng, change=damaged):
    target = folder / source.name
    if source.is_dir():
        shutil.copytree(source, target)
        file = rng.choice(sorted(path for path in target.rglob("*") if path.is_file()))
    else:
        folder.mkdir()
        file = shutil.copy(source, target)
    file.write_bytes(change(file.read_bytes(), rng))
    return target


@pytest.mark.parametrize("source", FILES, ids=lambda path: path.name[:24])
def test_damage_is_told_or_read_around(source, tmp_path):
    rng = random.Random(source.name)
    told = read = 0
    for number in range(COPIES):
        path = copied(source, tmp_path / str(number), rng)
        for action in (read_log, lambda place: cal.audit(place, resamples=20)):
            try:
                action(path)
                read += 1
            except CalibrantError as error:
                told += 1
                rule, *hints = str(error).splitlines()
                assert len(rule) - len(str(path)) < 400, rule
                assert len(hints) <= 1
    assert told + read == 2 * COPIES


@pytest.mark.parametrize("source", FILES, ids=lambda path: path.name[:24])
def test_mutations_are_told_or_read_around(source, tmp_path):
    rng = random.Random(f"mutations of {source.name}")
    told = []
    for number in range(MUTATIONS):
        path = copied(source, tmp_path / str(number), rng, mutated)
        try:
            read_log(path)
        except CalibrantError as error:
            told.append(str(error))
    assert all(len(text.splitlines()) <= 2 for text in told)


def test_a_sample_of_inspect_with_text_for_scores_costs_itself(tmp_path):
    log = json.loads((FIXTURES / "inspect.json").read_text())
    log["samples"][0]["scores"] = {name: "I" for name in log["samples"][0]["scores"]}
    path = tmp_path / "inspect.json"
    path.write_text(json.dumps(log))
    found = read_log(path)
    whole = read_log(FIXTURES / "inspect.json")
    assert [problem.place for problem in found.problems] == ["samples/city-0_epoch_1.json"]
    assert found.draws.height == whole.draws.height - 1


def test_a_row_of_mlflow_with_a_cell_too_many_is_listed(tmp_path):
    table = json.loads((FIXTURES / "mlflow" / "table.json").read_text())
    table["data"][2].append("more")
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table))
    found = read_log(path)
    assert [problem.place for problem in found.problems] == ["row 3"]
    assert found.draws.height == len(table["data"]) - 1


def test_an_archive_that_asks_for_a_later_zip_is_refused(tmp_path):
    data = bytearray((FIXTURES / "lm_polygraph.pth").read_bytes())
    place = data.rindex(b"PK\x01\x02")
    data[place + 6 : place + 8] = struct.pack("<H", 128)
    path = tmp_path / "saved.pth"
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a log of a known tool"):
        read_log(path)


@pytest.mark.parametrize("end", [b"xx", b"PAR1"])
def test_a_parquet_file_with_a_damaged_schema_is_refused(tmp_path, end):
    (source,) = (FIXTURES / "lighteval").rglob("details_colours*.parquet")
    data = source.read_bytes()
    place = data.rindex(b"ARROW:schema") + 40
    path = tmp_path / "details.parquet"
    path.write_bytes(data[:place] + b"!!!!" + data[place + 4 : -4] + end)
    with pytest.raises(InputError, match=r"damaged|cannot be read|not a log"):
        cal.audit(path, resamples=20)
