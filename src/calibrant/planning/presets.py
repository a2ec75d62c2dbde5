"""Regulatory settings from the literature: illustrations, not legal advice."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.core.registry import Registry


@dataclass(frozen=True, slots=True)
class Preset:
    """What a framework would ask for.

    Parameters
    ----------
    title
        Name of the framework.
    groups, smallest_share
        Number of groups and share of the smallest.
    precision, error_rate
        Wanted precision within each group, and the error rate assumed.
    available
        Labels thought to exist.
    """

    title: str
    groups: int
    smallest_share: float
    precision: float
    error_rate: float
    available: int


PRESETS: Registry[Preset] = Registry("preset")
PRESETS.add("eu-ai-act", Preset("EU AI Act Annex III", 10, 0.05, 0.02, 0.05, 707_000))
PRESETS.add("nist-ai-rmf", Preset("NIST AI RMF", 5, 0.10, 0.01, 0.03, 500_000))
PRESETS.add("fda-samd", Preset("FDA SaMD", 8, 0.05, 0.01, 0.02, 707_000))
