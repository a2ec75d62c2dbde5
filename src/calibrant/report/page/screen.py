"""The first screen: title line, warnings, badge, one sentence, one picture, one next step."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import Any

from calibrant.core.document import kind_of
from calibrant.findings.claims import Claim
from calibrant.findings.claims.next_step import Advice, next_step
from calibrant.findings.documents.fields import typed
from calibrant.report import answers
from calibrant.report.captions import title_line, without_folders
from calibrant.report.charts import Chart, answer_of
from calibrant.report.tables import said_first

# Kind of document, what its sentence answers, and the claims that answer it, best first.
_QUESTIONS = (
    ("compare", "Who is better calibrated", ("compare.leads", "compare.better_calibrated")),
    ("multi_answer", "Which method ranks answers best", ("bench.best_method",)),
    ("groups", "Where it is wrong", ("groups.stands_out",)),
    ("decide", "Where it may answer alone", ("decide.error_limit", "decide.cheaper")),
    ("cascade", "When to ask the larger model", ("cascade.beats_largest", "cascade.")),
)


@dataclass(frozen=True, slots=True)
class Headline:
    """A shown claim of one document, and the question that it answers."""

    kind: str
    question: str
    text: str


def findings(documents: Sequence[Mapping[str, Any]]) -> list[Headline]:
    """Return the largest shown claim for each question; what is undecided is not found.

    Examples
    --------
    >>> claim = {"id": "decide.error_limit", "subject": {"model": "a"}, "outcome": "shown",
    ...          "text": "May answer 60 % of the questions alone."}
    >>> found = findings([{"schema": "calibrant.decide/1", "results": [], "claims": [claim]}])
    >>> found[0].question, found[0].text
    ('Where it may answer alone', 'May answer 60 % of the questions alone.')
    """
    headlines = []
    for kind, question, target in _QUESTIONS:
        of_kind = [document for document in documents if kind_of(document) == kind]
        claim = _largest(
            [claim for document in of_kind for claim in answers.claims_of(document)], target
        )
        if claim is not None:
            model = claim.subject.get("model")
            owner = f" ({model})" if model and str(model) not in claim.text else ""
            headlines.append(Headline(kind, question + owner, claim.text))
    return headlines


def _largest(claims: Sequence[Claim], target: Sequence[str]) -> Claim | None:
    visible = [claim for claim in claims if claim.outcome == "shown"]
    kinds = ([claim for claim in visible if claim.id.startswith(name)] for name in target)
    of_kind = next(filter(None, kinds), [])
    first = answers.headline(of_kind, 1)
    return next((claim for claim in of_kind if [claim.text] == first), None)


# The first of these that a page holds answers the reader's question.
_LEADING = (
    "audit", "decide", "compare", "groups", "cascade", "monitor", "label", "plan", "multi_answer",
    "leaderboard",
)  # fmt: skip
_SENTENCES = 3
# Words of warnings and of the sentence above the picture: a first screen has sixty at most.
_WARNING_WORDS = 22
_WORDS_ABOVE = 26
_ASIDE = re.compile(r" \(((?:[\d.]+ % interval )?[\d.]+(?: %)? to [^()]*)\)")


@dataclass(frozen=True, slots=True)
class Screen:
    """What a reader sees first."""

    title: str
    warnings: Sequence[str]
    more_warnings: Sequence[str]
    notes: Sequence[str]
    badge: answers.Badge | None
    sentence: str
    more: Sequence[str]
    findings: Sequence[Headline]
    step: Advice | None
    chart: Chart | None


def leading_document(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the document whose answer stands at the top."""
    answering = [part for part in documents if part.get("results") or part.get("sem_ece")]
    leading = (part for kind in _LEADING for part in answering if kind_of(part) == kind)
    return next(leading, documents[0] if documents else None)


def first_screen(
    document: Mapping[str, Any],
    *,
    title: str | None = None,
    most: int = _SENTENCES,
    beside: Sequence[Mapping[str, Any]] = (),
) -> Screen:
    """Return the first screen of a document.

    Parameters
    ----------
    document
        The document whose answer stands at the top.
    title
        What the page is about.
    most
        Sentences at most.
    beside
        Other documents of the page: what they found follows the first sentence.
    """
    further = findings(beside)
    most = 1 if further else most
    claims, warnings = answers.rows_apart(said_first(document))
    chart = answer_of(document)
    sentences = _short_first(answers.headline(claims, most), chart)
    warnings += answers.warnings_of(typed(document))
    words = accumulate(len(text.split()) for text in warnings)
    # As many as fit above the picture; the first always stands there.
    display = max(sum(number <= _WARNING_WORDS for number in words), 1)
    return Screen(
        title=title_line(document, title=title),
        warnings=warnings[:display],
        more_warnings=warnings[display:],
        notes=answers.notes_of(typed(document)),
        badge=answers.badge_of(document, claims),
        sentence=sentences[0] if sentences else (chart.title if chart else ""),
        more=sentences[1:],
        findings=further,
        step=_step(document, beside),
        chart=chart,
    )


def _step(document: Mapping[str, Any], beside: Sequence[Mapping[str, Any]]) -> Advice | None:
    step = next_step(document, beside)
    if step is None:
        return None
    return Advice(step.why, reduce(without_folders, (document, *beside), step.command))


def _short_first(sentences: Sequence[str], chart: Chart | None) -> list[str]:
    """Keep what stands above the picture short and plain: how sure one is stands below it."""
    aside = _ASIDE.search(sentences[0]) if sentences else None
    if aside is not None:
        bare = sentences[0][: aside.start()] + sentences[0][aside.end() :]
        interval = aside[1] if "interval" in aside[1] else f"Interval {aside[1]}"
        sentences = [bare, f"{interval}.", *sentences[1:]]
    if not sentences or len(sentences[0].split()) <= _WORDS_ABOVE or chart is None:
        return list(sentences)
    head, mark, tail = sentences[0].partition(". ")
    if mark and len(head.split()) <= _WORDS_ABOVE:
        return [f"{head}.", tail, *sentences[1:]]
    return [chart.title, *sentences]
