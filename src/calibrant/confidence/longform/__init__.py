"""Long answers: split into claims, each with a confidence of its own."""

from calibrant.confidence.longform.claims import split_claims, split_sentences
from calibrant.confidence.longform.scoring import (
    ClaimScore,
    LongScore,
    claim_draws,
    score_long_answer,
    support,
)

__all__ = [
    "ClaimScore",
    "LongScore",
    "claim_draws",
    "score_long_answer",
    "split_claims",
    "split_sentences",
    "support",
]
