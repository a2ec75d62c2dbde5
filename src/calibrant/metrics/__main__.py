"""Write the table of metrics of the documentation: `python -m calibrant.metrics`."""

from pathlib import Path

from calibrant.metrics.blocks.families import Metric
from calibrant.metrics.registry import METRICS

PAGE = Path("docs/metrics.md")
_BEGIN, _END = "<!-- metrics: begin -->\n", "<!-- metrics: end -->\n"
_BETTER = {"low": "lower", "high": "higher", "zero": "nearer to 0", "neither": "-"}
_AUDIT = {"always": "yes", "asked": "`--metrics`", "never": "no"}


def metric_table() -> str:
    """Return every metric as a row of a Markdown table."""
    head = ["| metric | what it is | range | better | takes | in every audit |", "|" + " --- |" * 6]
    return "\n".join([*head, *map(_row, METRICS.values())]) + "\n"


def _row(metric: Metric) -> str:
    cells = (
        f"`{metric.name}`",
        metric.words,
        "{:g} to {:g}".format(*metric.range).replace("inf", "infinity"),
        _BETTER[metric.better],
        "probabilities" if metric.probability else "any score",
        _AUDIT[metric.audit],
    )
    return f"| {' | '.join(cells)} |"


def page_with_table(text: str) -> str:
    """Return the page with its table as it is now."""
    before, _, tail = text.partition(_BEGIN)
    return f"{before}{_BEGIN}{metric_table()}{_END}{tail.partition(_END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
