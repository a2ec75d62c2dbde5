"""Tables as people export them: what spreadsheets, notebooks, databases and tools really write.

Every case writes one file of the same answers. `READ` are read without an option; `ASKED` leave a
doubt, and the question names the option that ends it.
"""

import bz2
import gzip
import json
import lzma
import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import zstandard

N = 120


def answers():
    rng = np.random.default_rng(5)
    said = rng.choice([0.55, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99], N)
    right = rng.random(N) < said - 0.1
    texts = [f"What is the capital of country {k}?" for k in range(N)]
    topic = rng.choice(["law", "art", "sport"], N)
    return pl.DataFrame({"text": texts, "said": said, "right": right, "topic": topic})


BASE = answers()
SAID, RIGHT = BASE["said"].to_list(), BASE["right"].to_list()


def text(path, header, rows, mark=",", **how):
    """Write rows as a text table, as a spreadsheet saves it."""
    lines = [mark.join(header), *(mark.join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", **{"encoding": "utf-8", **how})


def rows(said, right):
    quoted = (f'"{line}"' for line in BASE["text"])
    return [(q, said(c), right(y)) for q, c, y in zip(quoted, SAID, RIGHT, strict=True)]


def comma(value):
    return str(value).replace(".", ",")


def english(path):
    text(path, ["Question", "Certainty", "Correct?"], rows(str, lambda y: str(y).upper()))


def german(path):
    words = {True: "WAHR", False: "FALSCH"}
    text(
        path, ["Frage", "Sicherheit", "Richtig"], rows(comma, words.get), ";", encoding="utf-8-sig"
    )


def french(path):
    words = {True: "VRAI", False: "FAUX"}
    percent = rows(lambda c: f"{comma(round(c * 100, 1))}\u202f%", words.get)
    text(path, ["Question", "Confiance", "Juste"], percent, ";")


def spanish(path):
    words = {True: "VERDADERO", False: "FALSO"}
    text(path, ["Pregunta", "Confianza", "Correcto"], rows(comma, words.get), ";")


def unicode_text(path):
    text(path, ["question", "confidence", "correct"], rows(str, int), "\t", encoding="utf-16")


def percent_cells(path):
    text(
        path,
        ["prompt", "confidence", "ok"],
        rows(lambda c: f"{c:.2%}", lambda y: "yes" if y else "no"),
    )


def empty_cells(path):
    said = [f"{c:.0%}" if k % 16 else "" for k, c in enumerate(SAID)]
    cells = [("q", c, "yes" if y else "no") for c, y in zip(said, RIGHT, strict=True)]
    text(path, ["source", "certainty", "is_right"], cells)


def beside(columns):
    """Two models in one row, each with a confidence and an outcome of its own."""

    def write(path):
        cells = [
            (k, *(f"{SAID[n]:.0%}" for n in both), *("yn"[not RIGHT[n]] for n in both))
            for k in range(N // 2)
            for both in [(k, k + N // 2)]
        ]
        text(path, ["Ticket", *columns], cells)

    return write


def empty_rows(path):
    english(path)
    path.write_text(path.read_text() + ",,\n" * 5)


def quoted(path):
    BASE.select(confidence="said", correct="right").write_csv(path, quote_style="always")


def old_line_ends(path):
    english(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))


def whole_percent(path):
    text(
        path,
        ["q", "self_confidence", "grade"],
        rows(lambda c: round(c * 100), lambda y: "right" if y else "wrong"),
    )


def frame(**more):
    return pd.DataFrame({"prob": SAID, "is_correct": RIGHT, **more})


def pandas_csv(path):
    frame().to_csv(path)


def pandas_json(orient):
    return lambda path: frame().to_json(
        path, orient=orient, **({"lines": True} if orient == "lines" else {})
    )


def pandas_lines(path):
    frame().to_json(path, orient="records", lines=True)


def pretty_rows(path):
    path.write_text(json.dumps(frame().to_dict("records"), indent=2))


def pretty_columns(path):
    path.write_text(json.dumps({"conf": SAID, "label": [int(y) for y in RIGHT]}, indent=1))


def pretty_lines(path):
    path.write_text("\n".join(json.dumps(row, indent=2) for row in frame().to_dict("records")))


def wrapped_rows(path):
    found = {"run": "2026-01-01", "n": N, "results": frame().to_dict("records")}
    path.write_text(json.dumps(found, indent=2))


def feather(path):
    frame().to_feather(path)


def pandas_categories(path):
    frame(model=pd.Categorical(["a"] * N)).to_parquet(path)


def polars_tab(path):
    BASE.select(p="said", y=pl.col("right").cast(int)).write_csv(path, separator="\t")


def polars_lines(path):
    BASE.select(confidence="said", correct="right").write_ndjson(path)


def arrow(path):
    BASE.select(confidence="said", correct="right").write_ipc(path)


def database(path, *tables):
    with sqlite3.connect(path) as db:
        for name in tables:
            db.execute(f"CREATE TABLE {name} (probability REAL, outcome INTEGER)")
            db.executemany(
                f"INSERT INTO {name} VALUES (?, ?)", zip(SAID, map(int, RIGHT), strict=True)
            )
    db.close()


def one_table(path):
    database(path, "scores")


def two_tables(path):
    database(path, "scores", "old_scores")


def postgres(path):
    text(
        path,
        ["id", "confidence", "correct"],
        [(k, c, "t" if y else "f") for k, (c, y) in enumerate(zip(SAID, RIGHT, strict=True))],
    )


def mysql(path):
    cells = [
        (c if k % 30 else r"\N", int(y)) for k, (c, y) in enumerate(zip(SAID, RIGHT, strict=True))
    ]
    text(path, ["confidence", "correct"], cells, "\t")


def strings(path):
    lines = (
        json.dumps({"confidence": str(c), "correct": str(y).lower()})
        for c, y in zip(SAID, RIGHT, strict=True)
    )
    path.write_text("\n".join(lines))


def packed(pack):
    def write(path):
        polars_tab(path)
        path.write_bytes(pack(path.read_bytes()))

    return write


def packed_lines(path):
    polars_lines(path)
    path.write_bytes(zstandard.compress(path.read_bytes()))


def letters(path):
    frame(score=["C" if y else "I" for y in RIGHT]).drop(columns="is_correct").to_csv(
        path, index=False
    )


def verdicts(path):
    BASE.select(
        score="said", verdict=pl.when("right").then(pl.lit("PASS")).otherwise(pl.lit("FAIL"))
    ).write_csv(path)


def two_names(path):
    models = ["m-1", "m-2"] * (N // 2)
    frame(model_id=models, model_name=[m.upper() for m in models]).to_csv(path, index=False)


def one_model_many_deployments(path):
    frame(model="gpt", deployment=["east", "west"] * (N // 2)).to_csv(path, index=False)


def answer_letters(path):
    frame(label=list("ABCD") * (N // 4)).to_csv(path, index=False)


def thrice(path):
    rng = np.random.default_rng(0)
    said = rng.uniform(0.4, 1, N)
    once = pl.DataFrame({"confidence": said, "correct": rng.random(N) < said})
    pl.concat([once] * 3).write_csv(path)


def four_rows_per_question(path):
    prompts = [f"Question {k // 4}" for k in range(N)]
    frame(prompt=prompts).to_csv(path, index=False)


def some_without_grade(path):
    grades = [None if k % 40 == 0 else y for k, y in enumerate(RIGHT)]
    pl.DataFrame({"confidence": SAID, "correct": grades}).write_csv(path)


def numbers_of_questions(path):
    frame(llm=["a", "b"] * (N // 2), Nr=[k // 2 + 1 for k in range(N)]).to_csv(path, index=False)


def runs_without_ids(path):
    frame(run=[k % 2 for k in range(N)]).to_csv(path, index=False)


def seeds_of_each_question(path):
    ids = [k // 2 for k in range(N)]
    frame(question_id=ids, seed=[k % 2 for k in range(N)]).to_csv(path, index=False)


def two_confidences(path):
    frame(certainty=SAID[::-1]).to_csv(path, index=False)


READ = {
    "spreadsheet, English": english,
    "spreadsheet, German: comma, semicolon, WAHR": german,
    "spreadsheet, French: 90,0 %, VRAI": french,
    "spreadsheet, Spanish: comma, VERDADERO": spanish,
    "spreadsheet, Unicode text": unicode_text,
    "spreadsheet, 90.00%, yes / no": percent_cells,
    "spreadsheet, empty cells": empty_cells,
    "spreadsheet, empty rows at the end": empty_rows,
    "spreadsheet, two models side by side": beside(
        ["GPT-4o confidence", "Claude confidence", "GPT-4o right?", "Claude right?"]
    ),
    "spreadsheet, two models side by side, German": beside(
        ["Sicherheit (A)", "Sicherheit (B)", "Richtig (A)", "Richtig (B)"]
    ),
    "spreadsheet, every cell quoted": quoted,
    "spreadsheet, line ends of old Macintoshes": old_line_ends,
    "spreadsheet, 90, right / wrong": whole_percent,
    "pandas, csv with its index": pandas_csv,
    "pandas, JSON by columns": pandas_json("columns"),
    "pandas, JSON by rows": pandas_json("records"),
    "pandas, JSON split": pandas_json("split"),
    "pandas, JSON by index": pandas_json("index"),
    "pandas, JSON table": pandas_json("table"),
    "pandas, JSON lines": pandas_lines,
    "JSON list, indented": pretty_rows,
    "JSON object of lists, indented": pretty_columns,
    "JSON objects, each indented": pretty_lines,
    "JSON object with a list of results": wrapped_rows,
    "pandas, Feather": feather,
    "pandas, parquet with categories": pandas_categories,
    "polars, csv with tabs": polars_tab,
    "polars, JSON lines": polars_lines,
    "polars, Arrow": arrow,
    "SQLite, one table": one_table,
    "PostgreSQL, csv with t / f": postgres,
    r"MySQL, tabs with \N": mysql,
    "BigQuery, JSON lines of strings": strings,
    "csv.gz": packed(gzip.compress),
    "csv.zst": packed(zstandard.compress),
    "csv.bz2": packed(bz2.compress),
    "csv.xz": packed(lzma.compress),
    "jsonl.zst": packed_lines,
    "grades C / I in a column score": letters,
    "confidence in a column score, PASS / FAIL": verdicts,
    "model_id and model_name of the same models": two_names,
    "one model, two deployments": one_model_many_deployments,
    "answer letters in a column label": answer_letters,
    "every row three times": thrice,
    "four rows per question, without ids": four_rows_per_question,
    "a few rows without a grade": some_without_grade,
    "two models, questions numbered in a column Nr": numbers_of_questions,
    "two columns of confidence": two_confidences,
}


def likert(path):
    BASE.select(confidence=(pl.col("said") * 5).round().cast(int), correct="right").write_csv(path)


def levels_in_words(path):
    word = pl.when(pl.col("said") > 0.8).then(pl.lit("high")).otherwise(pl.lit("low"))
    BASE.select(confidence=word, correct="right").write_csv(path)


def unknown_words(path):
    word = pl.when("right").then(pl.lit("fine")).otherwise(pl.lit("poor"))
    BASE.select(confidence="said", correct=word).write_csv(path)


def mixed_scales(path):
    said = [c * 100 if k % 4 else c for k, c in enumerate(SAID)]
    pl.DataFrame({"confidence": said, "correct": RIGHT}).write_csv(path)


def crossed_models(path):
    half = N // 2
    frame(model=["a"] * half + ["b"] * half, deployment=["x", "y"] * half).to_csv(path, index=False)


def no_confidence(path):
    BASE.select("text", similarity="said", correct="right").write_csv(path)


def no_grade(path):
    BASE.select("text", confidence="said").write_csv(path)


def many_without_grade(path):
    grades = [None if k % 4 == 0 else y for k, y in enumerate(RIGHT)]
    pl.DataFrame({"confidence": SAID, "correct": grades}).write_csv(path)


def repeated_ids(path):
    frame(question_id=[k // 2 for k in range(N)]).to_csv(path, index=False)


ASKED = {
    "levels from 3 to 5": (likert, "--scale 1-5", "--scale percent"),
    "levels in words": (levels_in_words, "--scale"),
    "words that nobody knows": (unknown_words, "--right"),
    "percentages and fractions": (mixed_scales, "--scale percent", "--scale mixed"),
    "models and deployments crossed": (crossed_models, "--model model", "--model deployment"),
    "grades, no confidence": (no_confidence, "--confidence similarity"),
    "confidence, no grades": (no_grade, "label next"),
    "a quarter without a grade": (many_without_grade, "label serve"),
    "ids that repeat": (repeated_ids, "--repeats"),
    "two runs, without ids": (runs_without_ids, "--repeats", "--method run"),
    "two seeds of each question": (seeds_of_each_question, "--repeats", "--method seed"),
    "SQLite, two tables": (two_tables, "table.any#old_scores"),
}
