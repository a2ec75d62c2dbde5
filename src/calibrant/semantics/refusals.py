"""Texts that attempt no answer: refusals and empty replies."""

from __future__ import annotations

import re

NOT_ATTEMPTED = ("refusal", "empty")
_ALONE = re.compile(
    r"^(?:i\s+)?(?:(?:do\s*n[o']t|don't|dont|can\s*not|cannot|can't)\s+(?:know|answer|say|tell)"
    r"|(?:am\s+|i'm\s+)?(?:not\s+sure|unsure|uncertain)|no\s+(?:idea|answer|clue|comment|response)"
    r"|unknown|n\s*/\s*a|idk|not\s+(?:known|available|applicable|specified|enough\s+information)"
    r"|refus(?:e|ed|al)|declined?|pass|skip|unanswerable|insufficient\s+information"
    r"|not\s+attempted|unable\s+to\s+(?:answer|determine|say))"
    r"(?:\s+(?:the\s+)?(?:answer|question|it|that|this|for\s+sure))?\W*$",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^\W*(?:(?:i'm|i\s+am|we\s+are)\s+(?:very\s+|really\s+|so\s+)?(?:sorry|afraid|not\s+sure|unable"
    r"|not\s+able|not\s+aware|not\s+certain|not\s+familiar)"
    r"|sorry\b|apologies|my\s+apologies|unfortunately"
    r"|(?:i|we)\s+(?:do\s+not|don't|cannot|can't|can\s+not|could\s+not|couldn't|am\s+unable)\s+"
    r"(?:know|have|find|answer|provide|determine|say|tell|recall|confirm|help|assist|access|verify)"
    r"|as\s+an\s+(?:ai|artificial)\b|as\s+a\s+(?:large\s+)?language\s+model"
    r"|there\s+is\s+no\s+(?:information|answer|record|data|definitive)"
    r"|it\s+is\s+(?:not|un)\s*(?:clear|known|possible)|it's\s+(?:not\s+clear|unclear)"
    r"|(?:the|this)\s+question\s+(?:is|does|cannot|can't|seems|lacks)"
    r"|please\s+(?:provide|specify|clarify)|could\s+you\s+(?:please|clarify)"
    r"|more\s+(?:context|information)\s+(?:is|would))",
    re.IGNORECASE,
)
# After one of these a refusal usually gives an answer all the same.
_TURN = re.compile(
    r"\b(?:but|however|though|although|nevertheless|that said|my (?:best )?guess|as of|according"
    r"|based on|i (?:think|believe|would say|can tell)|answer\s*:|it is likely|probably|possibly"
    r"|most likely)\b",
    re.IGNORECASE,
)
_HAS_CONTENT = re.compile(r"\w|[-+=<>]|[^\x00-\x7f\u00a0\u2000-\u206f\ufffd]")


def not_attempted(text: str) -> str | None:
    """Return ``"empty"`` or ``"refusal"`` where the text attempts no answer, else None.

    A refusal that goes on to give an answer counts as an attempt.

    Examples
    --------
    >>> not_attempted("  "), not_attempted("I don't know."), not_attempted("Paris")
    ('empty', 'refusal', None)
    >>> not_attempted("As an AI I have no live data, but Jim Brown holds the record.") is None
    True
    """
    plain = text.strip().replace("\u2019", "'")
    if not plain or not _HAS_CONTENT.search(plain):
        return "empty"
    if len(plain) > 400:
        plain = plain[:400]
    if _ALONE.match(plain):
        return "refusal"
    opening = _OPENING.match(plain)
    if opening and not _TURN.search(plain[opening.end() :]):
        return "refusal"
    return None
