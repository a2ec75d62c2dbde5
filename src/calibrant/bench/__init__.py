"""Questions with exactly k right answers, and what confidence is worth on them.

Start with `questions.question.BenchQuestion`, `make.bench_mace` and `evaluate.bench_evaluate`.
"""
