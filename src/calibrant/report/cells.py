"""Tables of cells that stay numbers until a writer takes them, and the sentences between them."""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct, convert
from msgspec.structs import replace

from calibrant.findings.documents.entries import EstimateEntry
from calibrant.report.answers import claims_of

# The least p-value that the law of the error tells apart.
_LEAST_P = 1e-10

Estimated = EstimateEntry | Mapping[str, Any]
Unit = Literal["share", "points", "probability", "p", "count", "money", "seconds"]
Form = Literal["whole", "stacked", "half", "bare"]
"""An interval beside its number, below it, as half its width, or left out."""


class Number(Struct, frozen=True):
    """A number, the ends of its interval, and what it counts.

    `mark`: a word or sign that belongs to it (``tie``). `missing`: what is said without a value.
    `words`: how it is said where digits alone would not do (``3 of 12``).
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "probability"
    digits: int = 3
    signed: bool = False
    mark: str = ""
    missing: str = "undefined"
    words: str = ""

    @property
    def head(self) -> str:
        """Return the number alone, with its unit."""
        if self.value is None:
            return self.missing
        return self.words or self._signed(self.value) + self._percent

    @property
    def ends(self) -> tuple[str, str] | None:
        """Return the ends of the interval as they are written; None where one is not known."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return self._plain(self.low), self._plain(self.high)

    @property
    def tail(self) -> str:
        """Return its mark, parted from what stands before it."""
        return f" {self.mark}" if self.mark else ""

    def write(self, form: Form = "whole") -> str:
        """Return the number in one of the forms that differ by their width.

        Examples
        --------
        >>> number = Number(0.731, 0.68, 0.77, "share", digits=1)
        >>> [number.write(form) for form in ("whole", "half", "bare")]
        ['73.1 % [68.0, 77.0]', '73.1 ± 4.5 %', '73.1 %']
        """
        ends = self.ends
        if ends is None or form == "bare":
            return self.head + self.tail
        if form == "half":
            half = self._plain(((self.high or 0.0) - (self.low or 0.0)) / 2)
            return f"{self._signed(self.value or 0.0)} ± {half}{self._percent}{self.tail}"
        interval = f"[{', '.join(ends)}]"
        if form == "stacked":
            return f"{self.head}{self.tail}\n{interval}"
        return f"{self.head} {interval}{self.tail}"

    def __str__(self) -> str:
        return self.write()

    @property
    def _percent(self) -> str:
        return " %" if self.unit == "share" else ""

    def _signed(self, value: float) -> str:
        return self._plain(value, sign="+" if self.signed else "")

    def _plain(self, value: float, sign: str = "") -> str:
        if self.unit in ("share", "points"):
            return f"{100 * value:{sign}.{self.digits}f}"
        if self.unit == "p":
            if value <= _LEAST_P:
                return "<1e-10"
            return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"
        if self.unit == "money":
            return f"${value:,.2f}" if value >= 0.01 or value == 0 else f"${value:.4f}"
        if self.unit == "seconds":
            return f"{value:.{self.digits}f} s"
        if self.unit == "count":
            return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"
        return f"{value:{sign}.{self.digits}f}"


class Name(Struct, frozen=True):
    """What a row or column is about: its id in the document, and the words that are shown."""

    id: str
    words: str

    def __str__(self) -> str:
        return self.words


class Text(Struct, frozen=True):
    """Words that were cut to fit a line, and the whole of them, which a page shows when asked."""

    words: str
    whole: str

    def __str__(self) -> str:
        return self.words


Cell = str | Number | Name | Text


def written(cell: Cell, form: Form = "whole") -> str:
    """Return a cell as text."""
    return cell.write(form) if isinstance(cell, Number) else str(cell)


def number_cell(value: float | None, *, digits: int = 3, missing: str = "undefined") -> Number:
    """Return a number without an interval: a whole one is a count.

    Examples
    --------
    >>> str(number_cell(None)), str(number_cell(0.12345)), str(number_cell(1200))
    ('undefined', '0.123', '1,200')
    """
    unit: Unit = "count" if isinstance(value, int) else "probability"
    return Number(value, unit=unit, digits=digits, missing=missing)


def estimate_cell(estimate: Estimated | None, *, digits: int = 3, mark: str = "") -> Number:
    """Return an estimate with its interval; that it has none is said.

    Examples
    --------
    >>> str(estimate_cell({"value": 0.1, "low": 0.08, "high": 0.13}))
    '0.100 [0.080, 0.130]'
    """
    number = _of(estimate, Number(None, digits=digits, mark=mark))
    if number.value is None or number.ends is not None:
        return number
    return replace(number, low=None, high=None, mark=f"[no interval]{number.tail}")


def share_cell(share: float | None, *, digits: int = 0) -> Number:
    """Return a share in percent.

    Examples
    --------
    >>> str(share_cell(0.731)), str(share_cell(0.00412, digits=1)), str(share_cell(None))
    ('73 %', '0.4 %', 'undefined')
    """
    return Number(share, unit="share", digits=digits)


