"""What an audit may say about calibration over meanings, from sampled answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from calibrant.findings.claims import ALPHA, About, Claim, Facts, Outcome, count, joined, rule
from calibrant.findings.claims.data import warning
from calibrant.findings.claims.grades import grades_sentence
from calibrant.findings.claims.margins import ERROR_MARGIN, more_labels
from calibrant.findings.documents.audits import AuditBlock, SemanticEntry
from calibrant.findings.documents.entries import DataWarning
from calibrant.metrics.stats.multiplicity import holm

ROLES = {
    "samples": "sampled answers",
    "reference": "right answers",
    "question": "question ids",
    "text": "question texts",
    "model": "models",
    "draw": "draw numbers",
    "correct": "grades",
}


def sample_warnings(how: Mapping[str, Any]) -> list[DataWarning]:
    """Return what a reader should know about sampled answers before any claim.

    Examples
    --------
    >>> how = {"columns": {"samples": "answers", "question": "id"}, "guessed": ["question"]}
    >>> sample_warnings({**how, "notes": []})[0]["text"]
    'Guessed columns: id (question ids).'
    """
    guessed = [f"{how['columns'][role]} ({ROLES[role]})" for role in how["guessed"]]
    notes = [f"{note[0].upper()}{note[1:]}." for note in how["notes"]]
    warnings = [warning("samples", note, models=[]) for note in notes]
    if guessed:
        text = f"Guessed columns: {joined(guessed, most=6)}."
        warnings.insert(0, warning("guessed_columns", text, models=[]))
    return warnings


def judge_limit_warning(semantics: Mapping[str, Any]) -> list[DataWarning]:
    """Return the warning that a limit kept questions from the judge: rules decided there.

    Examples
    --------
    >>> judge_limit_warning({"judge_calls": 7, "judge_calls_refused": 693})[0]["text"][:82]
    'The judge was asked 7 questions, the limit. Rules decided 693 more that it was not'
    >>> judge_limit_warning({"judge_calls": 7, "judge_calls_refused": 0})
    []
    """
    remaining = semantics["judge_calls_refused"]
    if not remaining:
        return []
    text = (
        f"The judge was asked {count(semantics['judge_calls'], 'question')}, the limit. Rules "
        f"decided {remaining:,} more that it was not asked. With a larger limit it is asked "
        "these too; "
        "no reply is paid for twice."
    )
    return [warning("judge_limit", text, models=[])]


# Above this share of questions the split of right answers matters for the shares of meanings.
_MANY_SPLIT = 0.05


def several_right_warning(several: int, questions: int) -> list[DataWarning]:
    """Return the warning that one right answer was given in wordings that stayed apart.

    Examples
    --------
    >>> several_right_warning(298, 500)[0]["text"].split(". ")[0]
    'In 298 of 500 questions several meanings match the one right answer'
    >>> several_right_warning(5, 500)
    []
    """
    if several <= _MANY_SPLIT * questions:
        return []
    text = (
        f"In {several:,} of {questions:,} questions several meanings match the one right answer. "
        "They are counted apart, so the share of the leading meaning may be too low. A judge "
        "model can put them together."
    )
    return [warning("several_right", text, models=[])]


def _need(facts: Facts) -> str:
    more = more_labels(facts["gap"], facts["margin"])
    return "More questions" if more is None else f"About {count(_rounded(more), 'more question')}"


def _who(facts: Facts) -> str:
    return f"{facts['name']}: the answer" if facts["named"] else "The answer"


def _rounded(number: float) -> int:
    size = max(int(number), 10)
    unit = int(10 ** max(len(str(size)) - 1, 1))
    return max(round(size / unit) * unit, unit)


OVER, UNDER = (
    rule(
        f"audit.meanings_{word}_confident",
        margin=ERROR_MARGIN,
        depends=grades_sentence,
        who=_who,
        need=_need,
    )
    for word in ("over", "under")
)


# The test is exact, so that at 5 % it would be false in 5 % of runs: this keeps it below.
MISCALIBRATED_ALPHA = 0.03

MISCALIBRATED = rule("audit.meanings_miscalibrated")


def meaning_claims(
    blocks: Sequence[SemanticEntry],
    results: Sequence[AuditBlock],
    margin: float,
    tested: Sequence[Claim] = (),
) -> list[Claim]:
    """Return the claims about calibration over meanings.

    Parameters
    ----------
    blocks
        Sem-ECE blocks of an audit.
    results
        Entries of the audit: a model whose Sem2 is one of its confidences has its direction
        claimed there.
    margin
        Differences below it do not matter.
    tested
        Directions of Sem2 as the audit tested them, where meanings are what it is about: they are
        told here, in words about meanings.
    """
    claimed = {_place(entry) for entry in results if entry.method == "sem2"}
    strict = {(c.subject["model"], str(c.subject.get("group"))): c for c in tested}
    several = len(blocks) > 1
    claims: list[Claim] = []
    for family in (False, True):
        part = [block for block in blocks if bool(block.group) == family]
        claims += [
            _retold(strict[_place(block)], block, margin, named=several)
            for block in part
            if _place(block) in strict
        ]
        open_blocks = [block for block in part if _place(block) not in claimed]
        claims += _direction_claims(open_blocks, margin, named=several)
        claims += _miscalibration_claims(part, named=several)
    return claims


def _place(entry: SemanticEntry | AuditBlock) -> tuple[str, str]:
    return entry.model, str(entry.group)


def _direction_claims(
    blocks: Sequence[SemanticEntry], margin: float, *, named: bool
) -> Iterable[Claim]:
    leads = [(block, block.leading) for block in blocks if block.leading]
    tested = [(block, leading) for block, leading in leads if leading.p_value is not None]
    adjusted = holm([leading.p_value or 0.0 for _, leading in tested])
    for (block, leading), p_adjusted in zip(tested, adjusted, strict=True):
        above = (leading.gap.value or 0.0) >= 0
        sized = leading.gap if above else leading.gap.turned()
        outcome: Outcome = "shown" if p_adjusted <= ALPHA else "undecided"
        if leading.within and all(e is not None and abs(e) < margin for e in leading.within):
            outcome = "equivalent"
        rule, about = OVER if above else UNDER, _about(block, named)
        yield rule.claim(outcome, about, estimate=sized, p_adjusted=p_adjusted, margin=margin)


def _about(block: SemanticEntry, named: bool) -> About:
    facts = {"draws": block.draws, "name": block.name, "named": named}
    if block.leading is not None:
        facts |= {name: getattr(block.leading, name) for name in ("gap", "confidence", "accuracy")}
    return About({"model": block.model, "method": "meanings", "group": block.group}, facts)


def _retold(claim: Claim, block: SemanticEntry, margin: float, *, named: bool) -> Claim:
    """Return the direction of Sem2 as a claim about the answer that leads the draws."""
    rule = OVER if claim.id.endswith("over_confident") else UNDER
    about = _about(block, named)
    if claim.outcome == "depends":
        return replace(claim, id=rule.id, subject=about.subject)
    sized = {name: getattr(claim, name) for name in ("value", "low", "high", "n")}
    return rule.claim(
        claim.outcome, about, estimate=sized, p_adjusted=claim.p_adjusted, margin=margin
    )


def _miscalibration_claims(blocks: Sequence[SemanticEntry], *, named: bool) -> Iterable[Claim]:
    tested = [(block, floor) for block in blocks if (floor := block.noise_floor.sem2)]
    adjusted = holm([floor.p for _, floor in tested])
    for (block, floor), p_adjusted in zip(tested, adjusted, strict=True):
        about, facts = _about(block, named), {"floor": floor.floor}
        display = p_adjusted <= MISCALIBRATED_ALPHA
        yield MISCALIBRATED.claim(display, about, facts, estimate=block.sem2, p_adjusted=p_adjusted)
