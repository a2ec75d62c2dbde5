"""Plans by claim, block by block: labels for a claim, and what labels can claim."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.errors import InputError
from calibrant.planning.labelling.power import claim_chance, claim_for_labels, labels_for_claim

_CLAIM = re.compile(r"\s*ece\s*<=?\s*([0-9.eE+-]+)\s*(%?)\s*")


def parse_claim(text: str) -> float:
    """Return the threshold of a claim such as ``ece<0.05``.

    Examples
    --------
    >>> parse_claim("ece<0.05"), parse_claim("ECE < 5 %")
    (0.05, 0.05)
    """
    found = _CLAIM.fullmatch(text.lower())
    try:
        value = float(found[1]) / (100 if found[2] else 1) if found else float("nan")
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
    bins: int = 15,
    target: str = "pool",
    seed: int = 0,
) -> list[dict[str, Any]]:
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
    bins, target, seed
        As in `calibrant.planning.labels_for_claim`.
    """
    entries = []
    for part in rows.partition_by(["model", "method"], maintain_order=True):
        keys = {name: str(part[name][0]) for name in ("model", "method")}
        groups: list[tuple[dict[str, str] | None, pl.DataFrame]] = [(None, part)]
        for name in by:
            if name not in part.columns:
                raise InputError(f"there is no column {name!r} to plan by")
            found = part.partition_by(name, maintain_order=True)
            groups += [({name: str(group[name][0])}, group) for group in found]
        for group, members in groups:
            p = members["confidence"].cast(pl.Float64).to_numpy()
            entry: dict[str, Any] = {**keys, "group": group, "items": int(p.size)}
            if p.size < 2:
                entries.append({**entry, "needed": None, "shows": None})
                continue
            options = {"bins": bins, "target": target, "seed": seed}
            entry["needed"] = _needed(p, threshold, power, options)
            entry["shows"] = _shows(p, labels, threshold, power, options)
            entries.append(entry)
    return entries


def _needed(
    p: np.ndarray[Any, Any], threshold: float | None, power: float, options: dict[str, Any]
) -> dict[str, Any] | None:
    if threshold is None:
        return None
    return {
        "threshold": threshold,
        "power": power,
        "calibrated": labels_for_claim(p, threshold, power=power, **options).to_dict(),
        "half": labels_for_claim(
            p, threshold, power=power, true_error=threshold / 2, **options
        ).to_dict(),
    }


def _shows(
    p: np.ndarray[Any, Any],
    labels: int | None,
    threshold: float | None,
    power: float,
    options: dict[str, Any],
) -> dict[str, Any] | None:
    if labels is None:
        return None
    made = min(labels, p.size) if options["target"] == "pool" else labels
    reach = claim_for_labels(p, made, power=power, **options)
    half = claim_for_labels(p, made, power=power, share=0.5, **options)
    if reach is not None and half is not None:
        # Of a few labels, an error may by luck look smaller than none.
        half = max(half, reach)
    found: dict[str, Any] = {
        "labels": made,
        "power": power,
        "calibrated": reach,
        "half": half,
        "chance": None,
    }
    if threshold is not None:
        found["chance"] = {
            "threshold": threshold,
            "calibrated": claim_chance(p, made, threshold, **options),
            "half": claim_chance(p, made, threshold, true_error=threshold / 2, **options),
        }
    return found
