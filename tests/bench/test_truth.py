"""Shipped benchmarks have right answers, and the second look finds what is not right."""

import json
import random

import polars as pl
import pytest

from calibrant.bench.questions.build import build_benchmark
from calibrant.bench.questions.check import (
    check_questions,
    read_ticks,
    spot_check,
    spot_questions,
    write_spot_check,
)
from calibrant.bench.questions.facts import Fact, FactSet, read_domain
from calibrant.bench.questions.question import WORDS, BenchQuestion, normalised
from calibrant.bench.questions.second_look import second_look
from calibrant.bench.questions.shipped_facts import (
    SHIPPED,
    official_languages,
    shipped_language,
    shipped_region,
)
from calibrant.core.errors import InputError


@pytest.fixture(scope="module", params=[1, 2, 3])
def built_benchmark(request):
    return build_benchmark(["language", "region"], (1, 2, 4, 6), 500, seed=request.param)


def test_nothing_unknown_nobody_on_empty_land_and_the_hard_states_left_out(built_benchmark):
    empty = {normalised(name) for name in WORDS["uninhabited"]}
    for question in built_benchmark.questions:
        assert "nknown" not in question.text
        assert not question.answers & empty
        subjects = question.meta["subjects"]
        assert not {"South Africa", "Zimbabwe", "Bolivia", "Switzerland"} & set(subjects)
        assert question.date
        assert question.source


def test_every_question_passes_the_check_and_the_second_look(built_benchmark):
    document = check_questions(built_benchmark.questions)
    assert document["ok"], document["second_look"]["findings"][:3]
    assert document["second_look"]["looked_at"] > 0.95 * len(built_benchmark.questions)


def test_relations_declare_source_date_and_completeness(built_benchmark):
    for row in built_benchmark.statistics:
        for relation in row["relations"]:
            assert relation["complete"] is True
            assert relation["source"]
            assert relation["date"]
            assert relation["completeness"]


def test_every_member_state_is_listed_or_left_out():
    listed = official_languages()
    assert len(listed.states) + len(listed.left_out) == 193
    assert not set(listed.states) & set(listed.left_out)


def test_facts_known_by_heart():
    of = {facts.relation: facts for facts in shipped_language()}["official_nationwide_of"]
    answers = {s: {names[0] for names in of.answers(s).values()} for s in of.facts}
    assert answers["Canada"] == {"English", "French"}
    assert answers["Paraguay"] == {"Guarani", "Spanish"}
    assert answers["Singapore"] == {"English", "Chinese", "Malay", "Tamil"}
    assert answers["Belgium"] == {"Dutch", "French", "German"}
    [region] = shipped_region()
    assert len(region.facts["state of the United States"]) == 50
    assert len(region.facts["land of Germany"]) == 16
    bavaria = next(f for f in region.facts["land of Germany"] if f.obj == "Bayern")
    assert "Bavaria" in bavaria.aliases


LAW = ", by law or, where no law names one, in practice."
OF = "Name one spoken language that is official nationwide in {}" + LAW
IN = "Name one member state of the United Nations where {} is an official language nationwide" + LAW
LETTER = "Name one state of {} whose name in ISO 3166-2 begins with {}."
PLANTED = [
    ("language", OF.format("South Africa"), ["English"]),
    ("language", OF.format("Zimbabwe"), ["English", "Shona", "North Ndebele"]),
    ("language", OF.format("Bolivia"), ["Spanish", "Quechua", "Aymara"]),
    ("language", OF.format("Brazil"), ["Spanish"]),
    ("language", OF.format("Canada"), ["English"]),
    ("language", IN.format("Unknown language"), ["Antarctica"]),
    ("language", IN.format("Dutch"), ["Netherlands", "Belgium"]),
    ("language", IN.format("Norwegian"), ["Norway", "Bouvet Island"]),
    ("region", LETTER.format("United States", "the letter O"), ["Ohio", "Oklahoma"]),
    ("region", LETTER.format("Brazil", "a letter from A to B"), ["Acre", "Alagoas", "Amapá",
                                                              "Amazonas", "Bahia", "Bolívar"]),
]  # fmt: skip


def planted():
    return [
        BenchQuestion(text, tuple((name,) for name in names), domain, "", "planted")
        for domain, text, names in PLANTED
    ]


def test_the_second_look_finds_ten_of_ten_planted_errors():
    found = {entry["text"] for entry in second_look(planted())["findings"]}
    assert found == {question.text for question in planted()}


def test_errors_planted_in_the_source_itself_are_found():
    """The facts are poisoned, so deriving again agrees: only the second look can object."""
    rng = random.Random(0)
    [good] = [f for f in shipped_language() if f.relation == "official_nationwide_of"]
    changed = dict(good.facts)
    poisoned = rng.sample(sorted(changed), 10)
    for subject in poisoned:
        changed[subject] = (Fact(subject, "Esperanto"), *changed[subject][1:])
    bad = FactSet("language", good.relation, "poisoned", changed)
    questions = [
        BenchQuestion(
            bad.wording.union_text([subject]),
            tuple(bad.answers(subject).values()), "language", good.relation, "poisoned",
        )
        for subject in sorted(changed)
    ]  # fmt: skip
    document = check_questions(questions, {"language": [bad]})
    assert document["findings"]["number"] == 0
    entries = document["second_look"]["findings"]
    texts = {entry["text"] for entry in entries if entry["rule"] == "another source"}
    assert texts == {bad.wording.union_text([subject]) for subject in poisoned}
    assert not document["ok"]


