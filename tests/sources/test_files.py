"""Every layout is recognised by its content and read as its authors meant it."""

import gzip
import json

import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.data.questions import LAYOUTS, load_questions

MMLU_PRO = {
    "question_id": 70,
    "question": "Which number is prime?",
    "options": ["21", "22", "23", "24", "25"],
    "answer": "C",
    "answer_index": 2,
    "cot_content": "",
    "category": "math",
    "src": "x",
}
GPQA = {
    "Record ID": "rec1",
    "Question": "What is the spin of the photon?",
    "Correct Answer": "1",
    "Incorrect Answer 1": "0",
    "Incorrect Answer 2": "1/2",
    "Incorrect Answer 3": "2",
    "High-level domain": "Physics",
}
TRUTHFUL = {
    "type": "Adversarial",
    "category": "Myths",
    "question": "What happens if you swallow gum?",
    "best_answer": "It passes through",
    "correct_answers": ["It passes through", "Nothing much"],
    "incorrect_answers": ["It stays for seven years"],
    "source": "",
}
TRIVIA = {
    "question": "Which city hosted the 1900 games?",
    "question_id": "tc_1",
    "answer": {"aliases": ["Paris", "City of Light"], "value": "Paris", "type": "WikipediaEntity"},
}
HLE = {
    "id": "668825f8",
    "question": "Which flag is oldest?\n\nAnswer Choices:\nA. Denmark\nB. Chad",
    "image": "",
    "answer": "A",
    "answer_type": "multipleChoice",
    "rationale": "It is from the thirteenth century.",
    "raw_subject": "Vexillology",
    "category": "Humanities/Social Science",
}
POPQA = (
    "id\tsubj\tprop\tobj\ts_pop\to_pop\tquestion\tpossible_answers\n"
    '12\tX\tcapital\tY\t100\t200\tWhat is the capital of X?\t"[""Y"", ""Y City""]"\n'
)


def write(folder, name, rows):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("layout", "row", "references", "others"),
    [
        (
            "hle",
            HLE,
            [["A", "Denmark"]],
            {"question_id": "hle-668825f8", "subject": "Vexillology", "has_image": False, "k": 1},
        ),
        ("mmlu_pro", MMLU_PRO, [["C", "23"]], {"question_id": "mmlu-pro-70", "domain": "math"}),
        (
            "mmlu",
            {"question": "1+1?", "subject": "algebra", "choices": ["1", "2"], "answer": 1},
            [["B", "2"]],
            {"kind": "choice", "domain": "algebra", "choices": ["1", "2"]},
        ),
        (
            "truthfulqa",
            TRUTHFUL,
            [["It passes through", "Nothing much"]],
            {"kind": "open", "domain": "Myths"},
        ),
        ("triviaqa", TRIVIA, [["Paris", "City of Light"]], {"question_id": "tc_1", "k": 1}),
        (
            "ambignq",
            {
                "id": "7",
                "question": "When did it open?",
                "annotations": [
                    {
                        "type": "multipleQAs",
                        "qaPairs": [
                            {"question": "In Rome?", "answer": ["1901"]},
                            {"question": "In Oslo?", "answer": ["1902", "May 1902"]},
                        ],
                    },
                    {"type": "singleAnswer", "answer": ["1902"]},
                ],
            },
            [["1901"], ["1902", "May 1902"]],
            {"question_id": "7"},
        ),
        (
            "webquestions",
            {"qId": "wqs1", "qText": "who?", "answers": ["A", "B"]},
            [["A"], ["B"]],
            {"k": 2, "question_id": "wqs1"},
        ),
        (
            "coverageqa",
            {"question": "Name one", "answers": [["China", "PRC"], ["Iran"], ["PRC"]]},
            [["China", "PRC"], ["Iran"]],
            {"k": 2},
        ),
        ("nq_open", {"question": "who", "answer": ["A", "B"]}, [["A", "B"]], {"kind": "open"}),
        (
            "simpleqa",
            {"question": "who", "answer": "A", "topic": "Art", "answer_type": "Person"},
            [["A"]],
            {"domain": "Art", "k": 1, "answer_type": "Person"},
        ),
        (
            "simpleqa_csv",
            {
                "metadata": "{'topic': 'Art', 'answer_type': 'Person'}",
                "problem": "who",
                "answer": "A",
            },
            [["A"]],
            {"domain": "Art"},
        ),
        (
            "freshqa",
            {"id": 3, "question": "who", "answer_0": "A", "answer_1": "B", "fact_type": "fast"},
            [["A", "B"]],
            {"question_id": "freshqa-3", "domain": "fast"},
        ),
    ],
)
def test_layout(tmp_path, layout, row, references, others):
    frame = load_questions(write(tmp_path, "q.jsonl", [row]))
    assert frame.equals(load_questions(tmp_path / "q.jsonl", layout=layout))
    found = frame.row(0, named=True)
    assert found["references"] == references
    assert {name: found[name] for name in others} == others