def percent_cell(estimate: Estimated | None) -> Number:
    """Return an estimated share in percent, with its interval."""
    return _of(estimate, Number(None, unit="share", digits=1))


def points_cell(estimate: Estimated | None, *, sign: bool = True) -> Number:
    """Return an estimated difference of shares in points, with its interval.

    Examples
    --------
    >>> str(points_cell({"value": 0.0312, "low": -0.01, "high": 0.08}))
    '+3.1 [-1.0, 8.0]'
    """
    return _of(estimate, Number(None, unit="points", digits=1, signed=sign))


def p_cell(p_value: float | None) -> Number:
    """Return a p-value: small ones by their size, the least one as a bound.

    Examples
    --------
    >>> [str(p_cell(p)) for p in (0.0312, 0.00004, 1e-10, None)]
    ['0.031', '4e-05', '<1e-10', 'none']
    """
    return Number(p_value, unit="p", missing="none")


def money_cell(cost: float | None) -> Number:
    """Return a sum of dollars.

    Examples
    --------
    >>> str(money_cell(12.5)), str(money_cell(0.0004)), str(money_cell(None))
    ('$12.50', '$0.0004', 'unknown')
    """
    return Number(cost, unit="money", missing="unknown")


def said_cell(value: float | None, words: str) -> Number:
    """Return a number that is sorted by its value and said in words.

    Examples
    --------
    >>> str(said_cell(2, "2 to 4"))
    '2 to 4'
    """
    return Number(value, words=words, missing=words)


def rank_cell(low: int, high: int) -> Number:
    """Return a rank, or the ranks that the data leave open."""
    return said_cell(low, str(low) if low == high else f"{low} to {high}")


def _of(estimate: Estimated | None, form: Number) -> Number:
    if estimate is None:
        return form
    if isinstance(estimate, Mapping):
        estimate = convert(estimate, EstimateEntry)
    return replace(form, value=estimate.value, low=estimate.low, high=estimate.high)


Columns = Mapping[str, str | Callable[[Any], Cell]]
"""Title of each column, and the key (or path) of an entry, or what makes a cell of the entry."""


class Paragraph(Struct, frozen=True):
    """A paragraph; `strong` for the verdict, `requested` as in a table."""

    text: str
    strong: bool = False
    requested: bool = False


class Table(Struct, frozen=True):
    """A table of cells. The first `labels` columns are names, the others numbers.

    `main`: the one table of the short view, where it is not the first. `requested`: an option asked
    for this by name, so that the short view has it too.
    `whole_names`: in a narrow terminal the last columns give way before names are cut.
    `folded`: a page shows the title alone until the reader opens it (reasons, details).
    `name`: what the table is, for whoever looks for it.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    note: str = ""
    labels: int = 1
    whole_names: bool = False
    folded: bool = False
    main: bool = False
    requested: bool = False
    name: str = ""


Block = Paragraph | Table


def table_of(entries: Iterable[Any], columns: Columns, title: str = "", **about: Any) -> Table:
    """Return a table with a row per entry.

    Examples
    --------
    >>> table = table_of([{"model": "a", "n": 12}], {"model": "model", "rows": "n"})
    >>> table.columns, [str(cell) for cell in table.rows[0]]
    (('model', 'rows'), ['a', '12'])
    """
    rows = tuple(
        tuple(key(entry) if callable(key) else _cell(_part(entry, key)) for key in columns.values())
        for entry in entries
    )
    return Table(tuple(columns), rows, title, **about)


def _part(entry: Any, name: str) -> Any:
    return attrgetter(name)(entry) if isinstance(entry, Struct) else entry[name]


def _cell(value: Any) -> Cell:
    """Return the plain cell of a value: estimates with their interval, whole numbers as counts."""
    if isinstance(value, Mapping | EstimateEntry):
        return estimate_cell(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else number_cell(value)


def entry_name(entry: Any) -> str:
    """Return whose confidence an entry is about."""
    return f"{_part(entry, 'model')} / {_part(entry, 'method')}"


def claims_first(document: Mapping[str, Any]) -> list[Block]:
    """Return what a document claims, as its first paragraphs."""
    return [Paragraph(claim.text, strong=True) for claim in claims_of(document)]


def cut_text(text: str, letters: int) -> str:
    """Return a text on one line, cut between words where it is longer than `letters`.

    Examples
    --------
    >>> cut_text("Which river flows through the most capitals?", 24)
    'Which river flows ...'
    """
    line = " ".join(text.split())
    if len(line) <= letters:
        return line
    room = letters - 4
    head = line[:room]
    # A word that alone is longer than the room is cut inside.
    if line[room] != " " and " " in head:
        head = head.rsplit(" ", 1)[0]
    return f"{head.rstrip()} ..."
