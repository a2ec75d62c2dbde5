"""The answer of a document: its claims, the word of its badge, what to mind about the data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from calibrant.core.document import given_places, kind_of
from calibrant.core.places import bare_name
from calibrant.findings.claims import Claim
from calibrant.findings.claims.audit import calibration_word
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.entries import Keys
from calibrant.findings.documents.fields import Fields, MonitorFields, RunFields, typed
from calibrant.report.glossary import kind_words

SYMBOLS = {
    "over_confident": "▲",
    "under_confident": "▼",
    "miscalibrated": "◆",
    "calibrated": "✓",
    "shown": "✓",
    "equivalent": "≈",
    "undecided": "?",
    "depends": "±",
    "caution": "!",
    "alarm": "▲",
    "not_tested": "·",
}
"""A sign per tone: colour alone would say nothing to many readers."""

_OUTCOMES = {"shown": 0, "depends": 1, "equivalent": 2, "undecided": 3}
_COUNTED = {"groups": "of them"}
# What a comparison calls its verdicts at a glance.
_COMPARED = {
    ("compare.better_calibrated", "shown"): "better calibrated",
    ("compare.only_more_accurate", "shown"): "only more accurate",
    ("compare.more_accurate_alike", "shown"): "more accurate, alike",
    ("compare.reversal", "shown"): "looks better, is worse",
    ("compare.depends", "depends"): "it depends",
}
# Said of the rows, not of what was asked.
_OF_ROWS = ("compare.missing_related",)
# The one question of a kind that its badge answers, where its claims answer several.
_BADGE_CLAIM = {
    "decide": "decide.error_limit",
    "groups": "groups.stands_out",
    "compare": "compare.better_calibrated",
    # Its promise stands whether or not mending is worth it.
    "mend": "mend.gain",
    # With a ranking, what labels could show is said beside it.
    "plan": "plan.order",
    "multi_answer": "bench.best_method",
}
# What is shown against a judge: no tick, which would say that all is well.
_AGAINST = ("lenient", "harsh", "agrees_less", "favours", "length", "position")
# One question, two directions: they are ranked together.
_SAME = {
    "judge.harsh": "judge.lenient",
    "judge.people_mean": "judge.lenient",
    "audit.under_confident": "audit.over_confident",
    "audit.meanings_under_confident": "audit.meanings_over_confident",
    "compare.only_more_accurate": "compare.better_calibrated",
    "compare.reversal": "compare.better_calibrated",
    "compare.equivalent": "compare.better_calibrated",
    "compare.depends": "compare.better_calibrated",
}


def claim_tone(claim: Claim) -> str:
    """Return what colours a claim: its own name where the name is a verdict, else its outcome.

    Examples
    --------
    >>> claim_tone(Claim("audit.over_confident", {}, "shown", ""))
    'over_confident'
    >>> claim_tone(Claim("audit.over_confident", {}, "undecided", ""))
    'undecided'
    """
    # `models_over_confident` is about several: the verdict stands at the end of a name.
    verdict = next((tone for tone in SYMBOLS if claim.id.endswith(tone)), None)
    verdict = "caution" if claim.id in {f"judge.{name}" for name in _AGAINST} else verdict
    return verdict if claim.outcome == "shown" and verdict is not None else claim.outcome


class Badge(Struct, frozen=True):
    """The verdict at a glance: tone (colour), sign and words."""

    tone: str
    words: str

    @property
    def symbol(self) -> str:
        """Return the sign of its tone."""
        return SYMBOLS.get(self.tone, "·")


def claims_of(document: Mapping[str, object]) -> list[Claim]:
    """Return the claims of a document in its order: the most important first."""
    claims: list[Claim] = typed(document).claims if document.get("claims") else []
    return claims


_READING = "data.reading"


def warnings_of(document: Fields) -> list[str]:
    """Return what a reader has to know about the data before any number.

    What was read in another way than it stands there is among it; columns that were found by their
    names and values are not, see `notes_of`.
    """
    reversals = (document.get("reading") or {}).get("notes") or ()
    warnings = (document.get("data") or {}).get("warnings") or ()
    texts = [str(w["text"]) for w in warnings if w["id"] != _READING]
    # What an endpoint did may void what was computed from its answers.
    notes = (document.findings or ()) if isinstance(document, RunFields) else ()
    texts += [f"{note['model']}: {note['message']}." for note in notes]
    return list(dict.fromkeys([*map(str, reversals), *texts]))


def notes_of(document: Fields) -> list[str]:
    """Return how the data were read, and what was looked for in them and not found."""
    data = document.get("data") or {}
    readings = [str(w["text"]) for w in data.get("warnings") or () if w["id"] == _READING]
    return [*readings, *map(str, data.get("notes") or ())]


def rows_apart(claims: Sequence[Claim]) -> tuple[list[Claim], list[str]]:
    """Return the claims that answer a question, and sentences about the rows: warnings to it."""
    answers = [claim for claim in claims if claim.id not in _OF_ROWS]
    remainder = [claim.text for claim in claims if claim.id in _OF_ROWS]
    return (answers, remainder) if answers else (list(claims), [])


def headline(claims: Sequence[Claim], most: int) -> list[str]:
    """Return the most important sentences: over everything first, then the largest shown.

    Examples
    --------
    >>> small = Claim("audit.over_confident", {"model": "a"}, "shown", "A is off by 2.", 0.02)
    >>> large = Claim("audit.over_confident", {"model": "b"}, "shown", "B is off by 9.", 0.09)
    >>> headline([small, large], 1)
    ['B is off by 9.']
    """
    lead = [claim.text for claim in _groups_ahead(claims)[: most - 1]]
    texts = dict.fromkeys(claim.text for claim in _ranked(claims) if claim.text)
    remainder = [text for text in texts if text not in lead]
    return [*remainder[: most - len(lead)], *lead]


def _ranked(claims: Sequence[Claim]) -> list[Claim]:
    # A document asks its most important question first.
    order = {name: place for place, name in enumerate(dict.fromkeys(_asks(c) for c in claims))}
    # Groups stay as they were found: a later one is told beyond those before it. The model with
    # the largest first one comes first.
    first: dict[tuple[Any, Any], float] = {}
    for claim in filter(_stands_out, claims):
        first.setdefault(_whose(claim), _size(claim))

    def rank(claim: Claim) -> tuple[bool, bool, int, int, float]:
        size = first[_whose(claim)] if _stands_out(claim) else _size(claim)
        return (
            not _is_summary(claim),
            bool(claim.subject.get("group")),
            order[_asks(claim)],
            _OUTCOMES.get(claim.outcome, 4),
            0.0 if _is_summary(claim) else -size,
        )

    return sorted(claims, key=rank)


def _size(claim: Claim) -> float:
    return abs(claim.value or 0.0)


def _groups_ahead(claims: Sequence[Claim]) -> list[Claim]:
    """Return the audited group that says most too much, and the one that says most too little.

    Whoever asks for groups wants to hear of them: a mean over all of them may hide both.
    """
    visible = [c for c in claims if c.outcome == "shown" and c.subject.get("group")]
    sides = (
        [claim for claim in visible if claim.id == f"audit.{name}_confident"]
        for name in ("over", "under")
    )
    return sorted((max(side, key=_size) for side in sides if side), key=_size, reverse=True)


def _asks(claim: Claim) -> str:
    return _SAME.get(claim.id, claim.id)


def _is_summary(claim: Claim) -> bool:
    """Return whether a claim is about everything, and not about one model or one pair."""
    return not any(claim.subject.get(name) for name in ("model", "a", "rule", "pair"))


def badge_of(document: Mapping[str, object], claims: Sequence[Claim]) -> Badge | None:
    """Return the badge of a document, or None where it makes no claim."""
    result, kind = typed(document), kind_of(document)
    if kind == "audit" and document["results"]:
        about, entries = claims_by_entry(claims), whole_entries(result.blocks)
        tones = [entry_tone(entry, about) for entry in entries]
        return _counted([tone for tone in tones if tone != "not_tested"], claims, "confidences")
    if kind == "monitor":
        return _watched(result, claims)
    if any(claim.id == "bench.questions_broken" for claim in claims):
        return Badge("alarm", "questions do not hold")
    if claims and claims[0].id == "plan.opening":
        # A number of labels is no verdict.
        return None
    if kind == "cascade" and claims:
        return _traded(claims[0])
    if standing := {claim.subject.get("rule") for claim in claims if _stands_out(claim)}:
        one = len(standing) == 1
        return Badge("shown", f"{len(standing)} group{' stands' if one else 's stand'} out")
    answers = [claim for claim in claims if _asks(claim) == _BADGE_CLAIM.get(kind)] or claims
    # Of several judges each has a verdict of its own: the badge is that of the first sentence.
    answers = claims[:1] if kind == "judge" else answers
    verdicts = [claim for claim in answers if not _is_summary(claim)] or answers
    if kind == "compare" and verdicts:
        return _compared(verdicts)
    # Where verdicts are as frequent, the badge is about the one that the first sentence tells.
    ranking = sorted(verdicts, key=lambda claim: _OUTCOMES.get(claim.outcome, 4))
    badge = _counted([claim_tone(claim) for claim in ranking], claims, _COUNTED.get(kind, "claims"))
    if badge is None:
        return None
    word, mark, tail = badge.words.partition(",")
    # A verdict in the words of the question that was asked.
    of_kind = (kind_words(kind, "badge") or {}).get(badge.tone, word)
    words = (kind_words(verdicts[0].id, "badge") or {}).get(badge.tone, of_kind)
    return Badge(badge.tone, words + mark + tail)


def _watched(document: MonitorFields, claims: Sequence[Claim]) -> Badge | None:
    if any(entry.alarm for entry in document.results):
        return Badge("alarm", "alarm")
    if document.traffic and document.traffic.changes:
        return Badge("alarm", "traffic changed")
    return Badge("not_tested", "no alarm so far") if claims else None


def _compared(claims: Sequence[Claim]) -> Badge:
    """Return the most frequent verdict on the pairs of a comparison."""
    (name, outcome), count = Counter((c.id, c.outcome) for c in claims).most_common(1)[0]
    if (name, outcome) == ("compare.better_calibrated", "shown") and len(claims) > 1:
        return Badge(outcome, f"{count} of {len(claims)} pairs differ")
    words = _COMPARED.get((name, outcome), outcome)
    if outcome == "equivalent" and claims[0].margin:
        words += f" within {100 * claims[0].margin:g} points"
    return Badge(outcome, words + _how_many(count, len(claims), "pairs"))


def _how_many(count: int, whole: int, what: str) -> str:
    """Return how many of several a badge is about."""
    if whole == 1:
        return ""
    number = "both" if whole == 2 else f"all {whole}"
    return f", {number} {what}" if count == whole else f", {count} of {whole}"


def _whose(claim: Claim) -> tuple[Any, Any]:
    return claim.subject.get("model"), claim.subject.get("method")


def _stands_out(claim: Claim) -> bool:
    return claim.id == _BADGE_CLAIM["groups"] and claim.outcome == "shown"


def _traded(claim: Claim) -> Badge:
    """Return what asking the larger model only at times gives away, or gains."""
    if claim.id == "cascade.guarantee":
        return Badge(claim.outcome, "certified" if claim.outcome == "shown" else "not certified")
    if claim.outcome == "equivalent":
        return Badge("equivalent", f"as accurate within {100 * (claim.margin or 0):g} points")
    if claim.outcome == "shown" and (claim.value or 0.0) < 0:
        return Badge("depends", "cheaper but less accurate")
    return Badge(claim.outcome, "more accurate" if claim.outcome == "shown" else claim.outcome)


def _counted(tones: Sequence[str], claims: Sequence[Claim], what: str) -> Badge | None:
    tones = [tone for tone in tones if tone]
    if not tones:
        return None
    tone, count = Counter(tones).most_common(1)[0]
    words = tone.replace("_", "-")
    margins = {claim.margin for claim in claims if claim.outcome == "equivalent" and claim.margin}
    if tone in ("calibrated", "equivalent") and len(margins) == 1:
        words += f" within {100 * margins.pop():g} points"
    return Badge(tone, words + _how_many(count, len(tones), what))


def graded_without(entry: AuditBlock) -> bool:
    """Return whether answers without a confidence count in the accuracy of an audit's entry."""
    confidence = "mean_confidence" if "mean_confidence" in entry.metrics else "auroc"
    return entry.metric("accuracy").n != entry.metric(confidence).n


