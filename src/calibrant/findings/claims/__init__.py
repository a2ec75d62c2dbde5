"""Every sentence about data: the hypothesis, the test, the correction for number, the words.

A file per verb. `declared` lists all rules once `calibrant.findings.claims.checks` is loaded.
"""

from calibrant.findings.claims.claim import (
    ALPHA,
    OUTCOMES,
    Claim,
    ClaimRule,
    Outcome,
    declare,
    declared,
)

__all__ = ["ALPHA", "OUTCOMES", "Claim", "ClaimRule", "Outcome", "declare", "declared"]