def test_layouts_with_the_right_option_first_are_shuffled_the_same_way_every_time(tmp_path):
    rows = [{**GPQA, "Record ID": f"rec{number}"} for number in range(40)]
    frame = load_questions(write(tmp_path, "gpqa.jsonl", rows))
    letters = [references[0][0] for references in frame["references"].to_list()]
    assert {"A", "B", "C", "D"} == set(letters)
    for row in frame.iter_rows(named=True):
        letter, text = row["references"][0]
        assert row["choices"]["ABCD".index(letter)] == text == "1"
    assert frame.equals(load_questions(tmp_path / "gpqa.jsonl"))
    targets = {"choices": ["yes", "no", "maybe"], "labels": [1, 0, 0]}
    mc = load_questions(write(tmp_path, "mc.jsonl", [{"question": "so?", "mc1_targets": targets}]))
    letter, text = mc["references"][0].to_list()[0]
    assert text == "yes"
    assert mc["choices"][0].to_list()["ABC".index(letter)] == "yes"


def test_original_triviaqa_file_has_a_table_around_the_rows(tmp_path):
    body = {
        "Domain": "Web",
        "Data": [
            {
                "Question": "who?",
                "QuestionId": "q1",
                "Answer": {"Value": "A", "Aliases": ["A", "B"]},
            }
        ],
    }
    (tmp_path / "t.json").write_text(json.dumps(body))
    frame = load_questions(tmp_path / "t.json")
    assert frame["references"].to_list() == [[["A", "B"]]]


def test_popqa_is_a_tsv(tmp_path):
    (tmp_path / "popqa.tsv").write_text(POPQA)
    row = load_questions(tmp_path / "popqa.tsv").row(0, named=True)
    assert row["references"] == [["Y", "Y City"]]
    assert row["question_id"] == "popqa-12"


def test_mmlu_files_have_no_header_and_freshqa_has_notices_above_it(tmp_path):
    (tmp_path / "mmlu.csv").write_text('"Is it, so?",1,2,3,4,C\nAnd now?,5,6,7,8,A\n')
    frame = load_questions(tmp_path / "mmlu.csv")
    assert frame["references"].to_list() == [[["C", "3"]], [["A", "5"]]]
    (tmp_path / "fresh.csv").write_text(
        "WARNING: do not train on this,,,\n,,,\nid,question,answer_0,fact_type\n0,who?,A,slow\n"
    )
    assert load_questions(tmp_path / "fresh.csv")["references"].to_list() == [[["A"]]]


def test_own_table_from_every_format(tmp_path):
    rows = [{"question_id": "a", "text": "2+2?", "references": [["4", "four"]], "hard": 1.5}]
    frame = load_questions(write(tmp_path, "q.jsonl", rows))
    assert frame["hard"].to_list() == [1.5]
    frame.write_parquet(tmp_path / "q.parquet")
    assert load_questions(tmp_path / "q.parquet").equals(frame)
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress((tmp_path / "q.jsonl").read_bytes()))
    assert load_questions(tmp_path / "q.jsonl.gz").equals(frame)
    (tmp_path / "q.csv").write_text('question_id,text,references\na,2+2?,"[[""4"", ""four""]]"\n')
    assert load_questions(tmp_path / "q.csv")["references"].to_list() == [[["4", "four"]]]
    assert load_questions(frame.to_pandas())["text"].to_list() == ["2+2?"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"question_id": "a", "text": ""}\n', "row 1: a question has a text"),
        ('{"question_id": "a", "text": "x"}\n' * 2, "row 2: question_id 'a' stands for one"),
        ('{"what": 1}\n', "no known layout of questions has the columns what"),
        ('{"question_id": "a", "text": "x"}\n{oops\n', "row 2: not valid JSON"),
        ("question_id,text\na,b,c\n", "row 1: the row has 3 fields"),
        ('{"question": "q", "options": ["a"], "answer_index": 3, "category": "x"}\n', "mmlu_pro"),
    ],
)
def test_defects_name_the_file_the_row_and_the_rule(tmp_path, content, message):
    path = tmp_path / "bad.txt"
    path.write_text(content)
    with pytest.raises(InputError) as error:
        load_questions(path)
    assert str(path) in str(error.value)
    assert message in str(error.value)


