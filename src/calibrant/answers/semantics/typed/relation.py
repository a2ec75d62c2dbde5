"""What rules say about two answers."""

from enum import Enum


class Relation(Enum):
    """SAME and DIFFERENT decide.

    LIKELY joins only where it points to one class alone (a surname and one full name).
    UNSURE is left to embeddings or a judge, and means 'not joined' without them.
    """

    SAME = "same"
    LIKELY = "likely"
    UNSURE = "unsure"
    DIFFERENT = "different"


Verdict = tuple[Relation, str]


def decided(same: bool, rule: str) -> Verdict:
    """Return the verdict of a rule that tells same from different."""
    return (Relation.SAME if same else Relation.DIFFERENT), rule
