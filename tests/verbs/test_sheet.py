"""A sheet as people have it: percent, yes and no, empty cells, a number and two names a model."""

import random

import pytest

import calibrant as cal
from calibrant.core.document import plain
from calibrant.core.errors import InputError
from calibrant.report.answers import badge_of, claims_of
from calibrant.report.captions import title_line


@pytest.fixture(scope="module")
def sheet(tmp_path_factory):
    draw = random.Random(7)
    rows = ["Nr;Frage;model_id;model_name;certainty;ok;topic"]
    for model, name, base in (("gpt-x", "GPT X", 0.55), ("lla-8b", "Llama 8B", 0.35)):
        for i in range(260):
            said = draw.choice([60, 70, 80, 90, 95, 100])
            right = draw.random() < base + 0.003 * said
            lost = draw.random() < (0.03 if right else 0.15)
            ok = "" if i % 65 == 3 else "yes" if right else "no"
            cells = (i + 1, f"What is {i}?", model, name, "" if lost else f"{said} %", ok)
            rows.append(";".join(map(str, (*cells, draw.choice(["law", "math", "bio"])))))
    path = tmp_path_factory.mktemp("sheet") / "sheet.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_titles_count_the_same_questions_and_say_what_is_left_out(sheet):
    ends = "8 rows without a grade left out · 33 rows without a confidence"
    audited, compared = (title_line(plain(verb(sheet).to_dict()), dated=False)
                         for verb in (cal.audit, cal.compare))  # fmt: skip
    assert "256 questions" in audited
    assert "256 questions, " in compared
    assert audited.endswith(ends)
    assert compared.endswith(ends)


def test_models_are_ranked_on_graded_rows_and_the_others_are_counted(sheet):
    found = cal.plan(sheet, rank="accuracy")
    assert found["dropped"]["correct_missing"] == 8
    assert found["leaderboard"]["questions"] == 256
    assert badge_of(plain(found.to_dict()), claims_of(found)).words == "models differ"


def test_a_hint_names_no_second_name_of_questions_or_models(sheet):
    with pytest.raises(InputError) as refused:
        cal.groups(sheet)
    assert refused.value.hint.values["features"] == ["topic"]


def test_the_badge_is_about_the_model_of_the_first_sentence(sheet):
    found = cal.mend(sheet)
    outcomes = [c.outcome for c in claims_of(found) if c.id == "mend.gain"]
    assert sorted(outcomes) == ["shown", "undecided"]
    assert badge_of(plain(found.to_dict()), claims_of(found)).words == "corrected, 1 of 2"


def test_rows_left_out_are_those_of_the_chosen_model(sheet):
    both, one = cal.mend(sheet), cal.mend(sheet, only_model="GPT X")
    assert both["dropped"]["correct_missing"] == 8
    assert one["dropped"]["correct_missing"] == 4
    lost = both["data"]["rows_read"] - both["data"]["rows"] - 8
    assert lost > 0
    ends = f"8 rows without a grade left out · {lost} rows without a confidence"
    assert title_line(plain(both.to_dict()), dated=False).endswith(ends)
    assert one["dropped"]["confidence_missing"] < both["dropped"]["confidence_missing"]
