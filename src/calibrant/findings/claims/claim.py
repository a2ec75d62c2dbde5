"""What a claim is: an outcome of a declared test about a named part of the data, and its sentence.

Every sentence that calibrant says about data is made by a `ClaimRule`. The rule states the
hypothesis, the test, the correction for number and the margin, and holds one sentence for each
outcome. How often each sentence is false was measured by simulation; see `docs/claims.md`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from calibrant.findings.documents.entries import OUTCOMES as OUTCOMES
from calibrant.findings.documents.entries import Claim as Claim
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.entries import Outcome as Outcome

# The most often that any one sentence may be false.
ALPHA = 0.05

# What a sentence is made of: numbers and names of the document, nothing else.
Facts: TypeAlias = Mapping[str, Any]
# Whose claim it is: model and method, a group, a pair, a policy.
Subject: TypeAlias = Mapping[str, object]
Sentence: TypeAlias = Callable[[Facts], str]


class About(Struct, frozen=True):
    """What claims are about, with the facts that their sentences share."""

    subject: Subject
    facts: Facts = {}


class ClaimRule(Struct, frozen=True):
    """A declared kind of claim.

    Parameters
    ----------
    id
        Verb and name, ``audit.over_confident``.
    question
        What a reader asks, in plain words.
    hypothesis
        What the claim says when it is shown, in symbols.
    test
        How that is decided.
    correction
        What is done about many claims of this kind in one document.
    sentences
        A sentence per outcome, made from the facts of the document.
    margin
        Default margin, where the rule has one.
    opposite
        Rule that is told in its place where the data point the other way: one test, two names.
    """

    id: str
    question: str
    hypothesis: str
    test: str
    correction: str
    sentences: Mapping[Outcome, Sentence]
    margin: float | None = None
    opposite: str | None = None

    def claim(
        self,
        outcome: Outcome,
        about: About,
        facts: Facts | None = None,
        *,
        estimate: Mapping[str, Any] | EstimateEntry | None = None,
        p_adjusted: float | None = None,
        margin: float | None = None,
        n: float | None = None,
    ) -> Claim:
        """Return a claim of this kind with its sentence.

        Parameters
        ----------
        outcome
            What the test said.
        about
            What it is about.
        facts
            What the sentence is made of, beside the estimate, the margin and the shared facts.
        estimate
            ``value``, ``low``, ``high`` and ``n`` of the quantity.
        p_adjusted, margin, n
            As in `Claim`; the margin is that of the rule and n that of the estimate unless given.
        """
        if outcome not in self.sentences:
            raise KeyError(f"{self.id} has no sentence for the outcome {outcome!r}")
        sizes = asdict(estimate) if isinstance(estimate, EstimateEntry) else estimate or {}
        margin = self.margin if margin is None else margin
        all_facts = {**about.facts, **sizes, "margin": margin, **(facts or {})}
        return Claim(
            self.id,
            about.subject,
            outcome,
            " ".join(self.sentences[outcome](all_facts).split()),
            sizes.get("value"),
            sizes.get("low"),
            sizes.get("high"),
            p_adjusted,
            margin,
            sizes.get("n") if n is None else n,
        )


_RULES: dict[str, ClaimRule] = {}


def declare(rule: ClaimRule) -> ClaimRule:
    """Add a rule to the list of everything that calibrant may say.

    Examples
    --------
    >>> from calibrant.findings.claims import audit, declared
    >>> "audit.over_confident" in {rule.id for rule in declared()}
    True
    """
    if rule.id in _RULES:
        raise ValueError(f"the claim {rule.id} is declared twice")
    _RULES[rule.id] = rule
    return rule


def declared() -> Iterator[ClaimRule]:
    """Yield every rule that is loaded, in order of its id."""
    yield from (_RULES[name] for name in sorted(_RULES))
