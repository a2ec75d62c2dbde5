"""The plain sentence about two models: DA decides, IA corroborates, CA is a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["pair_verdict"]


def pair_verdict(entry: Mapping[str, Any]) -> str:
    """Say which model is better calibrated once accuracy is taken out, and how sure that is.

    The entry holds which model is ``better`` by view once all ``pairs`` count.
    """
    a, b = entry["a"], entry["b"]
    raw, da = entry["better"]["raw"], entry["better"]["da"]
    if da is None:
        below = abs(entry["gaps"]["da"]["ece"].value) < entry["floor"]
        limit = f", below the floor of {entry['floor']:.3f} for these labels" if below else ""
        alone = "" if entry["ties"]["da"]["ece"] else f"; {_alone(entry)}"
        text = (
            f"{a} and {b} cannot be told apart once accuracy is matched "
            f"({_size(entry, 'da')}{limit}{alone})"
        )
        if raw is not None:
            text += f": the raw advantage of {raw} ({_size(entry, 'raw')}) may be accuracy alone"
        return text + "."
    text = f"{da} is better calibrated than {b if da == a else a} at equal accuracy"
    text += f" ({_size(entry, 'da')})"
    if raw is not None and raw != da:
        text += f", although the raw error prefers {raw}"
    ia = entry["better"]["ia"]
    if ia is None:
        text += "; questions with shared outcome do not settle it"
    else:
        text += (
            "; questions with shared outcome agree"
            if ia == da
            else (f"; questions with shared outcome say {ia}, so treat this with care")
        )
    return text + "."


def _alone(entry: Mapping[str, Any]) -> str:
    return f"this pair alone would show it, among {entry['pairs']:,} pairs chance does as much"


def _size(entry: Mapping[str, Any], view: str) -> str:
    gap = entry["gaps"][view]["ece"]
    low, high = sorted((abs(gap.low), abs(gap.high)))
    if gap.low <= 0 <= gap.high:
        return f"ECE gap {gap.value:+.3f}, interval {gap.low:+.3f} to {gap.high:+.3f}"
    return f"ECE lower by {abs(gap.value):.3f}, interval {low:.3f} to {high:.3f}"
