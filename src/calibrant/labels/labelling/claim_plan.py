"""Plans by claim, block by block: labels for a claim, and what labels can claim."""

import re
from collections.abc import Sequence

import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.findings.documents.plans import ClaimChance, ClaimNeeds, ClaimPlanEntry, LabelsShow
from calibrant.labels.labelling.power import claim_chance, claim_for_labels, labels_for_claim

_CLAIM = re.compile(r"\s*ece\s*<=?\s*([0-9.eE+-]+)\s*(%?)\s*")


def parse_claim(text: str) -> float:
    """Return the threshold of a claim such as ``ece<0.05``.

    Examples
    --------
    >>> parse_claim("ece<0.05"), parse_claim("ECE < 5 %")
    (0.05, 0.05)
    """
    match = _CLAIM.fullmatch(text.lower())
    try:
        value = float(match[1]) / (100 if match[2] else 1) if match else float("nan")
    except ValueError:
        value = float("nan")
    if not 0.0 < value < 1.0:
        raise InputError(f"a claim is written like 'ece<0.05', got {text!r}")
    return value


def claim_entries(
    rows: pl.DataFrame,
    *,
    threshold: float | None,
    labels: int | None,
    power: float,
    by: Sequence[str] = (),
    target: str = "pool",
    seed: int = 0,
) -> list[ClaimPlanEntry]:
    """Return a plan for every model, method and group of a pool.

    Parameters
    ----------
    rows
        Columns ``model``, ``method``, ``confidence`` and those of `by`; outcomes are not used.
    threshold
        The claim's threshold, or None.
    labels
        Labels at hand, or None.
    power
        Chance with which the claim shall be shown.
    by
        Columns whose values are planned for one by one.
    target, seed
        As in `calibrant.labels.labels_for_claim`.
    """
    entries = []
    for part in rows.partition_by(["model", "method"], maintain_order=True):
        keys = {name: str(part[name][0]) for name in ("model", "method")}
        groups: list[tuple[dict[str, str] | None, pl.DataFrame]] = [(None, part)]
        for name in by:
            if name not in part.columns:
                raise InputError(f"there is no column {name!r} to plan by")
            by_value = part.partition_by(name, maintain_order=True)
            groups += [({name: str(group[name][0])}, group) for group in by_value]
        for group, members in groups:
            p = members["confidence"].cast(pl.Float64).to_numpy()
            goal, at_hand = (threshold, labels) if p.size >= 2 else (None, None)
            labels_needed = None if goal is None else _needed(p, goal, power, target, seed)
            shows = None if at_hand is None else _shows(p, at_hand, goal, power, target, seed)
            n = int(p.size)
            entry = ClaimPlanEntry(**keys, group=group, items=n, needed=labels_needed, shows=shows)
            entries.append(entry)
    return entries


def _needed(p: Floats, threshold: float, power: float, target: str, seed: int) -> ClaimNeeds:
    calibrated, half = (
        labels_for_claim(p, threshold, power=power, true_error=error, target=target, seed=seed)
        for error in (0.0, threshold / 2)
    )
    return ClaimNeeds(threshold=threshold, power=power, calibrated=calibrated, half=half)


def _shows(
    p: Floats, labels: int, threshold: float | None, power: float, target: str, seed: int
) -> LabelsShow:
    count = min(labels, p.size) if target == "pool" else labels
    reach, half = (
        claim_for_labels(p, count, power=power, share=share, target=target, seed=seed)
        for share in (0.0, 0.5)
    )
    if reach is not None and half is not None:
        # Of a few labels, an error may by luck look smaller than none.
        half = max(half, reach)
    chance = None
    if threshold is not None:
        calibrated, halved = (
            claim_chance(p, count, threshold, true_error=error, target=target, seed=seed)
            for error in (0.0, threshold / 2)
        )
        chance = ClaimChance(threshold=threshold, calibrated=calibrated, half=halved)
    return LabelsShow(labels=count, power=power, calibrated=reach, half=half, chance=chance)
