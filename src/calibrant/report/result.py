"""What every verb returns: a frozen document that can be printed, saved and rendered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.core.document import dump_document, kind_of, plain
from calibrant.core.output import writing

__all__ = ["Result"]


class Result(Mapping[str, Any]):
    """The result of a verb: plain data with a schema, read like a dict, and the ways to look at it.

    Examples
    --------
    >>> result = Result({"schema": "calibrant.audit/1", "results": []})
    >>> result.kind
    'audit'
    >>> result["results"], list(result), "seed" in result
    ([], ['schema', 'results'], False)
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document: dict[str, Any] = plain(document)
        self.kind = kind_of(self._document)

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain data."""
        return self._document

    def to_json(self, path: str | Path) -> None:
        """Write the document as JSON."""
        with writing(path):
            Path(path).write_bytes(dump_document(self._document))

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as one self-contained page, and write it where `path` is given."""
        from calibrant.report import render_html

        page = render_html([self._document])
        if path is not None:
            with writing(path):
                Path(path).write_text(page, encoding="utf-8")
        return page

    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        from calibrant.report import render_markdown

        return render_markdown(self._document)

    def __str__(self) -> str:
        from calibrant.report import render_text

        return render_text(self._document)

    __repr__ = __str__
