"""Sampled answers in every shape that people have them become the same questions and draws."""

import json

import polars as pl
import pytest

import calibrant as cal
from calibrant.answers.graded_samples import grade_samples
from calibrant.answers.samples import SampleColumns, matched_ids, read_samples
from calibrant.core.errors import InputError

QUESTIONS = {
    "q1": ("Capital of Peru?", "Lima", ["Lima", "It is Lima.", "Quito", "Lima"]),
    "q2": ("2 + 2?", "4", ["4", "four", "5", "I don't know."]),
}


def per_question(**names):
    name = {"samples": "answers", "reference": "gold", "question": "question_id"} | names
    return pl.DataFrame(
        [
            {
                name["question"]: key,
                "question": text,
                name["reference"]: gold,
                name["samples"]: list(answers),
            }
            for key, (text, gold, answers) in QUESTIONS.items()
        ]
    )


def per_draw():
    return pl.DataFrame(
        [
            {"qid": key, "question": text, "gold": gold, "response": answer}
            for key, (text, gold, answers) in QUESTIONS.items()
            for answer in answers
        ]
    )


def batch(path):
    """The output file of a batch endpoint: one line per draw, the draw's number in its id."""
    lines = [
        {
            "custom_id": f"{key}-{number}",
            "error": None,
            "response": {
                "status_code": 200,
                "body": {
                    "model": "m",
                    "choices": [
                        {"index": 0, "message": {"content": answer}, "finish_reason": "stop"}
                    ],
                },
            },
        }
        for key, (_, _, answers) in QUESTIONS.items()
        for number, answer in enumerate(answers)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def references(path):
    rows = [{"id": key, "question": t, "answer": g} for key, (t, g, _) in QUESTIONS.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def shapes(folder):
    listed, rows = per_question(), per_draw()
    listed.write_ndjson(folder / "list.jsonl")
    listed.write_parquet(folder / "list.parquet")
    listed.with_columns(
        pl.Series("answers", [json.dumps(a) for a in listed["answers"].to_list()])
    ).write_csv(folder / "list.csv")
    rows.write_csv(folder / "rows.csv")
    rows.write_ndjson(folder / "rows.jsonl")
    refs = references(folder / "refs.jsonl")
    own = [
        {"question_id": key, "model": "m", "purpose": "answer", "draw": n, "text": answer}
        for key, (_, _, answers) in QUESTIONS.items()
        for n, answer in enumerate(answers)
    ]
    pl.DataFrame(own).write_parquet(folder / "draws.parquet")
    yield folder / "list.jsonl", SampleColumns("answers", "gold"), None
    yield folder / "list.parquet", SampleColumns("answers", "gold"), None
    yield folder / "list.csv", SampleColumns("answers", "gold"), None
    yield folder / "rows.csv", SampleColumns("response", "gold", "qid"), None
    yield folder / "rows.jsonl", None, None
    yield folder / "draws.parquet", None, refs
    yield batch(folder / "batch.jsonl"), None, refs


def test_every_shape_gives_the_same_classes_and_grades(tmp_path):
    found = []
    for path, columns, refs in shapes(tmp_path):
        graded = grade_samples(read_samples(path, columns, references=refs))
        table = graded.with_classes.select("question_id", "draw", "class_id", "correct")
        found.append((path.name, table.sort("question_id", "draw").rows()))
    for name, rows in found:
        assert rows == found[0][1], name
    assert [row[2:] for row in found[0][1]] == [
        (0, True), (0, True), (1, False), (0, True),
        (0, True), (0, True), (1, False), (None, None),
    ]  # fmt: skip


def test_guesses_are_told_and_named_columns_are_no_guesses():
    found = read_samples(per_question())
    assert found.columns == {
        "samples": "answers",
        "reference": "gold",
        "question": "question_id",
        "text": "question",
    }
    assert set(found.guessed) == {"samples", "reference", "question", "text"}
    told = read_samples(per_question(), SampleColumns("answers", "gold"))
    assert set(told.guessed) == {"question", "text"}


def test_a_list_is_a_better_guess_for_samples_than_a_text():
    found = read_samples(per_question(samples="samples", reference="answer"))
    assert (found.columns["samples"], found.columns["reference"]) == ("samples", "answer")


def test_a_confidence_stated_in_a_draw_feeds_the_stated_methods():
    table = pl.DataFrame(
        {
            "question": ["Capital of Peru?"],
            "gold": ["Lima"],
            "answers": [["Lima\nConfidence: 80%", "Lima. Confidence: 60 %", "Quito"]],
        }
    )
    graded = grade_samples(read_samples(table))
    scores = {row["method"]: row for row in graded.scores.iter_rows(named=True)}
    assert scores["verb_mean"]["confidence"] == pytest.approx(0.7)
    assert scores["verb_mean"]["correct"] == 1.0
    assert graded.with_classes.height == 3
    assert graded.with_classes["stated_confidence"].to_list() == [0.8, 0.6, None]


def test_several_files_are_several_models(tmp_path):
    per_question().write_ndjson(tmp_path / "small.jsonl")
    per_question().write_ndjson(tmp_path / "large.jsonl")
    found = read_samples([tmp_path / "small.jsonl", tmp_path / "large.jsonl"])
    assert found.draws["model"].unique(maintain_order=True).to_list() == ["small", "large"]
    assert found.questions.height == 2


def test_columns_of_the_questions_are_kept_for_groups():
    table = per_question().with_columns(domain=pl.Series(["geography", "maths"]))
    graded = grade_samples(read_samples(table))
    assert graded.with_classes["domain"].unique().sort().to_list() == ["geography", "maths"]


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        (per_question(), SampleColumns("answer"), "no column 'answer'"),
        (per_draw().drop("qid", "question"), None, "which question"),
        (per_question().drop("gold"), None, "right answer to grade by"),
        (pl.DataFrame({"a": [1]}), None, "no column of sampled answers"),
    ],
)
def test_what_is_missing_is_named(table, columns, message):
    with pytest.raises(InputError, match=message):
        read_samples(table, columns)


