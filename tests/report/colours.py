"""Colours of the page's style sheet, and how well one is read on another."""

import re
from importlib import resources

CSS = resources.files("calibrant.report").joinpath("assets", "page.css").read_text("utf-8")


def palette_of(scheme):
    """The custom colours of a scheme: the first :root block is light, the second dark."""
    blocks = re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL)
    light, dark = (dict(re.findall(r"(--\w+): (#[0-9a-f]{6})", block)) for block in blocks)
    return light if scheme == "light" else {**light, **dark}


def marks_of(scheme):
    """The colours of charts in a scheme."""
    style = resources.files("calibrant.report").joinpath("assets", "picture.css").read_text("utf-8")
    light, _, dark = style.partition("@media screen")
    found = dict(re.findall(r"(--p-[\w-]+): (#[0-9a-f]{6})", light))
    if scheme == "light":
        return found
    return {**found, **dict(re.findall(r"(--p-[\w-]+): (#[0-9a-f]{6})", dark))}


def contrast(first, second):
    """Contrast ratio of WCAG 2: 1 for equal colours, 21 for black on white."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour):
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