@pytest.mark.parametrize(
    "text",
    [
        "Name one country where native speakers of Danish live.",
        "Name one language that is official, in law or in fact, in South Africa.",
        "Name one country or territory where more than half of the people speak Danish.",
    ],
)
def test_wordings_that_no_list_supports_are_refused(text):
    document = check_questions([BenchQuestion(text, (("X",),), "language", "official_of", "old")])
    assert document["findings"]["listed"][0]["problem"] == "subject not in the facts"


def test_an_incomplete_relation_is_refused_for_exactly_k():
    facts = FactSet("river", "flows_through", "test", {"Po": (Fact("Po", "Italy"),)},
                    complete=False, completeness="rivers without a page are missing")  # fmt: skip
    with pytest.raises(InputError, match="declared incomplete"):
        build_benchmark(["river"], [1], 5, facts={"river": [facts]})


def test_siblings_are_never_right_answers(built_benchmark):
    for question in built_benchmark.questions:
        right = {normalised(name) for names in question.references for name in names}
        assert not right & {normalised(name) for name in question.siblings}
        assert question.siblings
        row = question.row()
        assert json.loads(json.dumps(row["siblings"])) == list(question.siblings)


def test_ticks_give_the_share_wrong_with_an_exact_interval(tmp_path, built_benchmark):
    file = tmp_path / "spot.csv"
    assert write_spot_check(built_benchmark.questions, file, number=30, seed=5) == 30
    table = pl.read_csv(file)
    verdicts = ["wrong"] * 3 + ["right"] * 27
    table.with_columns(pl.Series("verdict", verdicts)).write_csv(file)
    found = spot_check(read_ticks(file), read_ticks(file))
    assert found["wrong"]["value"] == pytest.approx(0.1)
    # Clopper-Pearson for 3 of 30, from published tables.
    assert (found["wrong"]["low"], found["wrong"]["high"]) == pytest.approx(
        (0.0211, 0.2653), abs=1e-4
    )
    assert found["agreement"]["kappa"] == 1.0
    assert spot_questions(built_benchmark.questions, 30, seed=5) == spot_questions(
        built_benchmark.questions, 30, seed=5
    )
    page = tmp_path / "spot.html"
    write_spot_check(built_benchmark.questions, page)
    assert page.read_text().count("type=radio") == 60


def test_ticks_of_0_and_1_are_verdicts(tmp_path):
    file = tmp_path / "ticks.csv"
    file.write_text("question_id,verdict\na,1\nb,0\nc,1\n")
    assert read_ticks(file) == {"a": True, "b": False, "c": True}


def test_kappa_by_hand():
    a = {str(i): i < 6 for i in range(10)}
    b = {str(i): i < 5 or i == 9 for i in range(10)}
    # Equal in 8 of 10; chance .6 * .6 + .4 * .4 = .52; kappa = .28 / .48.
    assert spot_check(a, b)["agreement"]["kappa"] == pytest.approx(0.28 / 0.48)


DOMAIN = """
name = "drug"
relation = "approved_for"
triples = "drugs.csv"
question = "Nenne ein Medikament gegen {subjects}."
or = " oder "
source = "made up for a test"
date = "2025-01"
complete = true
"""


def drugs(folder, lines, **changes):
    (folder / "drugs.csv").write_text("subject,object,aliases\n" + "\n".join(lines) + "\n")
    text = DOMAIN
    for old, new in changes.items():
        text = text.replace(f"{old} = ", f"{new} = ")
    (folder / "drug.toml").write_text(text)
    return folder / "drug.toml"


LINES = ["Asthma,Salbutamol,Albuterol", "Asthma,Montelukast,", "Gicht,Allopurinol,",
         "Migräne,Sumatriptan,", "Migräne,Rizatriptan,"]  # fmt: skip


def test_a_domain_of_ones_own_in_another_language(tmp_path):
    facts = read_domain(drugs(tmp_path, LINES))
    built = build_benchmark(["drug"], [1, 2, 4], 10, facts={"drug": [facts]})
    texts = {question.text: question for question in built.questions}
    two = texts["Nenne ein Medikament gegen Asthma oder Migräne."]
    assert two.k == 4
    assert two.siblings == ("Allopurinol",)
    assert check_questions(built.questions, {"drug": [facts]})["ok"]
    spoilt = BenchQuestion(two.text, two.references[:3], "drug", "approved_for", "x")
    assert not check_questions([spoilt], {"drug": [facts]})["ok"]


def test_a_domain_file_with_a_mistake_says_which(tmp_path):
    with pytest.raises(InputError, match="did you mean 'complete'"):
        read_domain(drugs(tmp_path, LINES, complete="compleet"))
    with pytest.raises(InputError, match="subject and an object"):
        read_domain(drugs(tmp_path, ["Asthma,,"]))


def test_a_window_domain_words_its_own_bounds(tmp_path):
    (tmp_path / "launches.csv").write_text(
        "subject,object,year\nAcme,One,2001\nAcme,Two,2003\nAcme,Three,2008\n"
    )
    (tmp_path / "product.toml").write_text(
        'name = "product"\nrelation = "launched_by"\ntriples = "launches.csv"\n'
        'question = "Name one product that {subjects} launched {bounds}."\n'
        'source = "catalogue"\ndate = "2025"\ncomplete = true\n'
        '[window]\ncolumn = "year"\ntext = "between {low} and {high}"\n'
    )
    facts = read_domain(tmp_path / "product.toml")
    built = build_benchmark(["product"], [2], 10, facts={"product": [facts]})
    assert {question.text for question in built.questions} == {
        "Name one product that Acme launched between 2001 and 2003.",
        "Name one product that Acme launched between 2003 and 2008.",
    }
    assert check_questions(built.questions, {"product": [facts]})["ok"]


def test_shipped_domains_are_the_documented_ones():
    assert set(SHIPPED) == {"language", "region"}
