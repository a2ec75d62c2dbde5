"""Figures of the comparison study."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl
from scipy.special import expit, logit

_PANELS = ("as answered", "distribution-aligned (DA)", "odds-shifted (OS)")


def two_calibrated(points: int = 400_000) -> alt.TopLevelMixin:
    """Draw reliability curves of two calibrated models as answered, under DA and under OS."""
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 1.2, points)
    rows = []
    chances = {
        "weak model, 50 % right": expit(-hard + rng.normal(0, 0.8, points)),
        "strong model, 75 % right": expit(1.55 - hard + rng.normal(0, 0.8, points)),
    }
    goal = min(float(p.mean()) for p in chances.values())
    for name, p in chances.items():
        a = float(p.mean())
        up, down = goal / a, (1 - goal) / (1 - a)
        weighted = p * up / (p * up + (1 - p) * down)
        said = {
            _PANELS[0]: (p, p, np.ones_like(p)),
            _PANELS[1]: (p, weighted, p * up + (1 - p) * down),
        }
        said[_PANELS[2]] = (expit(logit(p) + logit(goal) - logit(a)), *said[_PANELS[1]][1:])
        for panel, (c, r, w) in said.items():
            place = np.minimum((c * 15).astype(int), 14)
            weight = np.bincount(place, w, 15)
            held = weight > 0.002 * points
            rows += [
                {"panel": panel, "model": name, "says": x, "is right": y}
                for x, y in zip(
                    (np.bincount(place, w * c, 15) / np.maximum(weight, 1))[held],
                    (np.bincount(place, w * r, 15) / np.maximum(weight, 1))[held],
                    strict=True,
                )
            ]
    table = pl.DataFrame(rows)
    percent = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    charts = []
    for panel in _PANELS:
        line = (
            alt.Chart(table.filter(pl.col("panel") == panel))
            .mark_line(point=True)
            .encode(
                x=alt.X("says:Q", axis=percent, scale=alt.Scale(domain=[0, 1])),
                y=alt.Y("is right:Q", axis=percent, scale=alt.Scale(domain=[0, 1])),
                color=alt.Color(
                    "model:N",
                    scale=alt.Scale(range=["#b3542e", "#2e6fb3"]),
                    legend=alt.Legend(orient="bottom", title=None),
                ),
            )
        )
        diagonal = (
            alt.Chart(pl.DataFrame({"says": [0.0, 1.0], "is right": [0.0, 1.0]}))
            .mark_line(color="#999", strokeDash=[4, 4])
            .encode(x="says:Q", y="is right:Q")
        )
        charts.append((diagonal + line).properties(width=230, height=230, title=panel))
    return alt.hconcat(*charts)


def scatter(pairs: list[dict[str, Any]]) -> alt.TopLevelMixin:
    """Draw raw against distribution-aligned gaps; colours say what the verdict is."""
    table = pl.DataFrame(
        [
            {
                "raw ECE gap": pair["gaps"]["raw"]["ece"]["value"],
                "aligned ECE gap": pair["gaps"]["da"]["ece"]["value"],
                "verdict": _told(pair),
            }
            for pair in pairs
        ]
    )
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]}))
    return (
        zero.mark_rule(color="#999").encode(x="zero:Q")
        + zero.mark_rule(color="#999").encode(y="zero:Q")
        + alt.Chart(table)
        .mark_point(size=60, filled=True)
        .encode(x="raw ECE gap:Q", y="aligned ECE gap:Q", color="verdict:N")
    ).properties(width=420, height=320)


def _told(pair: dict[str, Any]) -> str:
    if pair["verdict"] != "better":
        return str(pair["verdict"])
    return "first is better" if pair["winner"] == pair["a"] else "second is better"