GIVEN = pl.DataFrame(
    {
        "question": ["Capital of Peru?", "2 + 2?"],
        "answers": [["Lima", "Quito", "Lima."], ["4", "5", "four"]],
        "correct": [[1, 0, 1], [1, 0, 0]],
    }
)


@pytest.mark.parametrize("shape", ["lists", "text in a csv file", "true and false", "rows"])
def test_grades_that_are_given_need_no_reference(shape, tmp_path):
    table = GIVEN
    if shape == "text in a csv file":
        cells = {name: [json.dumps(v) for v in table[name].to_list()] for name in table.columns[1:]}
        table = tmp_path / "samples.csv"
        GIVEN.with_columns(**{name: pl.Series(v) for name, v in cells.items()}).write_csv(table)
    if shape == "true and false":
        table = table.with_columns(pl.col("correct").cast(pl.List(pl.Boolean)))
    if shape == "rows":
        table = table.explode("answers", "correct")
    graded = grade_samples(read_samples(table, SampleColumns(samples="answers")))
    assert graded.semantics["class_id"].to_list() == [0, 1, 0, 0, 1, 0]
    # `4` and `four` mean the same, and one meaning has one grade.
    assert graded.semantics["correct"].to_list() == [True, False, True, True, False, True]
    assert graded.semantics["grader"].to_list() == ["given"] * 5 + ["given to its meaning"]
    assert "correct" not in graded.draws.columns


def test_named_grades_win_over_references_and_others_do_not():
    table = GIVEN.with_columns(gold=pl.Series(["Lima", "4"]))
    by_rule = grade_samples(read_samples(table, SampleColumns(samples="answers")))
    assert by_rule.semantics["correct"].to_list()[-1] is True
    named = SampleColumns(samples="answers", correct="correct")
    table = table.with_columns(correct=pl.Series([[1, 0, 1], [0, 0, 0]]))
    assert grade_samples(read_samples(table, named)).semantics["correct"].to_list()[-1] is False


@pytest.mark.parametrize(
    ("grades", "message"),
    [
        ([[1, 0], [1, 0, 0]], "row 1: 3 answers have 2 grades"),
        ([[1, 0, 1], [1, 0, 2]], "a grade of an answer is 0 or 1, got '2' in 'correct'"),
        ([1, 0], "one grade per answer is needed"),
    ],
)
def test_grades_that_do_not_fit_are_refused(grades, message):
    table = GIVEN.with_columns(correct=pl.Series(grades))
    with pytest.raises(InputError, match=message):
        read_samples(table, SampleColumns(samples="answers"))


