"""A domain of one's own through the verb: write, check, tick."""

import polars as pl
import pytest

from calibrant.bench.make import bench_check, bench_mace
from calibrant.core.errors import InputError
from calibrant.verbs.methods import methods


@pytest.fixture
def domain(tmp_path):
    rows = [f"illness {i},drug {i}.{j}," for i in range(20) for j in range(1 + i % 4)]
    (tmp_path / "drugs.csv").write_text("subject,object,aliases\n" + "\n".join(rows) + "\n")
    (tmp_path / "drug.toml").write_text(
        'name = "drug"\nrelation = "listed_for"\ntriples = "drugs.csv"\n'
        'question = "Name one drug that is listed for {subjects}."\n'
        'source = "a list"\ndate = "2025-01"\ncomplete = true\n'
    )
    return tmp_path


def test_write_check_and_tick(domain):
    out, spot = domain / "q.jsonl", domain / "spot.csv"
    built = bench_mace(out, domain_files=[domain / "drug.toml"], k=[1, 2, 4], per_k=5)
    assert built["questions"] == 15
    assert built["results"][0]["relations"][0]["complete"] is True
    checked = bench_check(out, domain_files=[domain / "drug.toml"], spot_check=spot)
    assert checked["ok"]
    assert checked["spot_check"] is None
    table = pl.read_csv(spot)
    assert table.height == 15
    table.with_columns(pl.lit("right").alias("verdict")).write_csv(spot)
    ticked = bench_check(out, domain_files=[domain / "drug.toml"], ticks=[spot])
    assert ticked["spot_check"]["wrong"]["value"] == 0.0
    # Clopper-Pearson for 0 of 15: 1 - 0.025^(1/15).
    assert ticked["spot_check"]["wrong"]["high"] == pytest.approx(1 - 0.025 ** (1 / 15))


def test_a_spreadsheet_runs_nothing_in_a_spot_check(domain):
    rows = [f"illness {i},=HYPERLINK({i})," for i in range(20)]
    (domain / "drugs.csv").write_text("subject,object,aliases\n" + "\n".join(rows) + "\n")
    out, spot = domain / "q.jsonl", domain / "spot.csv"
    bench_mace(out, domain_files=[domain / "drug.toml"], k=[1], per_k=5)
    bench_check(out, domain_files=[domain / "drug.toml"], spot_check=spot)
    table = pl.read_csv(spot, infer_schema=False)
    assert all(cell.startswith("'=HYPERLINK") for cell in table["right_answers"])
    table.with_columns(pl.lit("right").alias("verdict")).write_csv(spot)
    ticked = bench_check(out, domain_files=[domain / "drug.toml"], ticks=[spot])
    assert ticked["spot_check"]["wrong"]["value"] == 0.0


def test_an_incomplete_domain_writes_nothing(domain):
    file = domain / "drug.toml"
    file.write_text(file.read_text().replace("complete = true", "complete = false"))
    with pytest.raises(InputError, match="declared incomplete"):
        bench_mace(domain / "q.jsonl", domain_files=[file])
    assert not (domain / "q.jsonl").exists()


@pytest.mark.parametrize(
    ("word", "inside", "outside"),
    [
        ("logprobs", "perplexity", "consistency"),
        ("samples", "consistency", "perplexity"),
        ("judge", "verified_mass", "verb"),
        ("one-call", "mean_token_entropy", "sca"),
        ("panel", "panel_vote", "p_true_prob"),
    ],
)
def test_methods_are_filtered_by_need(word, inside, outside):
    names = {entry["name"] for entry in methods(needs=word)["methods"]}
    assert inside in names
    assert outside not in names
    assert len(methods()["methods"]) >= 50


def test_an_unknown_need_is_refused():
    with pytest.raises(InputError, match="did you mean 'logprobs'"):
        methods(needs="logprob")


BORDERS = "A,B\nB,A\nB,C\nC,B\nC,D\nD,C\nA,D\nD,A\n"


def borders(folder, pairs=BORDERS, more=""):
    (folder / "borders.csv").write_text(f"subject,object\n{pairs}")
    file = folder / "borders.toml"
    file.write_text(
        'name = "border"\nrelation = "shares_border_with"\ntriples = "borders.csv"\n'
        'question = "Which state borders on state {subjects}?"\nsource = "a map"\n'
        f'date = "2025-01"\ncomplete = true\n{more}'
    )
    return file


def checked_borders(folder, pairs=BORDERS, more=""):
    file = borders(folder, pairs, more)
    bench_mace(folder / "q.jsonl", domain_files=[file], k=[1, 2], per_k=5)
    return bench_check(folder / "q.jsonl", domain_files=[file])


def test_a_list_alone_is_called_unchecked(tmp_path):
    checked = checked_borders(tmp_path)
    assert checked["ok"]
    [claim] = checked["claims"]
    assert claim["outcome"] == "undecided"
    assert "only your list says so" in claim["text"]
    assert "right" not in claim["text"]


def test_a_symmetric_list_with_one_direction_only_is_caught(tmp_path):
    one_sided = BORDERS.replace("D,A\n", "")
    assert checked_borders(tmp_path, one_sided)["ok"], "nothing says that the list is symmetric"
    checked = checked_borders(tmp_path, one_sided, "symmetric = true\n")
    assert not checked["ok"]
    details = {item["detail"] for item in checked["second_look"]["findings"]}
    assert details == {"A has D, but D does not have A"}
    assert checked_borders(tmp_path, BORDERS, "symmetric = true\n")["ok"]


@pytest.mark.parametrize("key", ["second", "inverse"])
def test_a_second_list_confirms_or_contradicts(tmp_path, key):
    (tmp_path / "other.csv").write_text(f"subject,object\n{BORDERS}")
    more = f'{key} = "other.csv"\nsecond_source = "another map"\n'
    [claim] = checked_borders(tmp_path, more=more)["claims"]
    assert claim["outcome"] == "shown"
    assert "A second source agrees on 4" in claim["text"]
    false_list = BORDERS.replace("C,D\nD,C\n", "C,A\nA,C\n")
    checked = checked_borders(tmp_path, false_list, more)
    assert not checked["ok"]
    assert {item["rule"] for item in checked["second_look"]["findings"]} == {"another source"}


def test_a_second_list_names_its_source(tmp_path):
    (tmp_path / "other.csv").write_text(f"subject,object\n{BORDERS}")
    with pytest.raises(InputError, match="where the second list comes from"):
        checked_borders(tmp_path, more='second = "other.csv"\n')
