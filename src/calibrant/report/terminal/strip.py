"""The table of an audit in a terminal: right, says, gap, and both on a strip of characters."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap

from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text

from calibrant.core.errors import InputError, did_you_mean
from calibrant.core.names import method_legend
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.fields import AuditFields
from calibrant.metrics.registry import METRICS
from calibrant.report import answers
from calibrant.report.cells import Cell, Name, Number, Table, points_cell
from calibrant.report.names import cut_cells, short_names, without_shared_start
from calibrant.report.terminal._fit import more_rows, safe_text, shared_out

STYLES = {
    "over_confident": "bold red",
    "miscalibrated": "bold red",
    "alarm": "bold red",
    "under_confident": "bold blue",
    "calibrated": "bold green",
    "equivalent": "bold green",
    "shown": "bold",
}
_NAMES = {"right": "accuracy", "says": "mean_confidence", "confidence": "mean_confidence",
          "gap": "confidence_gap"}  # fmt: skip
# right, says, AUROC, and the spaces between the columns; the gap with its half-width is measured.
_NUMBERS = 1 + 6 + 6 + 1 + 1 + 6 + 2
_LEAST_GAP = 9
_LEAST_STRIP, _MOST_STRIP = 12, 40
_LEAST_NAME = 14
_SLASH = " / "
_LEGEND_LINES = 3
_OF_ALL = "right: of all graded answers; gap, error, AUROC: of those with a confidence"
# Names give way to the strip down to this width, and the strip to names below it.
_GOOD_STRIP, _GOOD_NAME = 18, 22


def audit_lines(document: AuditFields, width: int, *, top: int, sort: str | None) -> list[Text]:
    """Return head, rows and legend; rows beyond `top` are cut in the middle, which is said."""
    entries = _sorted(document.blocks, sort)
    column = _column(sort)
    several = {name: len({getattr(e, name) for e in entries}) > 1 for name in ("model", "method")}
    visible: list[AuditBlock | None] = list(entries)
    if len(entries) > top:
        half = top // 2
        # Both ends of what has a gap: scores that are no probability are cut first.
        ranking = [entry for entry in entries if _value(entry, "confidence_gap") is not None]
        ends = ranking if len(ranking) >= top and sort is None else entries
        visible = [*ends[: top - half], None, *(ends[-half:] if half else ())]
    names = {id(entry): _name(entry, several) for entry in visible if entry is not None}
    longest = max(cell_len(_SLASH.join(parts)) for parts in names.values())
    gap = max(_LEAST_GAP, *(len(_gap(entry)) for entry in visible if entry is not None))
    room = width - _NUMBERS - gap - _metric_width(column)
    good = _GOOD_STRIP if max(map(len, names.values())) == 1 else _LEAST_STRIP
    short = _short_names(names, max(min(longest, max(room - good, _GOOD_NAME)), _LEAST_NAME))
    name = max(_LEAST_NAME, *map(cell_len, short.values()))
    strip = min(room - name, _MOST_STRIP)
    claims = answers.claims_by_entry(document.claims or [])
    title, wide = _metric_title(column), _metric_width(column)
    scale = f"0 %{'':{strip - 8}}100 %" if strip >= _LEAST_STRIP else ""
    words = f" {'':{name}} {'right':>5} {'says':>5} {'gap':>{gap}} {title:>{wide}} {'AUROC':>5}"
    lines = [Text(f"{words}  {scale}".rstrip(), style="dim")]
    for entry in visible:
        if entry is None:
            cut = more_rows(len(entries) - top, len(entries))
            lines.append(Text(cut, style="dim"))
        else:
            tone = answers.entry_tone(entry, claims)
            called = cut_cells(short[id(entry)], name)
            lines.append(_row(entry, called, strip, column, tone, gap))
    told_of = [entry for entry in visible if entry is not None]
    remainder = (
        [Text(f" {_OF_ALL}", style="dim")] if any(map(answers.graded_without, told_of)) else []
    )
    return [*lines, _legend(document, strip, width), *remainder, *_methods(told_of, several, width)]


def audit_table(document: AuditFields) -> Table:
    """Return the same rows without the strip, best first."""
    entries = _sorted(document.blocks, None)
    several = {name: len({getattr(e, name) for e in entries}) > 1 for name in ("model", "method")}
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            Name(answers.key_of(entry), _SLASH.join(_name(entry, several))),
            *(
                Number(_value(entry, name), unit="share", digits=0, missing="–")
                for name in ("accuracy", "mean_confidence")
            ),
            replace(points_cell(entry.metric("confidence_gap")), missing="–"),
            Number(_value(entry, "error"), unit="points", digits=1, missing="–"),
            Number(_value(entry, "auroc"), digits=2, missing="–"),
        )
        for entry in entries
    )
    return Table(("", "right", "says", "gap, points", "error, points", "AUROC"), rows)


def _sorted(results: list[AuditBlock], sort: str | None) -> list[AuditBlock]:
    entries = [e for e in results if e.group] or results
    if sort in ("name", "model"):
        return sorted(entries, key=lambda e: (e.model, e.method))
    metric = _metric_named(sort or "gap")
    metric_names = dict.fromkeys(name for entry in entries for name in entry.metrics)
    if sort is not None and metric not in metric_names:
        raise InputError(
            f"there is no metric {sort!r} to sort by", hint=did_you_mean(sort, list(metric_names))
        )
    sign = -1 if metric in METRICS and METRICS[metric].better == "high" else 1
    size = abs if metric == "confidence_gap" else float

    def rank(entry: AuditBlock) -> tuple[bool, float]:
        value = _value(entry, metric)
        return value is None, sign * size(value or 0.0)

    return sorted(entries, key=rank)


def _metric_named(words: str) -> str:
    return _NAMES.get(words.lower(), words.lower().replace(" ", "_"))


def _column(sort: str | None) -> str:
    """Return the metric beside AUROC: the one that is sorted by, or else the error over cells."""
    metric = _metric_named(sort or "")
    usual = ("", "name", "model", "accuracy", "mean_confidence", "confidence_gap", "auroc")
    return "error" if metric in usual else metric


def _value(entry: AuditBlock, metric: str) -> float | None:
    return entry.metric(metric).value


def _name(entry: AuditBlock, several: Mapping[str, bool]) -> tuple[str, ...]:
    """Return model, method and group of a row, as far as they tell it from the others."""
    group = answers.group_words(entry.group)
    model = entry.model if several["model"] or not group else ""
    method = entry.method.removesuffix("_confidence") if several["method"] else ""
    if several["method"] and not several["model"] and not group:
        model = ""
    parts = tuple(safe_text(part) for part in (model, method, group) if part)
    return parts or (entry.model,)


def _metric_title(column: str) -> str:
    return {"ece": "ECE"}.get(column, column.replace("_", " "))


def _metric_width(column: str) -> int:
    return max(5, len(_metric_title(column)))


def _row(entry: AuditBlock, name: str, strip: int, column: str, tone: str, gap: int) -> Text:
    right, confidence = _value(entry, "accuracy"), _value(entry, "mean_confidence")
    style = STYLES.get(tone, "")
    line = Text(f" {name} {_percent(right):>5} {_percent(confidence):>5} ")
    line.append(f"{_gap(entry):>{gap}}", style=style)
    metric = f"{_metric(entry, column):>{_metric_width(column)}}"
    line.append(f" {metric} {_metric(entry, 'auroc'):>5}  ")
    if strip >= _LEAST_STRIP and right is not None and confidence is not None:
        line.append_text(_strip(right, confidence, strip, style))
    return line


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _gap(entry: AuditBlock) -> str:
    gap = entry.metric("confidence_gap")
    if gap.value is None:
        return "–"
    words = f"{100 * gap.value:+.0f}" if abs(gap.value) >= 0.01 else f"{100 * gap.value:+.1f}"
    if gap.low is None or gap.high is None:
        return words
    half = 50 * (gap.high - gap.low)
    return f"{words} ± {half:.0f}" if half >= 1 else f"{words} ± {half:.1f}"


def _metric(entry: AuditBlock, metric: str) -> str:
    value = _value(entry, metric)
    if value is None:
        return "–"
    in_points = metric in METRICS and METRICS[metric].unit == "points"
    return f"{100 * value:.1f}" if in_points else f"{value:.2f}"


def _strip(right: float, confidence: float, width: int, style: str) -> Text:
    """Return both shares on one line: a dot for right, a diamond for what is said."""
    places = [min(max(round(share * (width - 1)), 0), width - 1) for share in (right, confidence)]
    marks = ["·"] * width
    low, high = sorted(places)
    marks[low : high + 1] = "━" * (high - low + 1)
    marks[places[0]] = "●"
    marks[places[1]] = "◆"
    line = Text("".join(marks), style="dim")
    line.stylize(style or "bold", low, high + 1)
    return line


def _legend(document: AuditFields, strip: int, width: int) -> Text:
    signs = "● right  ◆ says   " if strip >= _LEAST_STRIP else ""
    level, rule = 100 * document.level, document.multiplicity
    words = f" {signs}gap and error in points, {level:.0f} % intervals"
    tests = rule.whole.tests + rule.groups.tests
    corrected = f"; {tests:,} tests corrected (Holm)"
    if tests > 3 and len(words + corrected) <= width:
        words += corrected
    return Text(words, style="dim")


def _methods(entries: Sequence[AuditBlock], several: Mapping[str, bool], width: int) -> list[Text]:
    """Say what the methods of the rows are, where there are several."""
    methods = method_legend(entry.method for entry in entries) if several["method"] else []
    lines = wrap(" · ".join(methods), width - 2, max_lines=_LEGEND_LINES, placeholder=" …")
    return [Text(f" {line}", style="dim") for line in lines]


def _short_names(names: Mapping[int, tuple[str, ...]], width: int) -> dict[int, str]:
    """Shorten model, method and group each on its own, so that all can be told from the others."""
    joined = {place: _SLASH.join(parts) for place, parts in names.items()}
    if max(map(cell_len, joined.values())) > width:
        columns = list(zip_longest(*names.values(), fillvalue=""))
        # What all models begin with goes first, then each part gives way, the longer one more.
        natural = [max(map(cell_len, without_shared_start(column).values())) for column in columns]
        rooms = shared_out(natural, width - len(_SLASH) * (len(columns) - 1))
        short = [short_names(*pair) for pair in zip(columns, rooms, strict=True)]
        joined = {
            place: _SLASH.join(forms[part] for forms, part in zip(short, parts, strict=False))
            for place, parts in names.items()
        }
    return joined
