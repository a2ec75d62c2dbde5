"""One palette and one look for all figures: colour-blind safe, calm, readable in print."""

from __future__ import annotations

from typing import Any

# Okabe and Ito's palette, the light and dark ones brought to a middle tone: distinguishable with
# every common form of colour blindness, and at least 3:1 on white and on the dark page.
FIRST, SECOND, THIRD = "#0072B2", "#D55E00", "#009E73"
PALETTE = [FIRST, SECOND, THIRD, "#C06C9B", "#B07A00", "#3A8FC4", "#7B62C9", "#5E7F2B"]
GREY, BAND = "#7a7a7a", "#bdbdbd"
TEXT = "#5f6368"
"""Words in exported figures; on a page they take the colour of the page's own words."""


def frame(spec: dict[str, Any], *, width: int | str = 340, height: int = 300) -> dict[str, Any]:
    """Return a Vega-Lite specification with the common look."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "config": {
            "background": "transparent",
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": {
                "labelFontSize": 12,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "gridOpacity": 0.35,
                # A label stays at its tick, so that the last two never meet.
                "labelFlush": False,
                "labelSeparation": 4,
                "labelColor": TEXT,
                "titleColor": TEXT,
                "domainColor": BAND,
                "tickColor": BAND,
                "gridColor": BAND,
            },
            "legend": {"labelColor": TEXT, "titleColor": TEXT, "labelFontSize": 12},
            "header": {"labelColor": TEXT, "titleColor": TEXT},
            "range": {"category": PALETTE},
        },
        **spec,
    }