def test_a_wrong_layout_name_is_answered_with_the_right_one(tmp_path):
    path = write(tmp_path, "q.jsonl", [TRIVIA])
    with pytest.raises(InputError, match="did you mean 'triviaqa'"):
        load_questions(path, layout="trivaqa")
    with pytest.raises(InputError, match="has columns possible_answers, s_pop"):
        load_questions(path, layout="popqa")


@pytest.mark.parametrize(
    ("name", "count", "layout"),
    [
        ("simpleqa_4326", 4326, "simpleqa"),
        ("nq_open_dev_3610", 3610, "nq_open"),
        ("webquestions_test", 2032, "webquestions"),
        ("ambignq_dev_light", 2002, "ambignq"),
        ("coverageqa_60_multi_answer", 60, "coverageqa"),
    ],
)
def test_real_files(shared_data, name, count, layout):
    path = shared_data / "questions" / f"{name}.jsonl.gz"
    frame = load_questions(path)
    assert frame.height == count
    assert frame.equals(load_questions(path, layout=layout))
    graded = frame["references"].list.len() > 0
    assert graded.mean() > 0.97
    assert frame["references"].explode().list.len().drop_nulls().min() >= 1
    if "k" in frame.columns:
        known = frame.filter(pl.col("k").is_not_null())
        assert (known["k"] == known["references"].list.len()).all()


def test_every_layout_has_a_test():
    tested = {
        "questions", "popqa", "hle", "mmlu_pro", "mmlu", "mmlu_csv", "gpqa", "truthfulqa_mc",
        "truthfulqa", "truthfulqa_csv", "freshqa", "triviaqa", "triviaqa_json", "ambignq",
        "webquestions", "coverageqa", "webquestions_hub", "simpleqa_csv", "nq_open", "simpleqa",
    }  # fmt: skip
    assert set(LAYOUTS) == tested


def test_hub_variants(tmp_path):
    hub = {"url": "u", "question": "who?", "answers": ["A", "B"]}
    assert load_questions(write(tmp_path, "w.jsonl", [hub]))["k"].to_list() == [2]
    csv_row = {"Question": "so?", "Best Answer": "no", "Correct Answers": "no; not at all"}
    frame = load_questions(write(tmp_path, "t.jsonl", [csv_row]))
    assert frame["references"].to_list() == [[["no", "not at all"]]]
    lists = {"type": ["singleAnswer"], "answer": [["1901"]], "qaPairs": [None]}
    frame = load_questions(write(tmp_path, "a.jsonl", [{"question": "q", "annotations": lists}]))
    assert frame["references"].to_list() == [[["1901"]]]


ONE = '{"question_id": "a", "text": "What?", "references": [["1"]]}'


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x7f"])
def test_signs_that_part_lines_elsewhere_are_part_of_a_text(tmp_path, sign):
    path = tmp_path / "questions.jsonl"
    path.write_text(f"{ONE.replace('What', 'What' + sign)}\n{ONE.replace('a', 'b', 1)}\n", "utf-8")
    frame = load_questions(path)
    assert frame.height == 2
    assert frame["text"][0] == f"What{sign}?"


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("q.csv", "question,answer,answer\na,1,2\n", "names the column 'answer' 2 times"),
        ("q.csv", 'question,answer\n"a,1\nb,2\n"c,3\n', "cannot be read near line"),
        ("q.csv", 'question,answer\na,"1\nb,2\n', "cannot be read near line"),
    ],
    ids=["column twice", "rows joined", "never closed"],
)
def test_questions_that_are_not_what_they_seem_are_refused(tmp_path, name, text, match):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=match):
        load_questions(path)


def test_a_quote_inside_of_a_cell_is_a_quote(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text('question,answer\nHow long is 6" in cm?,15.24\nAnd 8"?,20.32\n')
    assert load_questions(path)["text"].to_list() == ['How long is 6" in cm?', 'And 8"?']
