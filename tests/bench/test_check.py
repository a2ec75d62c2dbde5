"""The check finds what is wrong, and nothing else."""

import polars as pl
import pytest

from calibrant.bench.make import bench_check
from calibrant.bench.questions.check import check_questions
from calibrant.bench.questions.facts import Fact, FactSet
from calibrant.bench.questions.filters import raw_facts
from calibrant.bench.questions.math_rule import math_questions
from calibrant.bench.questions.question import BenchQuestion, read_questions
from calibrant.bench.questions.triples import read_triples
from calibrant.core.errors import InputError

RIVERS = FactSet(
    "river",
    "flows_through",
    "test",
    {
        "Inn": (Fact("Inn", "Austria"), Fact("Inn", "Germany")),
        "Po": (Fact("Po", "Italy", aliases=("Italia",)),),
        "Isar": (Fact("Isar", "Austria"),),
        "Green, White or Grey River": (Fact("Green, White or Grey River", "Chile"),),
    },
)


def river(text, *names):
    references = tuple((name,) for name in names)
    return BenchQuestion(text, references, "river", "flows_through", "test")


def problems(*questions):
    document = check_questions(questions, {"river": [RIVERS]})
    return [finding["problem"] for finding in document["findings"]["listed"]]


def test_right_questions_pass():
    good = river("Name one country that the Inn or the Po flows through.",
                 "Austria", "Germany", "Italia")  # fmt: skip
    document = check_questions([good], {"river": [RIVERS]})
    assert document["ok"]
    assert document["results"][0]["by_alias"] == 1


def test_names_with_commas_and_or_are_read():
    text = "Name one country that the Green, White or Grey River or the Po flows through."
    assert problems(river(text, "Chile", "Italy")) == []


@pytest.mark.parametrize(
    ("text", "names", "problem"),
    [
        ("Name one country that the Inn flows through.", ["Austria"],
         "answer is missing from the references"),
        ("Name one country that the Po flows through.", ["Italy", "France"],
         "reference is not an answer"),
        ("Name one country that the Po flows through.", ["France"],
         "both wrong and missing references"),
        ("Which country has the Po?", ["Italy"], "text not understood"),
        ("Name one country that the Lethe flows through.", ["Hades"], "text not understood"),
    ],
)  # fmt: skip
def test_wrong_questions_are_found(text, names, problem):
    assert problems(river(text, *names)) == [problem]


def test_missing_answers_come_in_the_order_of_the_facts():
    names = [f"Person {letter}" for letter in "HDBFGACE"]
    years = enumerate(names, start=2000)
    held = tuple(Fact("Keeper", name, float(year), float(year)) for year, name in years)
    office = FactSet("office", "held_by", "test", {"Keeper": held})
    text = office.wording.window_text("Keeper", (2000.0, 2007.0))
    question = BenchQuestion(text, (("Person Z",),), "office", "held_by", "test")
    found = check_questions([question], {"office": [office]})["findings"]["listed"]
    assert found[0]["detail"] == f"not an answer: person z; missing: {', '.join(names)}"


def test_overlapping_subjects_are_counted():
    text = "Name one country that the Inn or the Isar flows through."
    document = check_questions([river(text, "Austria", "Germany")], {"river": [RIVERS]})
    assert document["results"][0]["overlapping"] == 1
    assert document["findings"]["number"] == 0


def test_duplicates_and_shared_entities_fail_the_check():
    one = river("Name one country that the Po flows through.", "Italy")
    document = check_questions([one, one], {"river": [RIVERS]})
    assert (document["ok"], document["duplicates"]["number"]) == (False, 1)
    other = BenchQuestion("?", (("Italy",),), "award", "awarded_to", "test")
    assert check_questions([one, other], {"river": [RIVERS]})["shared_entities"] == [
        {"domains": ["award", "river"], "number": 1, "entities": ["Italy"]}
    ]


def test_a_changed_number_in_a_math_question_is_found():
    [question] = math_questions(2, 1, kinds=["prime"])
    wrong = ((str(int(question.references[0][0]) + 1),), question.references[1])
    broken = BenchQuestion(question.text, wrong, "math", "prime", "test")
    assert check_questions([question])["ok"]
    assert not check_questions([broken])["ok"]


def test_a_table_that_contradicts_itself_is_refused():
    frame = pl.DataFrame({"text": ["?"], "references": [["a", "b"]], "domain": ["math"], "k": [3]})
    with pytest.raises(InputError, match="k is 3, and there are 2 references"):
        read_questions(frame)
    with pytest.raises(InputError, match="text, references and domain"):
        read_questions(frame.drop("references"))


@pytest.fixture(scope="module")
def published(shared_data):
    facts = raw_facts(read_triples(shared_data / "mace" / "triples"), source="published")
    return check_questions(read_questions(shared_data / "mace" / "questions.parquet"), facts)


def test_what_the_check_finds_in_the_published_questions(published):
    rows = {row["domain"]: row for row in published["results"]}
    assert {name: row["questions"] for name, row in rows.items()} == dict.fromkeys(rows, 2_000)
    assert {name: row["exact"] for name, row in rows.items()} == {
        "award": 2_000, "language": 2_000, "math": 2_000, "river": 2_000,
        "office": 1_979, "region": 1_950,
    }  # fmt: skip
    assert rows["language"]["overlapping"] == 126
    assert rows["river"]["overlapping"] == 79
    assert published["duplicates"]["number"] == 0
    shared = {tuple(pair["domains"]): pair["number"] for pair in published["shared_entities"]}
    assert shared == {
        ("award", "office"): 1, ("language", "region"): 1, ("language", "river"): 87,
        ("region", "river"): 1,
    }  # fmt: skip


def test_published_math_is_right_by_rule(shared_data):
    frame = pl.read_parquet(shared_data / "mace" / "questions.parquet")
    result = bench_check(frame.filter(pl.col("domain") == "math"))
    assert result["questions"] == 2_000
    assert result["findings"]["number"] == 0
    # Bounds that are answers themselves: 'between 2 and 7'.
    assert result["second_look"]["number"] == 172
    details = {item["detail"][:29] for item in result["second_look"]["findings"]}
    assert details == {"the question names its answer"}