def test_an_audit_of_graded_lists_reads_them_or_says_how_they_are_given():
    rows = pl.DataFrame(
        {
            "id": list(range(40)),
            "answers": [["a", "a", "b", "c"], ["b", "b", "b", "a"]] * 20,
            "correct": [[1, 1, 0, 0], [0, 0, 0, 1]] * 20,
        }
    )
    with pytest.raises(InputError, match="'correct' holds a list of grades in each row") as told:
        cal.audit(rows)
    assert str(told.value.hint).endswith('samples="answers" correct="correct"')
    found = cal.audit(rows, samples="answers")
    assert found["next"]["command"].startswith('calibrant.grade(table, samples="answers"')
    share = next(entry for entry in found["results"] if entry["method"] == "sem1")
    assert (share["n"], share["metrics"]["accuracy"]["value"]) == (40, 0.5)


def test_references_of_other_questions_are_refused(tmp_path):
    other = tmp_path / "refs.jsonl"
    other.write_text(json.dumps({"id": "x", "question": "?", "answer": "!"}) + "\n")
    with pytest.raises(InputError, match="no answer belongs to a question"):
        read_samples(per_question().drop("gold"), references=other)


@pytest.mark.parametrize(
    "name", ["q1-3", "q1_3", "q1:3", "q1#3", "q1/3", "q1-draw-3", "q1_sample3", "q1|n=3"]
)
def test_draw_numbers_behind_an_id_are_seen(name):
    assert matched_ids([name], ["q1"]) == {name: "q1"}


def test_an_id_that_ends_in_a_number_is_not_cut():
    assert matched_ids(["q-1"], ["q-1", "q"]) == {"q-1": "q-1"}


def graded_draws(answers, grades):
    table = pl.DataFrame({"question": [f"q{row}" for row in range(len(answers))], "a": answers})
    table = table.with_columns(g=pl.Series(grades, dtype=pl.List(pl.Int64)))
    return grade_samples(read_samples(table, SampleColumns("a", None, None, None, "g")))


def test_grades_do_not_cut_a_meaning():
    graded = graded_draws([["Lima", "Lima", "Lima", "Quito"]], [[1, 0, 1, 0]])
    assert graded.semantics["class_id"].to_list() == [0, 0, 0, 1]
    assert graded.semantics["correct"].to_list() == [True, True, True, False]
    share = graded.scores.filter(pl.col("method") == "consistency")
    assert (share["confidence"][0], share["correct"][0]) == (0.75, 1.0)
    assert graded.how["notes"] == [
        "meanings with draws graded right and draws graded wrong: 1 of 2. Each counts as one "
        "meaning, with the grade of most of its draws"
    ]


def test_a_tie_of_grades_goes_to_the_first_draw_and_is_counted():
    graded = graded_draws([["Lima", "Lima", "Quito"], ["4", "4", "5"]], [[0, 1, 0], [1, 1, 0]])
    assert graded.semantics["correct"].to_list() == [False, False, False, True, True, False]
    (note,) = graded.how["notes"]
    assert "1 of 4." in note
    assert note.endswith("where they tie (1) that of its first draw")


def test_a_draw_without_a_grade_has_that_of_its_meaning():
    graded = graded_draws([["Lima", "Lima", "Quito"]], [[1, None, 0]])
    assert graded.semantics["correct"].to_list() == [True, True, False]
    assert graded.semantics["grader"].to_list() == [
        "given",
        "given to its meaning",
        "given",
    ]
    assert graded.how["notes"] == []


def test_shares_do_not_depend_on_the_grades_that_were_given():
    answers = [["Lima", "Lima", "Lima", "Quito"]] * 6
    grades = ([1, 1, 1, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1])
    shares = graded_draws(answers, grades).scores.filter(pl.col("method") == "sem1")
    assert shares["confidence"].to_list() == [0.75] * 6


@pytest.mark.parametrize("wide", [True, False])
def test_draws_are_read_side_by_side_and_what_is_not_used_is_told(wide):
    names = [f"draw {n}" for n in range(4)]
    draws = {name: ["Lima", "Oslo" if n else "Rome"] * 9 for n, name in enumerate(names)}
    data = pl.DataFrame(
        {"id": range(18), **draws, "gold": ["Lima", "Oslo"] * 9, "token_logprobs": [[-0.1]] * 18}
    )
    if not wide:
        data = data.select("id", "gold", "token_logprobs", pl.concat_list(names).alias("drawn"))
    document = cal.audit(data, samples=",".join(names) if wide else "drawn", reference="gold")
    (shares,) = (r for r in document["results"] if r["method"] == "consistency")
    assert shares["n"] == 18
    assert shares["metrics"]["mean_confidence"]["value"] == pytest.approx(0.875)
    assert "Not used: token_logprobs." in document["samples"]["notes"][0]
