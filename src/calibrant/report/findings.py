"""What a study found: one sentence per question that its documents answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.claims import Claim
from calibrant.core.document import kind_of
from calibrant.report.answers import claims_of, headline

# Kind of document, what its sentence answers, and the claims that answer it, best first.
_QUESTIONS = (
    ("compare", "Who is better calibrated", ("compare.leads", "compare.better_calibrated")),
    ("multi_answer", "Which method ranks answers best", ("bench.best_method",)),
    ("groups", "Where it is wrong", ("groups.stands_out",)),
    ("decide", "Where it may answer alone", ("decide.error_limit", "decide.cheaper")),
    ("cascade", "When to ask the larger model", ("cascade.beats_largest", "cascade.")),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A shown claim of one document, and the question that it answers."""

    kind: str
    question: str
    text: str


def findings(documents: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Return the largest shown claim for each question; what is undecided is not found.

    Examples
    --------
    >>> claim = {"id": "decide.error_limit", "subject": {"model": "a"}, "outcome": "shown",
    ...          "text": "May answer 60 % of the questions alone."}
    >>> found = findings([{"schema": "calibrant.decide/1", "results": [], "claims": [claim]}])
    >>> found[0].question, found[0].text
    ('Where it may answer alone', 'May answer 60 % of the questions alone.')
    """
    found = []
    for kind, question, wanted in _QUESTIONS:
        own = [document for document in documents if kind_of(document) == kind]
        claim = _largest([claim for document in own for claim in claims_of(document)], wanted)
        if claim is not None:
            model = claim.subject.get("model")
            unnamed = model and str(model) not in claim.text
            found.append(
                Finding(kind, f"{question} ({model})" if unnamed else question, claim.text)
            )
    return found


def _largest(claims: Sequence[Claim], wanted: Sequence[str]) -> Claim | None:
    shown = [claim for claim in claims if claim.outcome == "shown"]
    for name in wanted:
        own = [claim for claim in shown if claim.id.startswith(name)]
        if own:
            first = headline(own, 1)
            return next(claim for claim in own if [claim.text] == first)
    return None
