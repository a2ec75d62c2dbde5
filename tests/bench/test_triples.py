"""Triples from every form they come in, with the drops counted by reason."""

import json

import polars as pl
import pytest

from calibrant.bench.questions.filters import fact_sets, read_popularity
from calibrant.bench.questions.triples import Triple, read_triples
from calibrant.core.errors import InputError

RIVERS = [("Inn", "Austria"), ("Inn", "Germany"), ("Inn", "Switzerland"), ("Po", "Italy")]


def pairs(triples):
    return [(triple.subject, triple.obj) for triple in triples]


def test_a_csv_a_jsonl_and_a_parquet_table_give_the_same_triples(tmp_path):
    frame = pl.DataFrame(RIVERS, schema=["subject", "object"], orient="row")
    frame.write_csv(tmp_path / "river.csv")
    frame.write_ndjson(tmp_path / "river.jsonl")
    frame.write_parquet(tmp_path / "river.parquet")
    for name in ("river.csv", "river.jsonl", "river.parquet"):
        found = read_triples(tmp_path / name)
        assert pairs(found) == RIVERS
        assert {triple.domain for triple in found} == {"river"}


def test_years_areas_aliases_and_views_are_read(tmp_path):
    (tmp_path / "facts.csv").write_text(
        "domain,subject,object,year,area,aliases,views\n"
        "award,Prize,Ada,1999,,Ada L.|Countess,5000\n"
        "country,Utopia,North,,1200,,\n"
    )
    award, region = read_triples(tmp_path / "facts.csv")
    assert (award.low, award.high, award.views) == (1999, 1999, 5000)
    assert award.aliases == ("Ada L.", "Countess")
    assert (region.domain, region.low) == ("region", 1200)


def binding(**cells):
    return {name: {"type": "literal", "value": value} for name, value in cells.items()}


@pytest.mark.parametrize("form", ["service", "download"])
def test_sparql_results_of_wikidata_are_read(tmp_path, form):
    entity = "http://www.wikidata.org/entity/"
    rows = [
        {"award": f"{entity}Q1", "awardLabel": "Prize", "winner": f"{entity}Q2",
         "winnerLabel": "Ada", "date": "1999-01-01T00:00:00Z"},
        {"award": f"{entity}Q1", "awardLabel": "Prize", "winner": f"{entity}Q3",
         "winnerLabel": "Q3", "date": "2000-01-01T00:00:00Z"},
    ]  # fmt: skip
    content = rows
    if form == "service":
        content = {
            "head": {"vars": list(rows[0])},
            "results": {"bindings": [binding(**row) for row in rows]},
        }
    path = tmp_path / "award.json"
    path.write_text(json.dumps(content))
    found = read_triples(path)
    assert pairs(found) == [("Prize", "Ada"), ("Prize", "Q3")]
    assert [triple.low for triple in found] == [1999, 2000]
    assert found[0].subject_id == "Q1"
    [facts] = fact_sets(found, source="test")["award"]
    assert facts.dropped["validity"] == {"an object is a bare Q-id": 1}


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("river.csv", "a,b\n1,2\n", "columns 'subject' and 'object'"),
        ("planet.csv", "subject,object\nA,B\n", "no known domain: 'planet'"),
        ("award.csv", "subject,object,year\nA,B,soon\n", "is a number, got 'soon'"),
        ("river.json", "{", "not a JSON file"),
        ("river.json", '{"Inn": 3}', "do not have the form of the domain 'river'"),
        ("river.json", '{"head": {"vars": ["x"]}, "results": {"bindings": []}}', "no variable"),
    ],
)
def test_files_that_are_no_triples_are_refused_with_the_rule(tmp_path, name, content, rule):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=rule) as caught:
        read_triples(path)
    assert name in str(caught.value)


def award(subject, years, people=None):
    people = people or [f"{subject} {year}" for year in years]
    return [
        Triple("award", subject, name, year, year) for year, name in zip(years, people, strict=True)
    ]


