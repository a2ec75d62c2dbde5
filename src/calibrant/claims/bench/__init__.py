"""What a benchmark may say: about confidence on its questions, and about the questions."""

from calibrant.claims.bench.evaluation import evaluation_claims
from calibrant.claims.bench.questions import fewer_questions, question_claims

__all__ = ["evaluation_claims", "fewer_questions", "question_claims"]