def whole_entries(entries: list[AuditBlock]) -> list[AuditBlock]:
    """Return the entries of whole models; where there are none, all entries."""
    return [entry for entry in entries if not entry.group] or entries


def entry_tone(entry: AuditBlock, claims: Mapping[str, Sequence[Claim]]) -> str:
    """Return the verdict on one audited confidence, from the claims by entry."""
    about = claims.get(key_of(entry))
    if not entry.probability or not about:
        return "not_tested"
    return calibration_word(about).replace("-", "_")


def claims_by_entry(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    """Return the claims about single entries, by the key of the entry."""
    by_entry: dict[str, list[Claim]] = {}
    for claim in claims:
        if claim.subject.get("model") is not None:
            about = (claim.subject.get(name) for name in ("model", "method", "group"))
            by_entry.setdefault(entry_key(*about), []).append(claim)
    return by_entry


def entry_key(model: str | None, method: str | None, group: Keys = None) -> str:
    """Return what a link opens: model, method and group of an entry, as JSON would name them.

    Examples
    --------
    >>> entry_key("a", "verb", {"topic": "law"})
    'a␟verb␟topic=law'
    """
    return f"{model}␟{method or ''}␟{group_words(group)}"


def key_of(entry: AuditBlock) -> str:
    """Return the key of an audited confidence."""
    return entry_key(entry.model, entry.method, entry.group)


def group_words(group: Keys) -> str:
    """Return the group that an entry is about; nothing for all rows."""
    return ", ".join(f"{name}={value}" for name, value in (group or {}).items())


def source_name(document: Mapping[str, object]) -> str:
    """Return the name of the input without its folder: a page shows no place of a machine.

    Examples
    --------
    >>> source_name({"source": "/home/me/runs/mmlu_pro.parquet"})
    'mmlu_pro'
    >>> source_name({"source": "draws.jsonl.gz"})
    'draws'
    >>> source_name({"source": ["runs/a.csv", "runs/b.csv"]})
    'a and b'
    >>> source_name({"source": ["a/scores.csv", "b/scores.csv"]})
    '2 inputs'
    >>> source_name({"source": "a table in memory"})
    ''
    """
    places = given_places(document)
    names = [bare_name(place) for place in places if place != "-"]
    if len(places) > 2 or len(set(names)) < len(names):
        return f"{len(places)} inputs"
    return " and ".join(names)