def test_every_drop_has_its_reason():
    triples = [
        *award("kept", [2000, 2001, 2002]),
        *award("gap", [2000, 2002, 2003]),
        *award("twice", [2000, 2000, 2001], ["A", "B", "C"]),
        *award("short", [2000, 2001]),
        *award("ancient", [1700, 1701, 1702]),
        *award("Q77", [2000, 2001, 2002]),
        *award("nameless", [2000, 2001, 2002], ["A", None, "B"]),
        Triple("award", "undated", "Ada"),
        Triple("award", None, "Ada", 2000, 2000),
        *award("kept", [2000]),
    ]
    [facts] = fact_sets(triples, source="test")["award"]
    assert list(facts.facts) == ["kept"]
    assert facts.dropped == {
        "validity": {
            "subject label missing": 1,
            "repetition of a triple": 1,
            "subject is a bare Q-id": 1,
            "label of an object missing": 1,
            "year or area of an object missing": 1,
        },
        "domain rule": {
            "years without a record": 1,
            "several laureates in one year": 1,
            "fewer than three recorded years": 1,
            "no record between 1800 and 2023": 1,
        },
    }
    assert facts.stages == {"raw": 8, "validity": 5, "domain rule": 1}


def test_popularity_keeps_the_most_viewed(tmp_path):
    views = pl.DataFrame(
        {"domain": ["river"] * 4, "label": ["Inn", "Po", "Rhône", "Inn"],
         "views_12m": [900, 5_000, 2_000, 3_000]}
    )  # fmt: skip
    triples = [Triple("river", name, "X") for name in ("Inn", "Po", "Rhone", "Lethe")]
    popularity = read_popularity(views, minimum=1_000, top=2)
    [facts] = fact_sets(triples, source="test", popularity=popularity)["river"]
    assert list(facts.facts) == ["Inn", "Po"]
    assert facts.dropped["popularity"] == {
        "beyond the 2 most viewed": 1,
        "no page views known": 1,
    }
    assert popularity.summary() == [{"domain": "river", "listed": 4, "popular": 2}]


def test_table_5_raw_counts_of_the_published_page_views(shared_data):
    popularity = read_popularity(shared_data / "mace" / "popularity.parquet")
    assert dict(popularity.listed) == {
        "award": 8_422, "office": 7_306, "region": 183, "river": 10_357, "language": 7_251
    }  # fmt: skip
    # The paper's column after the popularity filter: 4,168, 5,000, 183, 3,726 and 3,830.
    assert popularity.popular == {
        "award": 4_173, "office": 5_000, "region": 183, "river": 3_728, "language": 3_833
    }  # fmt: skip


def test_the_published_triples_are_read_as_they_are(shared_data):
    triples = read_triples(shared_data / "mace" / "triples")
    facts = fact_sets(triples, source="published")
    raw = {domain: sets[0].stages["raw"] for domain, sets in facts.items()}
    assert raw == {"award": 175, "office": 159, "region": 99, "river": 810, "language": 933}
    assert facts["office"][0].dropped["validity"] == {"an object is a bare Q-id": 4}
    assert facts["language"][0].dropped["domain rule"] == {"more than six countries": 1}


def test_subjects_with_one_answer_are_capped_and_the_others_stay(tmp_path):
    rows = [f"river {i},country {i % 7}" for i in range(40)]
    rows += [f"long river {i},country {j}" for i in range(5) for j in (i, i + 1)]
    file = tmp_path / "river.csv"
    file.write_text("subject,object\n" + "\n".join(rows) + "\n")
    triples = read_triples(file)
    capped, again, other = (
        fact_sets(triples, source="rows", single_cap=12, seed=seed)["river"][0]
        for seed in (0, 0, 1)
    )
    single = [name for name in capped.facts if name.startswith("river")]
    assert len(single) == 12
    assert len(capped.facts) == 17
    assert capped.facts.keys() == again.facts.keys() != other.facts.keys()
    assert capped.dropped["sample"] == {"beyond 12 subjects with one answer": 28}
    assert capped.stages["sample"] == 17
    assert len(fact_sets(triples, source="rows")["river"][0].facts) == 45
