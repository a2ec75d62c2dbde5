"""MACE: questions with exactly k right answers, by rule or from facts."""

from calibrant.bench.questions.question import (
    BenchQuestion,
    question_rows,
    read_questions,
    write_questions,
)

__all__ = ["BenchQuestion", "question_rows", "read_questions", "write_questions"]
