"""Split a long answer into claims by rules: sentences, lists, and joined predicates."""

from __future__ import annotations

import re

_ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|approx|No|Fig|e\.g|i\.e|U\.S|Jr|Sr|Inc|Ltd|[A-Z])\.$"
)
# Letters that are looked at before a full stop: more than any abbreviation has.
_LONGEST_ABBREVIATION = 24
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_VERBS = (
    r"(?:is|are|was|were|has|have|had|can|could|will|would|may|might|does|did|became|becomes|"
    r"won|wrote|lived|died|served|received|led|founded|played|made|began|started|ended|moved|"
    r"studied|worked|helped|used|uses|contains|includes|covers|causes|lies|borders|plays|makes|"
    r"helps|provides|produces|includes|consists|requires|allows|reduces|increases|occurs)"
)
_JOINED = re.compile(rf"(?:;\s+|,?\s+and\s+(?:also\s+)?|,?\s+but\s+(?:also\s+)?)(?={_VERBS}\b)")
_SUBJECT = re.compile(rf"^(.{{1,80}}?)\s+{_VERBS}\b")
_EMPTY_TALK = re.compile(
    r"^(?:sure|of course|certainly|i hope|let me|here (?:is|are)|please|thank|as an ai|"
    r"in (?:summary|conclusion)[,:]?$|note that$|great question)",
    flags=re.IGNORECASE,
)
_FEWEST_WORDS = 3


def split_sentences(text: str) -> list[str]:
    r"""Return the sentences and list entries of a text.

    Examples
    --------
    >>> split_sentences("Dr. Curie won twice. She was born in 1867.\n- Physics prize: 1903")
    ['Dr. Curie won twice.', 'She was born in 1867.', 'Physics prize: 1903']
    """
    found = []
    for line in text.splitlines():
        # Long stretches of blanks are one: what looks for the words around them looks once.
        whole = " ".join(_BULLET.sub("", line).split())
        start = 0
        for match in _END.finditer(whole):
            before = whole[max(0, match.start() - _LONGEST_ABBREVIATION) : match.start()]
            if _ABBREVIATION.search(before.rstrip("\"')]")):
                continue
            found.append(whole[start : match.start()].strip())
            start = match.end()
        found.append(whole[start:].strip())
    return [sentence for sentence in found if sentence]


def split_claims(text: str) -> list[str]:
    """Return the claims of a text: one statement each, in its own words.

    A sentence with two predicates makes two claims, and the second one gets the subject of the
    first. Questions, headings, polite phrases and repetitions make none.

    Examples
    --------
    >>> split_claims("Lima is the capital of Peru and has ten million people. Is it nice?")
    ['Lima is the capital of Peru', 'Lima has ten million people']
    """
    claims: dict[str, None] = {}
    for sentence in split_sentences(text):
        if sentence.endswith(("?", ":")) or _EMPTY_TALK.match(sentence):
            continue
        bare = sentence.rstrip(".! ")
        subject = _SUBJECT.match(bare)
        for place, part in enumerate(_JOINED.split(bare)):
            claim = part.strip(" ,;")
            if place and subject:
                claim = f"{subject[1]} {claim}"
            if len(claim.split()) >= _FEWEST_WORDS:
                claims.setdefault(claim)
    return list(claims)
