"""One palette and one look for all figures: colour-blind safe, calm, readable in print."""

from __future__ import annotations

from typing import Any

__all__ = ["BAND", "FIRST", "GREY", "PALETTE", "SECOND", "THIRD", "frame"]

# Okabe and Ito's palette: distinguishable with every common form of colour blindness.
FIRST, SECOND, THIRD = "#0072B2", "#D55E00", "#009E73"
PALETTE = [FIRST, SECOND, THIRD, "#CC79A7", "#E69F00", "#56B4E9", "#332288", "#999999"]
GREY, BAND = "#7a7a7a", "#bdbdbd"


def frame(spec: dict[str, Any], *, width: int | str = 340, height: int = 300) -> dict[str, Any]:
    """Return a Vega-Lite specification with the common look."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "config": {
            "background": None,
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": {
                "labelFontSize": 12,
                "titleFontSize": 12,
                "titleFontWeight": "normal",
                "gridOpacity": 0.35,
                "labelColor": GREY,
                "titleColor": GREY,
                "domainColor": BAND,
                "tickColor": BAND,
                "gridColor": BAND,
            },
            "legend": {"labelColor": GREY, "titleColor": GREY, "labelFontSize": 12},
            "header": {"labelColor": GREY, "titleColor": GREY},
            "range": {"category": PALETTE},
        },
        **spec,
    }
